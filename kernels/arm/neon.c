/* neon.c - the aarch64 baseline: four vectors hold a panel's rows or one virtual vector. */
#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/tiles.h"

/* Store nv vectors of 4 rows for each token. y points to the tile's first row and token. */
INLINE void store_tile(float *y, size_t ldy, const float32x4_t *acc, size_t nv, size_t nt)
{
    REPEAT (j, nt)
        REPEAT (i, nv)
            vst1q_f32(y + j * ldy + i * 4, acc[i * nt + j]);
}

/* The plain tile: each weight vector of 4 rows meets the broadcast activation of each token. */
INLINE void tile_f32(size_t np, size_t nt, size_t p, size_t t, float *y, size_t ldy,
                     const struct panels *w, const float *x, size_t ldx)
{
    const unsigned char *wp = w->data + p * w->panel_bytes;
    size_t cols = w->cols, bytes = w->panel_bytes, nv = 4 * np;
    float32x4_t acc[24] = { vdupq_n_f32(0) };
    x += t * ldx;
    for (size_t k = 0; k < cols; k++) {
        float32x4_t wk[16];
        REPEAT (i, nv)
            wk[i] = vld1q_f32((const float *)(const void *)(wp + i / 4 * bytes) + k * PANEL +
                              i % 4 * 4);
        REPEAT (j, nt) {
            float32x4_t xk = vdupq_n_f32(x[j * ldx + k]);
            REPEAT (i, nv)
                acc[i * nt + j] = vfmaq_f32(acc[i * nt + j], wk[i], xk);
        }
    }
    store_tile(y + t * ldy + p * PANEL, ldy, acc, nv, nt);
}

static void matmul_f32_neon(float *y, size_t ldy, const struct panels *w, const float *x,
                            size_t ldx, size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n == 1)
        WALK(1, 4, tile_f32, y, ldy, w, x, ldx);
    WALK(6, 1, tile_f32, y, ldy, w, x, ldx);
}

/* A 32-bit lane holds column k in its low half and k + 1 in its high half. A shift turns the first
 * into a float, a mask the second. */
INLINE void tile_bf16(size_t np, size_t nt, size_t p, size_t t, float *y, size_t ldy,
                      const struct panels *w, const float *x, size_t ldx)
{
    const unsigned char *wp = w->data + p * w->panel_bytes;
    size_t cols = w->cols, bytes = w->panel_bytes, nv = 4 * np;
    float32x4_t acc[24] = { vdupq_n_f32(0) };
    x += t * ldx;
    for (size_t k = 0; k < cols; k += 2) {
        REPEAT (h, 2) {
            float32x4_t wk[16];
            if (k + h == cols)
                break;
            REPEAT (i, nv) {
                const void *at = wp + i / 4 * bytes + k * 32 + i % 4 * 16;
                uint32x4_t pair = vld1q_u32(at);
                wk[i] = vreinterpretq_f32_u32(h ? vandq_u32(pair, vdupq_n_u32(0xffff0000u))
                                                : vshlq_n_u32(pair, 16));
            }
            REPEAT (j, nt) {
                float32x4_t xk = vdupq_n_f32(x[j * ldx + k + h]);
                REPEAT (i, nv)
                    acc[i * nt + j] = vfmaq_f32(acc[i * nt + j], wk[i], xk);
            }
        }
    }
    store_tile(y + t * ldy + p * PANEL, ldy, acc, nv, nt);
}

static void matmul_bf16_neon(float *y, size_t ldy, const struct panels *w, const float *x,
                             size_t ldx, size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n == 1)
        WALK(1, 4, tile_bf16, y, ldy, w, x, ldx);
    WALK(6, 1, tile_bf16, y, ldy, w, x, ldx);
}

