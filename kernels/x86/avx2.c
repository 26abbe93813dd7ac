/* avx2.c - AVX2, FMA and F16C (Haswell): two vectors hold a panel's rows or one virtual vector. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/tiles.h"

/* Store a tile's sums. y points to the tile's first row and token. */
INLINE void store_tile(float *y, size_t ldy, const __m256 *acc, size_t nv, size_t nt)
{
    REPEAT (j, nt)
        REPEAT (i, nv)
            _mm256_storeu_ps(y + j * ldy + i * 8, acc[i * nt + j]);
}

/* Load one half (8 rows) of a line of weights. */
INLINE __m256i load_weights(const unsigned char *line, size_t half)
{
    return _mm256_load_si256((const __m256i *)(const void *)(line + half * 32));
}

/* The plain tile: one weight vector per half panel meets the broadcast activation of each token. */
INLINE void tile_f32(size_t np, size_t nt, size_t p, size_t t, size_t ahead, float *y, size_t ldy,
                     const struct panels *w, const float *x, size_t ldx)
{
    const unsigned char *wp = w->data + p * w->panel_bytes;
    size_t cols = w->cols, bytes = w->panel_bytes, nv = 2 * np;
    __m256 acc[12] = { _mm256_setzero_ps() };
    x += t * ldx;
    for (size_t k = 0; k < cols; k++) {
        __m256 wk[8];
        ask_ahead(wp, bytes, k * 64, ahead, np, nt, 1);
        REPEAT (i, nv)
            wk[i] = _mm256_castsi256_ps(load_weights(wp + i / 2 * bytes + k * 64, i % 2));
        REPEAT (j, nt) {
            __m256 xk = _mm256_set1_ps(x[j * ldx + k]);
            REPEAT (i, nv)
                acc[i * nt + j] = _mm256_fmadd_ps(wk[i], xk, acc[i * nt + j]);
        }
    }
    store_tile(y + t * ldy + p * PANEL, ldy, acc, nv, nt);
}

static void matmul_f32_avx2(float *y, size_t ldy, const struct panels *w, const float *x,
                            size_t ldx, size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n == 1)
        WALK(1, 4, tile_f32, AHEAD, y, ldy, w, x, ldx);
    WALK(6, 1, tile_f32, AHEAD, y, ldy, w, x, ldx);
}

/* A 32-bit lane holds column k in its low half and k + 1 in its high half. A shift turns the first
 * into a float, a mask the second. */
INLINE void tile_bf16(size_t np, size_t nt, size_t p, size_t t, size_t ahead, float *y, size_t ldy,
                      const struct panels *w, const float *x, size_t ldx)
{
    const unsigned char *wp = w->data + p * w->panel_bytes;
    const __m256i high = _mm256_set1_epi32((int)0xffff0000u);
    size_t cols = w->cols, bytes = w->panel_bytes, nv = 2 * np;
    __m256 acc[12] = { _mm256_setzero_ps() };
    x += t * ldx;
    for (size_t k = 0; k < cols; k += 2) {
        ask_ahead(wp, bytes, k * 32, ahead, np, nt, 1);
        REPEAT (h, 2) {
            __m256 wk[8];
            if (k + h == cols)
                break;
            REPEAT (i, nv) {
                __m256i pair = load_weights(wp + i / 2 * bytes + k * 32, i % 2);
                wk[i] = _mm256_castsi256_ps(h ? _mm256_and_si256(pair, high)
                                              : _mm256_slli_epi32(pair, 16));
            }
            REPEAT (j, nt) {
                __m256 xk = _mm256_set1_ps(x[j * ldx + k + h]);
                REPEAT (i, nv)
                    acc[i * nt + j] = _mm256_fmadd_ps(wk[i], xk, acc[i * nt + j]);
            }
        }
    }
    store_tile(y + t * ldy + p * PANEL, ldy, acc, nv, nt);
}

