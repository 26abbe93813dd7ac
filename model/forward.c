/* forward.c - run the rows of one pass through the layers. */
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "kernels/sys/pool.h"
#include "model/batch_internal.h"

/* One of up to three products of the same input, which form one job over all their panels. */
struct product {
    float *y;
    size_t ldy;
    const struct panels *w;
    const float *bias; /* NULL: no bias */
};

struct products {
    struct batch *b;
    const struct product *list;
    size_t count, n;
    const float *x;
    size_t ldx;
};

/* True for weights whose products need quantised activations. */
static bool forward_quantised(const struct panels *w)
{
    return w->type > P_BF16;
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
            batch_multiply(j->b, p->y, p->ldy, p->w, j->x, j->ldx, j->n, p0, p1);
            for (size_t t = 0; p->bias && t < j->n; t++)
                j->b->m->kernels->add_f32(p->y + t * p->ldy + p0 * PANEL, p->bias + p0 * PANEL,
                                          (p1 - p0) * PANEL);
        }
        base = end;
    }
}

/* Return how many of a job's panels are worth handing to a thread. As many as the processor likes
 * to walk in a run, evened out so that all threads get equally many runs; no more than a thread's
 * share, if that is enough work. From four tokens on it is a multiple of 6, so that the kernels'
 * tiles of panels stay whole; with a few, which are computed a panel at a time anyway, not if that
 * is more than a thread's share. */
static size_t forward_grain(const struct batch *b, enum ptype type, size_t panels, size_t cols,
                            size_t n)
{
    size_t run = b->m->kernels->tune[type].run, work = PANEL * cols * n;
    size_t threads = b->threads, share = (panels - 1) / threads + 1;
    size_t most = work >= run ? 1 : run / work, enough = CHUNK_WORK / work;
    if (share > most)
        most = (panels - 1) / (threads * (share / most)) + 1;
    else if (most > enough)
        most = share > enough ? share : enough;
    size_t tiles = (most + 5) / 6 * 6;
    return n >= 4 && (tiles <= share || n > FEW_ROWS) ? tiles : most;
}

/* Tell whoever watches that an operation begins or ends. */
static void forward_tell(const struct batch *b, enum batch_op op, size_t layer, size_t n, bool ends)
{
    if (b->watch && b->watch->op)
        b->watch->op(b->watch->arg, op, layer, n, ends);
}

/* Run an operation on n rows as a job of the pool over `units` (pool_for). */
static void forward_job(struct batch *b, enum batch_op op, size_t layer, size_t n, size_t units,
                        size_t grain, void (*fn)(void *, size_t, size_t, size_t), void *arg)
{
    forward_tell(b, op, layer, n, false);
    pool_for(b->pool, units, grain, fn, arg);
    forward_tell(b, op, layer, n, true);
}

/* Show values of all rows to whoever watches. */
static void forward_show(const struct batch *b, size_t layer, enum batch_value value,
                         const float *x, size_t ld, size_t cols)
{
    if (b->watch && b->watch->see)
        b->watch->see(b->watch->arg, layer, value, x, ld, cols, b->n);
}

struct rows {
    struct batch *b;
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
    const struct kernels *k = r->b->m->kernels;
    for (size_t t = first; t < last; t++) {
        if (r->add)
            k->add_f32(r->x + t * r->ld, r->add + t * r->ld, r->cols);
        if (r->w)
            k->rmsnorm_f32(r->y + t * r->ld, r->x + t * r->ld, r->w, r->cols, r->b->m->config.eps);
        if (r->quantise)
            k->quantize_q8(&r->b->act, t, r->y + t * r->ld);
    }
}

/* x += add if add is not NULL; y = x normed by w; y is also quantised if a product needs it. */
static void forward_norm(struct batch *b, size_t layer, float *y, const float *add, const float *w,
                         bool quantise)
{
    size_t cols = b->m->config.hidden;
    struct rows r = { b, b->x, add, w, y, b->ld_h, cols, quantise };
    if (quantise)
        b->act.cols = cols;
    forward_job(b, OP_NORM, layer, b->n, b->n, 1 + 32768 / cols, rows_chunk, &r);
}

