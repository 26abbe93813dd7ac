/* 03_rope_f32.c - exercise 3: RoPE, rotary position embedding.
 *
 * Source    Su et al., RoFormer (arXiv 2104.09864), section 3.4.2. Pairs are not neighbours, as
 *           there, but halves: x[i] and x[i + half], as Qwen2's weights have it.
 * Formula   a = x[i], b = x[i + half]; x[i] = fmaf(a, cos[i], -(b * sin[i])); x[i + half] =
 *           fmaf(b, cos[i], a * sin[i]). cos[half] and sin[half] are those of the position; x[2 *
 *           half] is turned in place.
 * Measure   The time of a head of 64. Then, in a program of your own (README.md), turn q by
 *           position p and k by position p + 3, and compare their product for several p: why may a
 *           cache keep its keys when a text goes on?
 * Solution  rope_f32_scalar in kernels/scalar.c; model/rope.c has the angles. */
#include "tests/exercises/exercise.h"

static void rope_f32_exercise(float *x, const float *cos, const float *sin, size_t half)
{
    UNWRITTEN();
}

const struct kernels kernels_exercise = EXERCISE(.rope_f32 = rope_f32_exercise);
