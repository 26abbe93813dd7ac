/* tiles512.h - tiles of sums in AVX-512 registers, for the sets that have them. */
#ifndef KERNELS_TILES512_H
#define KERNELS_TILES512_H

#include "kernels/tiles.h"

#if defined(__AVX512F__)
#include <immintrin.h>

/* y: of the tile's first row and token. k0: where the columns of this turn begin. */
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

#endif

#endif
