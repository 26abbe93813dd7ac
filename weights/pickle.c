#include <string.h>

#include "kernels/sys/base.h"
#include "weights/pickle.h"
#include "weights/table.h"

/* The object budget of one pickle, and the newest protocol. */
enum { OBJECTS_MAX = 1 << 18, PROTO_MAX = 5 };

/* The opcodes, with the names of pickletools. */
enum {
    MARK = '(',
    STOP = '.',
    POP = '0',
    POP_MARK = '1',
    DUP = '2',
    BINBYTES = 'B',
    SHORT_BINBYTES = 'C',
    BINFLOAT = 'G',
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    NONE = 'N',
    BINPERSID = 'Q',
    REDUCE = 'R',
    BINSTRING = 'T',
    SHORT_BINSTRING = 'U',
    BINUNICODE = 'X',
    EMPTY_LIST = ']',
    APPEND = 'a',
    BUILD = 'b',
    GLOBAL = 'c',
    DICT = 'd',
    APPENDS = 'e',
    BINGET = 'h',
    LONG_BINGET = 'j',
    LIST = 'l',
    BINPUT = 'q',
    LONG_BINPUT = 'r',
    SETITEM = 's',
    TUPLE = 't',
    SETITEMS = 'u',
    EMPTY_DICT = '}',
    EMPTY_TUPLE = ')',
    PROTO = 0x80,
    TUPLE1 = 0x85,
    TUPLE2 = 0x86,
    TUPLE3 = 0x87,
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    LONG1 = 0x8a,
    SHORT_BINUNICODE = 0x8c,
    BINUNICODE8 = 0x8d,
    STACK_GLOBAL = 0x93,
    MEMOIZE = 0x94,
    FRAME = 0x95
};

int pickle_fail(struct pickle *k, const char *what)
{
    return err_set(k->err, ERR_FORMAT, "%s: found %s at byte %zu", k->name, what, k->at);
}

int pickle_no_room(struct pickle *k)
{
    if (k->objects >= OBJECTS_MAX)
        return err_set(k->err, ERR_FORMAT, "%s: expected at most %d objects", k->name, OBJECTS_MAX);
    return err_set(k->err, ERR_NOMEM, "%s: out of memory", k->name);
}

/* Make room for element n of an array of pointers. The old array stays in the arena; all of them
 * together take at most twice the last one. */
static bool pickle_reserve(struct pickle *k, struct pval ***v, size_t *cap, size_t n)
{
    if (n < *cap)
        return true;
    size_t want = n < 8 ? 8 : n * 2;
    struct pval **p = table_alloc(k->mem, want * sizeof(struct pval *));
    if (!p)
        return false;
    if (*cap)
        memcpy(p, *v, *cap * sizeof(*p));
    *v = p;
    *cap = want;
    return true;
}

/* Take one from the object budget. Every object and every reference counts, so that DUP and APPENDS
 * cost as well. */
static bool pickle_spend(struct pickle *k)
{
    return k->objects < OBJECTS_MAX && ++k->objects < OBJECTS_MAX;
}

struct pval *pickle_value(struct pickle *k, enum pkind kind)
{
    struct pval *v = pickle_spend(k) ? table_alloc(k->mem, sizeof(*v)) : NULL;
    if (v)
        v->kind = kind;
    return v;
}

bool pickle_append(struct pickle *k, struct pval *seq, struct pval *v)
{
    if (!pickle_spend(k) || !pickle_reserve(k, &seq->u.seq.v, &seq->u.seq.cap, seq->u.seq.n))
        return false;
    seq->u.seq.v[seq->u.seq.n++] = v;
    return true;
}

/* Push v; NULL means that making it failed, and sets the error. */
static int pickle_push(struct pickle *k, struct pval *v)
{
    if (!v || !pickle_spend(k) || !pickle_reserve(k, &k->stack, &k->room, k->top))
        return pickle_no_room(k);
    k->stack[k->top++] = v;
    return OK;
}

static int push_int(struct pickle *k, enum pkind kind, int64_t i)
{
    struct pval *v = pickle_value(k, kind);
    if (v)
        v->u.i = i;
    return pickle_push(k, v);
}

