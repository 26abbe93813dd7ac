/* ahead_model.h - how long a token should take: the formulas, and an event model of decoding ahead.
 *
 * t: milliseconds of an edge step; routed: share of tokens asked for; agree: share of these of
 * which the cloud says what the edge guessed; latency: milliseconds of a call; ahead: requests out
 * at once, 0: in step. Pure. */
#ifndef TOOLS_BENCH_AHEAD_MODEL_H
#define TOOLS_BENCH_AHEAD_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum { AHEAD_MODEL_ROUTED = 1, AHEAD_MODEL_AGREES = 2, AHEAD_MODEL_MOST = 64 };

/* In step t + rL; ahead, where the window is always wide enough, t + r(1-a)L. */
double ahead_model_formula(double t, double routed, double agree, double latency, size_t ahead);

/* Milliseconds a token of the text whose tokens have these marks, from the decision on the first
 * to that on the last; n >= 2, ahead <= AHEAD_MODEL_MOST. *wasted (or NULL): calls in vain.
 *
 * As router/decode.c does it: a routed token is asked for as soon as all before it is written; with
 * fewer than `ahead` calls out the text goes on behind the guess, one step at a time; after each
 * step the oldest answer is looked at, and waited for where no call may be added. Another token
 * than the guess drops all behind it. */
double ahead_model_text(const unsigned char *marks, size_t n, double t, double latency,
                        size_t ahead, size_t *wasted);

/* The same of a long text of random marks: what to expect. 0 without memory. */
double ahead_model_expected(double t, double routed, double agree, double latency, size_t ahead);

#endif
