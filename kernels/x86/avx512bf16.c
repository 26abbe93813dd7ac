/* avx512bf16.c - AVX-512's dot product of bf16 pairs. The set is opt-in: it rounds activations to
 * bf16 and adds the two products of a pair in its own order, so results agree with the definition
 * only within that rounding. */
#include <immintrin.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/x86/tiles512.h"

/* A tile takes 8 tokens; STRETCH columns of each, rounded to bf16 pairs, are kept at a time. */
enum { TOKENS_8 = 8, STRETCH = 1024 };

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
INLINE void tile(size_t np, size_t nt, size_t p, size_t k0, size_t k1, float *y, size_t ldy,
                 const struct panels *w, uint32_t x[][STRETCH / 2])
{
    const unsigned char *wp = w->data + p * w->panel_bytes + k0 * 32;
    __m512 acc[24];
    y += p * PANEL;
    load_tile(acc, y, ldy, np, nt, k0);
    for (size_t k = 0; k < (k1 - k0 + 1) / 2; k++) {
        __m512bh wk[4];
        REPEAT (i, np) {
            memcpy(&wk[i], wp + i * w->panel_bytes + k * 64, sizeof(wk[i]));
            if (nt == 1)
                ask_ahead(wp + i * w->panel_bytes + k * 64);
        }
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

/* Multiply nt tokens by all panels, one stretch of columns after the other. */
INLINE void tokens(size_t nt, size_t np, float *y, size_t ldy, const struct panels *w,
                   const float *x, size_t ldx, size_t p0, size_t p1)
{
    uint32_t pairs[TOKENS_8][STRETCH / 2];
    for (size_t k0 = 0, k1; k0 < w->cols; k0 = k1) {
        size_t p = p0;
        k1 = w->cols - k0 > STRETCH ? k0 + STRETCH : w->cols;
        round_tokens(pairs, x, ldx, nt, k0, k1);
        for (; p + np <= p1; p += np)
            tile(np, nt, p, k0, k1, y, ldy, w, pairs);
        for (; p < p1; p++)
            tile(1, nt, p, k0, k1, y, ldy, w, pairs);
    }
}

static void matmul_bf16_avx512bf16(float *y, size_t ldy, const struct panels *w, const float *x,
                                   size_t ldx, size_t n, size_t p0, size_t p1)
{
    size_t t = 0;
    for (; t + TOKENS_8 <= n; t += TOKENS_8)
        tokens(8, 3, y + t * ldy, ldy, w, x + t * ldx, ldx, p0, p1);
    for (; t < n; t++)
        tokens(1, 4, y + t * ldy, ldy, w, x + t * ldx, ldx, p0, p1);
}

const struct kernels kernels_avx512bf16 = {
    .isa = "avx512bf16",
    .needs = CPU_AVX2 | CPU_AVX512 | CPU_AVX512BF16,
    .matmul_bf16 = matmul_bf16_avx512bf16,
};