static void matmul_bf16_avx2(float *y, size_t ldy, const struct panels *w, const float *x,
                             size_t ldx, size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n == 1)
        WALK(1, 4, tile_bf16, AHEAD, y, ldy, w, x, ldx);
    WALK(6, 1, tile_bf16, AHEAD, y, ldy, w, x, ldx);
}

/* Broadcast four activations, so that every row meets them. */
INLINE __m256i bcast4(const int8_t *x)
{
    int32_t v;
    memcpy(&v, x, sizeof(v));
    return _mm256_set1_epi32(v);
}

/* Add one group: acc = fmaf((float)sum, scale_w * scale_x, acc). `scale` points to the scales of
 * the first panel. */
INLINE void add_group(__m256 *acc, const __m256i *sum, size_t nv, size_t nt,
                      const unsigned char *scale, size_t panel_bytes, const float *xs, size_t ldxs)
{
    REPEAT (i, nv) {
        const void *s = scale + i / 2 * panel_bytes + i % 2 * 16;
        __m256 ws = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)s));
        REPEAT (j, nt)
            acc[i * nt + j] =
                _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[i * nt + j]),
                                _mm256_mul_ps(ws, _mm256_set1_ps(xs[j * ldxs])), acc[i * nt + j]);
    }
}

/* maddubs needs an unsigned side: |w| (128 for -128), while x takes w's sign. The sum of two
 * products is at most 2 * 128 * 127 = 32512, so nothing saturates. */
INLINE void tile_q8(size_t np, size_t nt, size_t p, size_t t, size_t ahead, float *y, size_t ldy,
                    const struct panels *w, const struct qact *x)
{
    const __m256i flip = _mm256_set1_epi8((char)0x80), ones = _mm256_set1_epi16(1);
    const unsigned char *panel = w->data + p * w->panel_bytes;
    size_t cols = w->cols, groups = cols / GROUP, nv = 2 * np;
    __m256 acc[8] = { _mm256_setzero_ps() };
    for (size_t g = 0; g < groups; g++) {
        const unsigned char *b = panel + g / 2 * Q8_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 512;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        ask_ahead(panel, w->panel_bytes, g * (Q8_BLOCK / 2), ahead, np, nt, 9);
        __m256i sum[8] = { _mm256_setzero_si256() };
        REPEAT (c, 8) {
            REPEAT (i, nv) {
                const unsigned char *at = q + i / 2 * w->panel_bytes + c * 64;
                __m256i wq = _mm256_xor_si256(load_weights(at, i % 2), flip);
                __m256i mag = _mm256_abs_epi8(wq);
                REPEAT (j, nt) {
                    __m256i xc = _mm256_sign_epi8(bcast4(xq + j * cols + c * 4), wq);
                    __m256i part = _mm256_madd_epi16(_mm256_maddubs_epi16(mag, xc), ones);
                    sum[i * nt + j] = _mm256_add_epi32(sum[i * nt + j], part);
                    __asm__("" : "+x"(sum[i * nt + j])); /* else gcc keeps them on the stack */
                }
            }
        }
        add_group(acc, sum, nv, nt, b + g % 2 * 32, w->panel_bytes, x->scale + t * groups + g,
                  groups);
    }
    store_tile(y + t * ldy + p * PANEL, ldy, acc, nv, nt);
}

static void matmul_q8_avx2(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                           size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n == 1 && tune_of(w).panels > 1)
        WALK(1, 2, tile_q8, AHEAD, y, ldy, w, x);
    WALK(4, 1, tile_q8, AHEAD, y, ldy, w, x);
}

/* Nibbles are unsigned already (value + 8, corrected by -8 * sum(x)) and so small that the eight
 * products of a group fit in 16 bits: 8 * 2 * 15 * 127 = 30480. */
