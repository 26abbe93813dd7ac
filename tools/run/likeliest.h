/* likeliest.h - the likeliest tokens of some logits. */
#ifndef TOOLS_RUN_LIKELIEST_H
#define TOOLS_RUN_LIKELIEST_H

#include <stddef.h>
#include <stdint.h>

struct likeliest {
    uint32_t id;
    float p; /* among all ids of the logits */
};

/* Find the `count` likeliest ids of logits[size], the likeliest first, of equal ones the lower id;
 * count is at most size. The probabilities are computed in double. */
void likeliest_ids(struct likeliest *out, size_t count, const float *logits, size_t size);

#endif