/* Quantise n rows of y into b->act. */
static void quantise(struct batch *b, size_t layer, float *y, size_t ld, size_t cols, size_t n)
{
    struct rows r = { b, NULL, NULL, NULL, y, ld, cols, true };
    b->act.cols = cols;
    forward_job(b, OP_NORM, layer, n, n, 1 + 32768 / cols, rows_chunk, &r);
}

/* Run the products of one input as one job over all their panels. */
static void run_products(struct batch *b, enum batch_op op, size_t layer,
                         const struct product *list, size_t count, const float *x, size_t ldx,
                         size_t n)
{
    struct products j = { b, list, count, n, x, ldx };
    size_t panels = 0;
    for (size_t i = 0; i < count; i++)
        panels += panels_count(list[i].w->rows);
    size_t grain = forward_grain(b, list[0].w->type, panels, list[0].w->cols, n);
    forward_job(b, op, layer, n, panels, grain, products_chunk, &j);
}

/* Compute sine and cosine for the positions of all rows, with the project's own functions. */
static void rope_tables(struct batch *b)
{
    size_t half = b->m->config.head_dim / 2;
    for (size_t t = 0; t < b->n; t++)
        for (size_t i = 0; i < half; i++) {
            double sine, cosine;
            sincos_f64(&sine, &cosine, (double)b->pos[t] * b->inv_freq[i]);
            b->cos[t * half + i] = (float)(cosine * b->magnitude);
            b->sin[t * half + i] = (float)(sine * b->magnitude);
        }
}

struct ffn {
    struct batch *b;
    const struct model_layer *l;
    size_t n;
};

/* Compute gate, up and SwiGLU for the same panels, so that they stay in this thread's cache. */
static void ffn_chunk(void *arg, size_t thread, size_t first, size_t last)
{
    (void)thread;
    const struct ffn *f = arg;
    struct batch *b = f->b;
    batch_multiply(b, b->gate, b->ld_f, &f->l->gate, b->xn, b->ld_h, f->n, first, last);
    batch_multiply(b, b->up, b->ld_f, &f->l->up, b->xn, b->ld_h, f->n, first, last);
    for (size_t t = 0; t < f->n; t++) {
        float *g = b->gate + t * b->ld_f + first * PANEL;
        b->m->kernels->swiglu_f32(g, g, b->up + t * b->ld_f + first * PANEL,
                                  (last - first) * PANEL);
    }
}

/* Compute gate, up and SwiGLU of a layer. */
static void forward_ffn(struct batch *b, size_t i)
{
    const struct model_config *c = &b->m->config;
    struct ffn f = { b, &b->m->layers[i], b->n };
    size_t panels = b->ld_f / PANEL, cols = b->n < 4 ? 2 * c->hidden : c->hidden;
    size_t grain = forward_grain(b, f.l->gate.type, panels, cols, b->n);
    forward_job(b, OP_FFN, i, b->n, panels, grain, ffn_chunk, &f);
}

/* Run one layer. On entry b->out of the layer before is still to be added to b->x; this layer
 * leaves its own b->out in the same way. */
static void forward_layer(struct batch *b, size_t i)
{
    size_t n = b->n, ld = b->ld_h;
    const struct model_config *c = &b->m->config;
    const struct model_layer *l = &b->m->layers[i];
    forward_norm(b, i, b->xn, i ? b->out : NULL, l->attn_norm,
                 forward_quantised(&l->q) || forward_quantised(&l->k) || forward_quantised(&l->v));
    const struct product qkv[] = { { b->q, b->ld_q, &l->q, l->bq },
                                   { b->k, b->ld_kv, &l->k, l->bk },
                                   { b->v, b->ld_kv, &l->v, l->bv } };
    forward_show(b, i, STREAM, b->x, ld, c->hidden);
    forward_show(b, i, INPUT_QKV, b->xn, ld, c->hidden);
    run_products(b, OP_QKV, i, qkv, 3, b->xn, ld, n);
    forward_tell(b, OP_ATTENTION, i, n, false);
    attention_layer(b, i);
    forward_tell(b, OP_ATTENTION, i, n, true);
    if (forward_quantised(&l->o))
        quantise(b, i, b->att, b->ld_q, c->heads * c->head_dim, n);
    forward_show(b, i, INPUT_O, b->att, b->ld_q, c->heads * c->head_dim);
    const struct product o = { b->out, ld, &l->o, NULL };
    run_products(b, OP_O, i, &o, 1, b->att, b->ld_q, n);

    forward_norm(b, i, b->xn, b->out, l->ffn_norm,
                 forward_quantised(&l->gate) || forward_quantised(&l->up));
    forward_show(b, i, ADDED_ATTN, b->out, ld, c->hidden);
    forward_show(b, i, STREAM_MIDDLE, b->x, ld, c->hidden);
    forward_show(b, i, INPUT_FFN, b->xn, ld, c->hidden);
    forward_ffn(b, i);
    if (forward_quantised(&l->down))
        quantise(b, i, b->gate, b->ld_f, c->ffn, n);
    forward_show(b, i, INPUT_DOWN, b->gate, b->ld_f, c->ffn);
    const struct product down = { b->out, ld, &l->down, NULL };
    run_products(b, OP_DOWN, i, &down, 1, b->gate, b->ld_f, n);
    forward_show(b, i, ADDED_FFN, b->out, ld, c->hidden);
}

