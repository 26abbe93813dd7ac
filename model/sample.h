/* sample.h - pick one token from logits. */
#ifndef MODEL_SAMPLE_H
#define MODEL_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct kernels;
struct sampler;

struct sample_bias {
    uint32_t id;
    float add; /* finite */
};

struct sample_params {
    float temp;           /* 0: greedy */
    size_t top_k;         /* 0: no limit */
    float top_p;          /* 1: off; 0: the likeliest id alone */
    float min_p;          /* 0: off */
    float repeat_penalty; /* 1: off; as in Hugging Face, logits > 0 of tokens in the prefix are
                             divided by it, others multiplied */
    uint64_t seed;
    const struct sample_bias *bias; /* [nbias]: before all else, this is added to these logits;
                                       borrowed; ids that are not in use are left out */
    size_t nbias;
};

/* Create a sampler for `size` ids in use; logits beyond them (padding rows) are never read. The
 * parameters are checked (ERR_ARG); ERR_NOMEM. k is borrowed. */
int sampler_open(struct sampler **out, const struct sample_params *params, size_t size,
                 const struct kernels *k, struct err *err);
void sampler_close(struct sampler *s); /* NULL is fine */
/* Draw with another seed from now on. */
void sampler_seed(struct sampler *s, uint64_t seed);
/* Refuse parameters that sampler_open refuses. ERR_ARG. */
int sample_check(const struct sample_params *params, struct err *err);
/* Pick with these parameters, which have been checked, from now on. */
void sampler_set(struct sampler *s, const struct sample_params *params);

/* Return the token that follows prefix[n]. The draw depends only on (seed, n) and the logits. The
 * steps are in the order of llama.cpp's default chain: repetition penalty, top-k, top-p, min-p,
 * temperature, so the number of candidates that remain does not depend on the temperature. Of equal
 * logits, the lower id comes first. */
uint32_t sampler_pick(struct sampler *s, const float *logits, const uint32_t *prefix, size_t n);

#endif