/* Take the top value off the stack; NULL when it is a mark or the stack is empty. */
static struct pval *pickle_pop(struct pickle *k)
{
    if (!k->top || k->stack[k->top - 1]->kind == P_MARK)
        return NULL;
    return k->stack[--k->top];
}

/* Read n little-endian bytes as a number; false at the end of the pickle. */
static bool pickle_number(struct pickle *k, unsigned n, uint64_t *out)
{
    if (!size_within(k->at, n, k->n))
        return false;
    *out = le_get(k->p + k->at, n);
    k->at += n;
    return true;
}

/* Push a string whose length takes n bytes. It stays where it is in the pickle. */
static int push_text(struct pickle *k, enum pkind kind, unsigned n)
{
    uint64_t length;
    if (!pickle_number(k, n, &length) || length > k->n - k->at)
        return pickle_fail(k, "a string longer than the pickle");
    struct pval *v = pickle_value(k, kind);
    if (v)
        v->u.s = (struct str){ (const char *)k->p + k->at, (size_t)length };
    k->at += (size_t)length;
    return pickle_push(k, v);
}

/* Push a LONG1 integer: sign-extended up to 8 bytes, else as bytes. */
static int push_long(struct pickle *k)
{
    uint64_t n, v = 0;
    if (!pickle_number(k, 1, &n) || n > k->n - k->at)
        return pickle_fail(k, "an integer longer than the pickle");
    if (n > 8) {
        k->at--;
        return push_text(k, P_BYTES, 1);
    }
    pickle_number(k, (unsigned)n, &v);
    if (n && n < 8 && (v >> (8 * n - 1) & 1))
        v |= UINT64_MAX << (8 * n);
    return push_int(k, P_INT, (int64_t)v);
}

/* Replace the last mark and the values above it by one container of this kind. */
static int pickle_collect(struct pickle *k, enum pkind kind)
{
    size_t mark = k->top;
    while (mark && k->stack[mark - 1]->kind != P_MARK)
        mark--;
    if (!mark || (kind == P_DICT && (k->top - mark) % 2))
        return pickle_fail(k, "no mark where one should be");
    struct pval *v = pickle_value(k, kind);
    for (size_t i = mark; v && i < k->top; i++)
        if (!pickle_append(k, v, k->stack[i]))
            return pickle_no_room(k);
    k->top = mark - 1;
    return pickle_push(k, v);
}

/* Replace the last n values by a tuple. */
static int pickle_tuple(struct pickle *k, size_t n)
{
    struct pval *v = pickle_value(k, P_TUPLE), *item[3] = { NULL, NULL, NULL };
    for (size_t i = n; i-- > 0;)
        if (!(item[i] = pickle_pop(k)))
            return pickle_fail(k, "an empty stack");
    for (size_t i = 0; v && i < n; i++)
        if (!pickle_append(k, v, item[i]))
            return pickle_no_room(k);
    return pickle_push(k, v);
}

/* Add to the list or dict below: with `many` all values above the last mark, else the last one
 * (list) or two (dict). */
static int pickle_extend(struct pickle *k, enum pkind kind, bool many)
{
    size_t from = k->top, least = kind == P_DICT ? 2 : 1;
    if (many)
        while (from && k->stack[from - 1]->kind != P_MARK)
            from--;
    else
        from = k->top >= least ? k->top - least : 0;
    size_t below = many && from ? from - 1 : from, n = k->top - from;
    struct pval *to = below && from ? k->stack[below - 1] : NULL;
    if (!to || to->kind != kind || n % least || (!many && n != least))
        return pickle_fail(k, "items for something that is no list or dict");
    for (size_t i = from; i < k->top; i++) {
        if (k->stack[i]->kind == P_MARK)
            return pickle_fail(k, "a mark among items");
        if (!pickle_append(k, to, k->stack[i]))
            return pickle_no_room(k);
    }
    k->top = below;
    return OK;
}

