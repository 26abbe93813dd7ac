/* ask.c - reads completions in three dialects: each becomes a request as serve reads it. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/text.h"
#include "net/http/json_input.h"
#include "tools/cli/json_report.h"
#include "tools/lab/stand_in/stand_in_internal.h"

/* Fields of SGLang's SamplingParams; any other name is a TypeError there. */
static const char keywords[] =
    "max_new_tokens, stop, stop_token_ids, stop_regex, temperature, top_p, top_k, min_p, "
    "frequency_penalty, presence_penalty, repetition_penalty, min_new_tokens, n, "
    "json_schema, regex, ebnf, structural_tag, ignore_eos, skip_special_tokens, "
    "spaces_between_special_tokens, no_stop_trim, custom_params, stream_interval, "
    "logit_bias, sampling_seed";

/* Check the prompt as far as SGLang and llama.cpp have words of their own for what is wrong. */
static bool ask_prompt(const struct serve_exchange *x, const json_t *prompt, const char *field,
                       struct serve_error *e)
{
    bool llamacpp = stand_in_dialect(x) == CLOUD_LLAMACPP;
    const json_t *first = json_array_get(prompt, 0), *v;
    size_t i;
    if (json_is_array(first) || json_is_string(first)) { /* a batch of one */
        if (json_array_size(prompt) != 1)
            return serve_error_set(e, 400, "invalid_value", field,
                                   "%s: expected one prompt per request, found %zu", field,
                                   json_array_size(prompt));
        prompt = first;
    }
    if (json_is_array(prompt) ? !json_array_size(prompt)
                              : json_is_string(prompt) && !json_string_length(prompt))
        return serve_error_set(e, 400, "invalid_value", field, "%s",
                               llamacpp ? "\"prompt\" must not be empty"
                                        : "input_ids cannot be empty.");
    json_array_foreach((json_t *)(size_t)prompt, i, v)
    {
        uint32_t id;
        if (!json_is_integer(v) || json_input_id(&id, v, x->s->vocab))
            continue;
        if (llamacpp)
            return serve_error_set(e, 400, "invalid_value", field,
                                   "Prompt contains invalid tokens");
        return serve_error_set(
            e, 400, "invalid_value", field,
            "The input_ids [%lld] contains values greater than the vocab size (%zu).",
            (long long)json_integer_value(v), x->s->vocab);
    }
    return true;
}

/* Refuse what no text has room for. llama.cpp writes as many tokens as there is. */
static bool ask_fits(const struct serve_exchange *x, struct serve_error *e)
{
    const struct serve_ask *a = &x->ask;
    bool llamacpp = stand_in_dialect(x) == CLOUD_LLAMACPP;
    for (size_t i = 0; i < a->nprompts; i++) {
        size_t n = a->prompts[i].n, room = n < x->s->context ? x->s->context - n : 0;
        size_t max = llamacpp || a->max == SIZE_MAX ? !a->wish.score : a->max;
        if (max <= room)
            continue;
        if (llamacpp)
            return serve_error_set(e, 400, "context_length_exceeded", "prompt",
                                   "request (%zu tokens) exceeds the available context size (%zu "
                                   "tokens), try increasing it",
                                   n, x->s->context);
        return serve_error_set(e, 400, "context_length_exceeded", "prompt",
                               "This model's maximum context length is %zu tokens. However, "
                               "%zu tokens of prompt and %zu of completion were requested.",
                               x->s->context, n, max);
    }
    return true;
}

/* Read the request `in`, which is released (NULL: e says why there is none), and answer it. */
static void ask_complete(struct serve_exchange *x, json_t *in, struct serve_error *e,
                         const struct serve_form *form)
{
    struct serve_ask *a = &x->ask;
    bool fine = !e->status && (in || serve_error_of(e, ERR_NOMEM, NULL)) &&
                serve_request_read(a, x->s, in, false, e) && ask_fits(x, e);
    const json_t *slot = json_object_get(in, "id_slot");
    if (form == &stand_in_form_llamacpp && json_is_integer(slot))
        a->wish.slot = (long)json_integer_value(slot);
    json_decref(in);
    if (!fine) {
        stand_in_refuse(x, e);
        return;
    }
    serve_routes_read(x);
    a->form = form;
    a->return_ids &= form || stand_in_dialect(x) == CLOUD_OPENAI;
    if (stand_in_line_draw(x))
        serve_write_texts(x);
}

