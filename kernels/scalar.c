/* scalar.c - the definition of every operation, in plain C. It is written to be read and to be
 * compared with; the other sets are faster ways to the same bits. */
#include <math.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/tiles.h"

enum { LANES = 16 };

#define ONES 1, 1, 1, 1, 1, 1, 1, 1

/* Add up the lanes by the fixed tree that ends every virtual vector. */
static float scalar_tree_sum(float lane[LANES])
{
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

/* Return the dot product of a and b as a virtual vector. */
static float scalar_dot(const float *a, const float *b, size_t n)
{
    float lane[LANES] = { 0 };
    for (size_t i = 0; i < n; i++)
        lane[i % LANES] = fmaf(a[i], b[i], lane[i % LANES]);
    return scalar_tree_sum(lane);
}

static uint16_t scalar_load_u16(const unsigned char *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static void matmul_f32_scalar(float *y, size_t ldy, const struct panels *w, const float *x,
                              size_t ldx, size_t n, size_t p0, size_t p1)
{
    for (size_t t = 0; t < n; t++)
        for (size_t r = p0 * PANEL; r < p1 * PANEL; r++) {
            const unsigned char *panel = w->data + r / PANEL * w->panel_bytes;
            const float *wr = (const float *)(const void *)panel + r % PANEL;
            float acc = 0;
            for (size_t k = 0; k < w->cols; k++)
                acc = fmaf(wr[k * PANEL], x[t * ldx + k], acc);
            y[t * ldy + r] = acc;
        }
}

static void matmul_bf16_scalar(float *y, size_t ldy, const struct panels *w, const float *x,
                               size_t ldx, size_t n, size_t p0, size_t p1)
{
    for (size_t t = 0; t < n; t++)
        for (size_t r = p0 * PANEL; r < p1 * PANEL; r++) {
            const unsigned char *wr = w->data + r / PANEL * w->panel_bytes + r % PANEL * 4;
            float acc = 0;
            for (size_t k = 0; k < w->cols; k++) {
                float wk = f32_from_bf16(scalar_load_u16(wr + k / 2 * 64 + k % 2 * 2));
                acc = fmaf(wk, x[t * ldx + k], acc);
            }
            y[t * ldy + r] = acc;
        }
}

/* Set values[sub] to the integers of sub-block `at / sub` of a block in row r. */
static void scalar_values(int8_t *values, enum ptype type, const struct block *b, size_t at,
                          size_t r)
{
    for (size_t i = 0; i < block_forms[type].sub; i++)
        values[i] = (int8_t)block_value(type, b, at + i, r);
}

/* Return the exact dot product of a sub-block. */
static int32_t scalar_dot_int(const int8_t *values, const int8_t *x, size_t n)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i] * x[i];
    return sum;
}

/* Each sub-block of a row is decoded once and meets all tokens; y holds their sums meanwhile. */
INLINE void matmul_scalar(enum ptype type, float *y, size_t ldy, const struct panels *w,
                          const struct qact *x, size_t n, size_t p0, size_t p1)
{
    const struct block_form *f = &block_forms[type];
    static const int8_t ones[GROUP] = { ONES, ONES, ONES, ONES };
    for (size_t r = p0 * PANEL; r < p1 * PANEL; r++) {
        const unsigned char *panel = w->data + r / PANEL * w->panel_bytes;
        for (size_t t = 0; t < n; t++)
            y[t * ldy + r] = 0;
        for (size_t k = 0; k < w->cols; k += f->sub) {
            struct block b = block_at(type, panel, w->cols, k);
            size_t at = k % f->cols;
            float scale = block_scale(type, &b, at / f->sub, r % PANEL);
            float offset = f->offset ? block_offset(type, &b, at / f->sub, r % PANEL) : 0;
            int8_t values[GROUP];
            scalar_values(values, type, &b, at, r % PANEL);
            for (size_t t = 0; t < n; t++) {
                const int8_t *q = x->q + t * x->cols + k;
                float xs = x->scale[(t * x->cols + k) / GROUP], *acc = &y[t * ldy + r];
                *acc = fmaf((float)scalar_dot_int(values, q, f->sub), scale * xs, *acc);
                if (f->offset)
                    *acc = fmaf(offset, xs * (float)scalar_dot_int(ones, q, f->sub), *acc);
            }
        }
    }
}

