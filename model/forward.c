/* forward.c - run one chunk of tokens through the layers. */
#include <math.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "kernels/sys/pool.h"
#include "model/session_internal.h"

/* One of up to three products of the same input, which form one job over all their panels. */
struct product {
    float *y;
    size_t ldy;
    const struct panels *w;
    const float *bias; /* NULL: no bias */
};

struct products {
    const struct session *s;
    const struct product *list;
    size_t count, n;
    const float *x;
    size_t ldx;
};

/* True for weights whose products need quantised activations. */
static bool forward_quantised(const struct panels *w)
{
    return w->type == P_Q8 || w->type == P_Q4;
}

/* Multiply panels [p0, p1) of w for n tokens. x is the plain input, s->act the quantised one. */
static void multiply(const struct session *s, float *y, size_t ldy, const struct panels *w,
                     const float *x, size_t ldx, size_t n, size_t p0, size_t p1)
{
    const struct kernels *k = model_kernels(s->m);
    switch (w->type) {
    case P_F32:
        k->matmul_f32(y, ldy, w, x, ldx, n, p0, p1);
        break;
    case P_BF16:
        k->matmul_bf16(y, ldy, w, x, ldx, n, p0, p1);
        break;
    case P_Q8:
        k->matmul_q8(y, ldy, w, &s->act, n, p0, p1);
        break;
    case P_Q4:
        k->matmul_q4(y, ldy, w, &s->act, n, p0, p1);
        break;
    }
}

/* Run the panels [first, last) of all products, counted through, and add biases. */
static void products_chunk(void *arg, size_t thread, size_t first, size_t last)
{
    (void)thread;
    const struct products *j = arg;
    size_t base = 0;
    for (size_t i = 0; i < j->count; i++) {
        const struct product *p = &j->list[i];
        size_t panels = panels_count(p->w->rows), end = base + panels;
        size_t p0 = first > base ? first - base : 0, p1 = last < end ? last - base : panels;
        if (first < end && last > base && p0 < p1) {
            multiply(j->s, p->y, p->ldy, p->w, j->x, j->ldx, j->n, p0, p1);
            for (size_t t = 0; p->bias && t < j->n; t++)
                model_kernels(j->s->m)->add_f32(p->y + t * p->ldy + p0 * PANEL,
                                                p->bias + p0 * PANEL, (p1 - p0) * PANEL);
        }
        base = end;
    }
}

/* Return how many panels of `cols` columns are worth handing to a thread; with many tokens, a
 * multiple of 6, so that the kernels' tiles of panels stay whole. */
static size_t forward_grain(size_t cols, size_t n)
{
    size_t work = PANEL * cols * n, most = work >= CHUNK_WORK ? 1 : CHUNK_WORK / work;
    return n >= 4 ? (most + 5) / 6 * 6 : most;
}

struct rows {
    struct session *s;
    float *x;             /* `add` is added to it first, if not NULL */
    const float *add, *w; /* w: norm weights, or NULL to quantise only */
    float *y;
    size_t ld, cols;
    bool quantise;
};

/* Add, norm and quantise rows [first, last), each step only if requested. */
static void rows_chunk(void *arg, size_t thread, size_t first, size_t last)
{
    (void)thread;
    const struct rows *r = arg;
    const struct kernels *k = model_kernels(r->s->m);
    for (size_t t = first; t < last; t++) {
        if (r->add)
            k->add_f32(r->x + t * r->ld, r->add + t * r->ld, r->cols);
        if (r->w)
            k->rmsnorm_f32(r->y + t * r->ld, r->x + t * r->ld, r->w, r->cols,
                           model_config(r->s->m)->eps);
        if (r->quantise)
            k->quantize_q8(&r->s->act, t, r->y + t * r->ld);
    }
}

/* x += add if add is not NULL; y = x normed by w; y is also quantised if a product needs it. */
static void forward_norm(struct session *s, float *y, const float *add, const float *w, size_t n,
                         bool quantise)
{
    size_t cols = model_config(s->m)->hidden;
    struct rows r = { s, s->x, add, w, y, s->ld_h, cols, quantise };
    if (quantise)
        s->act.cols = cols;
    pool_for(s->pool, n, 1 + 32768 / cols, rows_chunk, &r);
}

