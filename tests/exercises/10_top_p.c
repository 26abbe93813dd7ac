/* 10_top_p.c - exercise 10: top-p, or nucleus sampling.
 *
 * Source    Holtzman et al., The Curious Case of Neural Text Degeneration (arXiv 1904.09751),
 *           section 3.1.
 * Formula   Sort the ids by their logits, the largest first, of equals the lower id; NaN and -inf
 *           are left out, and if nothing is left, the answer is 0. weight = exp_f64(logit - largest
 *           logit), both as double after a subtraction in float. Keep the first ids until their
 *           weights reach p times the sum of all weights; one is always kept. Then draw:
 *           u = rand_unit(seed, at) times the sum of those that are kept; go through them and take
 *           the first whose weight is above u, else subtract it from u. logits[n] has n <= 4,096.
 * Measure   The time of 4,096 ids, and the share of it that sorting takes: what is left without
 *           it? How many ids are kept at p = 0.9 after "The hirukudi is a", and after "The
 *           hirukudi"? (`build/mizzle logits -p TEXT --top-k 20` has the probabilities.)
 * Solution  sampler_pick, sample_cut_tail and sample_draw in model/sample.c. */
#include "tests/exercises/exercise.h"

static uint32_t draw_top_p(const float *logits, size_t n, float p, uint64_t seed, uint64_t at)
{
    UNWRITTEN();
}

const struct exercise exercise = { .top_p = draw_top_p };
