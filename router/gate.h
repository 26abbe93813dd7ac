/* gate.h - decides in commit order whether a routed token may be requested, and if not, why not.
 *
 * The decision depends only on the tokens decided so far, not on the clock or on calls that were
 * made ahead and dropped. So decoding ahead stops asking at the same token as decoding in step.
 * (The call in flight of a text that was given up counts for the texts after it.) A token that the
 * gate holds back is the local model's, marked as fallback. */
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
    GATE_FAULT, /* requested, without an answer */
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

/* Of one process, over all its texts; zero at first except what the calls of the texts keep to
 * together. */
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

struct gate_text { /* of one text, several of which may be written at the same time */
    /* As cloud_required, cloud_limit, max_routed and patterns in decode_options. */
    bool required; /* the breaker does not hold its calls */
    uint64_t limit;
    float max_routed;
    const struct private_filter *patterns;
    bool unfit; /* off for this text, for the reason in why */
    struct err why;
    uint64_t tokens; /* that its calls have asked for */
    bool probing;
    struct private_text matches; /* what the gate's patterns found in it */
    struct private_text own;     /* and those of the text */
};

/* Decide whether the text's own patterns or limits keep the cloud's token out, after ids[n] of
 * which the last `pos` are the answer, `cloud` of them the cloud's. That comes before what is known
 * without a call, which depends on what other texts have asked. Unless GATE_OPEN, why is set. */
enum gate_reason gate_own(struct gate_text *t, const uint32_t *ids, size_t n, size_t pos,
                          size_t cloud, struct err *why);
/* Decide on a call for *tokens tokens after ids[n]. GATE_OPEN: *tokens are what the limits allow,
 * at least 1, and are charged with the n ids; until gate_done nobody else probes. Otherwise why is
 * set, and GATE_BREAKER has counted the token. */
enum gate_reason gate_decide(struct gate *g, struct gate_text *t, const uint32_t *ids, size_t n,
                             size_t *tokens, struct err *why);
/* Note what became of a token that gate_decide let through; `sent` tokens were asked for, each time
 * that its request went out. GATE_OPEN: it was answered; GATE_FAULT, GATE_REFUSED, GATE_UNFIT: it
 * failed for this reason. */
void gate_done(struct gate *g, struct gate_text *t, enum gate_reason r, uint64_t sent,
               const struct err *why);
/* End the text, and give up its call in flight. Where it was sent it stays charged. */
void gate_end(struct gate *g, struct gate_text *t);
/* Let a server that refused for good be asked again. */
void gate_forgive(struct gate *g);

#endif