INLINE float32x4_t load_half(const void *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

/* Broadcast four activations, so that every row meets them. */
INLINE int8x16_t bcast4(const int8_t *x)
{
    int32_t v;
    memcpy(&v, x, sizeof(v));
    return vreinterpretq_s8_s32(vdupq_n_s32(v));
}

/* Add one group of one panel: acc = fmaf((float)sum, scale_w * scale_x, acc). */
INLINE void add_group(float32x4_t *acc, const int32x4_t *sum, size_t nt, const unsigned char *scale,
                      const float *xs, size_t ldxs)
{
    REPEAT (i, 4) {
        float32x4_t ws = load_half(scale + i * 8);
        REPEAT (j, nt)
            acc[i * nt + j] = vfmaq_f32(acc[i * nt + j], vcvtq_f32_s32(sum[i * nt + j]),
                                        vmulq_f32(ws, vdupq_n_f32(xs[j * ldxs])));
    }
}

/* A 16-bit lane holds two products, at most 2 * 128 * 127 = 32512, before they are widened. */
INLINE void tile_q8(size_t np, size_t nt, size_t p, size_t t, float *y, size_t ldy,
                    const struct panels *w, const struct qact *x)
{
    size_t cols = w->cols, groups = cols / GROUP;
    float32x4_t acc[8] = { vdupq_n_f32(0) };
    for (size_t g = 0; g < groups; g++) {
        const unsigned char *b = w->data + p * w->panel_bytes + g / 2 * Q8_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 512;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        int32x4_t lo[8] = { vdupq_n_s32(0) }, hi[8] = { vdupq_n_s32(0) };
        for (size_t c = 0; c < 8; c += 2)
            REPEAT (i, 4) {
                int8x16_t w0 = vreinterpretq_s8_u8(vld1q_u8(q + c * 64 + i * 16));
                int8x16_t w1 = vreinterpretq_s8_u8(vld1q_u8(q + c * 64 + 64 + i * 16));
                REPEAT (j, nt) {
                    int8x16_t x0 = bcast4(xq + j * cols + c * 4);
                    int8x16_t x1 = bcast4(xq + j * cols + c * 4 + 4);
                    int16x8_t a = vmull_s8(vget_low_s8(w0), vget_low_s8(x0));
                    int16x8_t d = vmull_high_s8(w0, x0);
                    a = vmlal_s8(a, vget_low_s8(w1), vget_low_s8(x1));
                    d = vmlal_high_s8(d, w1, x1);
                    lo[i * nt + j] = vpadalq_s16(lo[i * nt + j], a);
                    hi[i * nt + j] = vpadalq_s16(hi[i * nt + j], d);
                }
            }
        REPEAT (i, 4 * np * nt)
            lo[i] = vpaddq_s32(lo[i], hi[i]);
        add_group(acc, lo, nt, b + g % 2 * 32, x->scale + t * groups + g, groups);
    }
    store_tile(y + t * ldy + p * PANEL, ldy, acc, 4, nt);
}

static void matmul_q8_neon(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                           size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    WALK(2, 1, tile_q8, y, ldy, w, x);
}

/* Nibbles are used as stored (value + 8, corrected by -8 * sum(x)): the eight products of a 16-bit
 * lane are at most 8 * 15 * 127 = 15240. */
INLINE void tile_q4(size_t np, size_t nt, size_t p, size_t t, float *y, size_t ldy,
                    const struct panels *w, const struct qact *x)
{
    size_t cols = w->cols, groups = cols / GROUP;
    float32x4_t acc[8] = { vdupq_n_f32(0) };
    for (size_t g = 0; g < groups; g++) {
        const unsigned char *b = w->data + p * w->panel_bytes + g / 2 * Q4_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 256;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        int16x8_t lo[8] = { vdupq_n_s16(0) }, hi[8] = { vdupq_n_s16(0) };
        int32x4_t sum[8];
        for (size_t c = 0; c < 4; c++)
            REPEAT (i, 4) {
                uint8x16_t pair = vld1q_u8(q + c * 64 + i * 16);
                int8x16_t w0 = vreinterpretq_s8_u8(vandq_u8(pair, vdupq_n_u8(15)));
                int8x16_t w1 = vreinterpretq_s8_u8(vshrq_n_u8(pair, 4));
                REPEAT (j, nt) {
                    int8x16_t x0 = bcast4(xq + j * cols + c * 4);
                    int8x16_t x1 = bcast4(xq + j * cols + c * 4 + 16);
                    int16x8_t *a = &lo[i * nt + j], *d = &hi[i * nt + j];
                    *a = vmlal_s8(*a, vget_low_s8(w0), vget_low_s8(x0));
                    *a = vmlal_s8(*a, vget_low_s8(w1), vget_low_s8(x1));
                    *d = vmlal_high_s8(*d, w0, x0);
                    *d = vmlal_high_s8(*d, w1, x1);
                }
            }
        REPEAT (i, 4 * np * nt)
            sum[i] = vaddq_s32(vpaddq_s32(vpaddlq_s16(lo[i]), vpaddlq_s16(hi[i])),
                               vdupq_n_s32(x->bias[(t + i % nt) * groups + g] / 16));
        add_group(acc, sum, nt, b + g % 2 * 32, x->scale + t * groups + g, groups);
    }
    store_tile(y + t * ldy + p * PANEL, ldy, acc, 4, nt);
}

static void matmul_q4_neon(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                           size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    WALK(2, 1, tile_q4, y, ldy, w, x);
}

/* Return how many elements are left from i on: 0 rather than a wrapped number. */
INLINE size_t left(size_t n, size_t i)
{
    return i < n ? n - i : 0;
}

/* Load x[0] to x[n - 1]; the lanes beyond are `rest`. */
INLINE float32x4_t load4(const float *x, size_t n, float rest)
{
    if (n >= 4)
        return vld1q_f32(x);
    float v[4] = { rest, rest, rest, rest };
    for (size_t i = 0; i < n; i++)
        v[i] = x[i];
    return vld1q_f32(v);
}

/* Store the first n lanes. */
INLINE void store4(float *y, size_t n, float32x4_t v)
{
    if (n >= 4) {
        vst1q_f32(y, v);
        return;
    }
    float a[4];
    vst1q_f32(a, v);
    for (size_t i = 0; i < n; i++)
        y[i] = a[i];
}

/* Return the larger of each lane, and b where a is NaN; NEON's own maximum has other rules for
 * NaN. */
INLINE float32x4_t max4(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

INLINE float32x4_t min4(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}

/* Add the lanes by the fixed tree: a[l] + a[l + 8], a[l] + a[l + 4], ... */
INLINE float tree_sum(const float32x4_t a[4])
{
    float32x4_t c = vaddq_f32(vaddq_f32(a[0], a[2]), vaddq_f32(a[1], a[3]));
    float32x2_t d = vadd_f32(vget_low_f32(c), vget_high_f32(c));
    return vget_lane_f32(vpadd_f32(d, d), 0);
}

/* exp_f32 of kernels/math.c, lane by lane. */
INLINE float32x4_t exp_4(float32x4_t x)
{
    float32x4_t c = max4(min4(x, vdupq_n_f32(88.0f)), vdupq_n_f32(-87.0f));
    float32x4_t n = vrndnq_f32(vmulq_f32(c, vdupq_n_f32(0x1.715476p+0f)));
    float32x4_t r = vfmaq_f32(c, n, vdupq_n_f32(-0x1.62e43p-1f));
    r = vfmaq_f32(r, n, vdupq_n_f32(0x1.05c61p-29f));
    float32x4_t p = vdupq_n_f32(0x1.6a21acp-10f);
    p = vfmaq_f32(vdupq_n_f32(0x1.123b6ap-7f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0x1.5558fap-5f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0x1.55549p-3f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0x1.fffffcp-2f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, r);
    int32x4_t e = vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23);
    uint32x4_t y = vreinterpretq_u32_f32(vmulq_f32(p, vreinterpretq_f32_s32(e)));
    return vreinterpretq_f32_u32(vandq_u32(y, vcgeq_f32(x, vdupq_n_f32(-87.0f))));
}

/* max4 returns its second operand for NaN, so NaN never becomes amax, and clamping sends it to
 * -127. A group that is not live is masked to zero. */
static void quantize_q8_neon(const struct qact *y, size_t t, const float *x)
{
    size_t groups = y->cols / GROUP;
    for (size_t g = 0; g < groups; g++, x += GROUP) {
        float32x4_t v[8], m = vdupq_n_f32(0);
        REPEAT (i, 8) {
            v[i] = vld1q_f32(x + i * 4);
            m = max4(vabsq_f32(v[i]), m);
        }
        float amax = vmaxvq_f32(m);
        int live = amax > 0x1p-100f;
        float32x4_t inv = vdupq_n_f32(127.0f / amax);
        int32x4_t q[8], sum[2] = { vdupq_n_s32(0), vdupq_n_s32(0) };
        REPEAT (i, 8) {
            v[i] = max4(vmulq_f32(v[i], inv), vdupq_n_f32(-127.0f));
            q[i] = vcvtnq_s32_f32(min4(v[i], vdupq_n_f32(127.0f)));
            q[i] = vandq_s32(q[i], vdupq_n_s32(-live));
            sum[i / 4] = vaddq_s32(sum[i / 4], q[i]);
        }
        REPEAT (i, 4)
            vst1_s8(y->q + t * y->cols + g * GROUP + i * 8,
                    vmovn_s16(vcombine_s16(vmovn_s32(q[2 * i]), vmovn_s32(q[2 * i + 1]))));
        qact_put(y, t * groups + g, live ? amax / 127.0f : 0.0f, vaddvq_s32(sum[0]),
                 vaddvq_s32(sum[1]));
    }
}

static void rmsnorm_f32_neon(float *y, const float *x, const float *w, size_t n, float eps)
{
    float32x4_t lane[4] = { vdupq_n_f32(0) };
    for (size_t i = 0; i < n; i += 16)
        REPEAT (h, 4) {
            float32x4_t v = load4(x + i + 4 * h, left(n, i + 4 * h), 0);
            lane[h] = vfmaq_f32(lane[h], v, v);
        }
    float32x4_t inv = vdupq_n_f32(1.0f / sqrtf(tree_sum(lane) / (float)n + eps));
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t v = vmulq_f32(load4(x + i, n - i, 0), inv);
        store4(y + i, n - i, vmulq_f32(v, load4(w + i, n - i, 0)));
    }
}

static void rope_f32_neon(float *x, const float *cos, const float *sin, size_t half)
{
    for (size_t i = 0; i < half; i += 4) {
        size_t m = half - i;
        float32x4_t a = load4(x + i, m, 0), b = load4(x + half + i, m, 0);
        float32x4_t c = load4(cos + i, m, 0), s = load4(sin + i, m, 0);
        store4(x + i, m, vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c));
        store4(x + half + i, m, vfmaq_f32(vmulq_f32(a, s), b, c));
    }
}

