#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "weights/find.h"
#include "weights/quant.h"
#include "weights/table.h"

/* Choose the reader by what the path is, how the file begins, and how its name ends. */
static int read_any(struct weights *w, bool header_only, struct err *err)
{
    size_t stem;
    unsigned number, count;
    if (find_shard(w->path, &stem, &number, &count) && count > 1) {
        w->format = "gguf";
        int code = gguf_read_shards(w, header_only, err);
        return code == OK ? table_index(w, err) : code;
    }
    if (find_is_folder(w->path)) {
        w->format = "folder";
        return hf_read(w, err);
    }
    struct mapping m;
    int code = table_map(w, &m, w->path, err);
    if (code != OK)
        return code;
    w->shards = 1;
    if (!m.n)
        return err_set(err, ERR_FORMAT, "%s: the file is empty", w->path);
    if ((m.n >= 4 && memcmp(m.p, "GGUF", 4) == 0) || find_ends(w->path, ".gguf")) {
        w->format = "gguf";
        code = gguf_read_alone(w, &m, header_only, err);
        return code == OK ? table_index(w, err) : code;
    }
    if (find_ends(w->path, ".safetensors") || (m.n > 8 && m.p[8] == '{')) {
        w->format = "safetensors";
        code = safetensors_read(w, &m, w->path, err);
        return code == OK ? table_index(w, err) : code;
    }
    return err_set(err, ERR_FORMAT, "%s: expected a GGUF or safetensors file or a model folder",
                   w->path);
}

/* The common part of weights_open and weights_open_header. */
static int open_any(struct weights **out, const char *path, bool header_only, struct err *err)
{
    *out = NULL;
    struct weights *w = table_new(path, "");
    if (!w)
        return err_set(err, ERR_NOMEM, "%s: out of memory", path);
    int code = read_any(w, header_only, err);
    if (code != OK) {
        weights_close(w);
        return code;
    }
    *out = w;
    return OK;
}

int weights_open(struct weights **out, const char *path, struct err *err)
{
    return open_any(out, path, false, err);
}

int weights_open_header(struct weights **out, const char *path, struct err *err)
{
    return open_any(out, path, true, err);
}

void weights_close(struct weights *w)
{
    if (!w)
        return;
    table_unmap(w);
    free(w->tensors);
    free(w->kvs);
    free(w->by_name);
    free(w->by_key);
    table_free(w);
    free(w);
}

const char *weights_path(const struct weights *w)
{
    return w->path;
}

const char *weights_format(const struct weights *w)
{
    return w->format;
}

size_t weights_shards(const struct weights *w)
{
    return w->shards;
}

size_t weights_ntensors(const struct weights *w)
{
    return w->ntensors;
}

const struct tensor *weights_tensor(const struct weights *w, size_t i)
{
    return &w->tensors[i];
}

static int weights_compare_tensor(const void *name, const void *row)
{
    return strcmp(name, (*(const struct tensor *const *)row)->name);
}

static int weights_compare_key(const void *key, const void *row)
{
    return strcmp(key, (*(const struct kv *const *)row)->key.p);
}

const struct tensor *weights_find(const struct weights *w, const char *name)
{
    const struct tensor *const *t =
        bsearch(name, w->by_name, w->ntensors, sizeof(*t), weights_compare_tensor);
    return t ? *t : NULL;
}

const struct kv *weights_key(const struct weights *w, const char *key)
{
    const struct kv *const *kv = bsearch(key, w->by_key, w->nkvs, sizeof(*kv), weights_compare_key);
    return kv ? *kv : NULL;
}

void tensor_shape(char *out, size_t cap, unsigned ndim, const size_t *shape)
{
    size_t at = 0;
    for (unsigned i = 0; i < ndim && at + 24 < cap; i++)
        at += (size_t)snprintf(out + at, cap - at, "%c%zu", i ? ',' : '[', shape[i]);
    snprintf(out + at, cap - at, ndim ? "]" : "[]");
}

