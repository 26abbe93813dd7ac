/* policy.h - who writes the next token: a score in 0..1, and "score < threshold goes to the cloud".
 *
 * mlp: the router's sigmoid. max-prob: p1. margin: p1 - p2. entropy: 1 - H / ln V. random: u(seed,
 * position), so that a threshold of 0.07 routes 7 %. always, never: as they say. V: ids in use. */
#ifndef ROUTER_POLICY_H
#define ROUTER_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernels;

enum policy {
    POLICY_MLP,
    POLICY_ENTROPY,
    POLICY_MAX_PROB,
    POLICY_MARGIN,
    POLICY_RANDOM,
    POLICY_ALWAYS,
    POLICY_NEVER
};

const char *policy_name(enum policy p);
bool policy_parse(enum policy *out, const char *name);
/* True where the score comes from the logits, so the head must be read before deciding. */
bool policy_reads_logits(enum policy p);
/* Score of a logits policy over logits[size], size >= 1; 0 where the largest is not finite. */
float policy_score_logits(enum policy p, const float *logits, size_t size, const struct kernels *k);
/* Score of the random policy at this position of the text. */
float policy_score_random(uint64_t seed, size_t position);

#endif
