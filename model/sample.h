/* sample.h - pick one token from logits. */
#ifndef MODEL_SAMPLE_H
#define MODEL_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct kernels;
struct sampler;

struct sample_params {
    float temp;           /* 0: greedy */
    size_t top_k;         /* 0: off */
    float top_p;          /* 1: off */
    float min_p;          /* 0: off */
    float repeat_penalty; /* 1: off; Hugging Face's: > 0 divides, < 0 multiplies, over all tokens of
                             the prefix */
    uint64_t seed;
};

/* size: ids in use; logits beyond are never looked at (padding rows). Params are checked (ERR_ARG).
 */
int sampler_open(struct sampler **out, const struct sample_params *params, size_t size,
                 const struct kernels *k, struct err *err);
void sampler_close(struct sampler *s);
/* Draw with another seed from now on. */
void sampler_seed(struct sampler *s, uint64_t seed);

/* The token after prefix[n]. The draw depends on (seed, n) and the logits alone. Order of the
 * steps is that of llama.cpp's default chain: repetition penalty, top-k, top-p, min-p, temperature,
 * so that how many candidates stay does not depend on the temperature. Equal logits: the lower id
 * first. */
uint32_t sampler_pick(struct sampler *s, const float *logits, const uint32_t *prefix, size_t n);

#endif
