/* ahead_model.h - how long a token should take: formulas, and an event model of decoding ahead.
 *
 * t: milliseconds of an edge step; routed: share of tokens requested from the cloud; agree: share
 * of these for which the cloud returns what the edge guessed; latency: milliseconds of a call;
 * ahead: requests in flight at once, 0 to wait for each call ("in step"). Pure functions. */
#ifndef TOOLS_LAB_CLOCK_AHEAD_MODEL_H
#define TOOLS_LAB_CLOCK_AHEAD_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum { AHEAD_MODEL_ROUTED = 1, AHEAD_MODEL_AGREES = 2, AHEAD_MODEL_MOST = 64 };

/* Return t + rL in step; ahead, if the window is never full, t + r(1-a)L. */
double ahead_model_formula(double t, double routed, double agree, double latency, size_t ahead);

/* Return milliseconds per token of the text whose tokens have these marks, from the decision on the
 * first token to that on the last; n >= 2, ahead <= AHEAD_MODEL_MOST. *wasted, unless NULL, becomes
 * the number of wasted calls.
 *
 * The model follows router/decode/decode.c. A routed token is requested as soon as all tokens
 * before it are written. With fewer than `ahead` requests in flight, the text continues after the
 * guess, one step at a time. After each step the oldest answer is checked, and awaited if no
 * request may be added. An answer other than the guess drops everything after it. */
double ahead_model_text(const unsigned char *marks, size_t n, double t, double latency,
                        size_t ahead, size_t *wasted);

/* Set at[i] to the time when token i is decided, in ms after the first step, if the call for token
 * i takes calls[i]; both [n]. Return the number of wasted calls. */
size_t ahead_model_decisions(double *at, const unsigned char *marks, const double *calls, size_t n,
                             double t, size_t ahead);

#endif
