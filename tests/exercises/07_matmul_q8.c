/* 07_matmul_q8.c - exercise 7: the product of int8 weights and int8 activations.
 *
 * Source    Jacob et al., Quantization and Training of Neural Networks for Efficient
 *           Integer-Arithmetic-Only Inference (arXiv 1712.05877), section 2.2; here every 32
 *           columns have a scale of their own, as in GGUF's Q8_0.
 * Formula   y[t * ldy + r] for t < n and 16 * p0 <= r < 16 * p1, from acc = 0. For each group g of
 *           32 columns, ascending: sum = the exact integer sum of weight * q, then acc =
 *           fmaf((float)sum, scale_w * scale_x, acc). Panel r / 16 begins at w->data + r / 16 *
 *           w->panel_bytes. Its block g / 2 has 1,088 bytes: f16 scale[2][16], then u8
 *           q[2][8][16][4], where q[g % 2][c / 4][r % 16][c % 4] is the weight in column c of the
 *           group, plus Q8_ZERO, which is 128, and 0 on ARM (panels.h). f32_from_f16 reads a scale.
 *           q of x is x->q[t * x->cols + column], scale_x is x->scale[t * x->cols / 32 + g].
 * Measure   GB/s for one token and GOP/s for 192, beside the best set: which of the two is its
 *           limit, and from how many tokens on? (`build/mizzle bench limits`)
 * Solution  matmul_scalar in kernels/scalar.c, then tile_q8 in kernels/x86/avxvnni.c. */
#include "tests/exercises/exercise.h"

static void matmul_q8_exercise(float *y, size_t ldy, const struct panels *w, const struct qact *x,
                               size_t n, size_t p0, size_t p1)
{
    UNWRITTEN();
}

const struct kernels kernels_exercise = EXERCISE(.matmul_q8 = matmul_q8_exercise);
