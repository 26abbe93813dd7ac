/* config.c - the shape of a model: read from metadata, or one of the published shapes. */
#include <string.h>

#include "kernels/sys/base.h"
#include "model/model.h"
#include "weights/weights.h"

enum {
    MAX_LAYERS = 1024,
    MAX_HIDDEN = 1 << 16,
    MAX_FFN = 1 << 18,
    MAX_VOCAB = 1 << 22,
    MAX_CONTEXT = 1 << 22,
};

/* Read an integer key in [1, max]; it is an error when the key is absent. */
static int read_size(size_t *out, const struct weights *w, const char *key, size_t max,
                     struct err *err)
{
    uint64_t v;
    if (!weights_key(w, key))
        return err_set(err, ERR_FORMAT, "%s: key %s: expected a number, found none",
                       weights_path(w), key);
    if (!weights_u64(w, key, &v) || v == 0 || v > max)
        return err_set(err, ERR_FORMAT, "%s: key %s: expected an integer from 1 to %zu",
                       weights_path(w), key, max);
    *out = (size_t)v;
    return OK;
}

/* Read a number in [low, high], or `fallback` when the key is absent. */
static int read_float(float *out, const struct weights *w, const char *key, double fallback,
                      double low, double high, struct err *err)
{
    double v = fallback;
    if (weights_key(w, key) && !weights_f64(w, key, &v))
        return err_set(err, ERR_FORMAT, "%s: key %s: expected a number", weights_path(w), key);
    if (!(v >= low && v <= high))
        return err_set(err, ERR_FORMAT, "%s: key %s: expected %g to %g, found %g", weights_path(w),
                       key, low, high, v);
    *out = (float)v;
    return OK;
}

/* Refuse other architectures and scaled RoPE, which would be computed wrongly. */
static int check_architecture(const struct weights *w, struct err *err)
{
    struct str arch;
    if (!weights_str(w, "general.architecture", &arch))
        return err_set(err, ERR_FORMAT,
                       "%s: key general.architecture: expected \"qwen2\", found none",
                       weights_path(w));
    if (arch.n != 5 || memcmp(arch.p, "qwen2", 5))
        return err_set(err, ERR_FORMAT,
                       "%s: key general.architecture: expected \"qwen2\", found \"%.*s\"",
                       weights_path(w), (int)(arch.n < 64 ? arch.n : 64), arch.p);
    struct str scaling;
    if (weights_str(w, "qwen2.rope.scaling.type", &scaling) &&
        (scaling.n != 4 || memcmp(scaling.p, "none", 4)))
        return err_set(err, ERR_FORMAT,
                       "%s: key qwen2.rope.scaling.type: expected none, found \"%.*s\"",
                       weights_path(w), (int)(scaling.n < 64 ? scaling.n : 64), scaling.p);
    return OK;
}

/* Check that heads divide the hidden size and KV heads the heads, and derive the head size. */
static int check_shape(struct model_config *c, const struct weights *w, struct err *err)
{
    const char *path = weights_path(w);
    if (c->hidden % c->heads)
        return err_set(err, ERR_FORMAT,
                       "%s: key qwen2.attention.head_count: expected a divisor of %zu, found %zu",
                       path, c->hidden, c->heads);
    if (c->heads % c->kv_heads)
        return err_set(
            err, ERR_FORMAT,
            "%s: key qwen2.attention.head_count_kv: expected a divisor of %zu, found %zu", path,
            c->heads, c->kv_heads);
    c->head_dim = c->hidden / c->heads;
    uint64_t dim;
    static const char *const keys[] = { "qwen2.attention.key_length",
                                        "qwen2.attention.value_length",
                                        "qwen2.rope.dimension_count" };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (weights_u64(w, keys[i], &dim) && dim != c->head_dim)
            return err_set(err, ERR_FORMAT, "%s: key %s: expected %zu, found %llu", path, keys[i],
                           c->head_dim, (unsigned long long)dim);
    if (c->head_dim % 2)
        return err_set(err, ERR_FORMAT, "%s: head size: expected an even number, found %zu", path,
                       c->head_dim);
    return OK;
}

int model_config_read(struct model_config *out, const struct weights *w, struct err *err)
{
    struct model_config c = { 0 };
    int rc = check_architecture(w, err);
    const struct {
        size_t *to;
        const char *key;
        size_t max;
    } sizes[] = {
        { &c.layers, "qwen2.block_count", MAX_LAYERS },
        { &c.hidden, "qwen2.embedding_length", MAX_HIDDEN },
        { &c.ffn, "qwen2.feed_forward_length", MAX_FFN },
        { &c.heads, "qwen2.attention.head_count", MAX_HIDDEN },
        { &c.kv_heads, "qwen2.attention.head_count_kv", MAX_HIDDEN },
        { &c.context, "qwen2.context_length", MAX_CONTEXT },
    };
    for (size_t i = 0; !rc && i < sizeof(sizes) / sizeof(sizes[0]); i++)
        rc = read_size(sizes[i].to, w, sizes[i].key, sizes[i].max, err);
    if (!rc)
        rc = read_float(&c.eps, w, "qwen2.attention.layer_norm_rms_epsilon", 1e-6, 0, 1, err);
    if (!rc)
        rc = read_float(&c.rope_theta, w, "qwen2.rope.freq_base", 10000, 1, 1e12, err);
    if (!rc)
        rc = check_shape(&c, w, err);
    if (rc)
        return rc;
    const struct tensor *t = weights_find(w, "token_embd.weight");
    if (!t || t->ndim != 2 || t->shape[0] == 0 || t->shape[0] > MAX_VOCAB)
        return err_set(err, ERR_FORMAT,
                       "%s: tensor token_embd.weight: expected [vocab,%zu], found %s",
                       weights_path(w), c.hidden, t ? "another shape" : "none");
    c.vocab = t->shape[0];
    uint64_t named;
    if (weights_u64(w, "qwen2.vocab_size", &named) && named != c.vocab)
        return err_set(err, ERR_FORMAT,
                       "%s: key qwen2.vocab_size: expected %zu as token_embd.weight has rows, "
                       "found %llu",
                       weights_path(w), c.vocab, (unsigned long long)named);
    c.tied = !weights_find(w, "output.weight");
    *out = c;
    return OK;
}

bool model_shape(struct model_config *out, const char *name)
{
    static const struct {
        const char *name;
        struct model_config config;
    } shapes[] = {
        { "qwen2.5-0.5b", { 24, 896, 14, 2, 64, 4864, 151936, 32768, 1e-6f, 1000000.0f, true } },
        { "qwen2.5-1.5b", { 28, 1536, 12, 2, 128, 8960, 151936, 32768, 1e-6f, 1000000.0f, true } },
        { "qwen2.5-3b", { 36, 2048, 16, 2, 128, 11008, 151936, 32768, 1e-6f, 1000000.0f, true } },
        { "qwen2.5-7b", { 28, 3584, 28, 4, 128, 18944, 152064, 32768, 1e-6f, 1000000.0f, false } },
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        if (!strcmp(name, shapes[i].name)) {
            *out = shapes[i].config;
            return true;
        }
    return false;
}
