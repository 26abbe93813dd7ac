/* policy_kind.h - the policies by name, and what each of them reads; policy.h computes scores. A
 * token whose score is below the threshold goes to the cloud. */
#ifndef ROUTER_POLICY_KIND_H
#define ROUTER_POLICY_KIND_H

#include <stdbool.h>
#include <stddef.h>

enum policy {
    POLICY_MLP, /* up to POLICY_MARGIN each token is judged by a score of its own */
    POLICY_COMBINED,
    POLICY_CONTEXT,
    POLICY_ENTROPY,
    POLICY_MAX_PROB,
    POLICY_MARGIN,
    POLICY_RANDOM,
    POLICY_ALWAYS,
    POLICY_NEVER,
    POLICY_POSITION,
    POLICY_QUERY,
    POLICY_TAKEOVER,
    POLICY_STEP,
    POLICY_VERIFY,
    POLICY_CALL
};

const char *policy_name(enum policy p);
/* Parse a name. False: there is no such policy. */
bool policy_parse(enum policy *out, const char *name);
/* True unless tokens have no score, as with always, never, verify and call. */
bool policy_scores(enum policy p);
/* True when a token goes to the cloud for what its own score says of it, and neither by chance nor
 * with others. */
bool policy_judges(enum policy p);
/* True when the score comes from a router: a network for mlp, combined, query and takeover,
 * a table for context. */
bool policy_reads_router(enum policy p);
/* Return what router that must be, as router_kind says it. */
const char *policy_router(enum policy p);
/* True when that is a network. */
bool policy_reads_network(enum policy p);
/* True when the threshold in a router's file is for these scores. */
bool policy_has_threshold(enum policy p);
/* True when the score comes from the logits, so the head must be read before deciding. */
bool policy_reads_logits(enum policy p);

#endif
