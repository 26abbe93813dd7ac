#include <string.h>

#include "kernels/sys/base.h"
#include "weights/pickle.h"
#include "weights/table.h"

/* The object budget of one pickle, and the newest protocol. */
enum { OBJECTS_MAX = 1 << 18, PROTO_MAX = 5 };

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

/* Push a constant. */
static int push_constant(struct pickle *k, enum pkind kind, unsigned value)
{
    return push_int(k, kind, value);
}

/* Push an integer of n bytes, of which those of four have a sign. */
static int push_number(struct pickle *k, enum pkind kind, unsigned n)
{
    uint64_t v;
    if (!pickle_number(k, n, &v))
        return pickle_fail(k, "the end");
    return push_int(k, kind, n == 4 ? (int32_t)(uint32_t)v : (int64_t)v);
}

/* Push a float: n bytes, the highest one first. */
static int push_float(struct pickle *k, enum pkind kind, unsigned n)
{
    uint64_t bits, turned = 0;
    if (!pickle_number(k, n, &bits))
        return pickle_fail(k, "the end");
    for (unsigned i = 0; i < n; i++, bits >>= 8)
        turned = turned << 8 | (bits & 0xff);
    struct pval *v = pickle_value(k, kind);
    if (v)
        memcpy(&v->u.f, &turned, sizeof(v->u.f));
    return pickle_push(k, v);
}

/* Push a LONG1 integer: sign-extended up to 8 bytes, else as bytes. */
static int push_long(struct pickle *k, enum pkind kind, unsigned bytes)
{
    uint64_t n, v = 0;
    if (!pickle_number(k, bytes, &n) || n > k->n - k->at)
        return pickle_fail(k, "an integer longer than the pickle");
    if (n > 8) {
        k->at -= bytes;
        return push_text(k, P_BYTES, bytes);
    }
    pickle_number(k, (unsigned)n, &v);
    if (n && n < 8 && (v >> (8 * n - 1) & 1))
        v |= UINT64_MAX << (8 * n);
    return push_int(k, kind, (int64_t)v);
}

/* Push an empty container. */
static int push_empty(struct pickle *k, enum pkind kind, unsigned n)
{
    (void)n;
    return pickle_push(k, pickle_value(k, kind));
}

