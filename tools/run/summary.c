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

/* Go on with times, drafts and waiting. */
static void summary_times(const struct mizzle_stats *s)
{
    fprintf(stderr, ", first after %.*f ms", s->ttft_ms < 10, s->ttft_ms);
    if (s->start_ms >= 1)
        fprintf(stderr, ", and %.0f ms before that to open the cloud", s->start_ms);
    if (s->drafted)
        fprintf(stderr, ", %zu of %zu drafted tokens accepted, %.2f per pass", s->accepted,
                s->drafted, (double)s->accepted / (double)s->passes);
    if (s->cloud)
        fprintf(stderr, ", %.1f ms of waiting per cloud token", s->cloud_ms / (double)s->cloud);
    else if (s->cloud_ms >= 1)
        fprintf(stderr, ", %.0f ms of waiting for a cloud that did not answer", s->cloud_ms);
}

void summary(const struct mizzle_stats *s, bool offline, bool verbose)
{
    double share = s->tokens ? 100 * (double)s->cloud / (double)s->tokens : 0;
    double speed = json_events_speed(s);
    fprintf(stderr, "%zu token%s, %zu from the cloud (%.*f %%)", s->tokens,
            s->tokens == 1 ? "" : "s", s->cloud, share > 0 && share < 1, share);
    if (s->fallback)
        fprintf(stderr, ", %zu fallback", s->fallback);
    fprintf(stderr, ", %.*f tokens/s", speed < 10, speed);
    if (verbose)
        summary_times(s);
    fprintf(stderr, "\n");
    if (s->failed + s->fallback || (verbose && s->calls + s->memo + s->store))
        summary_ledger(s, offline);
}
