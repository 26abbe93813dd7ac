#include "tools/lab/eval/eval_journal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "tools/cli/json_report.h"
#include "tools/lab/eval/base64.h"
#include "tools/lab/eval/eval_journal_internal.h"

/* How a token of the trace is written: by its source, and whether the small model would have
 * written the same. */
enum { EDGE = '.', FELL_BACK = 'f', CONFIRMED = '=', CORRECTED = '#', UNKNOWN = '?' };

/* What of an answer has which name in a line: X(name, member). */
#define JOURNAL_FLAGS(X) \
    X(right, right) X(citer, citer) X(truncated, truncated) X(left_out, left_out)
#define JOURNAL_TIMES(X) X(ms, stats.total_ms) X(ttft_ms, stats.ttft_ms) X(edge_ms, stats.edge_ms)
#define JOURNAL_COUNTS(X)               \
    X(tokens, stats.tokens)             \
    X(cloud, stats.cloud)               \
    X(fallback, stats.fallback)         \
    X(prompt, stats.prompt_tokens)      \
    X(memo, stats.memo)                 \
    X(store, stats.store)               \
    X(calls, work.calls)                \
    X(prefilled, work.prefilled)        \
    X(cached, work.cached)              \
    X(decoded, work.decoded)            \
    X(bytes_up, stats.traffic.bytes_up) \
    X(bytes_down, stats.traffic.bytes_down)

static const char *journal_where(const struct eval_journal *j)
{
    return json_string_value(json_object_get(j->read, "where"));
}

bool eval_journal_has(struct eval_journal *j, const struct eval_journal_key *key)
{
    return eval_journal_find(j, key, false);
}