INLINE void tile_q4(size_t np, size_t nt, size_t p, size_t t, size_t ahead, float *y, size_t ldy,
                    const struct panels *w, const struct qact *x)
{
    const __m256i nibble = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
    const unsigned char *panel = w->data + p * w->panel_bytes;
    size_t cols = w->cols, groups = cols / GROUP, nv = 2 * np;
    __m256 acc[8] = { _mm256_setzero_ps() };
    for (size_t g = 0; g < groups; g++) {
        const unsigned char *b = panel + g / 2 * Q4_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 256;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        ask_ahead(panel, w->panel_bytes, g * (Q4_BLOCK / 2), ahead, np, nt, 5);
        __m256i sum[8] = { _mm256_setzero_si256() };
        REPEAT (c, 4) {
            REPEAT (i, nv) {
                const unsigned char *at = q + i / 2 * w->panel_bytes + c * 64;
                __m256i pair = load_weights(at, i % 2);
                __m256i lo = _mm256_and_si256(pair, nibble);
                __m256i hi = _mm256_and_si256(_mm256_srli_epi16(pair, 4), nibble);
                REPEAT (j, nt) {
                    const int8_t *xc = xq + j * cols + c * 4;
                    __m256i a = _mm256_maddubs_epi16(lo, bcast4(xc));
                    a = _mm256_add_epi16(a, _mm256_maddubs_epi16(hi, bcast4(xc + 16)));
                    sum[i * nt + j] = _mm256_add_epi16(sum[i * nt + j], a);
                    __asm__("" : "+x"(sum[i * nt + j])); /* else gcc keeps them on the stack */
                }
            }
        }
        REPEAT (i, nv * nt)
            sum[i] = _mm256_add_epi32(_mm256_madd_epi16(sum[i], ones),
                                      _mm256_set1_epi32(x->bias[(t + i % nt) * groups + g] / 16));
        add_group(acc, sum, nv, nt, b + g % 2 * 32, w->panel_bytes, x->scale + t * groups + g,
                  groups);
    }
    store_tile(y + t * ldy + p * PANEL, ldy, acc, nv, nt);
}

static void matmul_q4_avx2(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                           size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n == 1 && tune_of(w).panels > 1)
        WALK(1, 2, tile_q4, AHEAD, y, ldy, w, x);
    WALK(4, 1, tile_q4, AHEAD, y, ldy, w, x);
}

/* Load x[0] to x[n - 1]; the lanes beyond come from `rest`. */
INLINE __m256 load8(const float *x, size_t n, __m256 rest)
{
    if (n >= 8)
        return _mm256_loadu_ps(x);
    float v[8];
    _mm256_storeu_ps(v, rest);
    memcpy(v, x, n * sizeof(*x));
    return _mm256_loadu_ps(v);
}

/* Store the first n lanes. */
INLINE void store8(float *y, size_t n, __m256 a)
{
    float v[8];
    _mm256_storeu_ps(n >= 8 ? y : v, a);
    if (n < 8)
        memcpy(y, v, n * sizeof(*y));
}

/* Return how many elements are left from i on: 0 rather than a wrapped number. */
INLINE size_t left(size_t n, size_t i)
{
    return i < n ? n - i : 0;
}

/* Add the lanes by the fixed tree: a[l] + a[l + 8], a[l] + a[l + 4], ... */
INLINE float tree_sum(__m256 lo, __m256 hi)
{
    __m256 b = _mm256_add_ps(lo, hi);
    __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

INLINE float max8(__m256 m)
{
    __m128 a = _mm_max_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));
    a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)));
}

/* exp_f32 of kernels/math.c, lane by lane. For NaN, min and max return their second operand, as the
 * comparisons there do. */
INLINE __m256 exp_256(__m256 x)
{
    __m256 c = _mm256_min_ps(x, _mm256_set1_ps(88.0f));
    c = _mm256_max_ps(c, _mm256_set1_ps(-87.0f));
    __m256 n = _mm256_mul_ps(c, _mm256_set1_ps(0x1.715476p+0f));
    n = _mm256_round_ps(n, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-0x1.62e43p-1f), c);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(0x1.05c61p-29f), r);
    __m256 p = _mm256_set1_ps(0x1.6a21acp-10f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.123b6ap-7f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.5558fap-5f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.55549p-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.fffffcp-2f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    __m256 y = _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(e, 23)));
    return _mm256_and_ps(y, _mm256_cmp_ps(x, _mm256_set1_ps(-87.0f), _CMP_GE_OQ));
}

