/* avx512.c - AVX-512 without VNNI: one vector is a panel's 16 rows, or one virtual vector. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/tiles512.h"

INLINE void tile_f32(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1, float *y,
                     size_t ldy, const struct panels *w, const float *x, size_t ldx)
{
    const unsigned char *wp = w->data + p * w->panel_bytes;
    size_t bytes = w->panel_bytes;
    __m512 acc[24];
    x += t * ldx;
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, np, nt, k0);
    for (size_t k = k0; k < k1; k++) {
        __m512 wk[8];
        REPEAT (i, np) {
            wk[i] = _mm512_load_ps(wp + i * bytes + k * 64);
            if (nt == 1)
                ask_ahead(wp + i * bytes + k * 64);
        }
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
    size_t t = 0;
    TURNS(8, 3, tile_f32, y, ldy, w, x, ldx);
    TURNS(4, 4, tile_f32, y, ldy, w, x, ldx);
    TURNS(2, 4, tile_f32, y, ldy, w, x, ldx);
    TURNS(1, 4, tile_f32, y, ldy, w, x, ldx);
}

/* A 32-bit lane holds column k in its low half and k + 1 in its high half: as float bits, the
 * first after a shift, the second after a mask. */
INLINE void tile_bf16(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1, float *y,
                      size_t ldy, const struct panels *w, const float *x, size_t ldx)
{
    const unsigned char *wp = w->data + p * w->panel_bytes;
    const __m512i high = _mm512_set1_epi32((int)0xffff0000u);
    size_t bytes = w->panel_bytes;
    __m512 acc[24];
    x += t * ldx;
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, np, nt, k0);
    for (size_t k = k0; k < k1; k += 2) {
        __m512i pair[8];
        REPEAT (i, np) {
            pair[i] = _mm512_load_si512(wp + i * bytes + k * 32);
            if (nt == 1)
                ask_ahead(wp + i * bytes + k * 32);
        }
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
    size_t t = 0;
    TURNS(8, 3, tile_bf16, y, ldy, w, x, ldx);
    TURNS(4, 4, tile_bf16, y, ldy, w, x, ldx);
    TURNS(2, 4, tile_bf16, y, ldy, w, x, ldx);
    TURNS(1, 4, tile_bf16, y, ldy, w, x, ldx);
}

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
        y->scale[t * groups + g] = live ? amax / 127.0f : 0.0f;
        y->bias[t * groups + g] = -128 * _mm512_reduce_add_epi32(_mm512_add_epi32(qa, qb));
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

/* 16 vectors to the 16 sums of their trees, all at once: each step adds halves of two vectors and
 * packs the results into one. a[i] is the vector of key KEY_OF[i]. */
INLINE __m512 tree_sums(const __m512 a[16])
{
    __m512 b[8], c[4], d[2];
    REPEAT (i, 8)
        b[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a[i], a[i + 8], 0x44),
                             _mm512_shuffle_f32x4(a[i], a[i + 8], 0xee));
    REPEAT (i, 4)
        c[i] = _mm512_add_ps(_mm512_shuffle_f32x4(b[i], b[i + 4], 0x88),
                             _mm512_shuffle_f32x4(b[i], b[i + 4], 0xdd));
    REPEAT (i, 2)
        d[i] = _mm512_add_ps(_mm512_shuffle_ps(c[i], c[i + 2], 0x44),
                             _mm512_shuffle_ps(c[i], c[i + 2], 0xee));
    return _mm512_add_ps(_mm512_shuffle_ps(d[0], d[1], 0x88), _mm512_shuffle_ps(d[0], d[1], 0xdd));
}

static const unsigned char KEY_OF[16] = { 0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15 };

/* 16 elements from index i of keys or values, which are f32 or (half) f16. */
INLINE __m512 load_kv(const void *base, size_t i, int half)
{
    if (half)
        return _mm512_cvtph_ps(
            _mm256_loadu_si256((const __m256i *)(const void *)((const uint16_t *)base + i)));
    return _mm512_loadu_ps((const float *)base + i);
}