/* Quantise n rows of y into s->act. */
static void quantise(struct session *s, float *y, size_t ld, size_t cols, size_t n)
{
    struct rows r = { s, NULL, NULL, NULL, y, ld, cols, true };
    s->act.cols = cols;
    pool_for(s->pool, n, 1 + 32768 / cols, rows_chunk, &r);
}

/* Run the products of one input as one job over all their panels. */
static void run_products(struct session *s, const struct product *list, size_t count,
                         const float *x, size_t ldx, size_t n)
{
    struct products j = { s, list, count, n, x, ldx };
    size_t panels = 0;
    for (size_t i = 0; i < count; i++)
        panels += panels_count(list[i].w->rows);
    pool_for(s->pool, panels, forward_grain(list[0].w->cols, n), products_chunk, &j);
}

/* Compute sine and cosine for the positions of this chunk, with the project's own functions. */
static void rope_tables(struct session *s, size_t n)
{
    size_t half = model_config(s->m)->head_dim / 2;
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < half; i++) {
            double sine, cosine;
            sincos_f64(&sine, &cosine, (double)(s->length + t) * s->inv_freq[i]);
            s->cos[t * half + i] = (float)cosine;
            s->sin[t * half + i] = (float)sine;
        }
}

/* Return the group of 16 keys that contains position pos, for one KV head; cache_value returns the
 * value at pos. */
static void *cache_keys(const struct session *s, size_t layer, size_t g, size_t pos)
{
    size_t head = layer * model_config(s->m)->kv_heads + g;
    return s->cache + (head * s->context16 + pos) / PANEL * s->keys_bytes;
}

static void *cache_value(const struct session *s, size_t layer, size_t g, size_t pos)
{
    size_t head = layer * model_config(s->m)->kv_heads + g;
    return s->cache + s->cache_half + (head * s->context16 + pos) * s->value_bytes;
}

struct spread {
    struct session *s;
    size_t layer;
};

/* Rotate queries and keys. Queries go to rows of hd16 floats, padding zero; keys and values go to
 * the cache. */
static void spread_chunk(void *arg, size_t thread, size_t first, size_t last)
{
    const struct spread *a = arg;
    const struct session *s = a->s;
    const struct model_config *c = model_config(s->m);
    const struct kernels *k = model_kernels(s->m);
    size_t hd = c->head_dim, half = hd / 2;
    float *row = s->row + thread * s->hd16; /* the padding at its end stays zero */
    for (size_t t = first; t < last; t++) {
        const float *cosine = s->cos + t * half, *sine = s->sin + t * half;
        size_t pos = s->length + t;
        for (size_t h = 0; h < c->heads; h++) {
            size_t g = h / s->per, i = t * s->per + h % s->per;
            float *q = s->heads + (g * SESSION_CHUNK * s->per + i) * s->hd16;
            memcpy(q, s->q + t * s->ld_q + h * hd, hd * sizeof(*q));
            memset(q + hd, 0, (s->hd16 - hd) * sizeof(*q));
            k->rope_f32(q, cosine, sine, half);
        }
        for (size_t g = 0; g < c->kv_heads; g++) {
            memcpy(row, s->k + t * s->ld_kv + g * hd, hd * sizeof(*row));
            k->rope_f32(row, cosine, sine, half);
            kvcache_put_key(s->kv, cache_keys(s, a->layer, g, pos), pos % PANEL, row, s->hd16);
            memcpy(row, s->v + t * s->ld_kv + g * hd, hd * sizeof(*row));
            kvcache_put_value(s->kv, cache_value(s, a->layer, g, pos), row, s->hd16);
        }
    }
}

struct attention {
    struct session *s;
    size_t layer, n;
};

/* Return the partial attention that begins at this row of the session's buffers. */
static struct attn_part part_at(const struct session *s, size_t row)
{
    return (struct attn_part){ s->part_max + row, s->part_sum + row, s->part_out + row * s->hd16 };
}

/* Compute the partial attention of tokens [t0, t1) with key block b, for KV head g. The first of
 * these tokens must see the block's first key. */
