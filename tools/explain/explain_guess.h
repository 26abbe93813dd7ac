/* explain_guess.h - the likeliest tokens of some logits. */
#ifndef TOOLS_EXPLAIN_EXPLAIN_GUESS_H
#define TOOLS_EXPLAIN_EXPLAIN_GUESS_H

#include <stddef.h>
#include <stdint.h>

struct explain_guess {
    uint32_t id;
    float p; /* among all ids of the logits */
};

/* Find the `count` likeliest ids of logits[size], the likeliest first, of equal ones the lower id;
 * count is at most size. The probabilities are computed in double. */
void explain_guesses(struct explain_guess *out, size_t count, const float *logits, size_t size);

#endif