/* Scores of the 16 keys from j on; a key past the last seen one is read as that one. */
INLINE __m512 scores16(const float *q, const void *k, size_t j, size_t seen, size_t hd16, int half)
{
    __m512 a[16];
    size_t at[16];
    REPEAT (i, 16) {
        size_t key = j + KEY_OF[i];
        at[i] = (key < seen ? key : seen - 1) * hd16;
        a[i] = _mm512_setzero_ps();
    }
    for (size_t d = 0; d < hd16; d += 16) {
        __m512 qd = _mm512_loadu_ps(q + d);
        REPEAT (i, 16)
            a[i] = _mm512_fmadd_ps(qd, load_kv(k, at[i] + d, half), a[i]);
    }
    return tree_sums(a);
}

/* out[d] for nv vectors of 16 from d on. */
INLINE void mix_values(float *out, const float *p, const void *v, size_t seen, size_t hd16,
                       size_t d, size_t nv, int half)
{
    __m512 acc[8] = { _mm512_setzero_ps() };
    for (size_t j = 0; j < seen; j++) {
        __m512 pj = _mm512_set1_ps(p[j]);
        REPEAT (i, nv)
            acc[i] = _mm512_fmadd_ps(pj, load_kv(v, j * hd16 + d + i * 16, half), acc[i]);
    }
    REPEAT (i, nv)
        _mm512_storeu_ps(out + d + i * 16, acc[i]);
}

/* Softmax of one row from its scores s (those beyond `seen` do not count): max, sum, and p. */
INLINE void softmax_row(const struct attn_part *y, size_t i, const __m512 s[4], float *p,
                        size_t seen)
{
    __m512 max = _mm512_set1_ps(-INFINITY), sum = _mm512_setzero_ps();
    size_t nv = (seen + 15) / 16;
    for (size_t b = 0; b < nv; b++) /* NaN: keeps max */
        max = _mm512_mask_max_ps(max, lanes(seen - b * 16), s[b], max);
    y->max[i] = _mm512_reduce_max_ps(max) + 0.0f; /* + 0: never -0 */
    max = _mm512_set1_ps(y->max[i]);
    for (size_t b = 0; b < nv; b++) {
        __m512 e = _mm512_maskz_mov_ps(lanes(seen - b * 16), exp_512(_mm512_sub_ps(s[b], max)));
        sum = _mm512_add_ps(sum, e);
        _mm512_storeu_ps(p + b * 16, e);
    }
    y->sum[i] = tree_sum(sum);
}

INLINE void attn_row(const struct attn_part *y, size_t i, const float *q, const void *k,
                     const void *v, size_t seen, size_t hd16, float scale, int half)
{
    float p[ATTN_BLOCK], *out = y->out + i * hd16;
    __m512 s[4];
    size_t d = 0;
    for (size_t b = 0; b * 16 < seen; b++)
        s[b] = _mm512_mul_ps(scores16(q, k, b * 16, seen, hd16, half), _mm512_set1_ps(scale));
    softmax_row(y, i, s, p, seen);
    for (; d + 64 <= hd16; d += 64)
        mix_values(out, p, v, seen, hd16, d, 4, half);
    for (; d < hd16; d += 16)
        mix_values(out, p, v, seen, hd16, d, 1, half);
}

/* Many rows: the block's keys are turned once, so that lanes are keys and the 16 lanes of the
 * virtual vector are 16 sums, added up by the same tree without a shuffle. */
enum { TURNED_MOST = 128, TURNED_ROWS = 4 }; /* largest hd16; fewest rows that pay */

/* kt[(j * hd16 + d) * 16 + l]: column d of key 16 * j + l, zero beyond nk. */
INLINE void turn_keys(float *kt, const void *k, size_t nk, size_t hd16, int half)
{
    for (size_t j = 0; j < nk; j += 16)
        for (size_t d = 0; d < hd16; d += 16) {
            __m512 a[16], b[16];
            REPEAT (i, 16)
                a[i] = j + i < nk ? load_kv(k, (j + i) * hd16 + d, half) : _mm512_setzero_ps();
            REPEAT (i, 8) { /* pairs of rows, 1, 2, 4 and 8 apart */
                b[2 * i] = _mm512_unpacklo_ps(a[2 * i], a[2 * i + 1]);
                b[2 * i + 1] = _mm512_unpackhi_ps(a[2 * i], a[2 * i + 1]);
            }
            REPEAT (i, 4)
                REPEAT (h, 2) {
                    a[4 * i + 2 * h] = _mm512_shuffle_ps(b[4 * i + h], b[4 * i + 2 + h], 0x44);
                    a[4 * i + 2 * h + 1] = _mm512_shuffle_ps(b[4 * i + h], b[4 * i + 2 + h], 0xee);
                }
            REPEAT (i, 2)
                REPEAT (h, 4) {
                    b[8 * i + h] = _mm512_shuffle_f32x4(a[8 * i + h], a[8 * i + 4 + h], 0x88);
                    b[8 * i + 4 + h] = _mm512_shuffle_f32x4(a[8 * i + h], a[8 * i + 4 + h], 0xdd);
                }
            REPEAT (h, 8) {
                float *to = kt + (j * hd16) + (d + h % 4 + h / 4 * 4) * 16;
                _mm512_storeu_ps(to, _mm512_shuffle_f32x4(b[h], b[8 + h], 0x88));
                _mm512_storeu_ps(to + 8 * 16, _mm512_shuffle_f32x4(b[h], b[8 + h], 0xdd));
            }
        }
}

