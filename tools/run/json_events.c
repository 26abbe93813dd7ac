#include "tools/run/json_events.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/text.h"
#include "router/caps.h"
#include "tools/run/audit_line.h"
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
    double ms = s->total_ms - s->first_ms;
    return s->tokens > 1 && ms > 0 ? 1000 * (double)(s->tokens - 1) / ms : 0;
}

bool json_events_held(struct json_events_held *out, const struct mizzle_stats *s, size_t i)
{
    const struct json_events_held all[] = {
        { "no-cloud", "without a cloud", s->held.no_cloud },
        { "refused", "refused by the server", s->held.refused },
        { "unfit", "with a text that the server refuses", s->held.unfit },
        { "private", "with private text", s->held.private_text },
        { "capped", "beyond a limit", s->held.capped },
        { "breaker", "not asked for after repeated failures", s->held.breaker },
        { "fault", "without an answer", s->held.fault },
    };
    bool is = i < sizeof(all) / sizeof(all[0]);
    if (is)
        *out = all[i];
    return is;
}

/* Print the members of "held", without those that are 0. */
static void json_events_put_reasons(const struct mizzle_stats *s)
{
    const char *comma = "";
    struct json_events_held held;
    for (size_t i = 0; json_events_held(&held, s, i); i++)
        if (held.count) {
            printf("%s\"%s\":%zu", comma, held.name, held.count);
            comma = ",";
        }
}

struct decode_audit json_events_audit(const struct mizzle_stats *s)
{
    const struct mizzle_audit *a = &s->audit;
    return (struct decode_audit){ .drawn = a->drawn,
                                  .kept = a->kept,
                                  .missed = a->missed,
                                  .routed = a->routed,
                                  .flipped = a->flipped,
                                  .calls = a->calls,
                                  .failed = a->failed,
                                  .wasted = a->wasted,
                                  .cost = a->cost };
}

/* Print ,"audit":{...}. */
static void json_events_put_audit(const struct mizzle_audit *a)
{
    char cost[CAPS_AMOUNT];
    const struct audit_share missed = audit_share(a->missed, a->kept);
    const struct audit_share flipped = audit_share(a->flipped, a->routed);
    caps_amount(cost, a->cost);
    printf(",\"audit\":{\"drawn\":%zu,\"kept\":%zu,\"missed\":%zu,\"miss_low\":%.6f,"
           "\"miss_high\":%.6f,\"again\":%zu,\"flipped\":%zu,\"flip_low\":%.6f,"
           "\"flip_high\":%.6f,\"calls\":%zu,\"failed\":%zu,\"wasted\":%zu,\"cost\":%s}",
           a->drawn, a->kept, a->missed, missed.low, missed.high, a->routed, a->flipped,
           flipped.low, flipped.high, a->calls, a->failed, a->wasted, cost);
}

void json_events_done(const struct mizzle_stats *s, bool replayed, bool audited)
{
    char cost[CAPS_AMOUNT];
    caps_amount(cost, s->cost);
    printf("{\"event\":\"done\",\"tokens\":%zu,\"cloud\":%zu,\"fallback\":%zu,"
           "\"prompt_tokens\":%zu,\"ttft_ms\":%.3f,\"tok_s\":%.3f,"
           "\"bytes_up\":%" PRIu64 ",\"bytes_down\":%" PRIu64 ",\"router_ms\":%.3f,"
           "\"edge_ms\":%.3f,\"cloud_ms\":%.3f,"
           "\"start_ms\":%.3f,\"passes\":%zu,\"drafted\":%zu,\"accepted\":%zu,\"ledger\":{"
           "\"replayed\":%s,\"calls\":%" PRIu64 ",\"committed\":%" PRIu64 ",\"failed\":%" PRIu64
           ",\"wasted\":%" PRIu64 ",\"memo_hits\":%" PRIu64 ",\"store_hits\":%" PRIu64
           ",\"retries\":%" PRIu64 ",\"header_bytes_up\":%" PRIu64 ",\"header_bytes_down\":%" PRIu64
           ",\"cost\":%s,\"held\":{",
           s->tokens, s->cloud, s->fallback, s->prompt_tokens, s->first_ms, json_events_speed(s),
           s->bytes_up, s->bytes_down, s->router_ms, s->edge_ms, s->cloud_ms, s->start_ms,
           s->passes, s->drafted, s->accepted, replayed ? "true" : "false", s->calls, s->committed,
           s->failed, s->wasted, s->memo_hits, s->store_hits, s->retries, s->header_bytes_up,
           s->header_bytes_down, cost);
    json_events_put_reasons(s);
    fputs("}}", stdout);
    if (audited)
        json_events_put_audit(&s->audit);
    printf(",\"reason\":\"%s\"}\n", s->finish);
    fflush(stdout);
}
