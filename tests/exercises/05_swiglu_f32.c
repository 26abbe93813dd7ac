/* 05_swiglu_f32.c - exercise 5: SwiGLU, the gate of the feed-forward part.
 *
 * Source    Shazeer, GLU Variants Improve Transformer (arXiv 2002.05202), section 2.
 * Formula   y[i] = (g[i] / (1 + exp_f32(-g[i]))) * u[i]: Swish of the gate, times the other half.
 *           y may be g or u.
 * Measure   The time of 4,864 numbers, and of the same loop with expf of <math.h>, whose bits
 *           differ. It is faster, because kernels/math.c is compiled for every processor, where
 *           each fmaf is a call. Then why does no set use it? And what does exp_f32 cost in a
 *           vector?
 * Solution  swiglu_f32_scalar in kernels/scalar.c, then swiglu_f32_avx2 in kernels/x86/avx2.c. */
#include "tests/exercises/exercise.h"

static void swiglu_f32_exercise(float *y, const float *g, const float *u, size_t n)
{
    UNWRITTEN();
}

const struct kernels kernels_exercise = EXERCISE(.swiglu_f32 = swiglu_f32_exercise);
