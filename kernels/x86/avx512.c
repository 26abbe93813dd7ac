/* avx512.c - AVX-512 without VNNI: one vector holds a panel's 16 rows, or one virtual vector. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/x86/tiles512.h"

/* The plain tile: one weight vector per panel meets the broadcast activation of each token. */
INLINE void tile_f32(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1, size_t ahead,
                     float *y, size_t ldy, const struct panels *w, const float *x, size_t ldx)
{
    const unsigned char *wp = w->data + p * w->panel_bytes;
    size_t bytes = w->panel_bytes;
    __m512 acc[24];
    x += t * ldx;
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, np, nt, k0);
    for (size_t k = k0; k < k1; k++) {
        __m512 wk[4];
        ask_ahead(wp, bytes, k * 64, ahead, np, nt, 1);
        REPEAT (i, np)
            wk[i] = _mm512_load_ps(wp + i * bytes + k * 64);
        REPEAT (j, nt) {
            __m512 xk = _mm512_set1_ps(x[j * ldx + k]);
            REPEAT (i, np)
                acc[i * nt + j] = _mm512_fmadd_ps(wk[i], xk, acc[i * nt + j]);
        }
    }
    store_tile(y, ldy, acc, np, nt);
}

static void matmul_f32_avx512(float *y, size_t ldy, const struct panels *w, const float *x,
                              size_t ldx, size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n > 1)
        TURNS(8, 3, tile_f32, y, ldy, w, x, ldx);
    else
        TURNS(1, 4, tile_f32, y, ldy, w, x, ldx);
    TURNS(8, 1, tile_f32, y, ldy, w, x, ldx);
}

/* A 32-bit lane holds column k in its low half and k + 1 in its high half. A shift turns the first
 * into a float, a mask the second. */
INLINE void tile_bf16(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1, size_t ahead,
                      float *y, size_t ldy, const struct panels *w, const float *x, size_t ldx)
{
    const unsigned char *wp = w->data + p * w->panel_bytes;
    const __m512i high = _mm512_set1_epi32((int)0xffff0000u);
    size_t bytes = w->panel_bytes;
    __m512 acc[24];
    x += t * ldx;
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, np, nt, k0);
    for (size_t k = k0; k < k1; k += 2) {
        __m512i pair[4];
        ask_ahead(wp, bytes, k * 32, ahead, np, nt, 1);
        REPEAT (i, np)
            pair[i] = _mm512_load_si512(wp + i * bytes + k * 32);
        REPEAT (j, nt) {
            __m512 xk = _mm512_set1_ps(x[j * ldx + k]);
            REPEAT (i, np)
                acc[i * nt + j] = _mm512_fmadd_ps(
                    _mm512_castsi512_ps(_mm512_slli_epi32(pair[i], 16)), xk, acc[i * nt + j]);
        }
        if (k + 1 == k1)
            break;
        REPEAT (j, nt) {
            __m512 xk = _mm512_set1_ps(x[j * ldx + k + 1]);
            REPEAT (i, np)
                acc[i * nt + j] = _mm512_fmadd_ps(
                    _mm512_castsi512_ps(_mm512_and_si512(pair[i], high)), xk, acc[i * nt + j]);
        }
    }
    store_tile(y, ldy, acc, np, nt);
}

static void matmul_bf16_avx512(float *y, size_t ldy, const struct panels *w, const float *x,
                               size_t ldx, size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n > 1)
        TURNS(8, 3, tile_bf16, y, ldy, w, x, ldx);
    else
        TURNS(1, 4, tile_bf16, y, ldy, w, x, ldx);
    TURNS(8, 1, tile_bf16, y, ldy, w, x, ldx);
}

/* max takes its second operand for NaN, so NaN never becomes amax, and clamping sends it to -127. A
 * group that is not live is masked to zero. */
static void quantize_q8_avx512(const struct qact *y, size_t t, const float *x)
{
    size_t groups = y->cols / GROUP;
    for (size_t g = 0; g < groups; g++, x += GROUP) {
        __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16);
        __m512 m = _mm512_max_ps(_mm512_abs_ps(a), _mm512_setzero_ps());
        float amax = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(b), m));
        __mmask16 live = amax > 0x1p-100f ? 0xffff : 0;
        __m512 inv = _mm512_set1_ps(127.0f / amax);
        __m512 lo = _mm512_set1_ps(-127.0f), hi = _mm512_set1_ps(127.0f);
        a = _mm512_min_ps(_mm512_max_ps(_mm512_mul_ps(a, inv), lo), hi);
        b = _mm512_min_ps(_mm512_max_ps(_mm512_mul_ps(b, inv), lo), hi);
        __m512i qa = _mm512_maskz_cvtps_epi32(live, a), qb = _mm512_maskz_cvtps_epi32(live, b);
        int8_t *q = y->q + t * y->cols + g * GROUP;
        _mm_storeu_si128((__m128i *)(void *)q, _mm512_cvtepi32_epi8(qa));
        _mm_storeu_si128((__m128i *)(void *)(q + 16), _mm512_cvtepi32_epi8(qb));
        qact_put(y, t * groups + g, live ? amax / 127.0f : 0.0f, _mm512_reduce_add_epi32(qa),
                 _mm512_reduce_add_epi32(qb));
    }
}