/* Push an allowed global; any other is refused by its name. */
static int push_global(struct pickle *k, struct str module, struct str name)
{
    const struct pglobal *g = pickle_global(module, name);
    if (!g)
        return err_set(k->err, ERR_FORMAT,
                       "%s: expected tensors alone, found the global %.*s.%.*s, which is not "
                       "allowed; if this is a whole module, save its state_dict() instead",
                       k->name, (int)(module.n < 100 ? module.n : 100), module.p,
                       (int)(name.n < 100 ? name.n : 100), name.p);
    struct pval *v = pickle_value(k, P_GLOBAL);
    if (v)
        v->u.global = g;
    return pickle_push(k, v);
}

/* Read a line of text, as GLOBAL stores names. */
static bool pickle_line(struct pickle *k, struct str *out)
{
    const unsigned char *start = k->p + k->at, *end = memchr(start, '\n', k->n - k->at);
    if (!end)
        return false;
    *out = (struct str){ (const char *)start, (size_t)(end - start) };
    k->at += out->n + 1;
    return true;
}

/* GLOBAL has its two names as lines, STACK_GLOBAL as strings on the stack. */
static int pickle_find_global(struct pickle *k, int op)
{
    struct str module, name;
    if (op == GLOBAL) {
        if (!pickle_line(k, &module) || !pickle_line(k, &name))
            return pickle_fail(k, "a global without an end");
        return push_global(k, module, name);
    }
    struct pval *b = pickle_pop(k), *a = pickle_pop(k);
    if (!a || !b || a->kind != P_STR || b->kind != P_STR)
        return pickle_fail(k, "a global without a name");
    return push_global(k, a->u.s, b->u.s);
}

/* Store the top value in a memo slot: number n bytes long, or the next one for n = 0. */
static int pickle_memo_put(struct pickle *k, unsigned n)
{
    uint64_t i = n ? 0 : k->memoized++;
    if (n && !pickle_number(k, n, &i))
        return pickle_fail(k, "the end");
    if (!k->top || k->stack[k->top - 1]->kind == P_MARK || i > OBJECTS_MAX)
        return pickle_fail(k, "a memo of nothing");
    size_t cap = k->memos;
    if (i >= cap && (!pickle_reserve(k, &k->memo, &cap, (size_t)i) || !pickle_spend(k)))
        return pickle_no_room(k);
    k->memo[i] = k->stack[k->top - 1];
    k->memos = cap;
    return OK;
}

/* Push the value of memo slot number n bytes long. */
static int pickle_memo_get(struct pickle *k, unsigned n)
{
    uint64_t i;
    if (!pickle_number(k, n, &i) || i >= k->memos || !k->memo[i])
        return pickle_fail(k, "a memo that was never made");
    return pickle_push(k, k->memo[i]);
}

/* Interpret REDUCE, BINPERSID and BUILD. BUILD gives an OrderedDict attributes, which are
 * ignored. */
static int pickle_reduce(struct pickle *k, int op)
{
    struct pval *arg = pickle_pop(k), *f = op == BINPERSID ? arg : pickle_pop(k), *v = f;
    if (!arg || !f)
        return pickle_fail(k, "an empty stack");
    int code = OK;
    if (op == BINPERSID)
        code = pickle_storage(k, &v, arg);
    else if (op == REDUCE)
        code = pickle_call(k, &v, f, arg);
    else if (f->kind != P_DICT)
        code = pickle_fail(k, "attributes for something that is no OrderedDict");
    return code == OK ? pickle_push(k, v) : code;
}

/* Interpret the opcodes that push a scalar. Returns -100 for any other. */
static int pickle_scalar(struct pickle *k, int op)
{
    uint64_t v = 0;
    unsigned bytes = op == BININT     ? 4
                     : op == BININT1  ? 1
                     : op == BININT2  ? 2
                     : op == BINFLOAT ? 8
                                      : 0;
    if (bytes && !pickle_number(k, bytes, &v))
        return pickle_fail(k, "the end");
    switch (op) {
    case NONE:
        return push_int(k, P_NONE, 0);
    case NEWTRUE:
    case NEWFALSE:
        return push_int(k, P_BOOL, op == NEWTRUE);
    case BININT:
        return push_int(k, P_INT, (int32_t)(uint32_t)v);
    case BININT1:
    case BININT2:
        return push_int(k, P_INT, (int64_t)v);
    case BINFLOAT: /* no tensor depends on one, so its value is not kept */
        return push_int(k, P_FLOAT, 0);
    case LONG1:
        return push_long(k);
    case BINUNICODE:
    case BINSTRING:
        return push_text(k, P_STR, 4);
    case SHORT_BINUNICODE:
    case SHORT_BINSTRING:
        return push_text(k, P_STR, 1);
    case BINUNICODE8:
        return push_text(k, P_STR, 8);
    case BINBYTES:
        return push_text(k, P_BYTES, 4);
    case SHORT_BINBYTES:
        return push_text(k, P_BYTES, 1);
    default:
        return -100;
    }
}

