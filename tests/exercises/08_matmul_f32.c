/* 08_matmul_f32.c - exercise 8: a product with vectors.
 *
 * Source    Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (ACM TOMS 34,
 *           2008), section 4: a tile of sums stays in registers.
 * Formula   y[t * ldy + r] for t < n and 16 * p0 <= r < 16 * p1: acc = fmaf(w[k], x[t * ldx + k],
 *           acc), k ascending from acc = 0. w[k] of row r is the float at w->data + r / 16 *
 *           w->panel_bytes + (k * 16 + r % 16) * 4: one line of 64 bytes holds column k of 16
 *           rows, so the lanes of a vector are rows, and no sum crosses lanes. x86 has
 *           _mm256_loadu_ps, _mm256_set1_ps and _mm256_fmadd_ps, ARM has vld1q_f32 and vfmaq_f32.
 *           Panels are aligned to 64 bytes, x and y to 4.
 * Measure   GOP/s with one token by pass over the weights, then with 2, 4 and 6 in one tile, and
 *           the peak of `build/mizzle bench limits`. When do the sums no longer fit into
 *           registers?
 * Solution  matmul_f32_scalar in kernels/scalar.c, then matmul_f32_avx2 in kernels/x86/avx2.c or
 *           matmul_f32_neon in kernels/arm/neon.c. */
#include "tests/exercises/exercise.h"

static void matmul_f32_exercise(float *y, size_t ldy, const struct panels *w, const float *x,
                                size_t ldx, size_t n, size_t p0, size_t p1)
{
    UNWRITTEN();
}

const struct kernels kernels_exercise = EXERCISE(.matmul_f32 = matmul_f32_exercise);
