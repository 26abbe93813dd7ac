/* json_events.h - the events of `mizzle run --json`, one object a line. */
#ifndef TOOLS_RUN_JSON_EVENTS_H
#define TOOLS_RUN_JSON_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "router/decode.h"

struct tokenizer;

/* The bytes of a character whose other bytes are in a token to come. */
struct json_events {
    const struct tokenizer *tok;
    char cut[4];
    size_t n;
};

/* {"event":"token",...}: the text is what this token completes; ASCII but for harmless characters.
 * The score is null where the policy measures none; a fallback token says why in "reason"
 * (gate_name) and "message". False when stdout can no longer be written. */
bool json_events_token(struct json_events *j, const struct decode_token *t);
/* {"event":"done",...}. start_ms: waited for the cloud before the first answer began. The ledger:
 * calls = committed (with an answer) + failed + wasted, of the recording where replayed is true,
 * for then there is no network; cost in the currency of --cloud-price; held counts the fallback
 * tokens by reason (gate_name). */
void json_events_done(const struct decode_stats *s, double start_ms, bool replayed);

/* Tokens per second after the first one. */
double json_events_speed(const struct decode_stats *s);

#endif
