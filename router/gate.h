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
#include "router/breaker.h"
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
    bool unfit;    /* off for this text, for the reason in why */
    struct err why;
    bool required;   /* cloud_required of decode_options: the breaker does not hold its calls */
    uint64_t limit;  /* as cloud_limit in decode_options */
    uint64_t tokens; /* that its calls have asked for */
    bool probing;
    struct private_text matches; /* what the gate's patterns found in it */
    struct private_text own;     /* and those of the text */
};

/* Give up the call in flight, if there is one. Where it was sent it stays charged. */
void gate_drop(struct gate *g, struct gate_text *t);
/* End the text. */
void gate_end(struct gate_text *t);
/* True when ids[n], a prefix of this text, must not be sent (private_holds). */
bool gate_holds(const struct gate *g, struct gate_text *t, const uint32_t *ids, size_t n);
/* Let a server that refused for good be asked again. */
void gate_forgive(struct gate *g);
/* Decide on a call for *tokens tokens after a prefix of n ids; held is gate_holds of that.
 * GATE_OPEN: *tokens are what the limits allow, at least 1, and are charged with the n ids; until
 * gate_done nobody else probes. Otherwise why is set. */
enum gate_reason gate_decide(struct gate *g, struct gate_text *t, size_t n, bool held,
                             size_t *tokens, struct err *why);
/* Note that the token was not requested, for this reason of gate_decide. */
void gate_held(struct gate *g, enum gate_reason r);
/* Note what became of a token that gate_decide let through; `sent` tokens were asked for, each time
 * that its request went out. GATE_OPEN: it was answered; GATE_FAULT, GATE_REFUSED, GATE_UNFIT: it
 * failed for this reason. */
void gate_done(struct gate *g, struct gate_text *t, enum gate_reason r, uint64_t sent,
               const struct err *why);

#endif
