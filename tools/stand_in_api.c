#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base.h"
#include "model/tokenizer.h"
#include "model/unicode.h"
#include "net/buf.h"
#include "net/jsonin.h"
#include "tools/stand_in_api.h"
#include "tools/stand_in_ask.h"
#include "tools/stand_in_delay.h"
#include "tools/stand_in_engine.h"

/* vLLM's and llama.cpp's names for a request that cannot be served. */
static const char *bad_request(const char *path)
{
    return strncmp(path, "/v1/", 4) == 0 ? "BadRequestError" : "invalid_request_error";
}

struct stand_in_answer stand_in_api_error(const char *path, unsigned status, const char *type,
                                          const char *message)
{
    json_t *error = json_object();
    if (strncmp(path, "/v1/", 4) == 0 && status == 401) {
        json_decref(error);
        error = json_string("Unauthorized");
    } else {
        json_object_set_new(error, "code", json_integer(status));
        json_object_set_new(error, "message", json_string(message));
        json_object_set_new(error, "type", json_string(type ? type : bad_request(path)));
        if (strncmp(path, "/v1/", 4) == 0)
            json_object_set_new(error, "param", json_null());
    }
    return (struct stand_in_answer){ .status = status, .json = json_pack("{s:o}", "error", error) };
}

static struct stand_in_answer fault(const char *path, int rc, const struct err *err)
{
    if (rc == ERR_ARG || rc == ERR_FORMAT)
        return stand_in_api_error(path, 400, NULL, err->msg);
    if (rc == ERR_STOP)
        return stand_in_api_error(path, 503, "unavailable_error", "the server is stopping");
    return stand_in_api_error(path, 500, "server_error", err->msg);
}

/* The text of ids as a JSON string; bytes that are no UTF-8 become U+FFFD. NULL: no memory. */
static json_t *text_of(const struct tokenizer *t, const uint32_t *ids, size_t n, bool control)
{
    struct buf raw = { 0 };
    char *clean = NULL;
    size_t length = 0;
    bool fine = true;
    for (size_t i = 0; i < n && fine; i++) {
        size_t len = 0;
        const char *p = tokenizer_bytes(t, ids[i], &len);
        if (p && (control || !tokenizer_is_control(t, ids[i])))
            fine = buf_add(&raw, p, len);
    }
    fine = fine && unicode_repair(&clean, &length, raw.p ? raw.p : "", raw.n, NULL) == OK;
    json_t *text = fine ? json_stringn(clean, length) : NULL;
    buf_free(&raw);
    free(clean);
    return text;
}

static json_t *list_of(const uint32_t *ids, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ids[i]));
    return list;
}

static json_t *openai_reply(const struct stand_in_api *a, const struct stand_in_ask *ask,
                            const struct stand_in_text *t)
{
    static atomic_ulong counter;
    char id[32];
    snprintf(id, sizeof(id), "cmpl-%lu", atomic_fetch_add(&counter, 1) + 1);
    json_t *text = text_of(stand_in_engine_tokenizer(a->engine), t->ids, t->n, false);
    json_t *choice =
        json_pack("{s:i,s:o,s:n,s:s,s:n,s:n}", "index", 0, "text", text, "logprobs",
                  "finish_reason", t->ended ? "stop" : "length", "stop_reason", "prompt_logprobs");
    json_object_set_new(choice, "token_ids", ask->return_ids ? list_of(t->ids, t->n) : json_null());
    json_object_set_new(choice, "prompt_token_ids",
                        ask->return_ids ? list_of(ask->ids, ask->n) : json_null());
    json_int_t in = (json_int_t)ask->n, out = (json_int_t)t->n;
    json_t *usage = json_pack("{s:I,s:I,s:I,s:{s:I}}", "prompt_tokens", in, "total_tokens",
                              in + out, "completion_tokens", out, "prompt_tokens_details",
                              "cached_tokens", (json_int_t)t->cached);
    return json_pack("{s:s,s:s,s:I,s:s,s:[o],s:n,s:n,s:o}", "id", id, "object", "text_completion",
                     "created", (json_int_t)a->created, "model", a->name, "choices", choice,
                     "service_tier", "system_fingerprint", "usage", usage);
}

static double rate(size_t n, double ms)
{
    return ms > 0 ? (double)n * 1000 / ms : 0;
}