static void add_f32_neon(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 4)
        store4(y + i, n - i, vaddq_f32(load4(y + i, n - i, 0), load4(x + i, n - i, 0)));
}

static void swiglu_f32_neon(float *y, const float *g, const float *u, size_t n)
{
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t a = load4(g + i, n - i, 0);
        float32x4_t d = vaddq_f32(vdupq_n_f32(1.0f), exp_4(vnegq_f32(a)));
        store4(y + i, n - i, vmulq_f32(vdivq_f32(a, d), load4(u + i, n - i, 0)));
    }
}

#define vec              float32x4_t
#define vec_zero()       vdupq_n_f32(0)
#define vec_set1         vdupq_n_f32
#define vec_store        vst1q_f32
#define vec_add          vaddq_f32
#define vec_mul          vmulq_f32
#define vec_fma(a, b, c) vfmaq_f32(c, a, b)
#define vec_keep(x)      __asm__("" : "+w"(x))
enum { VEC = 4, ROWS = 2, KEY_GROUPS = 1, VALUES = 8, FEW_VALUES = 4 };

/* Widen 4 signed bytes to floats; halves_4 does so with 4 halves. */
INLINE float32x4_t bytes_4(const unsigned char *p)
{
    int32_t four;
    memcpy(&four, p, sizeof(four));
    int8x8_t b = vreinterpret_s8_s32(vdup_n_s32(four));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(b))));
}

