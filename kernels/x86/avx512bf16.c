/* avx512bf16.c - AVX-512's dot product of bf16 pairs. The set is opt-in: it rounds activations to
 * bf16 and adds the two products of a pair in its own order, so results agree with the definition
 * only within that rounding. */
#include <immintrin.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/x86/tiles512.h"

/* Up to ROUNDED tokens are rounded to bf16 pairs together, STRETCH columns of each at a time. */
enum { ROUNDED = 16, STRETCH = 1024 };

/* Round columns [k0, k1) of nt tokens to bf16; a column beyond the last becomes zero. k0 is
 * even. */
INLINE void round_tokens(uint32_t to[][STRETCH / 2], const float *x, size_t ldx, size_t nt,
                         size_t k0, size_t k1)
{
    for (size_t j = 0; j < nt; j++)
        for (size_t k = k0; k < k1; k += 32) {
            size_t left = k1 - k;
            __m512 a = _mm512_maskz_loadu_ps(lanes(left), x + j * ldx + k);
            __m512 b = _mm512_setzero_ps();
            if (left > 16)
                b = _mm512_maskz_loadu_ps(lanes(left - 16), x + j * ldx + k + 16);
            __m512bh pairs = _mm512_cvtne2ps_pbh(b, a);
            memcpy(to[j] + (k - k0) / 2, &pairs, sizeof(pairs));
        }
}

/* Add the products of columns [k0, k1): each instruction takes a pair of columns of 16 rows. */
INLINE void tile_pairs(size_t np, size_t nt, size_t p, size_t t, size_t ahead, size_t k0, size_t k1,
                       float *y, size_t ldy, const struct panels *w, uint32_t x[][STRETCH / 2])
{
    const unsigned char *panel = w->data + p * w->panel_bytes;
    __m512 acc[24];
    x += t;
    y += t * ldy + p * PANEL;
    load_tile(acc, y, ldy, np, nt, k0);
    for (size_t k = 0; k < (k1 - k0 + 1) / 2; k++) {
        __m512bh wk[4];
        size_t at = k0 * 32 + k * 64;
        ask_ahead(panel, w->panel_bytes, at, ahead, np, nt, 1);
        REPEAT (i, np)
            memcpy(&wk[i], panel + i * w->panel_bytes + at, sizeof(wk[i]));
        REPEAT (j, nt) {
            __m512i both = _mm512_set1_epi32((int)x[j][k]);
            __m512bh xk;
            memcpy(&xk, &both, sizeof(xk));
            REPEAT (i, np)
                acc[i * nt + j] = _mm512_dpbf16_ps(acc[i * nt + j], wk[i], xk);
        }
    }
    store_tile(y, ldy, acc, np, nt);
}

/* Multiply n <= ROUNDED tokens by all panels, one stretch of columns after the other. */
static void round_and_multiply(float *y, size_t ldy, const struct panels *w, const float *x,
                               size_t ldx, size_t n, size_t p0, size_t p1)
{
    uint32_t pairs[ROUNDED][STRETCH / 2];
    for (size_t k0 = 0, k1; k0 < w->cols; k0 = k1) {
        size_t p = p0;
        k1 = w->cols - k0 > STRETCH ? k0 + STRETCH : w->cols;
        round_tokens(pairs, x, ldx, n, k0, k1);
        if (n > 1)
            WALK(8, 3, tile_pairs, AHEAD, k0, k1, y, ldy, w, pairs);
        else
            WALK(1, 4, tile_pairs, AHEAD, k0, k1, y, ldy, w, pairs);
        WALK(8, 1, tile_pairs, AHEAD, k0, k1, y, ldy, w, pairs);
    }
}

static void matmul_bf16_avx512bf16(float *y, size_t ldy, const struct panels *w, const float *x,
                                   size_t ldx, size_t n, size_t p0, size_t p1)
{
    for (size_t t = 0, nt; t < n; t += nt) {
        nt = n - t < ROUNDED ? n - t : ROUNDED;
        round_and_multiply(y + t * ldy, ldy, w, x + t * ldx, ldx, nt, p0, p1);
    }
}

const struct kernels kernels_avx512bf16 = {
    .isa = "avx512bf16",
    .needs = CPU_AVX2 | CPU_AVX512 | CPU_AVX512BF16,
    .matmul_bf16 = matmul_bf16_avx512bf16,
};
