/* policy_kind.h - the policies by name, and what each of them reads; policy.h computes scores. A
 * token whose score is below the threshold goes to the cloud. */
#ifndef ROUTER_POLICY_KIND_H
#define ROUTER_POLICY_KIND_H

#include <stdbool.h>
#include <stddef.h>

enum policy {
    POLICY_MLP, /* up to POLICY_MARGIN a score says how good the local model's token is */
    POLICY_COMBINED,
    POLICY_CONTEXT,
    POLICY_ENTROPY,
    POLICY_MAX_PROB,
    POLICY_MARGIN,
    POLICY_RANDOM,
    POLICY_ALWAYS,
    POLICY_NEVER,
    POLICY_POSITION
};

const char *policy_name(enum policy p);
/* Parse a name. False: there is no such policy. */
bool policy_parse(enum policy *out, const char *name);
/* True unless tokens have no score, as with always and never. */
bool policy_scores(enum policy p);
/* True when a token goes to the cloud for what its score says of it, neither by chance nor by its
 * place. */
bool policy_judges(enum policy p);
/* True when the score comes from a router: a network for mlp and combined, a table for context. */
bool policy_reads_router(enum policy p);
/* Return what router that must be, as router_kind says it. */
const char *policy_router(enum policy p);
/* True when that is a network. */
bool policy_reads_network(enum policy p);
/* True when the score comes from the logits, so the head must be read before deciding. */
bool policy_reads_logits(enum policy p);

#endif