INLINE float32x4_t halves_4(const unsigned char *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)(const void *)p)));
}

/* Load and widen a part of a column of keys; load_value does so with a row of values (attn.h). */
INLINE float32x4_t load_keys(enum kvcache type, const unsigned char *group, size_t d, size_t part,
                             size_t hd16)
{
    const float *f = (const float *)(const void *)group;
    size_t i = d * 16 + part * 4;
    if (type == KVCACHE_F16)
        return halves_4(group + i * 2);
    if (type == KVCACHE_Q8)
        return vmulq_f32(bytes_4(group + kv_scales(type, 16, hd16) + i),
                         vld1q_f32(f + d / GROUP * 16 + part * 4));
    return vld1q_f32(f + i);
}

INLINE float32x4_t load_value(enum kvcache type, const unsigned char *row, size_t d, size_t hd16)
{
    const float *f = (const float *)(const void *)row;
    if (type == KVCACHE_F16)
        return halves_4(row + d * 2);
    if (type == KVCACHE_Q8)
        return vmulq_f32(bytes_4(row + kv_scales(type, 1, hd16) + d), vdupq_n_f32(f[d / GROUP]));
    return vld1q_f32(f + d);
}

/* The last group is filled with -inf, whose weight is 0, so no loop needs a tail. */
INLINE void softmax_row(const struct attn_part *y, size_t i, float *p, size_t seen)
{
    float32x4_t max = vdupq_n_f32(-INFINITY), sum[4] = { vdupq_n_f32(0) };
    size_t n16 = (seen + 15) / 16 * 16;
    for (size_t j = seen; j < n16; j++)
        p[j] = -INFINITY; /* weight 0 */
    for (size_t j = 0; j < n16; j += 4)
        max = max4(vld1q_f32(p + j), max); /* NaN leaves max */
    y->max[i] = vmaxvq_f32(max) + 0.0f;    /* + 0 turns -0 into 0 */
    for (size_t j = 0; j < n16; j += 16)
        REPEAT (h, 4) {
            float32x4_t e = exp_4(vsubq_f32(vld1q_f32(p + j + h * 4), vdupq_n_f32(y->max[i])));
            sum[h] = vaddq_f32(sum[h], e);
            vst1q_f32(p + j + h * 4, e);
        }
    y->sum[i] = tree_sum(sum);
}

