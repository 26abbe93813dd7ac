#include "tools/lab/stand_in/reply.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "tools/cli/json_report.h"
#include "tools/lab/stand_in/source.h"

/* Append the bytes of a token; control tokens only if requested. */
static bool add_token(struct buf *raw, const struct tokenizer *t, uint32_t id, bool control)
{
    size_t len = 0;
    const char *p = tokenizer_bytes(t, id, &len);
    return !p || (!control && tokenizer_is_control(t, id)) || buf_add(raw, p, len);
}

json_t *stand_in_reply_text(const struct tokenizer *t, const uint32_t *ids, size_t n, bool control)
{
    struct buf raw = { 0 };
    bool fine = true;
    for (size_t i = 0; i < n && fine; i++)
        fine = add_token(&raw, t, ids[i], control);
    json_t *text = fine ? json_report_text(raw.p, raw.n) : NULL;
    buf_free(&raw);
    return text;
}

void stand_in_reply_begin(struct stand_in_reply *s, const struct stand_in_source *source,
                          const struct stand_in_question *ask, const char *model, int64_t created,
                          uint64_t key)
{
    static atomic_ulong counter;
    unsigned long count = atomic_fetch_add(&counter, 1) + 1;
    *s = (struct stand_in_reply){ .ask = ask,
                                  .tokenizer = source->tokenizer,
                                  .model = model,
                                  .created = created,
                                  .start = os_now_ns() };
    if (ask->form == FORM_GENERATE)
        snprintf(s->id, sizeof(s->id), "%016llx%016lx", (unsigned long long)key, count);
    else
        snprintf(s->id, sizeof(s->id), "cmpl-%08lx", count);
}

void stand_in_reply_end(struct stand_in_reply *s)
{
    buf_free(&s->raw);
}

/* Return the text of a token's event: what is new or, if all, everything so far. */
static json_t *text_until(struct stand_in_reply *s, uint32_t id, bool last, bool all)
{
    if (!add_token(&s->raw, s->tokenizer, id, false))
        return NULL;
    size_t from = all ? 0 : s->spoken;
    s->spoken = last ? s->raw.n : text_complete(s->raw.p, s->raw.n);
    return json_report_text(s->raw.p ? s->raw.p + from : "", s->spoken - from);
}

/* Return OpenAI's "usage" object. */
static json_t *stand_in_reply_counts(const struct stand_in_reply *s, const struct text_view *t)
{
    json_int_t in = (json_int_t)s->ask->n, out = (json_int_t)t->n;
    return json_pack("{s:I,s:I,s:I,s:{s:I}}", "prompt_tokens", in, "total_tokens", in + out,
                     "completion_tokens", out, "prompt_tokens_details", "cached_tokens",
                     (json_int_t)t->cached);
}

static const char *stand_in_reply_reason(const struct text_view *t)
{
    return t->ended ? "stop" : "length";
}

/* Return a reply of /v1/completions: one choice with the tokens from first to first + n. */
static json_t *completion(const struct stand_in_reply *s, const struct text_view *t, json_t *text,
                          size_t first, size_t n, bool last, json_t *usage)
{
    const struct stand_in_question *ask = s->ask;
    bool vllm = ask->form == FORM_VLLM, ids = ask->return_ids;
    json_t *choice = json_pack("{s:i,s:o,s:n,s:s?}", "index", 0, "text", text, "logprobs",
                               "finish_reason", last ? stand_in_reply_reason(t) : NULL);
    if (vllm) {
        json_object_set_new(choice, "stop_reason", json_null());
        json_object_set_new(choice, "token_ids",
                            ids ? json_report_ids(t->ids + t->prompt_n + first, n) : json_null());
        json_object_set_new(choice, "prompt_token_ids",
                            ids && !first ? json_report_ids(ask->ids, ask->n) : json_null());
    } else if (ask->server == CLOUD_SGLANG) {
        json_object_set_new(choice, "matched_stop",
                            last && t->ended ? json_integer(t->tokens[t->n - 1].t.id)
                                             : json_null());
    }
    bool whole = vllm && usage && !json_is_null(usage);
    if (whole)
        json_object_set_new(choice, "prompt_logprobs", json_null());
    /* json_pack takes over choice and usage, and releases them if it fails. */
    json_t *reply = json_pack("{s:s,s:s,s:I,s:s,s:[o],s:o}", "id", s->id, "object",
                              "text_completion", "created", (json_int_t)s->created, "model",
                              s->model, "choices", choice, "usage", usage);
    if (whole) {
        json_object_set_new(reply, "service_tier", json_null());
        json_object_set_new(reply, "system_fingerprint", json_null());
        json_object_set_new(reply, "kv_transfer_params", json_null());
    }
    if (ask->server == CLOUD_SGLANG)
        json_object_set_new(reply, "metadata", json_pack("{s:s}", "weight_version", "default"));
    return reply;
}