/* What a tile of nr query rows and ng groups of 16 turned keys is made of. */
struct turned {
    const float *q, *kt;
    size_t hd16, nr, ng;
};

/* Lane l of the virtual vectors: o[r * ng + g]. */
INLINE void lane_0(__m512 *o, const struct turned *t, size_t l)
{
    REPEAT (i, t->nr * t->ng)
        o[i] = _mm512_setzero_ps();
    for (size_t d = l; d < t->hd16; d += 16)
        REPEAT (r, t->nr) {
            __m512 q = _mm512_set1_ps(t->q[r * t->hd16 + d]);
            REPEAT (g, t->ng)
                o[r * t->ng + g] = _mm512_fmadd_ps(
                    q, _mm512_loadu_ps(t->kt + (g * t->hd16 + d) * 16), o[r * t->ng + g]);
        }
}

/* The tree, depth first: lanes l and l + 8, then + 4, + 2, + 1. */
#define LANE(name, below, apart)                                  \
    INLINE void name(__m512 *o, const struct turned *t, size_t l) \
    {                                                             \
        __m512 more[4];                                           \
        below(o, t, l);                                           \
        below(more, t, l + (apart));                              \
        REPEAT (i, t->nr * t->ng)                                 \
            o[i] = _mm512_add_ps(o[i], more[i]);                  \
    }
LANE(lane_8, lane_0, 8)
LANE(lane_4, lane_8, 4)
LANE(lane_2, lane_4, 2)
LANE(lane_1, lane_2, 1)

/* out[r] for nr rows over the keys that all of them see, then over those that some see. */
INLINE void mix_rows(float *out, const float p[][ATTN_BLOCK], const float *v, const size_t *seen,
                     size_t hd16, size_t d, size_t nr)
{
    __m512 acc[2][4];
    REPEAT (r, nr)
        REPEAT (i, 4)
            acc[r][i] = _mm512_setzero_ps();
    for (size_t j = 0; j < seen[0]; j++)
        REPEAT (i, 4) {
            __m512 x = _mm512_loadu_ps(v + j * hd16 + d + i * 16);
            REPEAT (r, nr)
                acc[r][i] = _mm512_fmadd_ps(_mm512_set1_ps(p[r][j]), x, acc[r][i]);
        }
    for (size_t j = seen[0]; j < seen[nr - 1]; j++)
        REPEAT (i, 4)
            acc[nr - 1][i] =
                _mm512_fmadd_ps(_mm512_set1_ps(p[nr - 1][j]),
                                _mm512_loadu_ps(v + j * hd16 + d + i * 16), acc[nr - 1][i]);
    REPEAT (r, nr)
        REPEAT (i, 4)
            _mm512_storeu_ps(out + r * hd16 + d + i * 16, acc[r][i]);
}

/* Rows i and, with nr 2, i + 1, which sees at least as much. */
INLINE void attn_rows(const struct attn_part *y, size_t i, const float *q, const float *kt,
                      const float *v, const size_t *seen, size_t hd16, size_t nr, float scale)
{
    float p[2][ATTN_BLOCK];
    __m512 s[2][4], o[4];
    for (size_t b = 0; b * 16 < seen[nr - 1]; b += 2) { /* turned keys are there for whole pairs */
        struct turned t = { q + i * hd16, kt + b * 16 * hd16, hd16, nr, 2 };
        lane_1(o, &t, 0);
        REPEAT (r, nr)
            REPEAT (g, 2)
                s[r][b + g] = _mm512_mul_ps(o[r * 2 + g], _mm512_set1_ps(scale));
    }
    REPEAT (r, nr)
        softmax_row(y, i + r, s[r], p[r], seen[r]);
    for (size_t d = 0; d < hd16; d += 64)
        mix_rows(y->out + i * hd16, (const float(*)[ATTN_BLOCK])p, v, seen, hd16, d, nr);
}