#include "kernels/attn.h"

ATTN(attn_f32_neon, KVCACHE_F32)
ATTN(attn_f16_neon, KVCACHE_F16)
ATTN(attn_q8_neon, KVCACHE_Q8)

static void attn_merge_neon(float *max_a, float *sum_a, float *out_a, float max_b, float sum_b,
                            const float *out_b, size_t hd16)
{
    float m = max_b > *max_a ? max_b : *max_a;
    float32x4_t e = exp_4(vsetq_lane_f32(max_b - m, vdupq_n_f32(*max_a - m), 1));
    float32x4_t ea = vdupq_laneq_f32(e, 0), eb = vdupq_laneq_f32(e, 1);
    float32x4_t sum = vmulq_f32(vdupq_n_f32(*sum_a), ea);
    *max_a = m;
    *sum_a = vgetq_lane_f32(vfmaq_f32(sum, vdupq_n_f32(sum_b), eb), 0);
    for (size_t d = 0; d < hd16; d += 4) {
        float32x4_t a = vmulq_f32(vld1q_f32(out_a + d), ea);
        vst1q_f32(out_a + d, vfmaq_f32(a, vld1q_f32(out_b + d), eb));
    }
}

/* Find the largest value first, then the first element that equals it. */
static size_t argmax_f32_neon(const float *x, size_t n)
{
    float32x4_t m0 = vdupq_n_f32(-INFINITY), m1 = m0;
    for (size_t i = 0; i < n; i += 8) {
        m0 = max4(load4(x + i, n - i, -INFINITY), m0);
        m1 = max4(load4(x + i + 4, left(n, i + 4), -INFINITY), m1);
    }
    float best = vmaxvq_f32(max4(m0, m1));
    for (size_t i = 0; i < n && best > -INFINITY; i += 4)
        if (vmaxvq_u32(vceqq_f32(load4(x + i, n - i, -INFINITY), vdupq_n_f32(best))))
            for (;; i++)
                if (x[i] == best)
                    return i;
    return 0;
}

/* Elements beyond the end are -inf, which weighs nothing, whatever max is. */
static void expsum_f32_neon(float out[2], const float *x, size_t n, float max)
{
    float32x4_t sum[4] = { vdupq_n_f32(0) }, moment[4] = { vdupq_n_f32(0) };
    for (size_t i = 0; i < n; i += 16)
        REPEAT (h, 4) {
            float32x4_t d = load4(x + i + 4 * h, left(n, i + 4 * h), -INFINITY);
            d = max4(vsubq_f32(d, vdupq_n_f32(max)), vdupq_n_f32(-88.0f));
            float32x4_t e = exp_4(d);
            sum[h] = vaddq_f32(sum[h], e);
            moment[h] = vfmaq_f32(moment[h], e, d);
        }
    out[0] = tree_sum(sum);
    out[1] = tree_sum(moment);
}

const struct kernels kernels_neon = {
    .isa = "neon",
    .needs = CPU_NEON,
    .rest = &kernels_neon_blocks,
    .matmul_f32 = matmul_f32_neon,
    .matmul_bf16 = matmul_bf16_neon,
    .matmul_q8 = matmul_q8_neon,
    .matmul_q4 = matmul_q4_neon,
    .quantize_q8 = quantize_q8_neon,
    .rmsnorm_f32 = rmsnorm_f32_neon,
    .rope_f32 = rope_f32_neon,
    .add_f32 = add_f32_neon,
    .swiglu_f32 = swiglu_f32_neon,
    .attn_f32 = attn_f32_neon,
    .attn_f16 = attn_f16_neon,
    .attn_q8 = attn_q8_neon,
    .attn_merge = attn_merge_neon,
    .argmax_f32 = argmax_f32_neon,
    .expsum_f32 = expsum_f32_neon,
};
