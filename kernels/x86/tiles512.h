/* tiles512.h - what the AVX-512 sets share: tiles of sums in registers, partial vectors, exp. */
#ifndef KERNELS_X86_TILES512_H
#define KERNELS_X86_TILES512_H

#include "kernels/tiles.h"

#if defined(__AVX512F__)
#include <immintrin.h>

/* Start a tile's sums: from zero in the first turn of columns (k0 is 0), else from y, where the
 * turn before left them. y points to the tile's first row and token. */
INLINE void load_tile(__m512 *acc, const float *y, size_t ldy, size_t np, size_t nt, size_t k0)
{
    REPEAT (j, nt)
        REPEAT (i, np)
            acc[i * nt + j] = k0 ? _mm512_loadu_ps(y + j * ldy + i * PANEL) : _mm512_setzero_ps();
}

INLINE void store_tile(float *y, size_t ldy, const __m512 *acc, size_t np, size_t nt)
{
    REPEAT (j, nt)
        REPEAT (i, np)
            _mm512_storeu_ps(y + j * ldy + i * PANEL, acc[i * nt + j]);
}

/* Return a mask of the first n lanes, of all lanes when n is 16 or more. */
INLINE __mmask16 lanes(size_t n)
{
    return (__mmask16)(0xffffu >> (n < 16 ? 16 - n : 0));
}

/* Add the lanes by the fixed tree: a[l] + a[l + 8], a[l] + a[l + 4], ... */
INLINE float tree_sum(__m512 a)
{
    __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

/* exp_f32 of kernels/math.c, lane by lane. For NaN, min and max return their second operand, as the
 * comparisons there do. */
INLINE __m512 exp_512(__m512 x)
{
    __m512 c = _mm512_min_ps(x, _mm512_set1_ps(88.0f));
    c = _mm512_max_ps(c, _mm512_set1_ps(-87.0f));
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(c, _mm512_set1_ps(0x1.715476p+0f)),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-0x1.62e43p-1f), c);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(0x1.05c61p-29f), r);
    __m512 p = _mm512_set1_ps(0x1.6a21acp-10f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.123b6ap-7f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.5558fap-5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.55549p-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.fffffcp-2f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    __m512i e =
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23);
    __mmask16 live = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.0f), _CMP_GE_OQ);
    return _mm512_maskz_mul_ps(live, p, _mm512_castsi512_ps(e));
}

#endif

#endif
