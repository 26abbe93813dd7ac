/* gate.h - may a routed token be asked for, and if not, why not: in commit order.
 *
 * Everything here depends on the tokens decided so far and on nothing else: not on the clock, not
 * on calls that were made ahead and dropped. So decoding ahead stops asking at the same token as
 * decoding in step. A token that the gate holds back is the edge's, marked fallback. */
#ifndef ROUTER_GATE_H
#define ROUTER_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/base.h"
#include "router/breaker.h"
#include "router/caps.h"

struct private_filter;

enum gate_reason {
    GATE_OPEN,
    GATE_NO_CLOUD, /* there never was one */
    GATE_REFUSED,  /* the server said no for good: off for the rest of the run */
    GATE_UNFIT,    /* it will not have this text: off for the rest of the text */
    GATE_PRIVATE,
    GATE_CAPPED,
    GATE_BREAKER,
    GATE_FAULT, /* asked for, and no answer */
    GATE_REASONS
};

/* "open", "no-cloud", "refused", "unfit", "private", "capped", "breaker", "fault" */
const char *gate_name(enum gate_reason r);

struct gate {          /* of one process, over all its texts; zero at first but for its limits */
    struct caps *caps; /* or NULL; borrowed */
    struct private_filter *spans; /* or NULL; borrowed */
    uint64_t max_wasted; /* calls made ahead in vain; then no more than one is out. 0: no limit */
    uint64_t wasted;
    struct breaker breaker;
    bool refused, unfit; /* all of them; the present text */
    struct err fault;    /* the latest one */
};

/* A new text begins with prompt[n]. */
void gate_text(struct gate *g, const uint32_t *prompt, size_t n);
/* The decision on a token that may be asked for in two ways: ways[0], or where a limit has less
 * left than that costs, ways[1]; *way is the one that is allowed. held: private_holds of the
 * prefix. why is set unless GATE_OPEN. */
enum gate_reason gate_decide(const struct gate *g, const struct caps_call ways[2], bool held,
                             size_t *way, struct err *why);
/* Tell the gate what became of the token. ids[call->n] is the prefix; GATE_OPEN: asked for, and
 * answered; GATE_FAULT, GATE_REFUSED, GATE_UNFIT: asked for, and why it failed. */
void gate_done(struct gate *g, enum gate_reason r, const uint32_t *ids,
               const struct caps_call *call, const struct err *why);

/* What the gate will say to a token that others stand before, undecided: a guess, which takes these
 * calls to be answered, but a breaker's probe to fail. It spares calls; the decision is
 * gate_decide's. */
struct gate_ahead {
    struct caps_count count;
    size_t routed;
};
void gate_ahead_begin(struct gate_ahead *a, const struct gate *g);
/* A routed token that is undecided, and its call, or NULL where none is out. */
void gate_ahead_add(struct gate_ahead *a, const struct gate *g, const struct caps_call *call);
/* Will it be asked for, and in which way? */
bool gate_expects(const struct gate *g, const struct caps_call ways[2], bool held,
                  const struct gate_ahead *a, size_t *way);

/* True where body sizes matter to the gate. */
bool gate_counts_bytes(const struct gate *g);

#endif