/* max takes its second operand for NaN, so NaN never becomes amax, and clamping sends it to -127. A
 * group that is not live is masked to zero. */
static void quantize_q8_avx2(const struct qact *y, size_t t, const float *x)
{
    const __m256 minus = _mm256_set1_ps(-0.0f), hi = _mm256_set1_ps(127.0f);
    size_t groups = y->cols / GROUP;
    for (size_t g = 0; g < groups; g++, x += GROUP) {
        __m256 v[4], m = _mm256_setzero_ps();
        REPEAT (i, 4) {
            v[i] = _mm256_loadu_ps(x + i * 8);
            m = _mm256_max_ps(_mm256_andnot_ps(minus, v[i]), m);
        }
        float amax = max8(m);
        int live = amax > 0x1p-100f;
        __m256 inv = _mm256_set1_ps(127.0f / amax);
        __m256i q[4];
        REPEAT (i, 4) {
            v[i] = _mm256_min_ps(_mm256_max_ps(_mm256_mul_ps(v[i], inv), _mm256_xor_ps(minus, hi)),
                                 hi);
            q[i] = _mm256_and_si256(_mm256_cvtps_epi32(v[i]), _mm256_set1_epi32(-live));
        }
        /* Packing works on 128-bit halves, so the dwords come out interleaved. */
        __m256i b =
            _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
        b = _mm256_permutevar8x32_epi32(b, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        _mm256_storeu_si256((__m256i *)(void *)(y->q + t * y->cols + g * GROUP), b);
        /* Sums of eight bytes each; they are unsigned for that, hence 128 too large. */
        __m256i s = _mm256_sad_epu8(_mm256_xor_si256(b, _mm256_set1_epi8((char)0x80)),
                                    _mm256_setzero_si256());
        int32_t first = _mm256_extract_epi32(s, 0) + _mm256_extract_epi32(s, 2) - 16 * 128;
        int32_t second = _mm256_extract_epi32(s, 4) + _mm256_extract_epi32(s, 6) - 16 * 128;
        qact_put(y, t * groups + g, live ? amax / 127.0f : 0.0f, first, second);
    }
}

static void rmsnorm_f32_avx2(float *y, const float *x, const float *w, size_t n, float eps)
{
    __m256 zero = _mm256_setzero_ps(), lo = zero, hi = zero;
    for (size_t i = 0; i < n; i += 16) {
        __m256 a = load8(x + i, n - i, zero), b = load8(x + i + 8, left(n, i + 8), zero);
        lo = _mm256_fmadd_ps(a, a, lo);
        hi = _mm256_fmadd_ps(b, b, hi);
    }
    __m256 inv = _mm256_set1_ps(1.0f / sqrtf(tree_sum(lo, hi) / (float)n + eps));
    for (size_t i = 0; i < n; i += 8) {
        __m256 v = _mm256_mul_ps(load8(x + i, n - i, zero), inv);
        store8(y + i, n - i, _mm256_mul_ps(v, load8(w + i, n - i, zero)));
    }
}

static void rope_f32_avx2(float *x, const float *cos, const float *sin, size_t half)
{
    const __m256 zero = _mm256_setzero_ps();
    for (size_t i = 0; i < half; i += 8) {
        size_t m = half - i;
        __m256 a = load8(x + i, m, zero), b = load8(x + half + i, m, zero);
        __m256 c = load8(cos + i, m, zero), s = load8(sin + i, m, zero);
        store8(x + i, m, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        store8(x + half + i, m, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
    }
}

static void add_f32_avx2(float *y, const float *x, size_t n)
{
    const __m256 zero = _mm256_setzero_ps();
    for (size_t i = 0; i < n; i += 8)
        store8(y + i, n - i, _mm256_add_ps(load8(y + i, n - i, zero), load8(x + i, n - i, zero)));
}

static void swiglu_f32_avx2(float *y, const float *g, const float *u, size_t n)
{
    const __m256 zero = _mm256_setzero_ps(), one = _mm256_set1_ps(1.0f);
    const __m256 minus = _mm256_set1_ps(-0.0f);
    for (size_t i = 0; i < n; i += 8) {
        __m256 a = load8(g + i, n - i, zero);
        __m256 d = _mm256_add_ps(one, exp_256(_mm256_xor_ps(a, minus)));
        store8(y + i, n - i, _mm256_mul_ps(_mm256_div_ps(a, d), load8(u + i, n - i, zero)));
    }
}

#define vec         __m256
#define vec_zero    _mm256_setzero_ps
#define vec_set1    _mm256_set1_ps
#define vec_store   _mm256_storeu_ps
#define vec_add     _mm256_add_ps
#define vec_mul     _mm256_mul_ps
#define vec_fma     _mm256_fmadd_ps
#define vec_keep(x) __asm__("" : "+x"(x))
enum { VEC = 8, ROWS = 2, KEY_GROUPS = 1, VALUES = 4, FEW_VALUES = 2 };

/* Widen 8 signed bytes to floats; halves_8 does so with 8 halves. */
INLINE __m256 bytes_8(const unsigned char *p)
{
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

INLINE __m256 halves_8(const unsigned char *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

/* Load and widen a part of a column of keys; load_value does so with a row of values (attn.h). */
INLINE __m256 load_keys(enum kvcache type, const unsigned char *group, size_t d, size_t part,
                        size_t hd16)
{
    const float *f = (const float *)(const void *)group;
    size_t i = d * 16 + part * 8;
    if (type == KVCACHE_F16)
        return halves_8(group + i * 2);
    if (type == KVCACHE_Q8)
        return _mm256_mul_ps(bytes_8(group + kv_scales(type, 16, hd16) + i),
                             _mm256_loadu_ps(f + d / GROUP * 16 + part * 8));
    return _mm256_loadu_ps(f + i);
}

INLINE __m256 load_value(enum kvcache type, const unsigned char *row, size_t d, size_t hd16)
{
    const float *f = (const float *)(const void *)row;
    if (type == KVCACHE_F16)
        return halves_8(row + d * 2);
    if (type == KVCACHE_Q8)
        return _mm256_mul_ps(bytes_8(row + kv_scales(type, 1, hd16) + d),
                             _mm256_set1_ps(f[d / GROUP]));
    return _mm256_loadu_ps(f + d);
}

/* The last group is filled with -inf, whose weight is 0, so no loop needs a tail. */
INLINE void softmax_row(const struct attn_part *y, size_t i, float *p, size_t seen)
{
    __m256 max = _mm256_set1_ps(-INFINITY), lo = _mm256_setzero_ps(), hi = lo;
    size_t n16 = (seen + 15) / 16 * 16;
    for (size_t j = seen; j < n16; j++)
        p[j] = -INFINITY; /* weight 0 */
    for (size_t j = 0; j < n16; j += 8)
        max = _mm256_max_ps(_mm256_loadu_ps(p + j), max); /* NaN leaves max */
    y->max[i] = max8(max) + 0.0f;                         /* + 0 turns -0 into 0 */
    max = _mm256_set1_ps(y->max[i]);
    for (size_t j = 0; j < n16; j += 16) {
        __m256 a = exp_256(_mm256_sub_ps(_mm256_loadu_ps(p + j), max));
        __m256 b = exp_256(_mm256_sub_ps(_mm256_loadu_ps(p + j + 8), max));
        lo = _mm256_add_ps(lo, a);
        hi = _mm256_add_ps(hi, b);
        _mm256_storeu_ps(p + j, a);
        _mm256_storeu_ps(p + j + 8, b);
    }
    y->sum[i] = tree_sum(lo, hi);
}

#include "kernels/attn.h"

ATTN(attn_f32_avx2, KVCACHE_F32)
ATTN(attn_f16_avx2, KVCACHE_F16)
ATTN(attn_q8_avx2, KVCACHE_Q8)

/* Even lanes compute the first exponential, odd lanes the second. */
static void attn_merge_avx2(float *max_a, float *sum_a, float *out_a, float max_b, float sum_b,
                            const float *out_b, size_t hd16)
{
    float m = max_b > *max_a ? max_b : *max_a;
    __m256 a = _mm256_set1_ps(*max_a - m), b = _mm256_set1_ps(max_b - m);
    __m256 e = exp_256(_mm256_blend_ps(a, b, 0xaa));
    __m256 ea = _mm256_moveldup_ps(e), eb = _mm256_movehdup_ps(e);
    __m256 sum = _mm256_mul_ps(_mm256_set1_ps(*sum_a), ea);
    *max_a = m;
    *sum_a = _mm256_cvtss_f32(_mm256_fmadd_ps(_mm256_set1_ps(sum_b), eb, sum));
    for (size_t d = 0; d < hd16; d += 8) {
        a = _mm256_mul_ps(_mm256_loadu_ps(out_a + d), ea);
        _mm256_storeu_ps(out_a + d, _mm256_fmadd_ps(_mm256_loadu_ps(out_b + d), eb, a));
    }
}

/* Find the largest value first, then the first element that equals it. */
static size_t argmax_f32_avx2(const float *x, size_t n)
{
    const __m256 none = _mm256_set1_ps(-INFINITY);
    __m256 max[2] = { none, none };
    for (size_t i = 0; i < n; i += 16)
        REPEAT (h, 2)
            max[h] = _mm256_max_ps(load8(x + i + 8 * h, left(n, i + 8 * h), none), max[h]);
    float best = max8(_mm256_max_ps(max[0], max[1]));
    for (size_t i = 0; i < n && best > -INFINITY; i += 8) {
        __m256 hit = _mm256_cmp_ps(load8(x + i, n - i, none), _mm256_set1_ps(best), _CMP_EQ_OQ);
        if (_mm256_movemask_ps(hit))
            return i + (size_t)__builtin_ctz((unsigned)_mm256_movemask_ps(hit));
    }
    return 0;
}

/* Elements beyond the end are -inf, which weighs nothing, whatever max is. */
static void expsum_f32_avx2(float out[2], const float *x, size_t n, float max)
{
    const __m256 none = _mm256_set1_ps(-INFINITY);
    __m256 sum[2] = { _mm256_setzero_ps() }, moment[2] = { _mm256_setzero_ps() };
    for (size_t i = 0; i < n; i += 16)
        REPEAT (h, 2) {
            __m256 d = load8(x + i + 8 * h, left(n, i + 8 * h), none);
            d = _mm256_max_ps(_mm256_sub_ps(d, _mm256_set1_ps(max)), _mm256_set1_ps(-88.0f));
            __m256 e = exp_256(d);
            sum[h] = _mm256_add_ps(sum[h], e);
            moment[h] = _mm256_fmadd_ps(e, d, moment[h]);
        }
    out[0] = tree_sum(sum[0], sum[1]);
    out[1] = tree_sum(moment[0], moment[1]);
}

const struct kernels kernels_avx2 = {
    .isa = "avx2",
    .needs = CPU_AVX2,
    .rest = &kernels_avx2_blocks,
    .matmul_f32 = matmul_f32_avx2,
    .matmul_bf16 = matmul_bf16_avx2,
    .matmul_q8 = matmul_q8_avx2,
    .matmul_q4 = matmul_q4_avx2,
    .quantize_q8 = quantize_q8_avx2,
    .rmsnorm_f32 = rmsnorm_f32_avx2,
    .rope_f32 = rope_f32_avx2,
    .add_f32 = add_f32_avx2,
    .swiglu_f32 = swiglu_f32_avx2,
    .attn_f32 = attn_f32_avx2,
    .attn_f16 = attn_f16_avx2,
    .attn_q8 = attn_q8_avx2,
    .attn_merge = attn_merge_avx2,
    .argmax_f32 = argmax_f32_avx2,
    .expsum_f32 = expsum_f32_avx2,
};
