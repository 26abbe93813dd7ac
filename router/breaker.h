/* breaker.h - stops asking a server that does not answer. Counts tokens, not seconds: what it does
 * is a function of the answers alone, taken in commit order, so a run can be repeated.
 *
 * Closed: every routed token may be asked for. After 3 faults in a row it opens: the next 4 routed
 * tokens are not asked for, then one is (a probe). A probe that fails doubles the pause, up to 64
 * tokens; an answer closes the breaker. Pure; plain data, copied freely (a tentative path keeps its
 * own copy). */
#ifndef ROUTER_BREAKER_H
#define ROUTER_BREAKER_H

#include <stdbool.h>
#include <stddef.h>

enum { BREAKER_FAULTS = 3, BREAKER_PAUSE = 4, BREAKER_MAX_PAUSE = 64 };

struct breaker {   /* all zero: closed */
    size_t faults; /* in a row, while closed */
    size_t pause;  /* tokens of the present pause; 0: closed */
    size_t held;   /* of these, still to be held back */
};

/* May the next routed token be asked for? Changes nothing. */
bool breaker_allows(const struct breaker *b);
/* The routed token was the edge's because the breaker did not allow a call. */
void breaker_held(struct breaker *b);
/* The routed token was asked for, and answered or not. */
void breaker_result(struct breaker *b, bool answered);

#endif
