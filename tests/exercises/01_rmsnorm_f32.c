/* 01_rmsnorm_f32.c - exercise 1: RMSNorm.
 *
 * Source    Zhang and Sennrich, Root Mean Square Layer Normalization (arXiv 1910.07467), section 3.
 * Formula   y[i] = x[i] * inv * w[i], inv = 1 / sqrt(sum(x[i]^2) / n + eps), multiplied in this
 *           order. The sum is a virtual vector (the head of kernels.h): element i is added to lane
 *           i % 16 by fmaf, and at the end the 16 lanes are added as a tree. y may be x.
 * Measure   The time of 896 numbers, with 16 lanes and with one: how many sums can a processor
 *           keep waiting at once? One lane gives other bits, and its time is shown all the same.
 *           Then see what -O2 makes of it (tools/perf.sh, see README.md).
 * Solution  rmsnorm_f32_scalar in kernels/scalar.c, then rmsnorm_f32_avx2 in kernels/x86/avx2.c. */
#include "tests/exercises/exercise.h"

static void rmsnorm_f32_exercise(float *y, const float *x, const float *w, size_t n, float eps)
{
    UNWRITTEN();
}

const struct kernels kernels_exercise = EXERCISE(.rmsnorm_f32 = rmsnorm_f32_exercise);
