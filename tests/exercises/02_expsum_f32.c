/* 02_expsum_f32.c - exercise 2: a softmax that does not overflow.
 *
 * Source    Milakov and Gimelshein, Online normalizer calculation for softmax (arXiv 1805.02867),
 *           section 2: exp(x) is too large for a float from x = 88.8 on, exp(x - max) never is.
 * Formula   d = max(x[i] - max, -88), which is -88 for NaN; e = exp_f32(d). out[0] is the sum of e,
 *           so that softmax(x)[i] = e / out[0]. out[1] is the sum of e * d, so that the entropy is
 *           ln(out[0]) - out[1] / out[0]. Both are virtual vectors (the head of kernels.h): out[0]
 *           adds e to lane i % 16, out[1] does so by fmaf(e, d, lane).
 * Measure   The time of a whole vocabulary, and the share of it that exp_f32 takes: what is left
 *           with d in its place? What does the clamp at -88 cost, and what does out[1] become
 *           without it?
 * Solution  expsum_f32_scalar in kernels/scalar.c; exp_f32 in kernels/math.c. */
#include "tests/exercises/exercise.h"

static void expsum_f32_exercise(float out[2], const float *x, size_t n, float max)
{
    UNWRITTEN();
}

const struct kernels kernels_exercise = EXERCISE(.expsum_f32 = expsum_f32_exercise);