#define MATMUL(name, type)                                                                   \
    static void matmul_##name##_scalar(float *y, size_t ldy, const struct panels *w,         \
                                       const struct qact *x, size_t n, size_t p0, size_t p1) \
    {                                                                                        \
        matmul_scalar(type, y, ldy, w, x, n, p0, p1);                                        \
    }

MATMUL(q8, P_Q8)
MATMUL(q4, P_Q4)
MATMUL(q4_1, P_Q4_1)
MATMUL(q5_0, P_Q5_0)
MATMUL(q5_1, P_Q5_1)
MATMUL(q2_k, P_Q2_K)
MATMUL(q3_k, P_Q3_K)
MATMUL(q4_k, P_Q4_K)
MATMUL(q5_k, P_Q5_K)
MATMUL(q6_k, P_Q6_K)
MATMUL(iq4_nl, P_IQ4_NL)
MATMUL(iq4_xs, P_IQ4_XS)

/* Each comparison is false for NaN: it never becomes amax, and it is clamped to -127. */
static void quantize_q8_scalar(const struct qact *y, size_t t, const float *x)
{
    size_t groups = y->cols / GROUP;
    for (size_t g = 0; g < groups; g++) {
        const float *xg = x + g * GROUP;
        int8_t *q = y->q + t * y->cols + g * GROUP;
        float amax = 0;
        for (size_t k = 0; k < GROUP; k++)
            amax = fabsf(xg[k]) > amax ? fabsf(xg[k]) : amax;
        bool live = amax > 0x1p-100f;
        float inv = live ? 127.0f / amax : 0.0f;
        int32_t sum[2] = { 0 };
        for (size_t k = 0; k < GROUP; k++) {
            float v = xg[k] * inv;
            v = v > -127.0f ? v : -127.0f;
            v = v < 127.0f ? v : 127.0f;
            q[k] = live ? (int8_t)rintf(v) : 0;
            sum[k / (GROUP / 2)] += q[k];
        }
        qact_put(y, t * groups + g, live ? amax / 127.0f : 0.0f, sum[0], sum[1]);
    }
}

