#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "model/train/train_internal.h"

enum { LAYER_TENSORS = 12, ALIGN = 16, EMBEDDING_GAIN = 3 };

static size_t train_most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Check sizes, the tied head and the batch limits. */
static int check_config(const struct train *t, struct err *err)
{
    const struct model_config *c = &t->c;
    const struct {
        const char *name;
        size_t value;
    } sizes[] = {
        { "hidden", c->hidden },
        { "head_dim", c->head_dim },
        { "ffn", c->ffn },
        { "vocab", c->vocab },
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (!sizes[i].value || sizes[i].value % PANEL || sizes[i].value > 1 << 20)
            return err_set(err, ERR_ARG, "train: %s: expected a multiple of 16, found %zu",
                           sizes[i].name, sizes[i].value);
    if (c->qk_norm || c->rope.kind != ROPE_PLAIN)
        return err_set(err, ERR_ARG, "train: expected a Qwen2 model without RoPE scaling");
    if (!c->tied)
        return err_set(err, ERR_ARG, "train: expected a tied head, found a separate one");
    if (!c->layers || c->layers > 1024 || !c->kv_heads || c->heads > 1024 ||
        c->heads % c->kv_heads || !c->heads)
        return err_set(err, ERR_ARG, "train: %zu layers of %zu heads on %zu key heads", c->layers,
                       c->heads, c->kv_heads);
    if (!t->doc || t->doc > t->tokens || t->tokens > 1 << 20)
        return err_set(err, ERR_ARG, "train: documents of %zu tokens in batches of %zu", t->doc,
                       t->tokens);
    return OK;
}

/* Append a tensor and return where it begins in the flat arrays. */
static size_t train_place(struct train *t, const char *name, size_t layer, size_t rows, size_t cols)
{
    struct train_tensor *x = &t->tensors[t->ntensors++];
    if (layer == SIZE_MAX)
        snprintf(x->name, sizeof(x->name), "%s", name);
    else
        snprintf(x->name, sizeof(x->name), "blk.%zu.%s", layer, name);
    x->rows = rows;
    x->cols = cols;
    size_t at = t->params;
    t->params += rows * cols;
    return at;
}

/* List all tensors in the order of the flat arrays. Tensors that are used as one matrix are
 * adjacent. */
static void train_lay_out(struct train *t)
{
    size_t h = t->c.hidden, f = t->c.ffn;
    train_place(t, "token_embd.weight", SIZE_MAX, t->c.vocab, h);
    for (size_t i = 0; i < t->c.layers; i++) {
        struct train_layer *l = &t->layers[i];
        l->norm1 = train_place(t, "attn_norm.weight", i, 1, h);
        l->qkv = train_place(t, "attn_q.weight", i, t->q, h);
        train_place(t, "attn_k.weight", i, t->kv, h);
        train_place(t, "attn_v.weight", i, t->kv, h);
        l->bias = train_place(t, "attn_q.bias", i, 1, t->q);
        train_place(t, "attn_k.bias", i, 1, t->kv);
        train_place(t, "attn_v.bias", i, 1, t->kv);
        l->o = train_place(t, "attn_output.weight", i, h, t->q);
        l->norm2 = train_place(t, "ffn_norm.weight", i, 1, h);
        l->gu = train_place(t, "ffn_gate.weight", i, f, h);
        train_place(t, "ffn_up.weight", i, f, h);
        l->down = train_place(t, "ffn_down.weight", i, h, f);
    }
    t->final_norm = train_place(t, "output_norm.weight", SIZE_MAX, 1, h);
}

/* Take n floats of the arena; while there is no arena, only count. */
static float *train_take(struct train *t, size_t n)
{
    float *p = t->arena ? t->arena + t->arena_floats : NULL;
    t->arena_floats += (n + ALIGN - 1) / ALIGN * ALIGN;
    return p;
}

static void take_layer(struct train *t, struct train_layer *l)
{
    size_t n = t->tokens, h = t->c.hidden, f = t->c.ffn;
    l->x0 = train_take(t, n * h);
    l->n1 = train_take(t, n * h);
    l->qkv_out = train_take(t, n * t->qkv);
    l->att = train_take(t, n * t->q);
    l->x1 = train_take(t, n * h);
    l->n2 = train_take(t, n * h);
    l->gu_out = train_take(t, n * 2 * f);
    l->act = train_take(t, n * f);
    l->p = train_take(t, t->c.heads * n * panels_count(t->doc) * PANEL);
    l->d_qkv = train_take(t, t->qkv * n);
    l->d_o = train_take(t, h * n);
    l->d_gu = train_take(t, 2 * f * n);
    l->d_down = train_take(t, h * n);
    l->g_norm1 = train_take(t, t->shards_max * h);
    l->g_bias = train_take(t, t->shards_max * t->qkv);
    l->g_norm2 = train_take(t, t->shards_max * h);
}

/* Lay out the arena. It runs twice: to count, then to place. */
static void take_all(struct train *t)
{
    size_t n = t->tokens, h = t->c.hidden, rows = TRAIN_SHARD + t->doc;
    t->arena_floats = 0;
    t->value = train_take(t, t->params);
    t->grad = train_take(t, t->params);
    t->m = train_take(t, t->params);
    t->v = train_take(t, t->params);
    t->packed = train_take(t, t->params);
    t->packed_t = train_take(t, t->params);
    t->cos = train_take(t, t->doc * t->c.head_dim / 2);
    t->sin = train_take(t, t->doc * t->c.head_dim / 2);
    t->nsin = train_take(t, t->doc * t->c.head_dim / 2);
    for (size_t i = 0; i < t->c.layers; i++)
        take_layer(t, &t->layers[i]);
    t->x_last = train_take(t, n * h);
    t->xh = train_take(t, n * h);
    t->d_logits = train_take(t, t->c.vocab * n);
    t->d_emb = train_take(t, n * h);
    t->g_final = train_take(t, t->shards_max * h);
    for (size_t i = 0; i < pool_threads(t->pool); i++) {
        struct train_scratch *z = &t->scratch[i];
        z->dx = train_take(t, rows * h);
        z->dn = train_take(t, rows * h);
        z->wide = train_take(t, rows * train_most(train_most(2 * t->c.ffn, t->qkv), t->c.vocab));
        z->small = train_take(t, rows * train_most(t->c.ffn, t->q));
        /* It also serves as the strip of matrix_job, which needs n * PANEL floats. */
        z->att = train_take(t, train_most(train_attn_scratch(t), n * PANEL));
    }
}

/* List the matrices with the inputs and output gradients that their gradients need. */
static void list_matrices(struct train *t)
{
    size_t h = t->c.hidden, f = t->c.ffn;
    struct train_matrix *m = t->matrices;
    *m++ = (struct train_matrix){ 0, t->c.vocab, h, t->xh, t->d_logits, true };
    for (size_t i = 0; i < t->c.layers; i++) {
        const struct train_layer *l = &t->layers[i];
        *m++ = (struct train_matrix){ l->qkv, t->qkv, h, l->n1, l->d_qkv, false };
        *m++ = (struct train_matrix){ l->o, h, t->q, l->att, l->d_o, false };
        *m++ = (struct train_matrix){ l->gu, 2 * f, h, l->n2, l->d_gu, false };
        *m++ = (struct train_matrix){ l->down, h, f, l->act, l->d_down, false };
    }
}

/* Compute sine and cosine of every position, and the negated sine for the backward rotation. */
static void fill_tables(struct train *t)
{
    size_t half = t->c.head_dim / 2, at = 0;
    for (size_t pos = 0; pos < t->doc; pos++)
        for (size_t i = 0; i < half; i++, at++) {
            double freq = pow_f64((double)t->c.rope_theta, -(double)i / (double)half), s, c;
            sincos_f64(&s, &c, (double)pos * freq);
            t->cos[at] = (float)c;
            t->sin[at] = (float)s;
            t->nsin[at] = -(float)s;
        }
    double sqrt_hd = pow_f64((double)t->c.head_dim, 0.5);
    t->scale = (float)(1.0 / sqrt_hd);
}

/* Fill x with normal random numbers (Box and Muller); u is never 0. */
static void fill_normal(float *x, size_t n, double deviation, uint64_t key)
{
    for (size_t i = 0; i < n; i++) {
        double u = 1.0 - rand_unit(key, 2 * i), s, c;
        sincos_f64(&s, &c, 6.283185307179586 * rand_unit(key, 2 * i + 1));
        x[i] = (float)(deviation * pow_f64(-2 * log_f64(u) + 0x1p-60, 0.5) * c);
    }
}

/* Point each tensor into the flat arrays and give it its random start; see train_open. */
static void fill_weights(struct train *t, uint64_t seed)
{
    float *value = t->value;
    for (size_t i = 0; i < t->ntensors; i++) {
        struct train_tensor *x = &t->tensors[i];
        size_t n = x->rows * x->cols;
        x->value = value;
        x->grad = t->grad + (value - t->value);
        value += n;
        bool sums = strstr(x->name, "attn_output") || strstr(x->name, "ffn_down");
        double deviation = pow_f64((double)x->cols, -0.5);
        if (sums)
            deviation *= pow_f64(2 * (double)t->c.layers, -0.5);
        if (i == 0)
            deviation *= EMBEDDING_GAIN;
        if (x->rows > 1)
            fill_normal(x->value, n, deviation, rand_u64(seed, i));
        else
            for (size_t j = 0; j < n; j++)
                x->value[j] = strstr(x->name, "norm") ? 1.0f : 0.0f;
    }
}

/* Allocate everything; take_all counts first, then places. */
static int allocate(struct train *t)
{
    t->layers = calloc(t->c.layers, sizeof(*t->layers));
    t->tensors = calloc(t->c.layers * LAYER_TENSORS + 2, sizeof(*t->tensors));
    t->matrices = calloc(t->c.layers * 4 + 1, sizeof(*t->matrices));
    t->shards = calloc(t->shards_max, sizeof(*t->shards));
    t->scratch = calloc(pool_threads(t->pool), sizeof(*t->scratch));
    if (!t->layers || !t->tensors || !t->matrices || !t->shards || !t->scratch)
        return ERR_NOMEM;
    train_lay_out(t);
    t->norms = calloc(t->params / 4096 + 1, sizeof(*t->norms));
    take_all(t);
    size_t floats = t->arena_floats;
    t->arena = t->norms ? os_alloc(floats * sizeof(float)) : NULL;
    if (!t->arena)
        return ERR_NOMEM;
    take_all(t);
    return OK;
}

int train_open(struct train **out, const struct model_config *c, const struct kernels *k,
               struct pool *pool, size_t tokens, size_t doc, uint64_t seed, struct err *err)
{
    *out = NULL;
    struct train *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(err, ERR_NOMEM, "train: out of memory");
    t->c = *c;
    t->k = k;
    t->pool = pool;
    t->tokens = tokens;
    t->doc = doc;
    t->shards_max = tokens / TRAIN_SHARD + 1;
    t->q = c->heads * c->head_dim;
    t->kv = c->kv_heads * c->head_dim;
    t->qkv = t->q + 2 * t->kv;
    t->nmatrices = 4 * c->layers + 1;
    int rc = check_config(t, err);
    if (!rc && allocate(t))
        rc = err_set(err, ERR_NOMEM, "train: out of memory");
    if (rc) {
        train_close(t);
        return rc;
    }
    list_matrices(t);
    fill_tables(t);
    fill_weights(t, seed);
    *out = t;
    return OK;
}

void train_close(struct train *t)
{
    if (!t)
        return;
    if (t->arena)
        os_free(t->arena, t->arena_floats * sizeof(float));
    free(t->norms);
    free(t->scratch);
    free(t->shards);
    free(t->matrices);
    free(t->tensors);
    free(t->layers);
    free(t);
}

struct train_look train_look(const struct train *t)
{
    return (struct train_look){ &t->c, t->tensors, t->ntensors, t->params, t->steps };
}