/* Return a reply of SGLang's /generate with the first n tokens. */
static json_t *generated(const struct stand_in_reply *s, const struct text_view *t, json_t *text,
                         size_t n, bool last)
{
    json_t *why = json_null();
    if (last && t->ended)
        why =
            json_pack("{s:s,s:I}", "type", "stop", "matched", (json_int_t)t->tokens[t->n - 1].t.id);
    else if (last)
        why = json_pack("{s:s,s:I}", "type", "length", "length", (json_int_t)t->n);
    double seconds = (double)(os_now_ns() - s->start) / 1e9;
    json_t *meta = json_pack(
        "{s:s,s:o,s:I,s:s,s:i,s:i,s:I,s:I,s:f}", "id", s->ask->rid[0] ? s->ask->rid : s->id,
        "finish_reason", why, "prompt_tokens", (json_int_t)s->ask->n, "weight_version", "default",
        "total_retractions", 0, "reasoning_tokens", 0, "completion_tokens", (json_int_t)n,
        "cached_tokens", (json_int_t)t->cached, "e2e_latency", seconds);
    return json_pack("{s:o,s:o,s:o}", "text", text, "output_ids",
                     json_report_ids(t->ids + t->prompt_n, n), "meta_info", meta);
}

static double stand_in_reply_rate(size_t n, double ms)
{
    return ms > 0 ? (double)n * 1000 / ms : 0;
}

/* Return llama.cpp's final object, with the tokens of t if ids. */
static json_t *completed(const struct stand_in_reply *s, const struct text_view *t, json_t *text,
                         bool ids)
{
    const struct stand_in_question *ask = s->ask;
    size_t fresh = ask->n - t->cached, full = ask->n + t->n;
    bool line = memchr(s->raw.n ? s->raw.p : "", '\n', s->raw.n) != NULL;
    json_t *settings =
        json_pack("{s:I,s:f,s:i,s:f,s:f,s:f,s:b,s:b}", "n_predict", (json_int_t)ask->max,
                  "temperature", 0.0, "top_k", 1, "top_p", 1.0, "min_p", 0.0, "repeat_penalty", 1.0,
                  "ignore_eos", ask->go_on, "stream", ask->stream);
    json_t *timings = json_pack("{s:I,s:I,s:f,s:f,s:I,s:f,s:f}", "cache_n", (json_int_t)t->cached,
                                "prompt_n", (json_int_t)fresh, "prompt_ms", t->prompt_ms,
                                "prompt_per_second", stand_in_reply_rate(fresh, t->prompt_ms),
                                "predicted_n", (json_int_t)t->n, "predicted_ms", t->text_ms,
                                "predicted_per_second", stand_in_reply_rate(t->n, t->text_ms));
    json_t *reply =
        json_pack("{s:i,s:o,s:o,s:I,s:b,s:s,s:I,s:I,s:o,s:o,s:b,s:b,s:s,s:s,s:I,s:o}", "index", 0,
                  "content", text, "tokens", json_report_ids(t->ids + t->prompt_n, ids ? t->n : 0),
                  "id_slot", (json_int_t)t->slot, "stop", 1, "model", s->model, "tokens_predicted",
                  (json_int_t)t->n, "tokens_evaluated", (json_int_t)ask->n, "generation_settings",
                  settings, "prompt", stand_in_reply_text(s->tokenizer, ask->ids, ask->n, true),
                  "has_new_line", line, "truncated", 0, "stop_type", t->ended ? "eos" : "limit",
                  "stopping_word", "", "tokens_cached", (json_int_t)full - 1, "timings", timings);
    return reply;
}

json_t *stand_in_reply_all(struct stand_in_reply *s, const struct text_view *t)
{
    bool fine = true;
    for (size_t i = 0; i < t->n && fine; i++)
        fine = add_token(&s->raw, s->tokenizer, t->tokens[i].t.id, false);
    json_t *text = fine ? json_report_text(s->raw.p, s->raw.n) : NULL;
    if (s->ask->form == FORM_GENERATE)
        return generated(s, t, text, t->n, true);
    if (s->ask->form == FORM_COMPLETION)
        return completed(s, t, text, s->ask->return_ids);
    return completion(s, t, text, 0, t->n, true, stand_in_reply_counts(s, t));
}

json_t *stand_in_reply_event(struct stand_in_reply *s, const struct text_view *t, size_t i,
                             bool last)
{
    json_t *text = text_until(s, t->tokens[i].t.id, last, s->ask->form == FORM_GENERATE);
    if (s->ask->form == FORM_GENERATE)
        return generated(s, t, text, i + 1, last);
    if (s->ask->form == FORM_COMPLETION)
        return json_pack("{s:i,s:o,s:o,s:b,s:i,s:I,s:I}", "index", 0, "content", text, "tokens",
                         json_report_ids(t->ids + t->prompt_n + i, 1), "stop", 0, "id_slot", -1,
                         "tokens_predicted", (json_int_t)i + 1, "tokens_evaluated",
                         (json_int_t)s->ask->n);
    return completion(s, t, text, i, 1, last, json_null());
}

json_t *stand_in_reply_closing(struct stand_in_reply *s, const struct text_view *t)
{
    if (s->ask->form == FORM_COMPLETION)
        return completed(s, t, json_string(""), false);
    if (s->ask->form == FORM_GENERATE || !s->ask->usage)
        return NULL;
    return json_pack("{s:s,s:s,s:I,s:s,s:[],s:o}", "id", s->id, "object", "text_completion",
                     "created", (json_int_t)s->created, "model", s->model, "choices", "usage",
                     stand_in_reply_counts(s, t));
}
