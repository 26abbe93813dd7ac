/* policy_kind.h - the policies: names, inputs and needs; policy.h computes scores. A token whose
 * score is below the threshold goes to the cloud. To add a policy, add a row here, and score_NAME
 * to policy.c if it reads IDS or LOGITS. */
#ifndef ROUTER_POLICY_KIND_H
#define ROUTER_POLICY_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "router/router.h"

struct err;

/* X(POLICY, name, reads, needs, help). reads: NETWORK, a router's inputs; LOGITS, the local
 * model's, so the head runs before each decision; IDS, only the text; NOTHING, without score.
 * needs: the kind of router. Scores are 0 to 1; a high score of LOGITS or of a router means that
 * the local model's token is probably right. The order of rows means nothing. */
#define POLICIES(X)                                                               \
    X(MLP, "mlp", NETWORK, NETWORK, "a router")                                   \
    X(COMBINED, "combined", NETWORK, PLAIN, "a router that sees no hidden state") \
    X(CONTEXT, "context", IDS, TABLE, "a table over the last two ids")            \
    X(ENTROPY, "entropy", LOGITS, NONE, "1 - H / ln V of the small model")        \
    X(MAX_PROB, "max-prob", LOGITS, NONE, "the probability of its token")         \
    X(MARGIN, "margin", LOGITS, NONE, "that less the second one's")               \
    X(RANDOM, "random", IDS, NONE, "chance")                                      \
    X(ALWAYS, "always", NOTHING, NONE, "every token is the cloud's")              \
    X(NEVER, "never", NOTHING, NONE, "no token is")                               \
    X(POSITION, "position", IDS, NONE,                                            \
      "with position=N or N-M these tokens are, with position=TEXT each after TEXT")

#define X(policy, name, reads, needs, help) POLICY_##policy,
enum policy { POLICIES(X) POLICY_COUNT };
#undef X

/* "mlp, combined, ..., position, " and "mlp: a router; ...; " */
#define POLICY_NAME(policy, name, reads, needs, help) name ", "
#define POLICY_HELP(policy, name, reads, needs, help) name ": " help "; "
#define POLICY_NAMES                                  POLICIES(POLICY_NAME)
#define POLICY_HELPS                                  POLICIES(POLICY_HELP)

enum policy_reads { READS_NOTHING, READS_IDS, READS_LOGITS, READS_NETWORK };

const char *policy_name(enum policy p);
enum policy_reads policy_reads(enum policy p);
/* Parse a name. False: there is no such policy. */
bool policy_parse(enum policy *out, const char *name);
/* True unless tokens have no score, as with always and never. */
bool policy_scores(enum policy p);
/* True if the score judges the token: false for chance, place, always and never. */
bool policy_judges(enum policy p);
/* Return the kind of router that computes the score, else ROUTER_NONE. */
enum router_kind policy_router(enum policy p);
/* True when the score comes from a network, or from any router. */
bool policy_reads_network(enum policy p);
bool policy_reads_router(enum policy p);
/* True when the score comes from the logits, so the head must be read before deciding. */
bool policy_reads_logits(enum policy p);
/* ERR_ARG if the policy reads a router and r, which may be NULL, is not of its kind. */
int policy_check(enum policy p, const struct router *r, struct err *err);

#endif
