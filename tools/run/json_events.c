#include "tools/run/json_events.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "tools/run/token_view.h"

static void put_char(uint32_t c, const char *bytes, size_t n)
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

/* Put the characters of text[n]; returns how many bytes at the end begin one that is cut. */
static size_t json_events_put_text(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        bool ok;
        size_t len = text_decode(&c, text + i, n - i, &ok);
        unsigned char lead = (unsigned char)text[i];
        if (!ok && i + len == n && lead >= 0xc2 && lead <= 0xf4)
            return len;
        put_char(c, ok ? text + i : "\xef\xbf\xbd", ok ? len : 3);
        i += len;
    }
    return 0;
}

/* The text that this token completes. A cut character is glued together byte by byte. */
static void put_token_text(struct json_events *j, uint32_t id)
{
    size_t n = 0, i = 0;
    const char *bytes = tokenizer_is_control(j->tok, id) ? NULL : tokenizer_bytes(j->tok, id, &n);
    if (!bytes)
        return;
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

bool json_events_token(struct json_events *j, const struct decode_token *t)
{
    printf("{\"event\":\"token\",\"pos\":%zu,\"id\":%" PRIu32 ",\"text\":\"", t->pos, t->id);
    if (!t->eog)
        put_token_text(j, t->id);
    printf("\",\"source\":\"%s\",\"score\":", source_name(t->source));
    if (isnan(t->score)) /* which JSON has not */
        fputs("null", stdout);
    else
        printf("%.9g", (double)t->score);
    fputs(",\"edge_id\":", stdout);
    if (t->has_edge)
        printf("%" PRIu32, t->edge_id);
    else
        fputs("null", stdout);
    if (t->fault) {
        printf(",\"reason\":\"%s\",\"message\":\"", gate_name(t->reason));
        json_events_put_text(t->fault, strlen(t->fault));
        fputs("\"", stdout);
    }
    printf(",\"ms\":%.3f}\n", t->ms);
    return fflush(stdout) == 0;
}

double json_events_speed(const struct decode_stats *s)
{
    double ms = s->total_ms - s->ttft_ms;
    return s->tokens > 1 && ms > 0 ? 1000 * (double)(s->tokens - 1) / ms : 0;
}

/* The names and counts of the reasons that there were. */
static void put_reasons(const struct decode_stats *s)
{
    const char *comma = "";
    for (int r = GATE_OPEN + 1; r < GATE_REASONS; r++)
        if (s->reasons[r]) {
            printf("%s\"%s\":%zu", comma, gate_name((enum gate_reason)r), s->reasons[r]);
            comma = ",";
        }
}

void json_events_done(const struct decode_stats *s, double start_ms, bool replayed)
{
    char cost[CAPS_AMOUNT];
    caps_amount(cost, s->cost);
    printf("{\"event\":\"done\",\"tokens\":%zu,\"cloud\":%zu,\"fallback\":%zu,"
           "\"prompt_tokens\":%zu,\"ttft_ms\":%.3f,\"tok_s\":%.3f,\"bytes_up\":%" PRIu64
           ",\"bytes_down\":%" PRIu64 ",\"router_ms\":%.3f,\"edge_ms\":%.3f,\"cloud_ms\":%.3f,"
           "\"start_ms\":%.3f,\"ledger\":{\"replayed\":%s,\"calls\":%zu,\"committed\":%zu,"
           "\"failed\":%zu,\"wasted\":%zu,\"memo_hits\":%zu,"
           "\"store_hits\":%zu,\"retries\":%" PRIu64 ",\"hedges\":%" PRIu64
           ",\"header_bytes_up\":%" PRIu64 ",\"header_bytes_down\":%" PRIu64
           ",\"cost\":%s,\"held\":{",
           s->tokens, s->cloud, s->fallback, s->prompt_tokens, s->ttft_ms, json_events_speed(s),
           s->bytes_up, s->bytes_down, s->router_ms, s->edge_ms, s->cloud_ms, start_ms,
           replayed ? "true" : "false", s->calls, s->committed, s->failed, s->wasted, s->memo_hits,
           s->store_hits, s->retries, s->hedges, s->header_bytes_up, s->header_bytes_down, cost);
    put_reasons(s);
    printf("}},\"reason\":\"%s\"}\n", finish_name(s->finish));
    fflush(stdout);
}
