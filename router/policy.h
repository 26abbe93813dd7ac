/* policy.h - computes the scores of the policies (policy_kind.h), from 0 to 1. In policy entropy V
 * is the number of ids in use. random draws u(seed, position): a threshold of 0.07 routes 7 %. */
#ifndef ROUTER_POLICY_H
#define ROUTER_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/policy_kind.h"

struct kernels;
struct tokenizer;

/* The local model's confidence in its next token. */
struct policy_confidence {
    size_t best;    /* the likeliest id */
    float p1, p2;   /* probabilities of the two likeliest; of one id alone, p2 is 0 */
    float margin;   /* p1 - p2 */
    float gap;      /* difference of their logits; of one id alone, 0 */
    double entropy; /* nats */
};
/* Compute it from logits[size], size >= 1; all but best is 0 if the largest is not finite. */
void policy_confidence(struct policy_confidence *out, const float *logits, size_t size,
                       const struct kernels *k);
/* Return ln(sum of e^logits[i]), i < size, size >= 1, for displayed log-probabilities: the same
 * bits on every machine, within 1e-6 of double. If the largest is not finite, return it. */
double policy_logsum(const float *logits, size_t size, const struct kernels *k);
/* Return the score of a logits policy over logits[size], size >= 1; 0 when the largest is not
 * finite. */
float policy_score_logits(enum policy p, const float *logits, size_t size, const struct kernels *k);
struct policy_text {     /* the inputs of an ids policy */
    const uint32_t *ids; /* [n] */
    size_t n, prompt;    /* prompt: ids before the answer */
    uint64_t seed;
    const char *place;
    const struct tokenizer *tok;
    const struct router *router;
};
/* Return the score of an ids policy for the token after the text. */
float policy_score_ids(enum policy p, const struct policy_text *t);
/* True when a token with this score goes to the cloud: a score below the threshold, and of scores
 * equal to the threshold the share `tie`. */
bool policy_routes(float score, float threshold, float tie, uint64_t seed, size_t position);
/* Return the score of the random policy at this position of the text. */
float policy_score_random(uint64_t seed, size_t position);
/* Set range to the first and last token that a place names by numbers, "N" or "N-M", 0 for the
 * first of an answer. False: place is a text. */
bool policy_place(size_t range[2], const char *place);
/* Return the score of policy position for the token after ids[n] of the answer. place: numbers of
 * tokens (policy_place), or else a text: 0 if the text of the ids ends with it. */
float policy_score_position(const char *place, const struct tokenizer *tok, const uint32_t *ids,
                            size_t n);
/* Return a number from 0 to 1 that breaks the tie of a token whose score is the threshold. */
float policy_draw_tie(uint64_t seed, size_t position);

#endif