INLINE void attn_turned(const struct attn_part *y, const float *q, const void *k, const void *v,
                        size_t nq, size_t per, size_t first, size_t nk, size_t hd16, float scale,
                        int half)
{
    float kt[ATTN_BLOCK * TURNED_MOST], wide[ATTN_BLOCK * TURNED_MOST];
    const float *values = half ? wide : v;
    size_t i = 0;
    turn_keys(kt, k, nk, hd16, half);
    if ((nk - 1) / 16 % 2 == 0) /* the other group of the last pair */
        memset(kt + (nk + 15) / 16 * 16 * hd16, 0, 16 * hd16 * sizeof(*kt));
    for (size_t j = 0; half && j < nk * hd16; j += 16)
        _mm512_storeu_ps(wide + j, load_kv(v, j, 1));
    for (; i + 2 <= nq; i += 2) {
        size_t seen[2] = { seen_keys(i, per, first, nk), seen_keys(i + 1, per, first, nk) };
        attn_rows(y, i, q, kt, values, seen, hd16, 2, scale);
    }
    if (i < nq) {
        size_t seen = seen_keys(i, per, first, nk);
        attn_rows(y, i, q, kt, values, &seen, hd16, 1, scale);
    }
}

INLINE void attn(const struct attn_part *y, const float *q, const void *k, const void *v, size_t nq,
                 size_t per, size_t first, size_t nk, size_t hd16, float scale, int half)
{
    if (nq >= TURNED_ROWS && hd16 == 64)
        attn_turned(y, q, k, v, nq, per, first, nk, 64, scale, half);
    else if (nq >= TURNED_ROWS && hd16 == 128)
        attn_turned(y, q, k, v, nq, per, first, nk, 128, scale, half);
    else
        for (size_t i = 0; i < nq; i++)
            attn_row(y, i, q + i * hd16, k, v, seen_keys(i, per, first, nk), hd16, scale, half);
}

static void attn_f32_avx512(const struct attn_part *y, const float *q, const float *k,
                            const float *v, size_t nq, size_t per, size_t first, size_t nk,
                            size_t hd16, float scale)
{
    attn(y, q, k, v, nq, per, first, nk, hd16, scale, 0);
}

static void attn_f16_avx512(const struct attn_part *y, const float *q, const uint16_t *k,
                            const uint16_t *v, size_t nq, size_t per, size_t first, size_t nk,
                            size_t hd16, float scale)
{
    attn(y, q, k, v, nq, per, first, nk, hd16, scale, 1);
}

static void attn_merge_avx512(float *max_a, float *sum_a, float *out_a, float max_b, float sum_b,
                              const float *out_b, size_t hd16)
{
    float m = max_b > *max_a ? max_b : *max_a;
    __m512 ea = exp_512(_mm512_set1_ps(*max_a - m)), eb = exp_512(_mm512_set1_ps(max_b - m));
    __m512 sum = _mm512_mul_ps(_mm512_set1_ps(*sum_a), ea);
    *max_a = m;
    *sum_a = _mm512_cvtss_f32(_mm512_fmadd_ps(_mm512_set1_ps(sum_b), eb, sum));
    for (size_t d = 0; d < hd16; d += 16) {
        __m512 a = _mm512_mul_ps(_mm512_loadu_ps(out_a + d), ea);
        _mm512_storeu_ps(out_a + d, _mm512_fmadd_ps(_mm512_loadu_ps(out_b + d), eb, a));
    }
}

/* The largest first, then the first that equals it. */
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
    .matmul_f32 = matmul_f32_avx512,
    .matmul_bf16 = matmul_bf16_avx512,
    .quantize_q8 = quantize_q8_avx512,
    .rmsnorm_f32 = rmsnorm_f32_avx512,
    .rope_f32 = rope_f32_avx512,
    .add_f32 = add_f32_avx512,
    .swiglu_f32 = swiglu_f32_avx512,
    .attn_f32 = attn_f32_avx512,
    .attn_f16 = attn_f16_avx512,
    .attn_merge = attn_merge_avx512,
    .argmax_f32 = argmax_f32_avx512,
    .expsum_f32 = expsum_f32_avx512,
};