static json_t *llamacpp_reply(const struct stand_in_api *a, const struct stand_in_ask *ask,
                              const struct stand_in_text *t)
{
    const struct tokenizer *tok = stand_in_engine_tokenizer(a->engine);
    size_t fresh = ask->n - t->cached, full = ask->n + t->n;
    json_t *settings = json_pack("{s:I,s:f,s:i,s:f,s:f,s:f,s:b,s:b}", "n_predict", ask->max,
                                 "temperature", 0.0, "top_k", 1, "top_p", 1.0, "min_p", 0.0,
                                 "repeat_penalty", 1.0, "ignore_eos", ask->go_on, "stream", 0);
    json_t *timings =
        json_pack("{s:I,s:I,s:f,s:f,s:I,s:f,s:f}", "cache_n", (json_int_t)t->cached, "prompt_n",
                  (json_int_t)fresh, "prompt_ms", t->prompt_ms, "prompt_per_second",
                  rate(fresh, t->prompt_ms), "predicted_n", (json_int_t)t->n, "predicted_ms",
                  t->text_ms, "predicted_per_second", rate(t->n, t->text_ms));
    json_t *reply = json_pack("{s:i,s:o,s:o,s:i,s:b,s:s,s:I,s:I}", "index", 0, "content",
                              text_of(tok, t->ids, t->n, false), "tokens",
                              ask->return_ids ? list_of(t->ids, t->n) : json_array(), "id_slot", 0,
                              "stop", 1, "model", a->name, "tokens_predicted", (json_int_t)t->n,
                              "tokens_evaluated", (json_int_t)ask->n);
    json_object_set_new(reply, "generation_settings", settings);
    json_object_set_new(reply, "prompt", text_of(tok, ask->ids, ask->n, true));
    json_object_set_new(reply, "truncated",
                        json_boolean(full > stand_in_engine_context(a->engine)));
    json_object_set_new(reply, "stop_type", json_string(t->ended ? "eos" : "limit"));
    json_object_set_new(reply, "stopping_word", json_string(""));
    json_object_set_new(reply, "tokens_cached", json_integer((json_int_t)full - 1));
    json_object_set_new(reply, "timings", timings);
    return reply;
}

/* llama.cpp's form of "does not fit". */
static struct stand_in_answer too_long(const char *path, size_t n, size_t context)
{
    char line[160];
    snprintf(line, sizeof(line),
             "request (%zu tokens) exceeds the available context size (%zu tokens), try increasing "
             "it",
             n, context);
    struct stand_in_answer r = stand_in_api_error(path, 400, "exceed_context_size_error", line);
    json_t *error = json_object_get(r.json, "error");
    json_object_set_new(error, "n_prompt_tokens", json_integer((json_int_t)n));
    json_object_set_new(error, "n_ctx", json_integer((json_int_t)context));
    return r;
}

static struct stand_in_answer complete(const struct stand_in_api *a, const char *path,
                                       const struct stand_in_ask *ask, size_t max, bool openai)
{
    struct err err = { "" };
    struct stand_in_text t;
    int rc = stand_in_engine_generate(a->engine, &t, ask->ids, ask->n, max, ask->go_on, &err);
    if (rc)
        return fault(path, rc, &err);
    struct stand_in_answer r = { .status = 200,
                                 .json =
                                     openai ? openai_reply(a, ask, &t) : llamacpp_reply(a, ask, &t),
                                 .delay_us = stand_in_delay_draw(a->delay, ask->ids, ask->n) };
    free(t.ids);
    return r;
}

static struct stand_in_answer post_openai(const struct stand_in_api *a, const json_t *in)
{
    static const char path[] = "/v1/completions";
    struct stand_in_ask ask;
    struct err err = { "" };
    struct stand_in_answer r;
    size_t context = stand_in_engine_context(a->engine);
    int rc = stand_in_ask_read(&ask, a->engine, in, "max_tokens", 16, "return_token_ids", &err);
    if (rc)
        return fault(path, rc, &err);
    if (ask.max < 1)
        rc = err_set(&err, ERR_ARG, "max_tokens: expected at least 1, found %lld",
                     (long long)ask.max);
    else if (ask.n > context || (uint64_t)ask.max > context - ask.n)
        rc = err_set(&err, ERR_ARG,
                     "This model's maximum context length is %zu tokens. However, %zu tokens of "
                     "prompt and %lld of completion were requested.",
                     context, ask.n, (long long)ask.max);
    r = rc ? fault(path, rc, &err) : complete(a, path, &ask, (size_t)ask.max, true);
    free(ask.ids);
    return r;
}

static struct stand_in_answer post_llamacpp(const struct stand_in_api *a, const json_t *in)
{
    static const char path[] = "/completion";
    struct stand_in_ask ask;
    struct err err = { "" };
    struct stand_in_answer r;
    size_t context = stand_in_engine_context(a->engine);
    int rc = stand_in_ask_read(&ask, a->engine, in, "n_predict", -1, "return_tokens", &err);
    if (rc)
        return fault(path, rc, &err);
    if (ask.n >= context) {
        r = too_long(path, ask.n, context);
    } else {
        size_t room = context - ask.n; /* n_predict 0 still gives one token, as the original does */
        size_t max = ask.max < 0 || (uint64_t)ask.max > room ? room : (size_t)ask.max;
        r = complete(a, path, &ask, max ? max : 1, false);
    }
    free(ask.ids);
    return r;
}