static void forward_attend(const struct attention *a, const struct attn_part *y, size_t g, size_t b,
                           size_t t0, size_t t1)
{
    const struct session *s = a->s;
    const struct kernels *k = model_kernels(s->m);
    size_t from = b * ATTN_BLOCK, nk = s->length + t1 - from;
    size_t first = s->length + t0 + 1 - from, nq = (t1 - t0) * s->per;
    const float *q = s->heads + (g * SESSION_CHUNK + t0) * s->per * s->hd16;
    const void *key = cache_keys(s, a->layer, g, from);
    const void *value = cache_value(s, a->layer, g, from);
    float scale = 1.0f / sqrtf((float)model_config(s->m)->head_dim);
    nk = nk < ATTN_BLOCK ? nk : ATTN_BLOCK;
    switch (s->kv) {
    case KVCACHE_F32:
        k->attn_f32(y, q, key, value, nq, s->per, first, nk, s->hd16, scale);
        break;
    case KVCACHE_F16:
        k->attn_f16(y, q, key, value, nq, s->per, first, nk, s->hd16, scale);
        break;
    case KVCACHE_Q8:
        k->attn_q8(y, q, key, value, nq, s->per, first, nk, s->hd16, scale);
        break;
    }
}

/* Merge row j of b into row i of a; b is the later block. */
static void forward_merge(const struct session *s, const struct attn_part *a, size_t i,
                          const struct attn_part *b, size_t j)
{
    model_kernels(s->m)->attn_merge(&a->max[i], &a->sum[i], a->out + i * s->hd16, b->max[j],
                                    b->sum[j], b->out + j * s->hd16, s->hd16);
}

/* Normalise row i of part y and write it as query head h of KV head g at token t. */
static void finish_row(const struct session *s, const struct attn_part *y, size_t i, size_t g,
                       size_t h, size_t t)
{
    size_t hd = model_config(s->m)->head_dim;
    float *out = s->att + t * s->ld_q + (g * s->per + h) * hd, inv = 1.0f / y->sum[i];
    for (size_t d = 0; d < hd; d++)
        out[d] = y->out[i * s->hd16 + d] * inv;
}

/* A unit is (KV head, tile of tokens). Blocks are processed in ascending order, each merged into
 * the first one. */
static void tile_chunk(void *arg, size_t thread, size_t first, size_t last)
{
    const struct attention *a = arg;
    const struct session *s = a->s;
    struct attn_part sum = part_at(s, 2 * thread * s->part_rows);
    struct attn_part next = part_at(s, (2 * thread + 1) * s->part_rows);
    size_t tiles = (a->n + TILE - 1) / TILE;
    for (size_t u = first; u < last; u++) {
        size_t g = u / tiles, t0 = u % tiles * TILE, t1 = t0 + TILE < a->n ? t0 + TILE : a->n;
        size_t blocks = (s->length + t1 - 1) / ATTN_BLOCK + 1;
        forward_attend(a, &sum, g, 0, t0, t1);
        for (size_t b = 1; b < blocks; b++) {
            size_t from = b * ATTN_BLOCK, t = from > s->length + t0 ? from - s->length : t0;
            forward_attend(a, &next, g, b, t, t1);
            for (size_t i = 0; i < (t1 - t) * s->per; i++)
                forward_merge(s, &sum, (t - t0) * s->per + i, &next, i);
        }
        for (size_t i = 0; i < (t1 - t0) * s->per; i++)
            finish_row(s, &sum, i, g, i % s->per, t0 + i / s->per);
    }
}

/* One token with a long past: a unit is (KV head, block); the caller merges them in block order. */
static void block_chunk(void *arg, size_t thread, size_t first, size_t last)
{
    (void)thread;
    const struct attention *a = arg;
    size_t blocks = a->s->length / ATTN_BLOCK + 1;
    for (size_t u = first; u < last; u++) {
        struct attn_part y = part_at(a->s, u * a->s->per);
        forward_attend(a, &y, u / blocks, u % blocks, 0, 1);
    }
}

/* Split attention by tiles of tokens, or, for one token with a long past, by key blocks. Both merge
 * blocks in the same order, so the bits are the same. */
static void attention(struct session *s, size_t layer, size_t n)
{
    const struct model_config *c = model_config(s->m);
    struct attention a = { s, layer, n };
    size_t blocks = s->length / ATTN_BLOCK + 1;
    if (n > 1 || blocks < SPLIT_BLOCKS) {
        size_t tiles = (n + TILE - 1) / TILE, work = (s->length + n) * s->hd16 * s->per * TILE;
        pool_for(s->pool, c->kv_heads * tiles, work * 2 >= CHUNK_WORK ? 1 : CHUNK_WORK / work,
                 tile_chunk, &a);
        return;
    }
    size_t units = c->kv_heads * blocks, each = units / (8 * pool_threads(s->pool)) + 1;
    pool_for(s->pool, units, each, block_chunk, &a);
    for (size_t g = 0; g < c->kv_heads; g++) {
        struct attn_part sum = part_at(s, g * blocks * s->per);
        for (size_t b = 1; b < blocks; b++) {
            struct attn_part next = part_at(s, (g * blocks + b) * s->per);
            for (size_t i = 0; i < s->per; i++)
                forward_merge(s, &sum, i, &next, i);
        }
        for (size_t i = 0; i < s->per; i++)
            finish_row(s, &sum, i, g, i, 0);
    }
}

