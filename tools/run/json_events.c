#include "tools/run/json_events.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/buf.h"
#include "kernels/sys/text.h"
#include "net/http/traffic.h"
#include "router/decode/decode.h"

/* Print text[n] as the inside of a JSON string; invalid bytes become U+FFFD. */
static void json_events_put_text(const char *text, size_t n)
{
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t c;
        bool ok;
        len = text_decode(&c, text + i, n - i, &ok);
        if (c == '"' || c == '\\')
            printf("\\%c", (int)c);
        else if (c == '\n' || c == '\t')
            fputs(c == '\n' ? "\\n" : "\\t", stdout);
        else if (!text_harmless(c))
            printf("\\u%04x", (unsigned)c);
        else
            fwrite(ok ? text + i : "\xef\xbf\xbd", 1, ok ? len : 3, stdout);
    }
}

/* Print the characters that a token completes, and keep the beginning of one that it does not. */
static bool json_events_put_token(struct json_events *j, const char *bytes, size_t n)
{
    struct buf text = { 0 };
    bool fine = buf_add(&text, j->cut, j->n) && buf_add(&text, bytes, n);
    size_t whole = fine ? text_complete(text.p, text.n) : 0;
    json_events_put_text(text.p, whole);
    for (j->n = 0; whole + j->n < text.n; j->n++)
        j->cut[j->n] = text.p[whole + j->n];
    buf_free(&text);
    return fine;
}

bool json_events_token(struct json_events *j, const struct mizzle_token *t)
{
    printf("{\"event\":\"token\",\"pos\":%zu,\"id\":%" PRIu32 ",\"text\":\"", t->pos, t->id);
    bool fine = json_events_put_token(j, t->piece, t->piece_size);
    printf("\",\"source\":\"%s\",\"score\":", source_name((enum source)t->source));
    if (isnan(t->score)) /* JSON has no NaN */
        fputs("null", stdout);
    else
        printf("%.9g", t->score);
    fputs(",\"edge_id\":", stdout);
    if (t->has_edge)
        printf("%" PRIu32, t->edge_id);
    else
        fputs("null", stdout);
    if (t->fault) {
        printf(",\"reason\":\"%s\",\"message\":\"", t->reason);
        json_events_put_text(t->fault, strlen(t->fault));
        fputs("\"", stdout);
    }
    printf(",\"ms\":%.3f}\n", t->ms);
    return fflush(stdout) == 0 && fine;
}

double json_events_speed(const struct mizzle_stats *s)
{
    double ms = s->total_ms - s->prompt_ms;
    return s->tokens && ms > 0 ? 1000 * (double)s->tokens / ms : 0;
}

void json_events_done(const struct json_events *j, const struct mizzle_stats *s, bool offline)
{
    printf("{\"event\":\"done\",%s\"offline\":%s,", j->n ? "\"text\":\"\xef\xbf\xbd\"," : "",
           offline ? "true" : "false");
#define X(name) printf("\"%s\":%" PRIu64 ",", #name, (uint64_t)s->name);
    FIGURES_COUNTS(X)
    TRAFFIC_COUNTS(X)
#undef X
#define X(name) printf("\"%s\":%.3f,", #name, s->name);
    FIGURES_TIMES(X)
    X(start_ms)
#undef X
    printf("\"tok_s\":%.3f,\"held\":{", json_events_speed(s));
    const char *comma = "";
#define X(member, name, words)                               \
    if (s->held.member) {                                    \
        printf("%s\"%s\":%zu", comma, name, s->held.member); \
        comma = ",";                                         \
    }
    JSON_EVENTS_HELD(X)
#undef X
    printf("},\"reason\":\"%s\"}\n", s->finish);
    fflush(stdout);
}