static struct stand_in_answer post_tokenize(const struct stand_in_api *a, const json_t *in)
{
    const json_t *content = json_object_get(in, "content");
    struct err err = { "" };
    uint32_t *ids;
    size_t n;
    if (!json_is_string(content))
        return stand_in_api_error("/tokenize", 400, NULL, "content: expected a string");
    int rc = tokenizer_encode(stand_in_engine_tokenizer(a->engine), &ids, &n,
                              json_string_value(content), json_string_length(content), true, &err);
    if (rc)
        return fault("/tokenize", rc, &err);
    struct stand_in_answer r = { .status = 200,
                                 .json = json_pack("{s:o}", "tokens", list_of(ids, n)) };
    free(ids);
    return r;
}

static struct stand_in_answer post_detokenize(const struct stand_in_api *a, const json_t *in)
{
    const json_t *list = json_object_get(in, "tokens");
    struct err err = { "" };
    uint32_t *ids = NULL;
    size_t n = 0;
    if (!json_is_array(list))
        return stand_in_api_error("/detokenize", 400, NULL, "tokens: expected a list of tokens");
    int rc = json_array_size(list)
                 ? stand_in_ask_ids(&ids, &n, list, stand_in_engine_vocab(a->engine), &err)
                 : OK;
    if (rc)
        return fault("/detokenize", rc, &err);
    json_t *text = text_of(stand_in_engine_tokenizer(a->engine), ids, n, true);
    free(ids);
    return (struct stand_in_answer){ .status = 200, .json = json_pack("{s:o}", "content", text) };
}

static struct stand_in_answer get_health(const struct stand_in_api *a, const json_t *in)
{
    (void)a, (void)in;
    return (struct stand_in_answer){ .status = 200, .json = json_pack("{s:s}", "status", "ok") };
}

static struct stand_in_answer get_models(const struct stand_in_api *a, const json_t *in)
{
    (void)in;
    json_int_t context = (json_int_t)stand_in_engine_context(a->engine);
    json_t *meta = json_pack("{s:I,s:I}", "n_vocab", (json_int_t)stand_in_engine_vocab(a->engine),
                             "n_ctx", context);
    json_t *model = json_pack("{s:s,s:s,s:I,s:s,s:s,s:n,s:I,s:o}", "id", a->name, "object", "model",
                              "created", (json_int_t)a->created, "owned_by", "mizzle", "root",
                              a->name, "parent", "max_model_len", context, "meta", meta);
    return (struct stand_in_answer){
        .status = 200, .json = json_pack("{s:s,s:[o]}", "object", "list", "data", model)
    };
}

static struct stand_in_answer get_props(const struct stand_in_api *a, const json_t *in)
{
    (void)in;
    const struct tokenizer *t = stand_in_engine_tokenizer(a->engine);
    uint32_t eos;
    json_t *props = json_pack(
        "{s:{s:I,s:{s:f,s:i,s:i}},s:I,s:s,s:s,s:s}", "default_generation_settings", "n_ctx",
        (json_int_t)stand_in_engine_context(a->engine), "params", "temperature", 0.0, "top_k", 1,
        "n_predict", -1, "total_slots", (json_int_t)stand_in_engine_slots(a->engine), "model_path",
        a->name, "model_alias", a->name, "build_info", "mizzle");
    if (tokenizer_eos(t, &eos))
        json_object_set_new(props, "eos_token", text_of(t, &eos, 1, true));
    return (struct stand_in_answer){ .status = 200, .json = props };
}

static const struct route {
    const char *method, *path;
    struct stand_in_answer (*answer)(const struct stand_in_api *a, const json_t *in);
} routes[] = {
    { "POST", "/v1/completions", post_openai },
    { "POST", "/completion", post_llamacpp },
    { "POST", "/tokenize", post_tokenize },
    { "POST", "/detokenize", post_detokenize },
    { "GET", "/health", get_health },
    { "GET", "/v1/models", get_models },
    { "GET", "/props", get_props },
};

static const struct route *find(const char *path)
{
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
        if (strcmp(routes[i].path, path) == 0)
            return &routes[i];
    return NULL;
}

bool stand_in_api_route(const char *method, const char *path, bool *allowed)
{
    const struct route *r = find(path);
    *allowed = r && (strcmp(r->method, method) == 0 ||
                     (strcmp(r->method, "GET") == 0 && strcmp(method, "HEAD") == 0));
    return r != NULL;
}

struct stand_in_answer stand_in_api_answer(const struct stand_in_api *a, const char *path,
                                           const char *body, size_t n)
{
    const struct route *r = find(path);
    struct err err = { "" };
    json_t *in = NULL;
    if (strcmp(r->method, "POST") == 0 && jsonin_parse(&in, body, n, &err))
        return stand_in_api_error(path, 400, NULL, err.msg);
    struct stand_in_answer answer = r->answer(a, in);
    json_decref(in);
    return answer;
}