static void rmsnorm_f32_avx512(float *y, const float *x, const float *w, size_t n, float eps)
{
    __m512 lane = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 16) {
        __m512 v = _mm512_maskz_loadu_ps(lanes(n - i), x + i);
        lane = _mm512_fmadd_ps(v, v, lane);
    }
    __m512 inv = _mm512_set1_ps(1.0f / sqrtf(tree_sum(lane) / (float)n + eps));
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), inv);
        _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, w + i)));
    }
}

static void rope_f32_avx512(float *x, const float *cos, const float *sin, size_t half)
{
    for (size_t i = 0; i < half; i += 16) {
        __mmask16 m = lanes(half - i);
        __m512 a = _mm512_maskz_loadu_ps(m, x + i), b = _mm512_maskz_loadu_ps(m, x + half + i);
        __m512 c = _mm512_maskz_loadu_ps(m, cos + i), s = _mm512_maskz_loadu_ps(m, sin + i);
        _mm512_mask_storeu_ps(x + i, m, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        _mm512_mask_storeu_ps(x + half + i, m, _mm512_fmadd_ps(b, c, _mm512_mul_ps(a, s)));
    }
}

static void add_f32_avx512(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 v = _mm512_add_ps(_mm512_maskz_loadu_ps(m, y + i), _mm512_maskz_loadu_ps(m, x + i));
        _mm512_mask_storeu_ps(y + i, m, v);
    }
}

static void swiglu_f32_avx512(float *y, const float *g, const float *u, size_t n)
{
    const __m512 one = _mm512_set1_ps(1.0f), minus = _mm512_set1_ps(-0.0f);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 a = _mm512_maskz_loadu_ps(m, g + i);
        __m512 d = _mm512_add_ps(one, exp_512(_mm512_xor_ps(a, minus)));
        a = _mm512_mul_ps(_mm512_div_ps(a, d), _mm512_maskz_loadu_ps(m, u + i));
        _mm512_mask_storeu_ps(y + i, m, a);
    }
}

#define vec         __m512
#define vec_zero    _mm512_setzero_ps
#define vec_set1    _mm512_set1_ps
#define vec_store   _mm512_storeu_ps
#define vec_add     _mm512_add_ps
#define vec_mul     _mm512_mul_ps
#define vec_fma     _mm512_fmadd_ps
#define vec_keep(x) __asm__("" : "+v"(x))
enum { VEC = 16, ROWS = 4, KEY_GROUPS = 2, VALUES = 4, FEW_VALUES = 4 };

/* Widen 16 signed bytes to floats; halves_16 does so with 16 halves. */
INLINE __m512 bytes_16(const unsigned char *p)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}

