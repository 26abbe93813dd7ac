/* avxvnni.c - the byte dot product in 256 bits (VEX encoded), on top of avx2.c. */
#include <immintrin.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/tiles.h"

/* Broadcast four activations, so that every row meets them. */
INLINE __m256i bcast4(const int8_t *x)
{
    int32_t v;
    memcpy(&v, x, sizeof(v));
    return _mm256_set1_epi32(v);
}

/* Load one half (8 rows) of a line of weights. */
INLINE __m256i load_weights(const unsigned char *line, size_t half)
{
    return _mm256_load_si256((const __m256i *)(const void *)(line + half * 32));
}

/* Start a tile's sums: from zero in the first turn of columns (k0 is 0), else from y. */
INLINE void load_tile(__m256 *acc, const float *y, size_t ldy, size_t nv, size_t nt, size_t k0)
{
    REPEAT (j, nt)
        REPEAT (i, nv)
            acc[i * nt + j] = k0 ? _mm256_loadu_ps(y + j * ldy + i * 8) : _mm256_setzero_ps();
}

INLINE void store_tile(float *y, size_t ldy, const __m256 *acc, size_t nv, size_t nt)
{
    REPEAT (j, nt)
        REPEAT (i, nv)
            _mm256_storeu_ps(y + j * ldy + i * 8, acc[i * nt + j]);
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

/* Weights are stored as value + 128, because the instruction needs one unsigned side. Each sum
 * starts at x's bias, -128 * sum(x), which takes the 128 off again. */
INLINE void tile_q8(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1, size_t ahead,
                    float *y, size_t ldy, const struct panels *w, const struct qact *x)
{
    const unsigned char *panel = w->data + p * w->panel_bytes;
    size_t cols = w->cols, groups = cols / GROUP, nv = 2 * np;
    __m256 acc[6];
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, nv, nt, k0);
    for (size_t g = k0 / GROUP; g < k1 / GROUP; g++) {
        const unsigned char *b = panel + g / 2 * Q8_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 512;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        ask_ahead(panel, w->panel_bytes, g * (Q8_BLOCK / 2), ahead, np, nt, 9);
        __m256i sum[6];
        REPEAT (i, nv * nt)
            sum[i] = _mm256_set1_epi32(x->bias[(t + i % nt) * groups + g]);
        REPEAT (c, 8)
            REPEAT (i, nv) {
                const unsigned char *at = q + i / 2 * w->panel_bytes + c * 64;
                __m256i wq = load_weights(at, i % 2);
                REPEAT (j, nt)
                    sum[i * nt + j] =
                        _mm256_dpbusd_avx_epi32(sum[i * nt + j], wq, bcast4(xq + j * cols + c * 4));
            }
        add_group(acc, sum, nv, nt, b + g % 2 * 32, w->panel_bytes, x->scale + t * groups + g,
                  groups);
    }
    store_tile(y, ldy, acc, nv, nt);
}

static void matmul_q8_avxvnni(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                              size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n == 1 && tune_of(w).panels > 1)
        TURNS(1, 2, tile_q8, y, ldy, w, x);
    TURNS(3, 1, tile_q8, y, ldy, w, x);
}

/* The same with value + 8 in a nibble. The bias is for 128, 16 times too large, hence the
 * division. */
INLINE void tile_q4(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1, size_t ahead,
                    float *y, size_t ldy, const struct panels *w, const struct qact *x)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    const unsigned char *panel = w->data + p * w->panel_bytes;
    size_t cols = w->cols, groups = cols / GROUP, nv = 2 * np;
    __m256 acc[6];
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, nv, nt, k0);
    for (size_t g = k0 / GROUP; g < k1 / GROUP; g++) {
        const unsigned char *b = panel + g / 2 * Q4_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 256;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        ask_ahead(panel, w->panel_bytes, g * (Q4_BLOCK / 2), ahead, np, nt, 5);
        __m256i sum[6];
        REPEAT (i, nv * nt)
            sum[i] = _mm256_set1_epi32(x->bias[(t + i % nt) * groups + g] / 16);
        REPEAT (c, 4)
            REPEAT (i, nv) {
                __m256i pair = load_weights(q + i / 2 * w->panel_bytes + c * 64, i % 2);
                __m256i lo = _mm256_and_si256(pair, nibble);
                __m256i hi = _mm256_and_si256(_mm256_srli_epi16(pair, 4), nibble);
                REPEAT (j, nt) {
                    const int8_t *xc = xq + j * cols + c * 4;
                    __m256i s = _mm256_dpbusd_avx_epi32(sum[i * nt + j], lo, bcast4(xc));
                    sum[i * nt + j] = _mm256_dpbusd_avx_epi32(s, hi, bcast4(xc + 16));
                }
            }
        add_group(acc, sum, nv, nt, b + g % 2 * 32, w->panel_bytes, x->scale + t * groups + g,
                  groups);
    }
    store_tile(y, ldy, acc, nv, nt);
}

static void matmul_q4_avxvnni(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                              size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n == 1 && tune_of(w).panels > 1)
        TURNS(1, 2, tile_q4, y, ldy, w, x);
    TURNS(3, 1, tile_q4, y, ldy, w, x);
}

const struct kernels kernels_avxvnni = {
    .isa = "avxvnni",
    .needs = CPU_AVX2 | CPU_AVXVNNI,
    .rest = &kernels_avxvnni_blocks,
    .matmul_q8 = matmul_q8_avxvnni,
    .matmul_q4 = matmul_q4_avxvnni,
};
