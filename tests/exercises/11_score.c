/* 11_score.c - exercise 11: the router's MLP.
 *
 * Source    CITER (arXiv 2502.01976), conf_model: two layers are left of it at inference.
 * Formula   h[i] = relu(dot(w1[i], x) + b1[i]) for i < f->width, score = sigmoid_f32(dot(w2, h) +
 *           b2[0]). A dot is acc = fmaf(w[k], x[k], acc), k ascending from acc = 0; relu(a) is
 *           a < 0 ? 0 : a, which keeps NaN. If the last sum is NaN, the score is 0: the cloud is
 *           asked. w1[width][dim] is row-major (struct router_form in router.h).
 * Measure   The time of a score beside that of its token (`router_ms` and `ms` of a token in
 *           `build/mizzle explain --question 2 --json`): what does it cost to decide, and what does
 *           a token that goes to the cloud save?
 * Solution  router_score in router/router.c. */
#include "tests/exercises/exercise.h"

static float router_mlp(const struct router_form *f, const float *x)
{
    UNWRITTEN();
}

const struct exercise exercise = { .score = router_mlp };