/* Take the figures from a line. False: one is missing. */
static bool journal_read_figures(struct asked *out, const json_t *line)
{
    bool fine = true;
    const json_t *value;
#define X(name, member)                    \
    value = json_object_get(line, #name);  \
    fine = fine && json_is_boolean(value); \
    out->member = json_is_true(value);
    JOURNAL_FLAGS(X)
#undef X
#define X(name, member)                   \
    value = json_object_get(line, #name); \
    fine = fine && json_is_number(value); \
    out->member = json_number_value(value);
    JOURNAL_TIMES(X)
#undef X
#define X(name, member)                    \
    value = json_object_get(line, #name);  \
    fine = fine && json_is_integer(value); \
    out->member = (size_t)json_integer_value(value);
    JOURNAL_COUNTS(X)
#undef X
    return fine;
}

int eval_journal_read(struct eval_journal *j, const struct eval_journal_key *key, struct asked *out,
                      bool *found, struct err *err)
{
    const char *answer = "", *hash = "";
    *out = (struct asked){ 0 };
    *found = eval_journal_find(j, key, false);
    if (!*found)
        return OK;
    if (json_unpack((json_t *)(size_t)j->read, "{s:s, s:s, s?s}", "answer", &answer, "id", &out->id,
                    "hash", &hash) != 0 ||
        strlen(answer) >= sizeof(out->answer) || !journal_read_figures(out, j->read))
        return err_set(err, ERR_FORMAT, "%s: expected the fields of an answer", journal_where(j));
    out->hash = strtoull(hash, NULL, 16);
    memcpy(out->answer, answer, strlen(answer) + 1);
    return OK;
}

/* Add the scores of the tokens to a line, if there are any: base64 of 16-bit numbers, high byte
 * first, from 0 to 65534 for a score of 1. 65535: this token has none. */
static void journal_add_scores(json_t **line, const struct asked *one)
{
    char *text = NULL;
    size_t n = 0;
    bool any = false;
    FILE *f = open_memstream(&text, &n);
    unsigned char *both = calloc(one->stats.tokens + 1, 2);
    for (size_t i = 0; both && i < one->stats.tokens; i++) {
        double s = (double)one->scores[i];
        unsigned v = isnan(s) ? 65535 : (unsigned)(fmin(fmax(s, 0), 1) * 65534 + 0.5);
        any = any || !isnan(s);
        both[2 * i] = (unsigned char)(v >> 8);
        both[2 * i + 1] = (unsigned char)v;
    }
    if (f && any)
        base64_write(f, both, 2 * one->stats.tokens);
    bool fine = f && fclose(f) == 0 && both;
    if (!fine || any)
        json_report_set(line, "scores", fine ? json_string(text) : NULL);
    free(both);
    free(text);
}

/* Add the trace to a line. */
static void journal_add_trace(json_t **line, const struct asked *one)
{
    char *t = calloc(1, one->stats.tokens + 1);
    json_t *us = json_array();
    for (size_t i = 0; t && i < one->stats.tokens; i++) {
        const struct asked_token *k = &one->trace[i];
        t[i] = k->source == SOURCE_EDGE       ? EDGE
               : k->source == SOURCE_FALLBACK ? FELL_BACK
               : !k->has_edge                 ? UNKNOWN
               : k->agrees                    ? CONFIRMED
                                              : CORRECTED;
        json_report_add(&us, json_integer((json_int_t)(k->ms * 1000 + 0.5)));
    }
    json_report_set(line, "trace", t ? json_string(t) : NULL);
    json_report_set(line, "us", us);
    free(t);
}

/* Return the text as a string; one that is not UTF-8 as a harmless line. */
static json_t *journal_text(const char *text)
{
    if (text_valid(text, strlen(text)))
        return json_string(text);
    char *line = strdup(text);
    if (!line)
        return NULL;
    text_line(line);
    json_t *out = json_string(line);
    free(line);
    return out;
}

/* Add the figures to a line. */
static void journal_add_figures(json_t **line, const struct asked *one)
{
#define X(name, member) json_report_set(line, #name, json_boolean(one->member));
    JOURNAL_FLAGS(X)
#undef X
#define X(name, member) json_report_set(line, #name, json_real(one->member));
    JOURNAL_TIMES(X)
#undef X
#define X(name, member) json_report_set(line, #name, json_integer((json_int_t)one->member));
    JOURNAL_COUNTS(X)
#undef X
}

int eval_journal_write(struct eval_journal *j, const struct eval_journal_key *key, uint64_t subject,
                       const struct asked *one, struct err *err)
{
    json_t *line =
        json_pack("{s:s, s:o, s:I, s:I, s:s, s:I, s:s, s:o}", "policy", key->policy, "share",
                  json_report_real(key->share), "point", (json_int_t)key->point, "item",
                  (json_int_t)key->item, "id", one->id, "subject", (json_int_t)subject, "answer",
                  one->answer, "text", journal_text(one->left_out ? "" : one->text));
    journal_add_figures(&line, one);
    if (one->hash)
        json_report_set(&line, "hash", json_sprintf("%016" PRIx64, one->hash));
    journal_add_trace(&line, one);
    journal_add_scores(&line, one);
    return eval_journal_append(j, line, err);
}

int eval_journal_read_threshold(struct eval_journal *j, const struct eval_journal_key *key,
                                float *threshold, float *tie, bool *found, struct err *err)
{
    *found = eval_journal_find(j, key, true);
    if (!*found)
        return OK;
    const json_t *t = json_object_get(j->read, "threshold");
    if (!json_is_number(t))
        return err_set(err, ERR_FORMAT, "%s: field threshold: expected a number", journal_where(j));
    *threshold = (float)json_number_value(t);
    *tie = (float)json_number_value(json_object_get(j->read, "tie"));
    return OK;
}

int eval_journal_write_threshold(struct eval_journal *j, const struct eval_journal_key *key,
                                 float threshold, float tie, struct err *err)
{
    return eval_journal_append(j,
                               json_pack("{s:s, s:o, s:I, s:f, s:f}", "calibrated", key->policy,
                                         "share", json_report_real(key->share), "point",
                                         (json_int_t)key->point, "threshold", (double)threshold,
                                         "tie", (double)tie),
                               err);
}
