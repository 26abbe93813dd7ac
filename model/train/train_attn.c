/* train_attn.c - causal attention of whole documents, forward and backward, as small matrix
 * products.
 *
 * The probabilities are kept: for each query head [n][n16], n16 = n rounded up to 16, zero where a
 * query does not see the key. Queries are processed in blocks of BLOCK rows, so that most of what
 * the mask would discard is never computed. */
#include <string.h>

#include "model/train/train_internal.h"

enum { BLOCK = 32 };

static size_t train_attn_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t train_attn_size(const struct train *t, size_t n)
{
    return t->c.heads * n * panels_count(n) * PANEL;
}

size_t train_attn_scratch(const struct train *t)
{
    size_t n16 = panels_count(t->doc) * PANEL;
    return 4 * n16 * t->c.head_dim + 2 * n16 * n16;
}

/* Turn a row of [n][n16] into probabilities over its first `seen` scores; the rest becomes 0. */
static void softmax(float *row, size_t seen, size_t n16, float scale)
{
    float max = row[0];
    for (size_t j = 1; j < seen; j++)
        max = row[j] > max ? row[j] : max;
    for (size_t j = 0; j < seen; j++)
        row[j] = (row[j] - max) * scale;
    train_exp(row, seen);
    float sum = 0;
    for (size_t j = 0; j < seen; j++)
        sum += row[j];
    float inv = 1.0f / sum;
    for (size_t j = 0; j < seen; j++)
        row[j] *= inv;
    memset(row + seen, 0, (n16 - seen) * sizeof(float));
}

/* Compute rows [i0, i1) of a product whose k axis is the positions up to i1. */
static void sum_over_keys(const struct train *t, float *y, size_t ldy, const float *strips,
                          size_t n, const float *s, size_t i0, size_t i1)
{
    struct panels w = train_panels(strips, t->c.head_dim, n);
    w.cols = i1;
    size_t n16 = panels_count(n) * PANEL;
    t->k->matmul_f32(y + i0 * ldy, ldy, &w, s + i0 * n16, n16, i1 - i0, 0, t->c.head_dim / PANEL);
}

void train_attn_forward(const struct train *t, struct train_layer *l, size_t t0, size_t n, float *p,
                        float *scratch)
{
    size_t hd = t->c.head_dim, n16 = panels_count(n) * PANEL, per = t->c.heads / t->c.kv_heads;
    const float *base = l->qkv_out + t0 * t->qkv;
    float *kp = scratch, *vp = scratch + n16 * hd, scale = t->scale;
    for (size_t g = 0; g < t->c.kv_heads; g++) {
        train_pack(kp, base + t->q + g * hd, t->qkv, n, hd);
        train_strips(vp, base + t->q + t->kv + g * hd, t->qkv, n, hd);
        struct panels keys = train_panels(kp, n, hd);
        for (size_t h = g * per; h < (g + 1) * per; h++, p += n * n16)
            for (size_t i0 = 0; i0 < n; i0 += BLOCK) {
                size_t i1 = train_attn_least(n, i0 + BLOCK);
                t->k->matmul_f32(p + i0 * n16, n16, &keys, base + i0 * t->qkv + h * hd, t->qkv,
                                 i1 - i0, 0, panels_count(i1));
                for (size_t i = i0; i < i1; i++)
                    softmax(p + i * n16, i + 1, n16, scale);
                sum_over_keys(t, l->att + t0 * t->q + h * hd, t->q, vp, n, p, i0, i1);
            }
    }
}

/* y [n][ld] = s^T x, or += with `add`. s is [n][n16] and comes transposed, as st [n][n]; x comes as
 * strips. */
