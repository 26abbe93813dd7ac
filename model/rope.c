/* rope.c - the frequencies of rotary position embedding, plain and stretched. Source of YaRN: Peng
 * et al. 2023 (arXiv 2309.00071), in the form of Hugging Face's transformers. */
#include <math.h>

#include "kernels/math.h"
#include "model/batch_internal.h"

#define TWO_PI 6.283185307179586476925

/* Return the pair, as a real number, that turns `turns` times in the original context. */
static double rope_pair(const struct model_config *c, double turns)
{
    return (double)c->head_dim * log_f64((double)c->rope.original / (turns * TWO_PI)) /
           (2 * log_f64((double)c->rope_theta));
}

void rope_frequencies(double *inv_freq, double *magnitude, const struct model_config *c)
{
    double log_theta = log_f64((double)c->rope_theta), low = 0, high = 0;
    if (c->rope.kind == ROPE_YARN) {
        low = floor(rope_pair(c, (double)c->rope.beta_fast));
        high = ceil(rope_pair(c, (double)c->rope.beta_slow));
        low = low < 0 ? 0 : low;
        high = high > (double)(c->head_dim - 1) ? (double)(c->head_dim - 1) : high;
        high += low == high ? 0.001 : 0;
    }
    *magnitude = c->rope.kind == ROPE_YARN ? (double)c->rope.magnitude : 1;
    for (size_t i = 0; i < c->head_dim / 2; i++) {
        double plain = exp_f64(-(double)(2 * i) / (double)c->head_dim * log_theta);
        double keep = 1;
        if (c->rope.kind == ROPE_LINEAR)
            keep = 0;
        else if (c->rope.kind == ROPE_YARN)
            keep = 1 - fmin(fmax(((double)i - low) / (high - low), 0), 1);
        inv_freq[i] = keep < 1 ? plain * keep + plain / (double)c->rope.factor * (1 - keep) : plain;
    }
}
