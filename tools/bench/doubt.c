#include "tools/bench/doubt.h"

#include <stdio.h>

static const double GAIN = 1.05; /* the least that more threads should bring */

void doubt_text(char out[DOUBT_TEXT], double of_limit, size_t threads, double one, double all)
{
    int used = snprintf(out, DOUBT_TEXT, "%s", of_limit > 1 ? "over 100 % of the limit" : "");
    if (threads > 1 && one > 0 && all > 0 && all < GAIN * one)
        snprintf(out + used, DOUBT_TEXT - (size_t)used, "%s%zu threads get what one gets",
                 used ? "; " : "", threads);
}
