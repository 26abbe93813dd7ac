#include "tools/eval/eval_journal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "tools/eval/eval_journal_internal.h"

/* How a token of the trace is written: by its source, and whether the small model would have
 * written the same. */
enum { EDGE = '.', FELL_BACK = 'f', CONFIRMED = '=', CORRECTED = '#', UNKNOWN = '?' };

static const char *journal_where(const struct eval_journal *j)
{
    return json_string_value(json_object_get(j->read, "where"));
}

static json_t *journal_real(double x)
{
    return isnan(x) ? json_null() : json_real(x);
}

/* Take what an audit found from the line, if there is anything. */
static bool journal_read_audit(const json_t *line, struct decode_audit *a)
{
    json_int_t n[9];
    const json_t *list = json_object_get(line, "audit");
    if (!list)
        return true;
    if (json_unpack((json_t *)(size_t)list, "[I, I, I, I, I, I, I, I, I!]", &n[0], &n[1], &n[2],
                    &n[3], &n[4], &n[5], &n[6], &n[7], &n[8]) != 0)
        return false;
    *a = (struct decode_audit){ (size_t)n[0], (size_t)n[1], (size_t)n[2],
                                (size_t)n[3], (size_t)n[4], (size_t)n[5],
                                (size_t)n[6], (size_t)n[7], (uint64_t)n[8] };
    return true;
}

/* Add it to a line. */
static bool journal_add_audit(json_t *line, const struct decode_audit *a)
{
    if (!a->drawn)
        return true;
    json_t *list = json_pack("[I, I, I, I, I, I, I, I, I]", (json_int_t)a->drawn,
                             (json_int_t)a->kept, (json_int_t)a->missed, (json_int_t)a->routed,
                             (json_int_t)a->flipped, (json_int_t)a->calls, (json_int_t)a->failed,
                             (json_int_t)a->wasted, (json_int_t)a->cost);
    return json_object_set_new(line, "audit", list) == 0;
}

/* Take the trace of n tokens from the line: `trace` and `us`. */
static bool journal_read_trace(struct eval_journal *j, struct asked *a)
{
    const char *t = json_string_value(json_object_get(j->read, "trace"));
    const json_t *us = json_object_get(j->read, "us");
    if (!t || strlen(t) != a->tokens || json_array_size(us) != a->tokens)
        return false;
    if (a->tokens > j->trace_room) {
        struct asked_token *more = realloc(j->trace, a->tokens * sizeof(*more));
        if (!more)
            return false;
        j->trace = more;
        j->trace_room = a->tokens;
    }
    for (size_t i = 0; i < a->tokens; i++) {
        j->trace[i] = (struct asked_token){
            .ms = json_number_value(json_array_get(us, i)) / 1000,
            .source = strchr("=#?", t[i]) ? SOURCE_CLOUD
                      : t[i] == FELL_BACK ? SOURCE_FALLBACK
                                          : SOURCE_EDGE,
            .has_edge = t[i] != UNKNOWN,
            .agrees = t[i] != UNKNOWN && t[i] != CORRECTED,
        };
    }
    a->trace = j->trace;
    return true;
}

/* Take what the limits had counted from the line: `counts` and `last`. False: there is something
 * else, or no memory. */
static bool journal_read_caps(struct eval_journal *j, struct asked *a)
{
    json_int_t n[3];
    const json_t *counts = json_object_get(j->read, "counts");
    const json_t *last = json_object_get(j->read, "last");
    size_t ids = json_array_size(last), bytes;
    if (!counts)
        return true;
    if (json_unpack((json_t *)(size_t)counts, "[I, I, I!]", &n[0], &n[1], &n[2]) != 0 ||
        !json_is_array(last) || !size_mul(&bytes, ids + 1, sizeof(*j->caps.last)))
        return false;
    caps_end(&j->caps);
    j->caps.last = malloc(bytes);
    for (size_t i = 0; j->caps.last && i < ids; i++)
        j->caps.last[i] = (uint32_t)json_integer_value(json_array_get(last, i));
    j->caps.count = (struct caps_count){ (uint64_t)n[0], (uint64_t)n[1], (uint64_t)n[2], 0 };
    j->caps.last_n = ids;
    a->caps = &j->caps;
    return j->caps.last != NULL;
}

bool eval_journal_has(struct eval_journal *j, const struct eval_journal_key *key)
{
    return eval_journal_find(j, key, false);
}

