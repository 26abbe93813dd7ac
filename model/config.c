/* config.c - the shape of a model: read from metadata, or one of the published shapes. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "model/model.h"
#include "weights/weights.h"

enum {
    MAX_LAYERS = 1024,
    MAX_HIDDEN = 1 << 16,
    MAX_FFN = 1 << 18,
    MAX_VOCAB = 1 << 22,
    MAX_CONTEXT = 1 << 22,
    MAX_FACTOR = 1 << 10,
};

/* Reads the keys of one architecture: "block_count" is "qwen2.block_count" in the file. After the
 * first error nothing more is read. */
struct config_reader {
    const struct weights *w;
    const char *arch;
    char key[80]; /* the latest one, whole */
    int rc;
    struct err *err;
};

/* Set r->rc, once: what was expected of the latest key. */
static void config_wrong(struct config_reader *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void config_wrong(struct config_reader *r, const char *fmt, ...)
{
    char why[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    if (r->rc == OK)
        r->rc = err_set(r->err, ERR_FORMAT, "%s: key %s: %s", weights_path(r->w), r->key, why);
}

/* Set r->key; false when the file has no such key. */
static bool config_find(struct config_reader *r, const char *name)
{
    if (r->rc == OK)
        snprintf(r->key, sizeof(r->key), "%s.%s", r->arch, name);
    return r->rc == OK && weights_key(r->w, r->key) != NULL;
}

/* Read an integer key in [1, max]; it is an error when the key is absent. */
static void config_size(size_t *out, struct config_reader *r, const char *name, size_t max)
{
    uint64_t v;
    if (!config_find(r, name))
        config_wrong(r, "expected a number, found none");
    else if (!weights_u64(r->w, r->key, &v) || v == 0 || v > max)
        config_wrong(r, "expected an integer from 1 to %zu", max);
    else
        *out = (size_t)v;
}

/* Read a number in [low, high], or leave *out as it is when the key is absent. */
static void config_float(float *out, struct config_reader *r, const char *name, double low,
                         double high)
{
    double v;
    if (!config_find(r, name))
        return;
    if (!weights_f64(r->w, r->key, &v))
        config_wrong(r, "expected a number");
    else if (!(v >= low && v <= high))
        config_wrong(r, "expected %g to %g, found %g", low, high, v);
    else
        *out = (float)v;
}

/* Read the architecture; every other one would be computed wrongly. */
static void config_architecture(struct config_reader *r)
{
    const char *path = weights_path(r->w), *slash = strrchr(path, '/');
    struct str arch;
    snprintf(r->key, sizeof(r->key), "general.architecture");
    if (strcmp(weights_format(r->w), "safetensors") == 0)
        r->rc = err_set(r->err, ERR_FORMAT, "%s: one part of a folder; name the folder %.*s", path,
                        slash ? (int)(slash - path) + (slash == path) : 1, slash ? path : ".");
    else if (!weights_str(r->w, r->key, &arch))
        config_wrong(r, "expected qwen2 or qwen3, found none");
    else if (arch.n != 5 || memcmp(arch.p, "qwen", 4) || (arch.p[4] != '2' && arch.p[4] != '3'))
        config_wrong(r, "expected qwen2 or qwen3, found \"%.*s\"", (int)(arch.n < 64 ? arch.n : 64),
                     arch.p);
    else
        r->arch = arch.p[4] == '2' ? "qwen2" : "qwen3";
}

/* Read the numbers of YaRN by llama.cpp's keys. Its attention factors multiply the one that follows
 * from the factor. */
static void config_yarn(struct model_config *c, struct config_reader *r)
{
    struct rope_scaling *s = &c->rope;
    float attn = 1, yarn_attn = 1, ext = 1;
    s->beta_fast = 32;
    s->beta_slow = 1;
    s->original = c->context;
    config_float(&attn, r, "rope.scaling.attn_factor", 1e-3, 1e3);
    config_float(&yarn_attn, r, "rope.scaling.yarn_attn_factor", 1e-3, 1e3);
    config_float(&ext, r, "rope.scaling.yarn_ext_factor", 1, 1);
    config_float(&s->beta_slow, r, "rope.scaling.yarn_beta_slow", 1e-3, 1e6);
    config_float(&s->beta_fast, r, "rope.scaling.yarn_beta_fast", (double)s->beta_slow, 1e6);
    if (config_find(r, "rope.scaling.original_context_length"))
        config_size(&s->original, r, "rope.scaling.original_context_length", MAX_CONTEXT);
    config_find(r, "rope.freq_base");
    if (c->rope_theta <= 1)
        config_wrong(r, "expected above 1 for YaRN");
    s->magnitude =
        (float)((0.1 * log_f64((double)s->factor) + 1) * (double)attn * (double)yarn_attn);
    double most = (double)s->original * (double)s->factor;
    c->context = most < MAX_CONTEXT ? (size_t)most : (size_t)MAX_CONTEXT;
}

/* Read the scaling of RoPE. Without a type, a factor means linear scaling, as in llama.cpp. */
static void config_rope(struct model_config *c, struct config_reader *r)
{
    static const char *const kinds[] = { "none", "linear", "yarn" };
    struct str type = { "linear", 6 };
    size_t kind = 0;
    c->rope.factor = 1;
    config_float(&c->rope.factor, r, "rope.scale_linear", 1, MAX_FACTOR);
    config_float(&c->rope.factor, r, "rope.scaling.factor", 1, MAX_FACTOR);
    if (config_find(r, "rope.scaling.type") && !weights_str(r->w, r->key, &type))
        type = (struct str){ "", 0 };
    while (kind < 3 && (type.n != strlen(kinds[kind]) || memcmp(type.p, kinds[kind], type.n)))
        kind++;
    if (kind == 3)
        config_wrong(r, "expected none, linear or yarn, found \"%.*s\"",
                     (int)(type.n < 64 ? type.n : 64), type.p);
    if (kind == ROPE_YARN || (kind == ROPE_LINEAR && c->rope.factor > 1))
        c->rope.kind = (enum rope_kind)kind;
    if (kind == ROPE_YARN)
        config_yarn(c, r);
}

/* Read the size of a head, which is a share of the hidden size unless the file names another. */
static void config_heads(struct model_config *c, struct config_reader *r)
{
    static const char *const same[] = { "attention.value_length", "rope.dimension_count" };
    uint64_t dim;
    if (r->rc != OK)
        return;
    c->head_dim = c->hidden / c->heads;
    if (config_find(r, "attention.key_length"))
        config_size(&c->head_dim, r, "attention.key_length", MAX_HIDDEN / c->heads);
    else if (config_find(r, "attention.head_count") && c->hidden % c->heads)
        config_wrong(r, "expected a divisor of %zu, found %zu", c->hidden, c->heads);
    if (config_find(r, "attention.head_count_kv") && c->heads % c->kv_heads)
        config_wrong(r, "expected a divisor of %zu, found %zu", c->heads, c->kv_heads);
    config_find(r, "attention.key_length");
    if (c->head_dim % 2)
        config_wrong(r, "expected an even number, found %zu", c->head_dim);
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        if (config_find(r, same[i]) && (!weights_u64(r->w, r->key, &dim) || dim != c->head_dim))
            config_wrong(r, "expected %zu, the size of a head", c->head_dim);
}

/* Read the size of the vocabulary, which is that of the embedding, and whether the head is tied. */
static void config_vocab(struct model_config *c, struct config_reader *r)
{
    const struct tensor *t = weights_find(r->w, "token_embd.weight");
    uint64_t named;
    if (r->rc == OK && (!t || t->ndim != 2 || t->shape[0] == 0 || t->shape[0] > MAX_VOCAB))
        r->rc = err_set(r->err, ERR_FORMAT,
                        "%s: tensor token_embd.weight: expected [vocab,%zu], found %s",
                        weights_path(r->w), c->hidden, t ? "another shape" : "none");
    if (r->rc != OK)
        return;
    c->vocab = t->shape[0];
    c->tied = !weights_find(r->w, "output.weight");
    if (config_find(r, "vocab_size") && weights_u64(r->w, r->key, &named) && named != c->vocab)
        config_wrong(r, "expected %zu as token_embd.weight has rows, found %llu", c->vocab,
                     (unsigned long long)named);
}

int model_config_read(struct model_config *out, const struct weights *w, struct err *err)
{
    struct config_reader r = { .w = w, .err = err };
    struct model_config c = { .eps = 1e-6f, .rope_theta = 10000 };
    config_architecture(&r);
    config_size(&c.layers, &r, "block_count", MAX_LAYERS);
    config_size(&c.hidden, &r, "embedding_length", MAX_HIDDEN);
    config_size(&c.ffn, &r, "feed_forward_length", MAX_FFN);
    config_size(&c.heads, &r, "attention.head_count", MAX_HIDDEN);
    config_size(&c.kv_heads, &r, "attention.head_count_kv", MAX_HIDDEN);
    config_size(&c.context, &r, "context_length", MAX_CONTEXT);
    config_float(&c.eps, &r, "attention.layer_norm_rms_epsilon", 0, 1);
    config_float(&c.rope_theta, &r, "rope.freq_base", 1, 1e12);
    config_rope(&c, &r);
    config_heads(&c, &r);
    config_vocab(&c, &r);
    if (r.rc != OK)
        return r.rc;
    c.qk_norm = !strcmp(r.arch, "qwen3");
    *out = c;
    return OK;
}

int model_check_context(const struct model_config *c, size_t context, struct err *err)
{
    char yarn[80] = "";
    if (context <= c->context)
        return OK;
    if (c->rope.kind == ROPE_YARN)
        snprintf(yarn, sizeof(yarn), " (%zu by a YaRN factor of %g)", c->rope.original,
                 (double)c->rope.factor);
    return err_set(
        err, ERR_ARG,
        "context: expected at most %zu%s, the context that the model was made for, found %zu",
        c->context, yarn, context);
}