/* Interpret the opcodes that make and fill containers. Returns -100 for any other. */
static int container(struct pickle *k, int op)
{
    switch (op) {
    case MARK:
        return push_int(k, P_MARK, 0);
    case EMPTY_TUPLE:
        return pickle_push(k, pickle_value(k, P_TUPLE));
    case EMPTY_LIST:
        return pickle_push(k, pickle_value(k, P_LIST));
    case EMPTY_DICT:
        return pickle_push(k, pickle_value(k, P_DICT));
    case TUPLE:
        return pickle_collect(k, P_TUPLE);
    case LIST:
        return pickle_collect(k, P_LIST);
    case DICT:
        return pickle_collect(k, P_DICT);
    case TUPLE1:
    case TUPLE2:
    case TUPLE3:
        return pickle_tuple(k, (size_t)(op - TUPLE1) + 1);
    case APPEND:
    case APPENDS:
        return pickle_extend(k, P_LIST, op == APPENDS);
    case SETITEM:
    case SETITEMS:
        return pickle_extend(k, P_DICT, op == SETITEMS);
    default:
        return -100;
    }
}

/* Interpret one opcode. */
static int pickle_step(struct pickle *k, int op)
{
    uint64_t v;
    int code = pickle_scalar(k, op);
    if (code == -100)
        code = container(k, op);
    if (code != -100)
        return code;
    switch (op) {
    case PROTO:
        return pickle_number(k, 1, &v) && v <= PROTO_MAX ? OK
                                                         : pickle_fail(k, "an unknown protocol");
    case FRAME:
        return pickle_number(k, 8, &v) ? OK : pickle_fail(k, "the end");
    case POP:
        return pickle_pop(k) ? OK : pickle_fail(k, "an empty stack");
    case POP_MARK:
        while (pickle_pop(k))
            ;
        return k->top-- ? OK : pickle_fail(k, "no mark where one should be");
    case DUP:
        return k->top ? pickle_push(k, k->stack[k->top - 1]) : pickle_fail(k, "an empty stack");
    case GLOBAL:
    case STACK_GLOBAL:
        return pickle_find_global(k, op);
    case REDUCE:
    case BUILD:
    case BINPERSID:
        return pickle_reduce(k, op);
    case BINPUT:
        return pickle_memo_put(k, 1);
    case LONG_BINPUT:
        return pickle_memo_put(k, 4);
    case MEMOIZE:
        return pickle_memo_put(k, 0);
    case BINGET:
        return pickle_memo_get(k, 1);
    case LONG_BINGET:
        return pickle_memo_get(k, 4);
    default:
        return err_set(k->err, ERR_FORMAT, "%s: the opcode 0x%02x at byte %zu is not allowed",
                       k->name, (unsigned)op, k->at - 1);
    }
}

int pickle_run(struct pval **out, struct pval **storages, size_t *used, struct weights *mem,
               const unsigned char *p, size_t n, const char *name, struct err *err)
{
    struct pickle k = { .mem = mem, .name = name, .p = p, .n = n, .err = err };
    k.storages = *storages = pickle_value(&k, P_LIST);
    if (!k.storages)
        return pickle_no_room(&k);
    while (k.at < n) {
        int op = p[k.at++];
        if (op == STOP) {
            *out = pickle_pop(&k);
            *used = k.at;
            return *out && !k.top ? OK : pickle_fail(&k, "a stop with no single result");
        }
        int code = pickle_step(&k, op);
        if (code != OK)
            return code;
    }
    return pickle_fail(&k, "no end of the pickle");
}