const struct tensor *weights_want(const struct weights *w, const char *name, size_t rows,
                                  size_t cols, struct err *err)
{
    size_t want[2] = { rows, cols };
    unsigned ndim = cols ? 2 : 1;
    char expected[64], found[224];
    tensor_shape(expected, sizeof(expected), ndim, want);
    const struct tensor *t = weights_find(w, name);
    if (!t) {
        err_set(err, ERR_FORMAT, "%s: tensor %s: expected %s, found none", w->path, name, expected);
        return NULL;
    }
    if (t->ndim != ndim || t->shape[0] != rows || (cols && t->shape[1] != cols)) {
        tensor_shape(found, sizeof(found), t->ndim, t->shape);
        err_set(err, ERR_FORMAT, "%s: tensor %s: expected %s, found %s", w->path, name, expected,
                found);
        return NULL;
    }
    return t;
}

size_t weights_nkv(const struct weights *w)
{
    return w->nkvs;
}

const struct kv *weights_kv(const struct weights *w, size_t i)
{
    return &w->kvs[i];
}

bool kv_integer(const struct kv *kv, uint64_t *bits, bool *negative)
{
    size_t n = kv ? kvtype_size(kv->type) : 0;
    if (!n || kv->type == KV_F32 || kv->type == KV_F64 || kv->type == KV_BOOL)
        return false;
    bool is_signed =
        kv->type == KV_I8 || kv->type == KV_I16 || kv->type == KV_I32 || kv->type == KV_I64;
    *bits = le_get(kv->data, n);
    *negative = is_signed && *bits >> (8 * n - 1);
    if (*negative && n < 8)
        *bits |= UINT64_MAX << (8 * n);
    return true;
}

bool weights_u64(const struct weights *w, const char *key, uint64_t *out)
{
    uint64_t v;
    bool negative;
    if (!kv_integer(weights_key(w, key), &v, &negative) || negative)
        return false;
    *out = v;
    return true;
}

bool weights_f64(const struct weights *w, const char *key, double *out)
{
    const struct kv *kv = weights_key(w, key);
    uint64_t v;
    bool negative;
    float f;
    if (kv_integer(kv, &v, &negative))
        *out = negative ? -(double)(~v + 1) : (double)v;
    else if (kv && kv->type == KV_F32) {
        memcpy(&f, kv->data, sizeof(f));
        *out = (double)f;
    } else if (kv && kv->type == KV_F64)
        memcpy(out, kv->data, sizeof(*out));
    else
        return false;
    return true;
}

bool weights_bool(const struct weights *w, const char *key, bool *out)
{
    const struct kv *kv = weights_key(w, key);
    if (!kv || kv->type != KV_BOOL)
        return false;
    *out = *(const unsigned char *)kv->data != 0;
    return true;
}

bool weights_str(const struct weights *w, const char *key, struct str *out)
{
    const struct kv *kv = weights_key(w, key);
    if (!kv || kv->type != KV_STR)
        return false;
    *out = kv->strs[0];
    return true;
}

int weights_floats(float *out, const struct tensor *t, size_t first, size_t count, const char *path,
                   struct err *err)
{
    size_t values, bytes;
    if (!quant_known(t->type) || !wtype_block(t->type, &values, &bytes)) {
        const char *name = wtype_name(t->type);
        return err_set(err, ERR_FORMAT,
                       "%s: tensor %s: expected F64, F32, F16, BF16, Q4_0 to Q8_0, Q2_K to Q6_K, "
                       "IQ4_NL or IQ4_XS, found %s",
                       path, t->name, name ? name : "an unknown type");
    }
    if (first % values || count % values || !size_within(first, count, t->bytes / bytes * values))
        return err_set(err, ERR_FORMAT, "%s: tensor %s: values %zu to %zu are not inside it", path,
                       t->name, first, first + count);
    if (count && !t->data)
        return err_set(err, ERR_FORMAT, "%s: tensor %s: its data is not in the file", path,
                       t->name);
    quant_decode(out, t->type, (const unsigned char *)t->data + first / values * bytes, count);
    return OK;
}
