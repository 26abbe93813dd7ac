/* serve_logprobs.c - logprobs of tokens, and of prompts that were scored. */
#include <math.h>

#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "tools/cli/json_report.h"
#include "tools/serve/serve_choice.h"

/* What is known of one token. */
struct serve_scored {
    uint32_t id;
    double logprob; /* NaN: it has none */
    const struct text_top *top;
    size_t n;
};

/* Return token i, counted as `told` is. */
static struct serve_scored serve_logprobs_at(const struct serve_choice *c, size_t i)
{
    size_t prompt = c->ask->echo ? c->prompt->n : 0, n = c->ask->top;
    const struct text_view *v = &c->view;
    if (i < prompt)
        return (struct serve_scored){ c->prompt->ids[i], v->scores[i], v->score_tops + i * v->top,
                                      i ? n : 0 };
    i -= prompt;
    return (struct serve_scored){ v->tokens[i].t.id, v->tokens[i].logprob, v->tops + i * v->top,
                                  n };
}

/* Return a logprob as JSON, which has no infinity. */
static json_t *serve_logprobs_number(double x)
{
    return isnan(x) ? json_null() : json_real(isinf(x) ? -9999.0 : x);
}

/* Add a name and its logprob. Where two tokens have the same text, the likelier one was first. */
static void serve_logprobs_add(json_t **object, const struct tokenizer *t, uint32_t id, double x)
{
    json_t *name = serve_choice_token(t, id, false);
    const char *key = json_string_value(name);
    size_t n = json_string_length(name);
    const json_t *other = key ? json_object_getn(*object, key, n) : NULL;
    bool wins = !other || json_real_value(other) < x;
    if (!key || (wins && json_object_setn_new(*object, key, n, serve_logprobs_number(x))))
        json_report_set(object, "", NULL);
    json_decref(name);
}

/* Return where token i, counted as `told` is, begins in the text, in characters, and move c->chars
 * past it. Tokens inside a character begin where it does; what the text leaves out has no length.
 */
static json_t *serve_logprobs_offset(struct serve_choice *c, size_t i, uint32_t id)
{
    bool prompt = c->ask->echo && i < c->prompt->n;
    size_t n, at = 0, offset = c->chars, before = c->counted.n;
    const char *p = tokenizer_bytes(c->tokenizer, id, &n);
    uint32_t code;
    if (!p || (!prompt && tokenizer_is_control(c->tokenizer, id) && !c->ask->specials))
        return json_integer((json_int_t)offset);
    if (!buf_add(&c->counted, p, n))
        return NULL;
    p = c->counted.p;
    n = c->counted.n;
    n = text_complete(p, n); /* the next token may complete the rest */
    while (at < n) {
        at += text_decode(&code, p + at, n - at, NULL);
        c->chars++;
        if (at <= before) /* this token does not complete it */
            offset = c->chars;
    }
    serve_choice_forget(&c->counted, at);
    return json_integer((json_int_t)offset);
}

json_t *serve_logprobs_raw(struct serve_choice *c)
{
    json_t *tokens = json_array(), *numbers = json_array(), *tops = json_array();
    json_t *offsets = json_array();
    for (size_t i = c->told; i < serve_choice_tokens(c); i++) {
        struct serve_scored s = serve_logprobs_at(c, i);
        json_t *top = s.n ? json_object() : json_null();
        for (size_t k = 0; k < s.n; k++)
            serve_logprobs_add(&top, c->tokenizer, s.top[k].id, s.top[k].logprob);
        if (s.n)
            serve_logprobs_add(&top, c->tokenizer, s.id, s.logprob);
        json_report_add(&tokens, serve_choice_token(c->tokenizer, s.id, false));
        json_report_add(&numbers, serve_logprobs_number(s.logprob));
        json_report_add(&tops, top);
        json_report_add(&offsets, serve_logprobs_offset(c, i, s.id));
    }
    return json_pack("{s:o,s:o,s:o,s:o}", "tokens", tokens, "token_logprobs", numbers,
                     "top_logprobs", tops, "text_offset", offsets);
}

/* Return {"token","bytes","logprob"}. */
static json_t *serve_logprobs_entry(const struct tokenizer *t, uint32_t id, double x)
{
    return json_pack("{s:o,s:o,s:o}", "token", serve_choice_token(t, id, false), "bytes",
                     serve_choice_bytes(t, id), "logprob", serve_logprobs_number(x));
}

json_t *serve_logprobs_chat(const struct serve_choice *c)
{
    json_t *content = json_array();
    for (size_t i = c->told; i < c->taken; i++) {
        struct serve_scored s = serve_logprobs_at(c, i);
        if (c->view.tokens[i].t.eog && !c->ask->specials)
            continue; /* it is no part of the message */
        json_t *top = json_array(), *entry = serve_logprobs_entry(c->tokenizer, s.id, s.logprob);
        for (size_t k = 0; k < s.n; k++)
            json_report_add(&top,
                            serve_logprobs_entry(c->tokenizer, s.top[k].id, s.top[k].logprob));
        json_report_set(&entry, "top_logprobs", top);
        json_report_add(&content, entry);
    }
    return json_pack("{s:o,s:n}", "content", content, "refusal");
}
