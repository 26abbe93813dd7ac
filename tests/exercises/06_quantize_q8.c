/* 06_quantize_q8.c - exercise 6: a row of activations becomes int8.
 *
 * Source    Dettmers et al., LLM.int8() (arXiv 2208.07339), section 2.1 (absmax), for each group
 *           of 32 numbers by itself.
 * Formula   Row t of y, from x[y->cols]. amax = the largest |x| of a group, where NaN is ignored.
 *           If amax is not above 0x1p-100f, scale and all q are 0. Else scale = amax / 127, and q
 *           is x * (127 / amax), clamped to [-127, 127] (NaN to -127) and rounded to nearest even
 *           (rintf). q of group g is y->q + t * y->cols + 32 * g; qact_put(y, t * groups + g,
 *           scale, sum of the first 16 q, sum of the others) writes the rest (struct qact in
 *           kernels.h).
 * Measure   In a program of your own (README.md), the error of a row: the root of the mean of (q *
 *           scale - x)^2, beside that of x^2. Then make one number of a group 100 times larger:
 *           what becomes of its neighbours?
 * Solution  quantize_q8_scalar in kernels/scalar.c; the bound on logits is in model/README.md. */
#include "kernels/tiles.h"
#include "tests/exercises/exercise.h"

static void quantize_q8_exercise(const struct qact *y, size_t t, const float *x)
{
    UNWRITTEN();
}

const struct kernels kernels_exercise = EXERCISE(.quantize_q8 = quantize_q8_exercise);