int eval_journal_read(struct eval_journal *j, const struct eval_journal_key *key, struct asked *out,
                      bool *found, struct err *err)
{
    const char *answer = "", *hash = "";
    json_int_t n[13] = { 0 };
    int right = 0, left_out = 0, citer = 0, truncated = 0;
    *out = (struct asked){ 0 };
    *found = eval_journal_find(j, key, false);
    if (!*found)
        return OK;
    json_t *line = (json_t *)(size_t)j->read;
    bool fine =
        json_unpack(line, "{s:b, s:b, s:b, s:b, s:s, s:F, s:F, s:F, s:I, s:I, s:I, s:I, s:I, s:I}",
                    "right", &right, "citer", &citer, "truncated", &truncated, "left_out",
                    &left_out, "answer", &answer, "ms", &out->ms, "ttft_ms", &out->ttft_ms,
                    "edge_ms", &out->edge_ms, "tokens", &n[0], "cloud", &n[1], "fallback", &n[2],
                    "prompt", &n[3], "memo", &n[4], "store", &n[5]) == 0 &&
        json_unpack(line, "{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "calls", &n[6], "prefilled", &n[7],
                    "cached", &n[8], "decoded", &n[9], "bytes_up", &n[10], "bytes_down", &n[11],
                    "wasted", &n[12]) == 0 &&
        json_unpack(line, "{s:s, s?s}", "id", &out->id, "hash", &hash) == 0;
    out->hash = strtoull(hash, NULL, 16);
    out->right = right;
    out->citer = citer;
    out->truncated = truncated;
    out->left_out = left_out;
    out->tokens = (size_t)n[0];
    out->cloud = (size_t)n[1];
    out->fallback = (size_t)n[2];
    out->prompt_tokens = (size_t)n[3];
    out->memo_hits = (size_t)n[4];
    out->store_hits = (size_t)n[5];
    out->work = (struct asked_work){ (size_t)n[6], (size_t)n[7], (size_t)n[8], (size_t)n[9] };
    out->bytes_up = (uint64_t)n[10];
    out->bytes_down = (uint64_t)n[11];
    out->wasted = (size_t)n[12];
    fine = fine && strlen(answer) < sizeof(out->answer) && journal_read_trace(j, out);
    if (!fine || !journal_read_caps(j, out) || !journal_read_audit(line, &out->audit))
        return err_set(err, ERR_FORMAT, "%s: expected the fields of an answer", journal_where(j));
    memcpy(out->answer, answer, strlen(answer) + 1);
    return OK;
}

/* Add the trace to a line. */
static bool journal_add_trace(json_t *line, const struct asked *one)
{
    char *t = calloc(1, one->tokens + 1);
    json_t *us = json_array();
    for (size_t i = 0; t && i < one->tokens; i++) {
        const struct asked_token *k = &one->trace[i];
        t[i] = k->source == SOURCE_EDGE       ? EDGE
               : k->source == SOURCE_FALLBACK ? FELL_BACK
               : !k->has_edge                 ? UNKNOWN
               : k->agrees                    ? CONFIRMED
                                              : CORRECTED;
        json_array_append_new(us, json_integer((json_int_t)(k->ms * 1000 + 0.5)));
    }
    bool fine = t && us && json_object_set_new(line, "trace", json_string(t)) == 0 &&
                json_array_size(us) == one->tokens;
    fine = json_object_set_new(line, "us", us) == 0 && fine;
    free(t);
    return fine;
}

/* Add what the limits have counted to a line. */
static bool journal_add_caps(json_t *line, const struct caps *c)
{
    json_t *last = json_array();
    for (size_t i = 0; i < c->last_n; i++)
        json_array_append_new(last, json_integer(c->last[i]));
    bool fine = json_array_size(last) == c->last_n;
    json_t *both = json_pack("{s:[I, I, I], s:o}", "counts", (json_int_t)c->count.tokens,
                             (json_int_t)c->count.upload, (json_int_t)c->count.cost, "last", last);
    fine = both && json_object_update(line, both) == 0 && fine;
    json_decref(both);
    return fine;
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

int eval_journal_write(struct eval_journal *j, const struct eval_journal_key *key, uint64_t subject,
                       const struct asked *one, struct err *err)
{
    const struct asked_work *w = &one->work;
    json_t *line = json_pack(
        "{s:s, s:o, s:I, s:I, s:s, s:I, s:b, s:b, s:b, s:b, s:s, s:f, s:f, s:f, s:I, s:I, s:I, "
        "s:I, "
        "s:I, s:I}",
        "policy", key->policy, "share", journal_real(key->share), "point", (json_int_t)key->point,
        "item", (json_int_t)key->item, "id", one->id, "subject", (json_int_t)subject, "right",
        one->right, "citer", one->citer, "truncated", one->truncated, "left_out", one->left_out,
        "answer", one->answer, "ms", one->ms, "ttft_ms", one->ttft_ms, "edge_ms", one->edge_ms,
        "tokens", (json_int_t)one->tokens, "cloud", (json_int_t)one->cloud, "fallback",
        (json_int_t)one->fallback, "prompt", (json_int_t)one->prompt_tokens, "memo",
        (json_int_t)one->memo_hits, "store", (json_int_t)one->store_hits);
    json_t *rest =
        json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "text",
                  journal_text(one->left_out ? "" : one->text), "calls", (json_int_t)w->calls,
                  "prefilled", (json_int_t)w->prefilled, "cached", (json_int_t)w->cached, "decoded",
                  (json_int_t)w->decoded, "bytes_up", (json_int_t)one->bytes_up, "bytes_down",
                  (json_int_t)one->bytes_down, "wasted", (json_int_t)one->wasted);
    if (one->hash)
        json_object_set_new(rest, "hash", json_sprintf("%016" PRIx64, one->hash));
    if (one->missing) /* it is asked again */
        json_object_set_new(rest, "missing", json_integer((json_int_t)one->missing));
    if (!line || !rest || json_object_update(line, rest) != 0 || !journal_add_trace(line, one) ||
        !journal_add_audit(line, &one->audit) ||
        (one->caps && !journal_add_caps(line, one->caps))) {
        json_decref(line);
        line = NULL;
    }
    json_decref(rest);
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
                                         "share", journal_real(key->share), "point",
                                         (json_int_t)key->point, "threshold", (double)threshold,
                                         "tie", (double)tie),
                               err);
}
