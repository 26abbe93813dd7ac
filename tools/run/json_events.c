#include "tools/run/json_events.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/text.h"
#include "net/http/traffic.h"
#include "router/decode/figures.h"
#include "tools/run/token_view.h"

/* Print one character of a JSON string, whose UTF-8 is bytes[n]. */
static void json_events_put_char(uint32_t c, const char *bytes, size_t n)
{
    if (c == '"' || c == '\\')
        printf("\\%c", (int)c);
    else if (c == '\n' || c == '\t')
        fputs(c == '\n' ? "\\n" : "\\t", stdout);
    else if (text_harmless(c))
        fwrite(bytes, 1, n, stdout);
    else
        printf("\\u%04x", (unsigned)c);
}

/* Print the characters of text[n]; invalid bytes become U+FFFD. Return how many bytes at the end
 * begin a character that is not complete; these are not printed. */
static size_t json_events_put_text(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        bool ok;
        size_t len = text_decode(&c, text + i, n - i, &ok);
        unsigned char lead = (unsigned char)text[i];
        if (!ok && i + len == n && lead >= 0xc2 && lead <= 0xf4)
            return len;
        json_events_put_char(c, ok ? text + i : "\xef\xbf\xbd", ok ? len : 3);
        i += len;
    }
    return 0;
}

/* Print the characters that a token completes. A character that began in an earlier token is put
 * together byte by byte. */
static void json_events_put_token(struct json_events *j, const char *bytes, size_t n)
{
    size_t i = 0;
    while (j->n && i < n) {
        char glued[4];
        size_t len = j->n;
        memcpy(glued, j->cut, len);
        glued[len++] = bytes[i++];
        j->n = json_events_put_text(glued, len);
        memmove(j->cut, glued + len - j->n, j->n);
    }
    if (i < n) {
        j->n = json_events_put_text(bytes + i, n - i);
        memcpy(j->cut, bytes + n - j->n, j->n);
    }
}

bool json_events_token(struct json_events *j, const struct mizzle_token *t)
{
    printf("{\"event\":\"token\",\"pos\":%zu,\"id\":%" PRIu32 ",\"text\":\"", t->pos, t->id);
    json_events_put_token(j, t->piece, t->piece_size);
    printf("\",\"source\":\"%s\",\"score\":", token_view_source(t->source));
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
    return fflush(stdout) == 0;
}

double json_events_speed(const struct mizzle_stats *s)
{
    double ms = s->total_ms - s->prompt_ms;
    return s->tokens && ms > 0 ? 1000 * (double)s->tokens / ms : 0;
}

/* Print the members of "held", without those that are 0. */
static void json_events_put_reasons(const struct mizzle_held *held)
{
    const char *comma = "";
#define X(member, name, words)                             \
    if (held->member) {                                    \
        printf("%s\"%s\":%zu", comma, name, held->member); \
        comma = ",";                                       \
    }
    JSON_EVENTS_HELD(X)
#undef X
}

static void json_events_put_count(const char *name, uint64_t n)
{
    printf("\"%s\":%" PRIu64 ",", name, n);
}

static void json_events_put_real(const char *name, double x, int digits)
{
    printf("\"%s\":%.*f,", name, digits, x);
}

void json_events_done(const struct json_events *j, const struct mizzle_stats *s, bool offline)
{
    printf("{\"event\":\"done\",%s\"offline\":%s,", j->n ? "\"text\":\"\xef\xbf\xbd\"," : "",
           offline ? "true" : "false");
#define X(name) json_events_put_count(#name, s->name);
    FIGURES_COUNTS(X)
    TRAFFIC_COUNTS(X)
#undef X
#define X(name) json_events_put_real(#name, s->name, 3);
    FIGURES_TIMES(X)
    X(start_ms)
#undef X
    json_events_put_real("tok_s", json_events_speed(s), 3);
    fputs("\"held\":{", stdout);
    json_events_put_reasons(&s->held);
    putchar('}');
    printf(",\"reason\":\"%s\"}\n", s->finish);
    fflush(stdout);
}
