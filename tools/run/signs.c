#include "tools/run/signs.h"

#include <stdio.h>

#include "router/binomial.h"

enum { MIN_COMPARED = 10, MIN_TOKENS = 50, SLOW_MS = 100 }; /* a fast reader needs 100 ms a token */
#define FEW_CLOUD  0.07 /* of the tokens: the paper's systems need fewer */
#define MOST_CLOUD 0.3

void signs_token(struct signs *s, bool cloud, bool has_edge, bool agrees)
{
    s->tokens++;
    s->cloud += cloud;
    s->compared += cloud && has_edge;
    s->confirmed += cloud && has_edge && agrees;
}

/* True when a share is above the limit, beyond what chance explains. */
static bool signs_above(size_t hits, size_t n, double limit)
{
    double low, high;
    binomial_interval(&low, &high, hits, n, 0.95);
    return low > limit;
}

bool signs_tell(char out[SIGNS_LINE], const struct signs *s)
{
    double n = s->tokens ? (double)s->tokens : 1, waited = s->ms > 0 ? s->waited_ms / s->ms : 0;
    if (s->compared >= MIN_COMPARED && signs_above(s->confirmed, s->compared, 0.5) &&
        signs_above(s->cloud, s->tokens, FEW_CLOUD))
        snprintf(
            out, SIGNS_LINE,
            "threshold too high: the small model had guessed %zu of %zu tokens of the cloud; a "
            "lower one would save most of their calls",
            s->confirmed, s->compared);
    else if (s->tokens >= MIN_TOKENS && signs_above(s->cloud, s->tokens, MOST_CLOUD))
        snprintf(out, SIGNS_LINE,
                 "small model too weak: %.0f %% of the tokens came from the cloud; a larger one, "
                 "with a router of its own, would ask for fewer",
                 100 * (double)s->cloud / n);
    else if (s->cloud && s->ms / n > SLOW_MS && waited > 0.5)
        snprintf(out, SIGNS_LINE,
                 "cloud slow: %.0f %% of the time went by waiting for it, %.0f ms for each of its "
                 "tokens",
                 100 * waited, s->waited_ms / (double)s->cloud);
    else
        return false;
    return true;
}
