/* gate.h - decides, in the order of the text, whether a routed token may be requested, and if not,
 * why.
 *
 * The decision depends only on the tokens decided so far, not on the clock or on dropped calls. So
 * `ahead` never changes where calls stop. (A cancelled text's call in flight counts for later
 * texts.) If the gate holds a token back, the local model's token is used, marked as fallback. */
#ifndef ROUTER_GATE_H
#define ROUTER_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/base.h"
#include "net/http/traffic.h"
#include "router/private.h"

enum gate_reason {
    GATE_OPEN,
    GATE_NO_CLOUD, /* no cloud is set up */
    GATE_REFUSED,  /* the server refused for good: off for the rest of the run */
    GATE_UNFIT,    /* the server refuses this text: off for the rest of the text */
    GATE_PRIVATE,
    GATE_CAPPED,
    GATE_BREAKER,
    GATE_FAULT, /* the call failed */
    GATE_REASONS
};

/* Return "open", "no-cloud", "refused", "unfit", "private", "capped", "breaker" or "fault". */
const char *gate_name(enum gate_reason r);

enum { BREAKER_FAULTS = 3, BREAKER_PAUSE = 4, BREAKER_MAX_PAUSE = 64 };

/* A circuit breaker: stops asking a server that does not answer. It counts tokens, not seconds, so
 * a run can be repeated. While it is closed, every routed token may be requested. After 3 faults in
 * a row it opens: the next 4 routed tokens are not requested, then one is (a probe). A failed probe
 * doubles the pause, up to 64 tokens; an answer closes the breaker. All zero is closed. */
struct breaker {
    size_t faults; /* faults in a row while closed */
    size_t pause;  /* length of the current pause in tokens; 0: closed */
    size_t held;   /* tokens of the pause still to come */
};

/* Of one process, over all its texts. Zero at first, except quota and patterns. */
struct gate {
    struct quota *quota;                   /* --max-cloud-tokens, --max-cloud-input; or NULL */
    const struct private_filter *patterns; /* or NULL; borrowed, as quota */
    bool probing;                          /* a call in flight is the breaker's probe */
    size_t out;                            /* calls in flight */
    struct breaker breaker;
    bool refused; /* off for all texts */
    bool lost;    /* refused, never reached, or the breaker has opened; until a call is answered */
    struct err fault; /* the latest fault */
};

struct gate_text { /* of one text; several may be written at the same time */
    /* As cloud_required, cloud_limit, max_routed and patterns in decode_options. */
    bool required; /* the breaker does not hold its calls */
    uint64_t limit;
    float max_routed;
    const struct private_filter *patterns;
    bool unfit; /* off for this text, for the reason in why */
    struct err why;
    uint64_t tokens; /* requested by its calls */
    bool probing;
    struct private_text matches; /* what the gate's patterns found in it */
    struct private_text own;     /* and those of the text */
};

/* Decide whether the text's own patterns or limits forbid a cloud token after ids[n]. The last
 * `pos` ids are the answer, `cloud` of them the cloud's. Decide this before looking for kept
 * answers, which depend on other texts' calls. Unless GATE_OPEN, why is set. */
enum gate_reason gate_own(struct gate_text *t, const uint32_t *ids, size_t n, size_t pos,
                          size_t cloud, struct err *why);
/* Decide on a call for *tokens tokens after ids[n]. GATE_OPEN: *tokens is reduced to the limits, at
 * least 1, and is charged with the n ids; until gate_done no other text probes. Otherwise why is
 * set, and GATE_BREAKER has counted the token. */
enum gate_reason gate_decide(struct gate *g, struct gate_text *t, const uint32_t *ids, size_t n,
                             size_t *tokens, struct err *why);
/* Record the result of a call that gate_decide allowed. `sent`: tokens requested, repeated requests
 * included. GATE_OPEN: it was answered; GATE_FAULT, GATE_REFUSED, GATE_UNFIT: it failed for this
 * reason. */
void gate_done(struct gate *g, struct gate_text *t, enum gate_reason r, uint64_t sent,
               const struct err *why);
/* End the text, and drop its call in flight. A sent call stays charged. */
void gate_end(struct gate *g, struct gate_text *t);
/* Allow calls again after GATE_REFUSED. */
void gate_forgive(struct gate *g);

#endif