INLINE __m512 halves_16(const unsigned char *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

/* Load and widen a column of keys; load_value does so with a row of values (attn.h). */
INLINE __m512 load_keys(enum kvcache type, const unsigned char *group, size_t d, size_t part,
                        size_t hd16)
{
    (void)part;
    if (type == KVCACHE_F16)
        return halves_16(group + d * 32);
    if (type == KVCACHE_Q8)
        return _mm512_mul_ps(bytes_16(group + kv_scales(type, 16, hd16) + d * 16),
                             _mm512_loadu_ps(group + d / GROUP * 64));
    return _mm512_loadu_ps(group + d * 64);
}

INLINE __m512 load_value(enum kvcache type, const unsigned char *row, size_t d, size_t hd16)
{
    float scale;
    if (type == KVCACHE_F16)
        return halves_16(row + d * 2);
    if (type == KVCACHE_F32)
        return _mm512_loadu_ps(row + d * 4);
    memcpy(&scale, row + d / GROUP * sizeof(scale), sizeof(scale));
    return _mm512_mul_ps(bytes_16(row + kv_scales(type, 1, hd16) + d), _mm512_set1_ps(scale));
}

/* Store the largest of the scores; softmax_weights then turns them into weights and stores their
 * sum. Masks keep the lanes beyond `seen` out of the maximum and give them weight 0. */
INLINE void softmax_max(const struct attn_part *y, size_t i, const float *p, size_t seen)
{
    __m512 max = _mm512_set1_ps(-INFINITY);
    for (size_t j = 0; j < seen; j += 16) /* NaN leaves max */
        max = _mm512_mask_max_ps(max, lanes(seen - j), _mm512_loadu_ps(p + j), max);
    y->max[i] = _mm512_reduce_max_ps(max) + 0.0f; /* + 0 turns -0 into 0 */
}

INLINE void softmax_weights(const struct attn_part *y, size_t i, float *p, size_t seen)
{
    __m512 max = _mm512_set1_ps(y->max[i]), sum = _mm512_setzero_ps();
    for (size_t j = 0; j < seen; j += 16) {
        __m512 e = exp_512(_mm512_sub_ps(_mm512_loadu_ps(p + j), max));
        e = _mm512_maskz_mov_ps(lanes(seen - j), e);
        sum = _mm512_add_ps(sum, e);
        _mm512_storeu_ps(p + j, e);
    }
    y->sum[i] = tree_sum(sum);
}

/* The dependency chain of each step is long, so all rows take it before the next one. */
#define SOFTMAX_ROWS
INLINE void softmax_rows(const struct attn_part *y, size_t i, size_t n, float p[][ATTN_BLOCK],
                         const size_t *seen)
{
    for (size_t r = 0; r < n; r++)
        softmax_max(y, i + r, p[r], seen[r]);
    for (size_t r = 0; r < n; r++)
        softmax_weights(y, i + r, p[r], seen[r]);
}

#include "kernels/attn.h"

ATTN(attn_f32_avx512, KVCACHE_F32)
ATTN(attn_f16_avx512, KVCACHE_F16)
ATTN(attn_q8_avx512, KVCACHE_Q8)

/* Even lanes compute the first exponential, odd lanes the second. */
static void attn_merge_avx512(float *max_a, float *sum_a, float *out_a, float max_b, float sum_b,
                              const float *out_b, size_t hd16)
{
    float m = max_b > *max_a ? max_b : *max_a;
    __m512 a = _mm512_set1_ps(*max_a - m), b = _mm512_set1_ps(max_b - m);
    __m512 e = exp_512(_mm512_mask_mov_ps(a, 0xaaaa, b));
    __m512 ea = _mm512_moveldup_ps(e), eb = _mm512_movehdup_ps(e);
    __m512 sum = _mm512_mul_ps(_mm512_set1_ps(*sum_a), ea);
    *max_a = m;
    *sum_a = _mm512_cvtss_f32(_mm512_fmadd_ps(_mm512_set1_ps(sum_b), eb, sum));
    for (size_t d = 0; d < hd16; d += 16) {
        a = _mm512_mul_ps(_mm512_loadu_ps(out_a + d), ea);
        _mm512_storeu_ps(out_a + d, _mm512_fmadd_ps(_mm512_loadu_ps(out_b + d), eb, a));
    }
}

/* Find the largest value first, then the first element that equals it. */
static size_t argmax_f32_avx512(const float *x, size_t n)
{
    __m512 m0 = _mm512_set1_ps(-INFINITY), m1 = m0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        m0 = _mm512_max_ps(_mm512_loadu_ps(x + i), m0);
        m1 = _mm512_max_ps(_mm512_loadu_ps(x + i + 16), m1);
    }
    for (; i < n; i += 16)
        m0 = _mm512_mask_max_ps(m0, lanes(n - i), _mm512_maskz_loadu_ps(lanes(n - i), x + i), m0);
    float best = _mm512_reduce_max_ps(_mm512_max_ps(m0, m1));
    if (best > -INFINITY)
        for (i = 0; i < n; i += 16) {
            __m512 v = _mm512_maskz_loadu_ps(lanes(n - i), x + i);
            unsigned hit =
                _mm512_mask_cmp_ps_mask(lanes(n - i), v, _mm512_set1_ps(best), _CMP_EQ_OQ);
            if (hit)
                return i + (size_t)__builtin_ctz(hit);
        }
    return 0;
}

/* Masks keep the lanes beyond the end out of both sums. */
static void expsum_f32_avx512(float out[2], const float *x, size_t n, float max)
{
    __m512 sum = _mm512_setzero_ps(), moment = sum;
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 d = _mm512_sub_ps(_mm512_maskz_loadu_ps(m, x + i), _mm512_set1_ps(max));
        d = _mm512_max_ps(d, _mm512_set1_ps(-88.0f));
        __m512 e = exp_512(d);
        sum = _mm512_mask_add_ps(sum, m, sum, e);
        moment = _mm512_mask3_fmadd_ps(e, d, moment, m);
    }
    out[0] = tree_sum(sum);
    out[1] = tree_sum(moment);
}

const struct kernels kernels_avx512 = {
    .isa = "avx512",
    .needs = CPU_AVX2 | CPU_AVX512,
    .rest = &kernels_avx512_blocks,
    .matmul_f32 = matmul_f32_avx512,
    .matmul_bf16 = matmul_bf16_avx512,
    .quantize_q8 = quantize_q8_avx512,
    .rmsnorm_f32 = rmsnorm_f32_avx512,
    .rope_f32 = rope_f32_avx512,
    .add_f32 = add_f32_avx512,
    .swiglu_f32 = swiglu_f32_avx512,
    .attn_f32 = attn_f32_avx512,
    .attn_f16 = attn_f16_avx512,
    .attn_q8 = attn_q8_avx512,
    .attn_merge = attn_merge_avx512,
    .argmax_f32 = argmax_f32_avx512,
    .expsum_f32 = expsum_f32_avx512,
};
