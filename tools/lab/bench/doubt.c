#include "tools/lab/bench/doubt.h"

#include <stdio.h>
#include <string.h>

static const double GAIN = 1.05;  /* the least that more threads should bring */
static const double ALONE = 0.9;  /* the least that threads run if nothing else does */
static const double STEADY = 0.8; /* the least that a steady machine repeats */

void doubt_text(char out[DOUBT_TEXT], double of_limit, size_t threads, double one, double all)
{
    int used = snprintf(out, DOUBT_TEXT, "%s", of_limit > 1 ? "over 100 % of the limit" : "");
    if (threads > 1 && one > 0 && all > 0 && all < GAIN * one)
        snprintf(out + used, DOUBT_TEXT - (size_t)used, "%s%zu threads get what one gets",
                 used ? "; " : "", threads);
}

void doubt_changed(char out[DOUBT_TEXT], double before, double after)
{
    double low = before < after ? before : after, high = before < after ? after : before;
    size_t used = strlen(out);
    if (low < STEADY * high)
        snprintf(out + used, DOUBT_TEXT - used, "%sprobes differ: %.1f and %.1f GB/s",
                 used ? "; " : "", before, after);
}

void doubt_busy(char out[DOUBT_TEXT], double on_cpu)
{
    size_t used = strlen(out);
    if (on_cpu < ALONE)
        snprintf(out + used, DOUBT_TEXT - used,
                 "%sran %.0f %% of the time: processors busy elsewhere?", used ? "; " : "",
                 100 * on_cpu);
}
