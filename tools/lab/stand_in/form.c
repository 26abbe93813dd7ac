/* form.c - a text as SGLang and llama.cpp tell of it. vLLM's form is serve's own. */
#include <stdio.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "model/text/tokenizer.h"
#include "tools/cli/json_report.h"
#include "tools/lab/stand_in/stand_in_internal.h"

json_t *stand_in_form_text(const struct serve *s, const uint32_t *ids, size_t n)
{
    struct buf raw = { 0 };
    bool fine = true;
    for (size_t i = 0; i < n && fine; i++) {
        size_t len = 0;
        const char *p = tokenizer_bytes(s->engine.tokenizer, ids[i], &len);
        fine = !p || buf_add(&raw, p, len);
    }
    json_t *text = fine ? json_report_text(raw.p, raw.n) : NULL;
    buf_free(&raw);
    return text;
}

/* Return a reply of SGLang's /generate: all that has been shown. */
static json_t *form_generated(struct serve_exchange *x, struct serve_choice *c, size_t shown,
                              bool last)
{
    const struct text_view *v = &c->view;
    char id[20];
    json_t *why = json_null();
    if (last && v->ended)
        why =
            json_pack("{s:s,s:I}", "type", "stop", "matched", (json_int_t)v->tokens[v->n - 1].t.id);
    else if (last)
        why = json_pack("{s:s,s:I}", "type", "length", "length", (json_int_t)v->n);
    snprintf(id, sizeof(id), "%016llx", (unsigned long long)server_number(x->r));
    json_t *meta = json_pack("{s:s,s:o,s:I,s:I,s:I,s:f}", "id", id, "finish_reason", why,
                             "prompt_tokens", (json_int_t)c->prompt->n, "completion_tokens",
                             (json_int_t)c->taken, "cached_tokens", (json_int_t)v->cached,
                             "e2e_latency", (double)(os_now_ns() - x->begun) / 1e9);
    return json_pack("{s:o,s:o,s:o}", "text", json_report_text(c->raw.p, shown), "output_ids",
                     json_report_ids(v->ids + c->prompt->n, c->taken), "meta_info", meta);
}

static json_t *form_sglang_whole(struct serve_exchange *x, struct serve_choice *c)
{
    return form_generated(x, c, c->raw.n, true);
}

static json_t *form_sglang_event(struct serve_exchange *x, struct serve_choice *c, const char *text,
                                 size_t n, bool last)
{
    (void)text, (void)n;
    return form_generated(x, c, c->shown, last);
}

const struct serve_form stand_in_form_sglang = { .whole = form_sglang_whole,
                                                 .event = form_sglang_event };

/* Return llama.cpp's final object, with this text and n ids. */
static json_t *form_completed(struct serve_exchange *x, struct serve_choice *c, json_t *text,
                              size_t n)
{
    const struct text_view *v = &c->view;
    json_int_t prompt = (json_int_t)c->prompt->n, made = (json_int_t)v->n;
    json_t *timings = json_pack("{s:I,s:I,s:f,s:I,s:f}", "cache_n", (json_int_t)v->cached,
                                "prompt_n", prompt - (json_int_t)v->cached, "prompt_ms",
                                v->prompt_ms, "predicted_n", made, "predicted_ms", v->text_ms);
    return json_pack("{s:i,s:o,s:o,s:I,s:b,s:s,s:I,s:I,s:b,s:s,s:I,s:o}", "index", 0, "content",
                     text, "tokens", json_report_ids(v->ids + c->prompt->n, n), "id_slot",
                     (json_int_t)v->slot, "stop", 1, "model", x->s->name, "tokens_predicted", made,
                     "tokens_evaluated", prompt, "truncated", 0, "stop_type",
                     c->stops.found ? "word"
                     : v->ended     ? "eos"
                                    : "limit",
                     "tokens_cached", prompt + made - 1, "timings", timings);
}

static json_t *form_llamacpp_whole(struct serve_exchange *x, struct serve_choice *c)
{
    return form_completed(x, c, json_report_text(c->raw.p, c->raw.n),
                          x->ask.return_ids ? c->view.n : 0);
}

static json_t *form_llamacpp_event(struct serve_exchange *x, struct serve_choice *c,
                                   const char *text, size_t n, bool last)
{
    (void)x, (void)last;
    return json_pack(
        "{s:i,s:o,s:o,s:b,s:i,s:I,s:I}", "index", 0, "content", json_report_text(text, n), "tokens",
        json_report_ids(c->view.ids + c->prompt->n + c->taken - 1, 1), "stop", 0, "id_slot", -1,
        "tokens_predicted", (json_int_t)c->taken, "tokens_evaluated", (json_int_t)c->prompt->n);
}

static json_t *form_llamacpp_closing(struct serve_exchange *x, struct serve_choice *c)
{
    return form_completed(x, c, json_string(""), 0);
}

const struct serve_form stand_in_form_llamacpp = { .whole = form_llamacpp_whole,
                                                   .event = form_llamacpp_event,
                                                   .closing = form_llamacpp_closing };
