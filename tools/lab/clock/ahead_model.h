/* ahead_model.h - when the tokens of a text should be decided: an event model of decoding ahead.
 *
 * It follows router/decode/step.c. A routed token is requested as soon as all tokens before it are
 * written and no call is in flight. While it is, the text continues after the guess, one step at a
 * time, up to the next routed token. After each step the answer is looked for, and it is awaited
 * where the text cannot continue. An answer other than the guess drops everything after it.
 *
 * With steps of t ms, a share r of routed tokens, a share a of right guesses and calls of L ms, the
 * mean over long texts is t + r L a token in step, and at least t + r (1 - a) L ahead (test). A
 * pure function. */
#ifndef TOOLS_LAB_CLOCK_AHEAD_MODEL_H
#define TOOLS_LAB_CLOCK_AHEAD_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AHEAD_MODEL_ROUTED = 1, AHEAD_MODEL_AGREES = 2 };

/* Set at[i] to the time when token i is decided, in ms after the first step, if a step takes t and
 * the call for token i takes calls[i]; marks say which tokens are routed and rightly guessed. All
 * are [n]. ahead false: each call is awaited ("in step"). */
void ahead_model_decisions(double *at, const unsigned char *marks, const double *calls, size_t n,
                           double t, bool ahead);

#endif
