/* price.h - prices of a cloud, exact in integers: pico (10^-12 of any currency) per token, which is
 * millionths of the currency per million tokens. */
#ifndef TOOLS_LAB_EVAL_PRICE_H
#define TOOLS_LAB_EVAL_PRICE_H

#include <stdbool.h>
#include <stdint.h>

struct price {
    uint64_t up, cached, down; /* ids that go up; those of them in the prefix cache; tokens */
};

/* Parse "UP,CACHED,DOWN", prices per million tokens; false if it is anything else. */
bool price_parse(struct price *out, const char *text);

#endif
