/* json_events.h - the events of `mizzle run --json`, one object a line. */
#ifndef TOOLS_RUN_JSON_EVENTS_H
#define TOOLS_RUN_JSON_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "router/mizzle.h"

/* The bytes of a character whose other bytes are in a token to come. */
struct json_events {
    char cut[4];
    size_t n;
};

/* {"event":"token",...}: the text is what this token completes; ASCII but for harmless characters.
 * The score is null where the policy measures none; a fallback token says why in "reason" and
 * "message". False when stdout can no longer be written. */
bool json_events_token(struct json_events *j, const struct mizzle_token *t);
/* {"event":"done",...}. The ledger: calls = committed (with an answer) + failed + wasted, of the
 * recording where replayed is true, for then there is no network; cost in the currency of
 * --cloud-price; held counts the fallback tokens by reason. */
void json_events_done(const struct mizzle_stats *s, bool replayed);

/* Of the reasons for fallback tokens number i: its name, and how often it was one in *count; NULL
 * behind the last one. */
const char *json_events_reason(const struct mizzle_stats *s, size_t i, size_t *count);

/* Tokens per second after the first one. */
double json_events_speed(const struct mizzle_stats *s);

#endif
