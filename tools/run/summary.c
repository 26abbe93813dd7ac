#include "tools/run/summary.h"

#include <inttypes.h>
#include <stdio.h>

#include "router/mizzle.h"
#include "tools/run/json_events.h"

/* Print "COUNT WHAT" after *sep, unless count is 0; what is next follows a comma. */
static void summary_part(const char **sep, uint64_t count, const char *what)
{
    if (!count)
        return;
    fprintf(stderr, "%s%" PRIu64 " %s", *sep, count, what);
    *sep = ", ";
}

/* Print the second line of the summary: the calls and what became of them. */
static void summary_ledger(const struct mizzle_stats *s, bool offline)
{
    const char *sep = ": ";
    fprintf(stderr, "%s: %" PRIu64 " call%s", offline ? "offline" : "cloud", s->calls,
            s->calls == 1 ? "" : "s");
    summary_part(&sep, s->committed, "answered");
    summary_part(&sep, s->failed, "failed");
    sep = "; ";
    summary_part(&sep, s->retries, s->retries == 1 ? "retry" : "retries");
    if (s->bytes_up + s->bytes_down && !offline) {
        fprintf(stderr, "%s%.1f KB up, %.1f KB down", sep, (double)s->bytes_up / 1e3,
                (double)s->bytes_down / 1e3);
        sep = ", ";
    }
    sep = "; known without a call: ";
    summary_part(&sep, s->memo, "memo");
    summary_part(&sep, s->store, "store");
    sep = "; fallback: ";
#define X(member, name, words) summary_part(&sep, s->held.member, words);
    JSON_EVENTS_HELD(X)
#undef X
    fprintf(stderr, "\n");
}

void summary(const struct mizzle_stats *s, bool offline)
{
    double share = s->tokens ? 100 * (double)s->cloud / (double)s->tokens : 0;
    double speed = json_events_speed(s);
    fprintf(stderr, "%zu token%s, %zu from the cloud (%.*f %%)", s->tokens,
            s->tokens == 1 ? "" : "s", s->cloud, share > 0 && share < 1, share);
    if (s->fallback)
        fprintf(stderr, ", %zu fallback", s->fallback);
    fprintf(stderr, ", %.*f tokens/s", speed < 10, speed);
    fprintf(stderr, "\n");
    if (s->failed + s->fallback)
        summary_ledger(s, offline);
}