static void rmsnorm_f32_scalar(float *y, const float *x, const float *w, size_t n, float eps)
{
    float inv = 1.0f / sqrtf(scalar_dot(x, x, n) / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * inv * w[i];
}

static void rope_f32_scalar(float *x, const float *cos, const float *sin, size_t half)
{
    for (size_t i = 0; i < half; i++) {
        float a = x[i], b = x[i + half];
        x[i] = fmaf(a, cos[i], -(b * sin[i]));
        x[i + half] = fmaf(b, cos[i], a * sin[i]);
    }
}

static void add_f32_scalar(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void swiglu_f32_scalar(float *y, const float *g, const float *u, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = g[i] / (1.0f + exp_f32(-g[i])) * u[i];
}

/* Turn scores into weights in place, and return their sum. */
static float scalar_soften(float *s, size_t n, float *max)
{
    float m = -INFINITY, lane[LANES] = { 0 };
    for (size_t j = 0; j < n; j++)
        m = s[j] > m ? s[j] : m;
    *max = m + 0.0f;
    for (size_t j = 0; j < n; j++) {
        s[j] = exp_f32(s[j] - *max);
        lane[j % LANES] += s[j];
    }
    return scalar_tree_sum(lane);
}

/* Return element d of the key or value in lane `at` of its group (lanes is 16 for keys, 1 for a
 * value). */
static float kv_at(enum kvcache type, const void *group, size_t lanes, size_t at, size_t d,
                   size_t hd16)
{
    const float *f = group;
    const uint16_t *h = group;
    if (type == KVCACHE_F32)
        return f[d * lanes + at];
    if (type == KVCACHE_F16)
        return f32_from_f16(h[d * lanes + at]);
    const int8_t *q = (const int8_t *)(f + (hd16 + GROUP - 1) / GROUP * lanes);
    return (float)q[d * lanes + at] * f[d / GROUP * lanes + at];
}

/* Attend one query row after the other, exactly as kernels.h states it. */
static void attn(enum kvcache type, const struct attn_part *y, const float *q,
                 const unsigned char *k, const unsigned char *v, size_t nq, size_t per,
                 size_t first, size_t nk, size_t hd16, float scale)
{
    size_t keys = kvcache_keys_bytes(type, hd16), value = kvcache_value_bytes(type, hd16);
    for (size_t i = 0; i < nq; i++) {
        float s[ATTN_BLOCK], *out = y->out + i * hd16;
        size_t seen = seen_keys(i, per, first, nk);
        for (size_t j = 0; j < seen; j++) {
            float lane[LANES] = { 0 };
            for (size_t d = 0; d < hd16; d++)
                lane[d % LANES] = fmaf(q[i * hd16 + d],
                                       kv_at(type, k + j / PANEL * keys, PANEL, j % PANEL, d, hd16),
                                       lane[d % LANES]);
            s[j] = scalar_tree_sum(lane) * scale;
        }
        y->sum[i] = scalar_soften(s, seen, &y->max[i]);
        memset(out, 0, hd16 * sizeof(*out));
        for (size_t j = 0; j < seen; j++)
            for (size_t d = 0; d < hd16; d++)
                out[d] = fmaf(s[j], kv_at(type, v + j * value, 1, 0, d, hd16), out[d]);
    }
}

ATTN(attn_f32_scalar, KVCACHE_F32)
ATTN(attn_f16_scalar, KVCACHE_F16)
ATTN(attn_q8_scalar, KVCACHE_Q8)

static void attn_merge_scalar(float *max_a, float *sum_a, float *out_a, float max_b, float sum_b,
                              const float *out_b, size_t hd16)
{
    float m = max_b > *max_a ? max_b : *max_a;
    float ea = exp_f32(*max_a - m), eb = exp_f32(max_b - m);
    *max_a = m;
    *sum_a = fmaf(sum_b, eb, *sum_a * ea);
    for (size_t d = 0; d < hd16; d++)
        out_a[d] = fmaf(out_b[d], eb, out_a[d] * ea);
}

static size_t argmax_f32_scalar(const float *x, size_t n)
{
    float best = -INFINITY;
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        if (x[i] > best) {
            best = x[i];
            at = i;
        }
    return at;
}

/* d is clamped so that -inf does not give 0 * inf in the moment. */
static void expsum_f32_scalar(float out[2], const float *x, size_t n, float max)
{
    float sum[LANES] = { 0 }, moment[LANES] = { 0 };
    for (size_t i = 0; i < n; i++) {
        float d = x[i] - max;
        d = d > -88.0f ? d : -88.0f;
        float e = exp_f32(d);
        sum[i % LANES] += e;
        moment[i % LANES] = fmaf(e, d, moment[i % LANES]);
    }
    out[0] = scalar_tree_sum(sum);
    out[1] = scalar_tree_sum(moment);
}

const struct kernels kernels_scalar = {
    .isa = "scalar",
    .needs = 0,
    .matmul_f32 = matmul_f32_scalar,
    .matmul_bf16 = matmul_bf16_scalar,
    .matmul_q8 = matmul_q8_scalar,
    .matmul_q4 = matmul_q4_scalar,
    .matmul_q4_1 = matmul_q4_1_scalar,
    .matmul_q5_0 = matmul_q5_0_scalar,
    .matmul_q5_1 = matmul_q5_1_scalar,
    .matmul_q2_k = matmul_q2_k_scalar,
    .matmul_q3_k = matmul_q3_k_scalar,
    .matmul_q4_k = matmul_q4_k_scalar,
    .matmul_q5_k = matmul_q5_k_scalar,
    .matmul_q6_k = matmul_q6_k_scalar,
    .matmul_iq4_nl = matmul_iq4_nl_scalar,
    .matmul_iq4_xs = matmul_iq4_xs_scalar,
    .quantize_q8 = quantize_q8_scalar,
    .rmsnorm_f32 = rmsnorm_f32_scalar,
    .rope_f32 = rope_f32_scalar,
    .add_f32 = add_f32_scalar,
    .swiglu_f32 = swiglu_f32_scalar,
    .attn_f32 = attn_f32_scalar,
    .attn_f16 = attn_f16_scalar,
    .attn_q8 = attn_q8_scalar,
    .attn_merge = attn_merge_scalar,
    .argmax_f32 = argmax_f32_scalar,
    .expsum_f32 = expsum_f32_scalar,
};