struct ffn {
    struct session *s;
    const struct model_layer *l;
    size_t n;
};

/* Compute gate, up and SwiGLU for the same panels, so that they stay in this thread's cache. */
static void ffn_chunk(void *arg, size_t thread, size_t first, size_t last)
{
    (void)thread;
    const struct ffn *f = arg;
    const struct session *s = f->s;
    multiply(s, s->gate, s->ld_f, &f->l->gate, s->xn, s->ld_h, f->n, first, last);
    multiply(s, s->up, s->ld_f, &f->l->up, s->xn, s->ld_h, f->n, first, last);
    for (size_t t = 0; t < f->n; t++) {
        float *g = s->gate + t * s->ld_f + first * PANEL;
        model_kernels(s->m)->swiglu_f32(g, g, s->up + t * s->ld_f + first * PANEL,
                                        (last - first) * PANEL);
    }
}

/* Run one layer. On entry s->out of the layer before is still to be added to s->x; this layer
 * leaves its own s->out in the same way. */
static void forward_layer(struct session *s, size_t i, size_t n)
{
    const struct model_config *c = model_config(s->m);
    const struct model_layer *l = model_layer(s->m, i);
    forward_norm(s, s->xn, i ? s->out : NULL, l->attn_norm, n,
                 forward_quantised(&l->q) || forward_quantised(&l->k) || forward_quantised(&l->v));
    const struct product qkv[] = { { s->q, s->ld_q, &l->q, l->bq },
                                   { s->k, s->ld_kv, &l->k, l->bk },
                                   { s->v, s->ld_kv, &l->v, l->bv } };
    run_products(s, qkv, 3, s->xn, s->ld_h, n);
    struct spread spread = { s, i };
    pool_for(s->pool, n, 4, spread_chunk, &spread);
    attention(s, i, n);
    if (forward_quantised(&l->o))
        quantise(s, s->att, s->ld_q, c->heads * c->head_dim, n);
    const struct product o = { s->out, s->ld_h, &l->o, NULL };
    run_products(s, &o, 1, s->att, s->ld_q, n);

    forward_norm(s, s->xn, s->out, l->ffn_norm, n,
                 forward_quantised(&l->gate) || forward_quantised(&l->up));
    if (i + 1 == c->layers)
        memcpy(s->post, s->xn, n * s->ld_h * sizeof(*s->post));
    struct ffn f = { s, l, n };
    pool_for(s->pool, panels_count(c->ffn),
             n >= 4 ? forward_grain(c->hidden, n) : 1 + forward_grain(c->hidden, n) / 2, ffn_chunk,
             &f);
    if (forward_quantised(&l->down))
        quantise(s, s->gate, s->ld_f, c->ffn, n);
    const struct product down = { s->out, s->ld_h, &l->down, NULL };
    run_products(s, &down, 1, s->gate, s->ld_f, n);
}

int forward_chunk(struct session *s, const uint32_t *ids, size_t n, const _Atomic int *stop)
{
    const struct model_config *c = model_config(s->m);
    for (size_t t = 0; t < n; t++)
        panels_row(s->x + t * s->ld_h, model_embedding(s->m), ids[t]);
    rope_tables(s, n);
    for (size_t i = 0; i < c->layers; i++) {
        if (stop && *stop)
            return ERR_STOP;
        forward_layer(s, i, n);
    }
    forward_norm(s, s->final, s->out, model_final_norm(s->m), n, false);
    return OK;
}

void forward_head(struct session *s, size_t row)
{
    const struct model_config *c = model_config(s->m);
    const struct panels *w = model_head(s->m);
    float *x = s->final + row * s->ld_h;
    if (forward_quantised(w))
        quantise(s, x, s->ld_h, c->hidden, 1);
    const struct product head = { s->logits, (w->rows + PANEL - 1) / PANEL * PANEL, w, NULL };
    run_products(s, &head, 1, x, s->ld_h, 1);
}
