/* config.c - the shape of a model: read from metadata, or one of the published shapes. */
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

/* Reads the keys of one architecture: "block_count" is "qwen2.block_count" in the file. */
struct config_reader {
    const struct weights *w;
    const char *arch;
    char key[80]; /* the latest one, whole */
    struct err *err;
};

/* Set r->key; false when the file has no such key. */
static bool config_find(struct config_reader *r, const char *name)
{
    snprintf(r->key, sizeof(r->key), "%s.%s", r->arch, name);
    return weights_key(r->w, r->key) != NULL;
}

/* Read an integer key in [1, max]; it is an error when the key is absent. */
static int config_size(size_t *out, struct config_reader *r, const char *name, size_t max)
{
    uint64_t v;
    if (!config_find(r, name))
        return err_set(r->err, ERR_FORMAT, "%s: key %s: expected a number, found none",
                       weights_path(r->w), r->key);
    if (!weights_u64(r->w, r->key, &v) || v == 0 || v > max)
        return err_set(r->err, ERR_FORMAT, "%s: key %s: expected an integer from 1 to %zu",
                       weights_path(r->w), r->key, max);
    *out = (size_t)v;
    return OK;
}

/* Read a number in [low, high], or leave *out as it is when the key is absent. */
static int config_float(float *out, struct config_reader *r, const char *name, double low,
                        double high)
{
    double v;
    if (!config_find(r, name))
        return OK;
    if (!weights_f64(r->w, r->key, &v))
        return err_set(r->err, ERR_FORMAT, "%s: key %s: expected a number", weights_path(r->w),
                       r->key);
    if (!(v >= low && v <= high))
        return err_set(r->err, ERR_FORMAT, "%s: key %s: expected %g to %g, found %g",
                       weights_path(r->w), r->key, low, high, v);
    *out = (float)v;
    return OK;
}

/* Read the architecture; every other one would be computed wrongly. */
static int config_architecture(struct config_reader *r)
{
    static const char *const known[] = { "qwen2", "qwen3" };
    const char *path = weights_path(r->w), *slash = strrchr(path, '/');
    struct str arch;
    if (strcmp(weights_format(r->w), "safetensors") == 0)
        return err_set(r->err, ERR_FORMAT, "%s: one part of a folder; name the folder %.*s", path,
                       slash ? (int)(slash - path) + (slash == path) : 1, slash ? path : ".");
    if (!weights_str(r->w, "general.architecture", &arch))
        return err_set(r->err, ERR_FORMAT,
                       "%s: key general.architecture: expected qwen2 or qwen3, found none",
                       weights_path(r->w));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (arch.n == 5 && !memcmp(arch.p, known[i], 5)) {
            r->arch = known[i];
            return OK;
        }
    return err_set(r->err, ERR_FORMAT,
                   "%s: key general.architecture: expected qwen2 or qwen3, found \"%.*s\"",
                   weights_path(r->w), (int)(arch.n < 64 ? arch.n : 64), arch.p);
}

/* Read the numbers of YaRN by llama.cpp's keys. Its attention factors multiply the one that follows
 * from the factor. */
static int config_yarn(struct model_config *c, struct config_reader *r)
{
    struct rope_scaling *s = &c->rope;
    float attn = 1, yarn_attn = 1, ext = 1;
    s->beta_fast = 32;
    s->beta_slow = 1;
    s->original = c->context;
    int rc = config_float(&attn, r, "rope.scaling.attn_factor", 1e-3, 1e3);
    if (!rc)
        rc = config_float(&yarn_attn, r, "rope.scaling.yarn_attn_factor", 1e-3, 1e3);
    if (!rc)
        rc = config_float(&ext, r, "rope.scaling.yarn_ext_factor", 1, 1);
    if (!rc)
        rc = config_float(&s->beta_slow, r, "rope.scaling.yarn_beta_slow", 1e-3, 1e6);
    if (!rc)
        rc = config_float(&s->beta_fast, r, "rope.scaling.yarn_beta_fast", (double)s->beta_slow,
                          1e6);
    if (!rc && config_find(r, "rope.scaling.original_context_length"))
        rc = config_size(&s->original, r, "rope.scaling.original_context_length", MAX_CONTEXT);
    if (rc)
        return rc;
    if (c->rope_theta <= 1)
        return err_set(r->err, ERR_FORMAT, "%s: key %s.rope.freq_base: expected above 1 for YaRN",
                       weights_path(r->w), r->arch);
    s->magnitude =
        (float)((0.1 * log_f64((double)s->factor) + 1) * (double)attn * (double)yarn_attn);
    double most = (double)s->original * (double)s->factor;
    c->context = most < MAX_CONTEXT ? (size_t)most : (size_t)MAX_CONTEXT;
    return OK;
}

