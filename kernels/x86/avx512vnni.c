/* avx512vnni.c - AVX-512's byte dot product, on top of avx512.c. Q8 is here; the types whose codes
 * are smaller than bytes are in avx512vnni_blocks.c. */
#include <immintrin.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/x86/tiles512.h"

/* Broadcast four activations, so that every row meets them. */
INLINE __m512i bcast4(const int8_t *x)
{
    int32_t v;
    memcpy(&v, x, sizeof(v));
    return _mm512_set1_epi32(v);
}

/* Add one group: acc = fmaf((float)sum, scale_w * scale_x, acc). `scale` points to the scales of
 * the first panel. */
INLINE void add_group(__m512 *acc, const __m512i *sum, size_t np, size_t nt,
                      const unsigned char *scale, size_t panel_bytes, const float *xs, size_t ldxs)
{
    REPEAT (i, np) {
        const void *s = scale + i * panel_bytes;
        __m512 ws = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)s));
        REPEAT (j, nt)
            acc[i * nt + j] =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[i * nt + j]),
                                _mm512_mul_ps(ws, _mm512_set1_ps(xs[j * ldxs])), acc[i * nt + j]);
    }
}

/* Weights are stored as value + 128, because the instruction needs one unsigned side. Each sum
 * starts at -128 * sum(x), which takes the 128 off again. */
INLINE void tile_q8(size_t np, size_t nt, size_t p, size_t t, size_t k0, size_t k1, size_t ahead,
                    float *y, size_t ldy, const struct panels *w, const struct qact *x)
{
    const unsigned char *panel = w->data + p * w->panel_bytes;
    size_t cols = w->cols, groups = cols / GROUP;
    __m512 acc[12];
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, np, nt, k0);
    for (size_t g = k0 / GROUP; g < k1 / GROUP; g++) {
        const unsigned char *b = panel + g / 2 * Q8_BLOCK;
        const unsigned char *q = b + SCALES + g % 2 * 512;
        const int8_t *xq = x->q + t * cols + g * GROUP;
        REPEAT (j, nt)
            if (np > 1 && nt > 1)
                __builtin_prefetch(xq + (nt + j) * cols, 0, 3); /* the next tile's */
        ask_ahead(panel, w->panel_bytes, g * (Q8_BLOCK / 2), ahead, np, nt, 9);
        __m512i sum[12];
        REPEAT (i, np * nt)
            sum[i] = _mm512_set1_epi32(x->bias[(t + i % nt) * groups + g]);
        REPEAT (c, 8) {
            __m512i wq[4];
            REPEAT (i, np)
                wq[i] = _mm512_loadu_si512(q + i * w->panel_bytes + c * 64);
            REPEAT (i, np * nt)
                sum[i] =
                    _mm512_dpbusd_epi32(sum[i], wq[i / nt], bcast4(xq + i % nt * cols + c * 4));
        }
        add_group(acc, sum, np, nt, b + g % 2 * 32, w->panel_bytes, x->scale + t * groups + g,
                  groups);
    }
    store_tile(y, ldy, acc, np, nt);
}

/* Up to FEW_TOKENS, panels are walked one at a time: memory likes one plain stream. Two at a time
 * need half of the broadcasts, which counts when products wait for the multipliers. Some families
 * like two streams when there are few tokens (tune.h). */
static void matmul_q8_avx512vnni(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                                 size_t n, size_t p0, size_t p1)
{
    size_t p = p0;
    if (n > FEW_TOKENS)
        TURNS(6, 2, tile_q8, y, ldy, w, x);
    else if (n <= 3 && tune_of(w).panels > 1)
        TURNS(3, 2, tile_q8, y, ldy, w, x);
    TURNS(8, 1, tile_q8, y, ldy, w, x);
}

const struct kernels kernels_avx512vnni = {
    .isa = "avx512vnni",
    .needs = CPU_AVX2 | CPU_AVX512 | CPU_AVX512VNNI,
    .rest = &kernels_avx512vnni_blocks,
    .matmul_q8 = matmul_q8_avx512vnni,
};