/* Replace the last mark and the values above it by one container of this kind. */
static int pickle_collect(struct pickle *k, enum pkind kind, unsigned n)
{
    size_t mark = k->top;
    (void)n;
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
static int pickle_tuple(struct pickle *k, enum pkind kind, unsigned n)
{
    struct pval *v = pickle_value(k, kind), *item[3] = { NULL, NULL, NULL };
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
static int pickle_extend(struct pickle *k, enum pkind kind, unsigned many)
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

/* One opcode has the two names as lines, the other as strings on the stack. */
static int pickle_find_global(struct pickle *k, enum pkind kind, unsigned lines)
{
    struct str module, name;
    (void)kind;
    if (lines) {
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
static int pickle_memo_put(struct pickle *k, enum pkind kind, unsigned n)
{
    (void)kind;
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
static int pickle_memo_get(struct pickle *k, enum pkind kind, unsigned n)
{
    uint64_t i;
    (void)kind;
    if (!pickle_number(k, n, &i) || i >= k->memos || !k->memo[i])
        return pickle_fail(k, "a memo that was never made");
    return pickle_push(k, k->memo[i]);
}

/* Call the global below the arguments, or give it attributes: an OrderedDict, which alone has some,
 * stays as it is. */
static int pickle_reduce(struct pickle *k, enum pkind kind, unsigned call)
{
    struct pval *arg = pickle_pop(k), *f = pickle_pop(k), *v = f;
    (void)kind;
    if (!arg || !f)
        return pickle_fail(k, "an empty stack");
    int code = OK;
    if (call)
        code = pickle_call(k, &v, f, arg);
    else if (f->kind != P_DICT)
        code = pickle_fail(k, "attributes for something that is no OrderedDict");
    return code == OK ? pickle_push(k, v) : code;
}

/* Replace a persistent id by the storage that it names. */
static int pickle_named(struct pickle *k, enum pkind kind, unsigned n)
{
    struct pval *id = pickle_pop(k), *v;
    (void)kind, (void)n;
    if (!id)
        return pickle_fail(k, "an empty stack");
    int code = pickle_storage(k, &v, id);
    return code == OK ? pickle_push(k, v) : code;
}

/* Take one value off the stack, or all down to a mark. */
static int pickle_drop(struct pickle *k, enum pkind kind, unsigned many)
{
    (void)kind;
    if (!many)
        return pickle_pop(k) ? OK : pickle_fail(k, "an empty stack");
    while (pickle_pop(k))
        ;
    return k->top-- ? OK : pickle_fail(k, "no mark where one should be");
}

static int pickle_twice(struct pickle *k, enum pkind kind, unsigned n)
{
    (void)kind, (void)n;
    return k->top ? pickle_push(k, k->stack[k->top - 1]) : pickle_fail(k, "an empty stack");
}

/* Read the protocol, of one byte, or the length of a frame, which is not needed. */
static int pickle_skip(struct pickle *k, enum pkind kind, unsigned n)
{
    uint64_t v;
    (void)kind;
    if (!pickle_number(k, n, &v))
        return pickle_fail(k, n == 1 ? "an unknown protocol" : "the end");
    return n == 1 && v > PROTO_MAX ? pickle_fail(k, "an unknown protocol") : OK;
}

/* The opcodes, with the names of pickletools in words: what each does, to which kind of value, and
 * a number, mostly the bytes of the operand. All others are refused. */
static const struct opcode {
    int (*run)(struct pickle *k, enum pkind kind, unsigned n);
    enum pkind kind;
    unsigned n;
} opcodes[256] = {
    [0x80] = { pickle_skip, P_NONE, 1 },              /* PROTO */
    [0x95] = { pickle_skip, P_NONE, 8 },              /* FRAME */
    ['N'] = { push_constant, P_NONE, 0 },             /* NONE */
    [0x88] = { push_constant, P_BOOL, 1 },            /* NEWTRUE */
    [0x89] = { push_constant, P_BOOL, 0 },            /* NEWFALSE */
    ['('] = { push_constant, P_MARK, 0 },             /* MARK */
    ['K'] = { push_number, P_INT, 1 },                /* BININT1 */
    ['M'] = { push_number, P_INT, 2 },                /* BININT2 */
    ['J'] = { push_number, P_INT, 4 },                /* BININT */
    ['G'] = { push_float, P_FLOAT, 8 },               /* BINFLOAT */
    [0x8a] = { push_long, P_INT, 1 },                 /* LONG1 */
    [0x8c] = { push_text, P_STR, 1 },                 /* SHORT BINUNICODE */
    ['X'] = { push_text, P_STR, 4 },                  /* BINUNICODE */
    [0x8d] = { push_text, P_STR, 8 },                 /* BINUNICODE8 */
    ['U'] = { push_text, P_STR, 1 },                  /* SHORT BINSTRING */
    ['T'] = { push_text, P_STR, 4 },                  /* BINSTRING */
    ['C'] = { push_text, P_BYTES, 1 },                /* SHORT BINBYTES */
    ['B'] = { push_text, P_BYTES, 4 },                /* BINBYTES */
    [')'] = { push_empty, P_TUPLE, 0 },               /* EMPTY TUPLE */
    [']'] = { push_empty, P_LIST, 0 },                /* EMPTY LIST */
    ['}'] = { push_empty, P_DICT, 0 },                /* EMPTY DICT */
    ['t'] = { pickle_collect, P_TUPLE, 0 },           /* TUPLE */
    ['l'] = { pickle_collect, P_LIST, 0 },            /* LIST */
    ['d'] = { pickle_collect, P_DICT, 0 },            /* DICT */
    [0x85] = { pickle_tuple, P_TUPLE, 1 },            /* TUPLE1 */
    [0x86] = { pickle_tuple, P_TUPLE, 2 },            /* TUPLE2 */
    [0x87] = { pickle_tuple, P_TUPLE, 3 },            /* TUPLE3 */
    ['a'] = { pickle_extend, P_LIST, false },         /* APPEND */
    ['e'] = { pickle_extend, P_LIST, true },          /* APPENDS */
    ['s'] = { pickle_extend, P_DICT, false },         /* SETITEM */
    ['u'] = { pickle_extend, P_DICT, true },          /* SETITEMS */
    ['0'] = { pickle_drop, P_NONE, false },           /* POP */
    ['1'] = { pickle_drop, P_NONE, true },            /* POP MARK */
    ['2'] = { pickle_twice, P_NONE, 0 },              /* DUP */
    ['c'] = { pickle_find_global, P_GLOBAL, true },   /* GLOBAL */
    [0x93] = { pickle_find_global, P_GLOBAL, false }, /* STACK GLOBAL */
    ['R'] = { pickle_reduce, P_NONE, true },          /* REDUCE */
    ['b'] = { pickle_reduce, P_NONE, false },         /* BUILD */
    ['Q'] = { pickle_named, P_STORAGE, 0 },           /* BINPERSID */
    ['q'] = { pickle_memo_put, P_NONE, 1 },           /* BINPUT */
    ['r'] = { pickle_memo_put, P_NONE, 4 },           /* LONG BINPUT */
    [0x94] = { pickle_memo_put, P_NONE, 0 },          /* MEMOIZE */
    ['h'] = { pickle_memo_get, P_NONE, 1 },           /* BINGET */
    ['j'] = { pickle_memo_get, P_NONE, 4 },           /* LONG BINGET */
};

int pickle_run(struct pval **out, struct pval **storages, size_t *used, struct weights *mem,
               const unsigned char *p, size_t n, const char *name, struct err *err)
{
    struct pickle k = { .mem = mem, .name = name, .p = p, .n = n, .err = err };
    k.storages = *storages = pickle_value(&k, P_LIST);
    if (!k.storages)
        return pickle_no_room(&k);
    while (k.at < n) {
        const struct opcode *op = &opcodes[p[k.at++]];
        if (p[k.at - 1] == '.') { /* STOP */
            *out = pickle_pop(&k);
            *used = k.at;
            return *out && !k.top ? OK : pickle_fail(&k, "a stop with no single result");
        }
        if (!op->run)
            return err_set(err, ERR_FORMAT, "%s: the opcode 0x%02x at byte %zu is not allowed",
                           name, (unsigned)p[k.at - 1], k.at - 1);
        int code = op->run(&k, op->kind, op->n);
        if (code != OK)
            return code;
    }
    return pickle_fail(&k, "no end of the pickle");
}