static void sum_over_queries(const struct train *t, float *y, size_t ld, const float *st,
                             const float *strips, size_t n, bool add, float *tmp)
{
    size_t hd = t->c.head_dim;
    for (size_t j0 = 0; j0 < n; j0 += BLOCK) {
        size_t j1 = train_attn_least(n, j0 + BLOCK);
        struct panels w = train_panels(strips, hd, n);
        w.data += j0 * PANEL * sizeof(float); /* queries before j0 do not see these keys */
        w.cols = n - j0;
        float *to = add ? tmp : y + j0 * ld;
        t->k->matmul_f32(to, add ? hd : ld, &w, st + j0 * n + j0, n, j1 - j0, 0, hd / PANEL);
        for (size_t j = j0; add && j < j1; j++)
            t->k->add_f32(y + j * ld, tmp + (j - j0) * hd, hd);
    }
}

/* ds = p * (dp - sum(p * dp)) * scale, in place; zero where p is zero. */
static void softmax_backward(float *ds, const float *p, size_t n16, float scale)
{
    float lane[PANEL] = { 0 }, sum = 0;
    for (size_t j = 0; j < n16; j += PANEL)
        for (size_t i = 0; i < PANEL; i++)
            lane[i] += p[j + i] * ds[j + i];
    for (size_t i = 0; i < PANEL; i++)
        sum += lane[i];
    for (size_t j = 0; j < n16; j++)
        ds[j] = p[j] * (ds[j] - sum) * scale;
}

struct head { /* one query head of one document */
    const float *q, *p, *d_att;
    float *dq, *dk, *dv;
    bool add; /* dk and dv already hold another query head's part */
};

/* Compute dq, dk and dv of one query head. ks and vp are the packed keys and values. */
static void head_backward(const struct train *t, const struct head *h, size_t n, const float *ks,
                          const float *vp, float *scratch)
{
    size_t hd = t->c.head_dim, n16 = panels_count(n) * PANEL;
    float *s = scratch, *st = s + n16 * n16, *strips = st + n16 * n16, *tmp = strips + n16 * hd;
    struct panels values = train_panels(vp, n, hd);
    for (size_t i0 = 0; i0 < n; i0 += BLOCK) {
        size_t i1 = train_attn_least(n, i0 + BLOCK), panels = panels_count(i1);
        t->k->matmul_f32(s + i0 * n16, n16, &values, h->d_att + i0 * t->q, t->q, i1 - i0, 0,
                         panels);
        for (size_t i = i0; i < i1; i++) {
            softmax_backward(s + i * n16, h->p + i * n16, panels * PANEL, t->scale);
            memset(s + i * n16 + panels * PANEL, 0, (n16 - panels * PANEL) * sizeof(float));
        }
        sum_over_keys(t, h->dq, t->qkv, ks, n, s, i0, i1);
    }
    train_transpose(st, n, s, n16, n, n);
    train_strips(strips, h->q, t->qkv, n, hd);
    sum_over_queries(t, h->dk, t->qkv, st, strips, n, h->add, tmp);
    train_transpose(st, n, h->p, n16, n, n);
    train_strips(strips, h->d_att, t->q, n, hd);
    sum_over_queries(t, h->dv, t->qkv, st, strips, n, h->add, tmp);
}

void train_attn_backward(const struct train *t, const struct train_layer *l, size_t t0, size_t n,
                         const float *p, const float *d_att, float *d_qkv, float *scratch)
{
    size_t hd = t->c.head_dim, n16 = panels_count(n) * PANEL, per = t->c.heads / t->c.kv_heads;
    const float *base = l->qkv_out + t0 * t->qkv;
    float *ks = scratch, *vp = ks + n16 * hd, *rest = vp + n16 * hd;
    for (size_t g = 0; g < t->c.kv_heads; g++) {
        train_strips(ks, base + t->q + g * hd, t->qkv, n, hd);
        train_pack(vp, base + t->q + t->kv + g * hd, t->qkv, n, hd);
        for (size_t i = 0; i < per; i++, p += n * n16) {
            size_t at = (g * per + i) * hd;
            struct head h = { base + at, p, d_att + at, d_qkv + at, NULL, NULL, i > 0 };
            h.dk = d_qkv + t->q + g * hd;
            h.dv = h.dk + t->kv;
            head_backward(t, &h, n, ks, vp, rest);
        }
    }
}
