/* serve_mizzle.c - the object "mizzle" of a reply: who wrote each token, what happened meanwhile,
 * and what it cost. tools/serve/page/README.md describes it. */
#include <math.h>

#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "tools/cli/json_report.h"
#include "tools/serve/serve_choice.h"

enum { EVENTS = 256 /* sent at a time */ };

/* Put the text of a token, and its bytes if they are no whole characters. */
static void serve_mizzle_text(json_t **to, const struct tokenizer *t, uint32_t id)
{
    size_t n = 0;
    const char *p = tokenizer_bytes(t, id, &n);
    json_report_set(to, "text", serve_choice_token(t, id, true));
    if (p && !text_valid(p, n))
        json_report_set(to, "bytes", serve_choice_bytes(t, id));
}

/* Put the characters that a token of the text completes, and its bytes if it is no whole ones. */
static void serve_mizzle_written(json_t **to, struct serve_choice *c, const struct text_token *t)
{
    size_t n = 0;
    const char *p = tokenizer_bytes(c->tokenizer, t->t.id, &n);
    serve_mizzle_text(to, c->tokenizer, t->t.id);
    if (!p || (tokenizer_is_control(c->tokenizer, t->t.id) && !c->ask->specials)) {
        json_report_set(to, "text", json_string(""));
        return;
    }
    if (!buf_add(&c->part, p, n)) {
        json_report_set(to, "text", NULL);
        return;
    }
    size_t whole = text_complete(c->part.p, c->part.n);
    json_report_set(to, "text", json_report_text(c->part.p, whole));
    serve_choice_forget(&c->part, whole);
}

/* Return what the token's own call was; null if it had none. */
static json_t *serve_mizzle_call(const struct text_token *t)
{
    if (!t->memo && !(t->call_ms > 0))
        return json_null();
    return json_pack("{s:f,s:I,s:I,s:I,s:b}", "ms", t->memo ? 0.0 : t->call_ms, "bytes_up",
                     (json_int_t)t->call.bytes_up, "bytes_down", (json_int_t)t->call.bytes_down,
                     "retries", (json_int_t)t->call.retries, "memo", (int)t->memo);
}

/* Return token number pos of the answer. */
static json_t *serve_mizzle_token(struct serve_choice *c, size_t pos)
{
    const struct text_token *t = &c->view.tokens[pos];
    const struct text_top *tops = c->view.tops ? c->view.tops + pos * c->view.top : NULL;
    json_t *out =
        json_pack("{s:I,s:I,s:s,s:f}", "pos", (json_int_t)pos, "id", (json_int_t)t->t.id, "source",
                  source_name(t->t.source), "ms", (double)(t->at - c->begun) / 1e6);
    serve_mizzle_written(&out, c, t);
    json_report_set(&out, "score", isnan(t->t.score) ? json_null() : json_real((double)t->t.score));
    json_report_set(&out, "edge_id", t->t.has_edge ? json_integer(t->t.edge_id) : json_null());
    if (t->t.has_edge)
        json_report_set(&out, "edge_text", serve_choice_token(c->tokenizer, t->t.edge_id, true));
    json_report_set(&out, "call", serve_mizzle_call(t));
    json_report_set(&out, "fault", t->t.fault ? json_string(t->t.fault) : json_null());
    if (t->t.fault)
        json_report_set(&out, "reason", json_string(gate_name(t->t.reason)));
    if (!c->ask->trace_top)
        return out;
    json_t *list = json_array();
    for (size_t i = 0; tops && i < c->ask->trace_top && isfinite(tops[i].logprob); i++) {
        json_t *one =
            json_pack("{s:I,s:f}", "id", (json_int_t)tops[i].id, "logprob", tops[i].logprob);
        serve_mizzle_text(&one, c->tokenizer, tops[i].id);
        json_report_add(&list, one);
    }
    json_report_set(&out, "top", list);
    return out;
}

/* Return an event; places count as pos does. */
static json_t *serve_mizzle_event(const struct serve_choice *c, const struct decode_event *d)
{
    static const char *const kinds[] = { [DECODE_EVALUATED] = "evaluated",
                                         [DECODE_ASKED] = "asked",
                                         [DECODE_ANSWERED] = "answered",
                                         [DECODE_ROLLED_BACK] = "rolled-back" };
    json_t *out =
        json_pack("{s:s,s:I,s:I,s:f,s:f}", "kind", kinds[d->kind], "at",
                  (json_int_t)d->at - (json_int_t)c->prompt->n, "n", (json_int_t)d->n, "ms",
                  ((double)d->ns - (double)c->begun) / 1e6, "took_ms", (double)d->took_ns / 1e6);
    if (d->kind == DECODE_ANSWERED && d->reason != GATE_OPEN)
        json_report_set(&out, "reason", json_string(gate_name(d->reason)));
    return out;
}

/* Return what the text has taken. */
static json_t *serve_mizzle_ledger(const struct serve_choice *c)
{
    const struct text_view *v = &c->view;
    struct decode_stats s = v->stats;
    s.tokens = v->n;
    s.prompt_tokens = c->prompt->n;
    s.ttft_ms = v->n ? (double)(v->tokens[0].at - c->begun) / 1e6 : 0;
    s.total_ms = v->n ? (double)(v->tokens[v->n - 1].at - c->begun) / 1e6 : 0;
    json_t *out =
        json_pack("{s:f,s:I}", "queue_ms", v->queue_ms, "cached_tokens", (json_int_t)v->cached);
#define X(name) json_report_set(&out, #name, json_integer((json_int_t)s.name));
    FIGURES_COUNTS(X)
#undef X
#define X(name) json_report_set(&out, #name, json_integer((json_int_t)s.traffic.name));
    TRAFFIC_COUNTS(X)
#undef X
#define X(name) json_report_set(&out, #name, json_real(s.name));
    FIGURES_TIMES(X)
#undef X
    return out;
}

json_t *serve_mizzle(struct serve_choice *c, size_t from, bool last)
{
    const struct serve_ask *a = c->ask;
    struct decode_event events[EVENTS];
    json_t *out = json_object();
    if (a->plain)
        return out;
    if (a->trace && from < c->taken) {
        json_t *list = json_array();
        for (size_t i = from; i < c->taken; i++)
            json_report_add(&list, serve_mizzle_token(c, i));
        json_report_set(&out, "tokens", list);
    }
    json_t *happened = json_array();
    for (size_t n; a->events && (n = text_events(c->text, c->events, events, EVENTS)) > 0;
         c->events += n)
        for (size_t i = 0; i < n; i++)
            json_report_add(&happened, serve_mizzle_event(c, &events[i]));
    if (!happened || json_array_size(happened))
        json_report_set(&out, "events", happened);
    else
        json_decref(happened);
    if (last) {
        enum policy policy = serve_ask_policy(a);
        json_report_set(&out, "ledger", serve_mizzle_ledger(c));
        json_report_set(&out, "policy", json_string(policy_name(policy)));
        json_report_set(&out, "threshold",
                        policy_scores(policy) ? json_real((double)a->routing.threshold)
                                              : json_null());
        json_report_set(&out, "seed", json_integer((json_int_t)c->seed));
    }
    return out;
}