/* Read the scaling of RoPE. Without a type, a factor means linear scaling, as in llama.cpp. */
static int config_rope(struct model_config *c, struct config_reader *r)
{
    static const char *const kinds[] = { "none", "linear", "yarn" };
    struct str type = { "linear", 6 };
    size_t kind = 0;
    c->rope.factor = 1;
    int rc = config_float(&c->rope.factor, r, "rope.scale_linear", 1, MAX_FACTOR);
    if (!rc)
        rc = config_float(&c->rope.factor, r, "rope.scaling.factor", 1, MAX_FACTOR);
    if (rc)
        return rc;
    if (config_find(r, "rope.scaling.type") && !weights_str(r->w, r->key, &type))
        type = (struct str){ "", 0 };
    while (kind < 3 && (type.n != strlen(kinds[kind]) || memcmp(type.p, kinds[kind], type.n)))
        kind++;
    if (kind == 3)
        return err_set(r->err, ERR_FORMAT,
                       "%s: key %s: expected none, linear or yarn, found \"%.*s\"",
                       weights_path(r->w), r->key, (int)(type.n < 64 ? type.n : 64), type.p);
    if (kind == ROPE_YARN || (kind == ROPE_LINEAR && c->rope.factor > 1))
        c->rope.kind = (enum rope_kind)kind;
    return kind == ROPE_YARN ? config_yarn(c, r) : OK;
}

/* Read the size of a head, which is a share of the hidden size unless the file names another. */
static int config_heads(struct model_config *c, struct config_reader *r)
{
    const char *path = weights_path(r->w);
    static const char *const same[] = { "attention.value_length", "rope.dimension_count" };
    uint64_t dim;
    if (config_find(r, "attention.key_length")) {
        int rc = config_size(&c->head_dim, r, "attention.key_length", MAX_HIDDEN / c->heads);
        if (rc)
            return rc;
    } else if (c->hidden % c->heads) {
        return err_set(r->err, ERR_FORMAT,
                       "%s: key %s.attention.head_count: expected a divisor of %zu, found %zu",
                       path, r->arch, c->hidden, c->heads);
    } else {
        c->head_dim = c->hidden / c->heads;
    }
    if (c->heads % c->kv_heads)
        return err_set(r->err, ERR_FORMAT,
                       "%s: key %s.attention.head_count_kv: expected a divisor of %zu, found %zu",
                       path, r->arch, c->heads, c->kv_heads);
    if (c->head_dim % 2)
        return err_set(r->err, ERR_FORMAT,
                       "%s: key %s.attention.key_length: expected an even number, found %zu", path,
                       r->arch, c->head_dim);
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        if (config_find(r, same[i]) && (!weights_u64(r->w, r->key, &dim) || dim != c->head_dim))
            return err_set(r->err, ERR_FORMAT, "%s: key %s: expected %zu, the size of a head", path,
                           r->key, c->head_dim);
    return OK;
}

/* Read the size of the vocabulary, which is that of the embedding, and whether the head is tied. */
static int config_vocab(struct model_config *c, struct config_reader *r)
{
    const struct tensor *t = weights_find(r->w, "token_embd.weight");
    if (!t || t->ndim != 2 || t->shape[0] == 0 || t->shape[0] > MAX_VOCAB)
        return err_set(r->err, ERR_FORMAT,
                       "%s: tensor token_embd.weight: expected [vocab,%zu], found %s",
                       weights_path(r->w), c->hidden, t ? "another shape" : "none");
    uint64_t named;
    c->vocab = t->shape[0];
    c->tied = !weights_find(r->w, "output.weight");
    if (config_find(r, "vocab_size") && weights_u64(r->w, r->key, &named) && named != c->vocab)
        return err_set(r->err, ERR_FORMAT,
                       "%s: key %s: expected %zu as token_embd.weight has rows, found %llu",
                       weights_path(r->w), r->key, c->vocab, (unsigned long long)named);
    return OK;
}

int model_config_read(struct model_config *out, const struct weights *w, struct err *err)
{
    struct config_reader r = { .w = w, .err = err };
    struct model_config c = { .eps = 1e-6f, .rope_theta = 10000 };
    const struct {
        size_t *to;
        const char *name;
        size_t max;
    } sizes[] = {
        { &c.layers, "block_count", MAX_LAYERS },
        { &c.hidden, "embedding_length", MAX_HIDDEN },
        { &c.ffn, "feed_forward_length", MAX_FFN },
        { &c.heads, "attention.head_count", MAX_HIDDEN },
        { &c.kv_heads, "attention.head_count_kv", MAX_HIDDEN },
        { &c.context, "context_length", MAX_CONTEXT },
    };
    int rc = config_architecture(&r);
    for (size_t i = 0; !rc && i < sizeof(sizes) / sizeof(sizes[0]); i++)
        rc = config_size(sizes[i].to, &r, sizes[i].name, sizes[i].max);
    if (!rc)
        rc = config_float(&c.eps, &r, "attention.layer_norm_rms_epsilon", 0, 1);
    if (!rc)
        rc = config_float(&c.rope_theta, &r, "rope.freq_base", 1, 1e12);
    if (!rc)
        rc = config_rope(&c, &r);
    if (!rc)
        rc = config_heads(&c, &r);
    if (!rc)
        rc = config_vocab(&c, &r);
    if (rc)
        return rc;
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
