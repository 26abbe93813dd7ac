/* breaker.h - a circuit breaker: stops asking a server that does not answer.
 *
 * It counts tokens, not seconds: its state depends only on the answers in commit order, so a run
 * can be repeated. While it is closed, every routed token may be requested. After 3 faults in a row
 * it opens: the next 4 routed tokens are not requested, then one is (a probe). A failed probe
 * doubles the pause, up to 64 tokens; an answer closes the breaker. Plain data without pointers,
 * which may be copied. */
#ifndef ROUTER_BREAKER_H
#define ROUTER_BREAKER_H

#include <stdbool.h>
#include <stddef.h>

enum { BREAKER_FAULTS = 3, BREAKER_PAUSE = 4, BREAKER_MAX_PAUSE = 64 };

struct breaker {   /* all zero is closed */
    size_t faults; /* faults in a row while closed */
    size_t pause;  /* length of the current pause in tokens; 0: closed */
    size_t held;   /* tokens of the pause still to come */
};

/* True when the next routed token may be requested. */
bool breaker_allows(const struct breaker *b);
/* Note that a routed token was not requested because of the breaker. */
void breaker_held(struct breaker *b);
/* True when a token that is requested now is a probe. */
bool breaker_probes(const struct breaker *b);
/* Note whether a requested token was answered. probe: breaker_probes when it was requested. */
void breaker_result(struct breaker *b, bool probe, bool answered);

#endif
