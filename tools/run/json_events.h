/* json_events.h - the events of `mizzle run --json`, one JSON object per line on stdout. */
#ifndef TOOLS_RUN_JSON_EVENTS_H
#define TOOLS_RUN_JSON_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "router/mizzle.h"

/* The state of one answer; zero at its beginning. */
struct json_events {
    char cut[4]; /* first bytes of a character that a later token completes */
    size_t n;    /* number of these */
};

/* Print {"event":"token",...}. "text" holds the characters that this token completes; control
 * characters and those that change the writing direction are escaped. "score" is null if the policy
 * measures none. A fallback token gives the cause in "reason" and "message". False if stdout can no
 * longer be written. */
bool json_events_token(struct json_events *j, const struct mizzle_token *t);
/* Print {"event":"done",...} with the statistics, in their own names. "text" is there only if the
 * answer ends inside a character: U+FFFD, as serve has it. "offline": there was no network; "held"
 * counts the fallback tokens by reason. */
void json_events_done(const struct json_events *j, const struct mizzle_stats *s, bool offline);

/* The reasons for fallback tokens: X(member of struct mizzle_held, name in JSON, words of a
 * sentence about the tokens). */
#define JSON_EVENTS_HELD(X)                                        \
    X(no_cloud, "no-cloud", "without a cloud")                     \
    X(refused, "refused", "refused by the server")                 \
    X(unfit, "unfit", "unfit for the server")                      \
    X(private_text, "private", "with private text")                \
    X(capped, "capped", "beyond a limit")                          \
    X(breaker, "breaker", "not asked for after repeated failures") \
    X(fault, "fault", "without an answer")

/* Return tokens per second, counted from where the prompt was read; 0 if there are none. */
double json_events_speed(const struct mizzle_stats *s);

#endif