/* Read the embeddings of all rows, and plan what their positions need. */
static void forward_embed(struct batch *b)
{
    forward_tell(b, OP_EMBED, 0, b->n, false);
    for (size_t t = 0; t < b->n; t++)
        panels_row(b->x + t * b->ld_h, &b->m->embedding, b->ids[t]);
    rope_tables(b);
    attention_plan(b);
    forward_tell(b, OP_EMBED, 0, b->n, true);
}

int forward_pass(struct batch *b, const _Atomic int *stop)
{
    const struct model_config *c = &b->m->config;
    forward_embed(b);
    for (size_t i = 0; i < c->layers; i++) {
        if (stop && *stop)
            return ERR_STOP;
        forward_layer(b, i);
    }
    forward_norm(b, c->layers, b->final, b->out, b->m->final_norm, false);
    forward_show(b, c->layers, STREAM, b->x, b->ld_h, c->hidden);
    forward_show(b, c->layers, INPUT_HEAD, b->final, b->ld_h, c->hidden);
    tuning_pass(&b->tuning, 0, TUNING_HEAD, b->n);
    return OK;
}

float forward_head_row(struct batch *b, const float *hidden, size_t id)
{
    const struct panels *w = &b->m->head;
    memcpy(b->xn, hidden, w->cols * sizeof(*b->xn));
    if (forward_quantised(w))
        quantise(b, b->m->config.layers, b->xn, b->ld_h, w->cols, 1);
    batch_multiply(b, b->logits, b->ld_v, w, b->xn, b->ld_h, 1, id / PANEL, id / PANEL + 1);
    b->tuning.slot[TUNING_HEAD].ns = 0; /* a panel is no pass */
    return b->logits[id];
}

/* Multiply n rows of b->xn by the output head. */
static void forward_head_rows(struct batch *b, size_t n)
{
    const struct panels *w = &b->m->head;
    const struct product head = { b->logits, b->ld_v, w, NULL };
    size_t layers = b->m->config.layers;
    if (forward_quantised(w))
        quantise(b, layers, b->xn, b->ld_h, w->cols, n);
    run_products(b, OP_HEAD, layers, &head, 1, b->xn, b->ld_h, n);
    tuning_pass(&b->tuning, TUNING_HEAD, TUNING_SLOTS, n);
}

void forward_head(struct batch *b)
{
    for (size_t i = 0; i < b->nlogits; i++)
        memcpy(b->xn + i * b->ld_h, b->final + b->logits_row[i] * b->ld_h,
               b->ld_h * sizeof(*b->xn));
    forward_head_rows(b, b->nlogits);
}

void forward_lens(struct batch *b, const float *x, size_t ld, size_t n)
{
    const struct model_config *c = &b->m->config;
    const struct batch_watch *watch = b->watch;
    b->watch = NULL;
    for (size_t i = 0; i < n; i++)
        b->m->kernels->rmsnorm_f32(b->xn + i * b->ld_h, x + i * ld, b->m->final_norm, c->hidden,
                                   c->eps);
    forward_head_rows(b, n);
    b->watch = watch;
}
