#include <string.h>

#include "kernels/sys/base.h"
#include "weights/pickle.h"

/* The globals that a state_dict needs; everything else is refused. */
static const struct pglobal globals[] = {
    { "collections", "OrderedDict", CALL_ORDERED_DICT, -1 },
    { "torch._utils", "_rebuild_tensor_v2", CALL_TENSOR, -1 },
    { "torch._utils", "_rebuild_parameter", CALL_PARAMETER, -1 },
    { "torch", "Size", CALL_SIZE, -1 },
    { "torch", "FloatStorage", CALL_NONE, W_F32 },
    { "torch", "HalfStorage", CALL_NONE, W_F16 },
    { "torch", "BFloat16Storage", CALL_NONE, W_BF16 },
    { "torch", "DoubleStorage", CALL_NONE, W_F64 },
    { "torch", "LongStorage", CALL_NONE, W_I64 },
    { "torch", "IntStorage", CALL_NONE, W_I32 },
    { "torch", "ShortStorage", CALL_NONE, W_I16 },
    { "torch", "CharStorage", CALL_NONE, W_I8 },
    { "torch", "ByteStorage", CALL_NONE, W_U8 },
    { "torch", "BoolStorage", CALL_NONE, W_BOOL },
};

static bool pickle_call_same(struct str s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

const struct pglobal *pickle_global(struct str module, struct str name)
{
    for (size_t i = 0; i < sizeof(globals) / sizeof(*globals); i++)
        if (pickle_call_same(module, globals[i].module) && pickle_call_same(name, globals[i].name))
            return &globals[i];
    return NULL;
}

/* Read a size or an offset: an integer that is not negative. */
static bool count_of(size_t *out, const struct pval *v)
{
    if (v->kind != P_INT || v->u.i < 0)
        return false;
    *out = (size_t)v->u.i;
    return true;
}

/* An id is ('storage', class, key, location, count). The legacy form adds a view, which must be
 * None. */
int pickle_storage(struct pickle *k, struct pval **out, const struct pval *id)
{
    struct pval *const *v = id->u.seq.v;
    size_t n = id->kind == P_TUPLE ? id->u.seq.n : 0, count;
    if (n < 5 || n > 6 || v[0]->kind != P_STR || !pickle_call_same(v[0]->u.s, "storage") ||
        v[1]->kind != P_GLOBAL || v[1]->u.global->type < 0 || v[2]->kind != P_STR ||
        !count_of(&count, v[4]))
        return pickle_fail(k, "a persistent id that is no storage");
    if (n == 6 && v[5]->kind != P_NONE)
        return pickle_fail(k, "a storage that is a view");
    struct pval *s = pickle_value(k, P_STORAGE);
    if (!s)
        return pickle_no_room(k);
    s->u.storage.key = v[2]->u.s;
    s->u.storage.type = v[1]->u.global->type;
    s->u.storage.count = count;
    if (!pickle_append(k, k->storages, s))
        return pickle_no_room(k);
    *out = s;
    return OK;
}

/* The arguments are (storage, offset, size, stride, requires_grad, hooks[, metadata]). A tensor is
 * contiguous when each stride is the product of the sizes after it. */
static int rebuild_tensor(struct pickle *k, struct pval **out, const struct pval *args)
{
    struct pval *const *v = args->u.seq.v;
    size_t n = args->u.seq.n, offset, want = 1, stride;
    if (n < 4 || v[0]->kind != P_STORAGE || !count_of(&offset, v[1]) || v[2]->kind != P_TUPLE ||
        v[3]->kind != P_TUPLE || v[2]->u.seq.n != v[3]->u.seq.n || v[2]->u.seq.n > 8)
        return pickle_fail(k, "a tensor with strange arguments");
    struct pval *t = pickle_value(k, P_TENSOR);
    if (!t)
        return pickle_no_room(k);
    t->u.tensor.storage = v[0];
    t->u.tensor.offset = offset;
    t->u.tensor.ndim = (unsigned)v[2]->u.seq.n;
    t->u.tensor.contiguous = true;
    for (unsigned i = t->u.tensor.ndim; i-- > 0;) {
        size_t *size = &t->u.tensor.shape[i];
        if (!count_of(size, v[2]->u.seq.v[i]) || !count_of(&stride, v[3]->u.seq.v[i]))
            return pickle_fail(k, "a tensor whose shape is no whole numbers");
        if (*size > 1 && stride != want)
            t->u.tensor.contiguous = false;
        if (!size_mul(&want, want, *size ? *size : 1))
            return pickle_fail(k, "a tensor whose shape overflows");
    }
    *out = t;
    return OK;
}

/* The arguments are () or, from Python 2, ([[key, value], ...]). */
static int ordered_dict(struct pickle *k, struct pval **out, const struct pval *args)
{
    struct pval *d = pickle_value(k, P_DICT);
    if (!d)
        return pickle_no_room(k);
    *out = d;
    if (!args->u.seq.n)
        return OK;
    const struct pval *list = args->u.seq.v[0];
    if (args->u.seq.n != 1 || list->kind != P_LIST)
        return pickle_fail(k, "an OrderedDict with strange arguments");
    for (size_t i = 0; i < list->u.seq.n; i++) {
        const struct pval *pair = list->u.seq.v[i];
        if ((pair->kind != P_LIST && pair->kind != P_TUPLE) || pair->u.seq.n != 2)
            return pickle_fail(k, "an OrderedDict with strange arguments");
        if (!pickle_append(k, d, pair->u.seq.v[0]) || !pickle_append(k, d, pair->u.seq.v[1]))
            return pickle_no_room(k);
    }
    return OK;
}

int pickle_call(struct pickle *k, struct pval **out, const struct pval *f, struct pval *args)
{
    if (f->kind != P_GLOBAL || args->kind != P_TUPLE)
        return pickle_fail(k, "a call of something that is no global");
    size_t n = args->u.seq.n;
    switch (f->u.global->call) {
    case CALL_ORDERED_DICT:
        return ordered_dict(k, out, args);
    case CALL_TENSOR:
        return rebuild_tensor(k, out, args);
    case CALL_PARAMETER:
        if (n < 1 || args->u.seq.v[0]->kind != P_TENSOR)
            return pickle_fail(k, "a parameter that is no tensor");
        *out = args->u.seq.v[0];
        return OK;
    case CALL_SIZE:
        if (n != 1 || args->u.seq.v[0]->kind != P_TUPLE)
            return pickle_fail(k, "a torch.Size with strange arguments");
        *out = args->u.seq.v[0];
        return OK;
    default:
        return err_set(k->err, ERR_FORMAT, "%s: a call of %s.%s is not allowed", k->name,
                       f->u.global->module, f->u.global->name);
    }
}

struct pval *pickle_item(const struct pval *dict, const char *key)
{
    if (dict->kind != P_DICT)
        return NULL;
    for (size_t i = 0; i + 1 < dict->u.seq.n; i += 2)
        if (dict->u.seq.v[i]->kind == P_STR && pickle_call_same(dict->u.seq.v[i]->u.s, key))
            return dict->u.seq.v[i + 1];
    return NULL;
}

const char *pickle_kind(enum pkind kind)
{
    static const char *const names[] = { "None",      "a bool",   "an int", "a float", "a string",
                                         "bytes",     "a tuple",  "a list", "a dict",  "a global",
                                         "a storage", "a tensor", "a mark" };
    return names[kind];
}