void stand_in_ask_openai(struct serve_exchange *x)
{
    const char *name = json_string_value(json_object_get(x->in, "model"));
    struct serve_error e = { 0 };
    if (name && stand_in_of(x)->server == CLOUD_OPENAI && strcmp(name, x->s->name) != 0)
        serve_error_set(&e, 404, "model_not_found", "model", "The model `%s` does not exist.",
                        name);
    ask_complete(x, json_incref(x->in), &e, NULL);
}

/* Return a copy of a request to which v is added as this field, without what would make more of the
 * answer than one text. Without memory it is NULL. */
static json_t *ask_copy(const json_t *in, const char *field, json_t *v)
{
    static const char *const more[] = { "n", "echo", "logprobs", "messages" };
    json_t *out = json_copy((json_t *)(size_t)in);
    if (json_object_size(out) != json_object_size(in)) /* jansson does not say so */
        json_report_set(&out, "", NULL);
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        json_object_del(out, more[i]);
    if (v && json_is_object(out))
        json_report_set(&out, field, json_incref(v));
    return out;
}

/* Give the field `from` its name in a request of OpenAI's, or a default, which is released. */
static void ask_rename(json_t **in, const char *from, const char *to, json_t *missing)
{
    json_t *v = json_object_get(*in, from);
    if (json_is_object(*in))
        json_report_set(in, to, json_incref(v && !json_is_null(v) ? v : missing));
    json_decref(missing);
}

void stand_in_ask_sglang(struct serve_exchange *x)
{
    const json_t *in = x->in;
    json_t *params = json_object_get(in, "sampling_params"),
           *ids = json_object_get(in, "input_ids");
    json_t *text = json_object_get(in, "text"), *v;
    struct serve_error e = { 0 };
    const char *key;
    bool given = ids && !json_is_null(ids);
    x->ask.stream = json_is_true(json_object_get(in, "stream"));
    if (params && !json_is_null(params) && !json_is_object(params))
        serve_error_set(&e, 400, "invalid_type", "sampling_params",
                        "1 validation error for Request body -> sampling_params");
    else if (given && !json_is_array(ids))
        serve_error_set(&e, 400, "invalid_type", "input_ids",
                        "1 validation error for Request body -> input_ids");
    else if (!given && !json_is_string(text))
        serve_error_set(&e, 400, "invalid_value", "text",
                        "Either text, input_ids or input_embeds should be provided.");
    else
        ask_prompt(x, given ? ids : text, given ? "input_ids" : "text", &e);
    json_object_foreach(params, key, v)
    {
        if (!text_among(key, keywords))
            serve_error_set(&e, 500, "unknown_parameter", key, "Internal Server Error");
    }
    json_t *out = ask_copy(in, "prompt", given ? ids : text);
    if (json_is_object(params) && json_object_update(out, params))
        json_report_set(&out, "", NULL);
    ask_rename(&out, "max_new_tokens", "max_tokens", json_integer(128));
    ask_complete(x, out, &e, &stand_in_form_sglang);
}

void stand_in_ask_llamacpp(struct serve_exchange *x)
{
    json_t *prompt = json_object_get(x->in, "prompt"), *max;
    const json_t *temp = json_object_get(x->in, "temperature");
    struct serve_error e = { 0 };
    if (json_is_object(x->in) && !prompt)
        serve_error_set(&e, 400, "invalid_value", "prompt",
                        "[json.exception.out_of_range.403] key 'prompt' not found");
    else if (json_is_object(prompt))
        serve_error_set(&e, 400, "invalid_value", "prompt",
                        "\"prompt\" elements must be a string or a list of tokens");
    else if (temp && !json_is_null(temp) && !json_is_number(temp))
        serve_error_set(&e, 400, "invalid_value", "temperature",
                        "Field 'temperature': [json.exception.type_error.302] type must be "
                        "number, but is %s",
                        strchr(json_input_type(temp), ' ') + 1); /* "a string" */
    else
        ask_prompt(x, prompt, "prompt", &e);
    json_t *out = ask_copy(x->in, NULL, NULL);
    ask_rename(&out, "n_predict", "max_tokens", json_integer(-1));
    max = json_object_get(out, "max_tokens");
    if (json_is_integer(max) && json_integer_value(max) < 1) /* 0 gives one token there, too */
        json_report_set(&out, "max_tokens", json_integer(json_integer_value(max) ? -1 : 1));
    ask_rename(&out, "return_tokens", "return_token_ids", json_false());
    ask_complete(x, out, &e, &stand_in_form_llamacpp);
}
