#include "tools/lab/stand_in/paths.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "router/mizzle.h"
#include "tools/cli/json_report.h"
#include "tools/lab/stand_in/reply.h"
#include "tools/lab/stand_in/source.h"

/* Handlers of GET and POST requests follow, one for each reply. */
static json_t *get_health(const struct stand_in_query *q)
{
    (void)q;
    return json_pack("{s:s}", "status", "ok");
}

static json_t *get_version(const struct stand_in_query *q)
{
    (void)q;
    return json_pack("{s:s}", "version", "mizzle-" MIZZLE_VERSION);
}

/* The members differ by server, so that a client can tell which one it talks to. */
static json_t *get_models(const struct stand_in_query *q)
{
    static const char *const owners[] = { [CLOUD_AUTO] = "mizzle",
                                          [CLOUD_OPENAI] = "vllm",
                                          [CLOUD_SGLANG] = "sglang",
                                          [CLOUD_LLAMACPP] = "llamacpp" };
    const struct stand_in_paths *a = q->paths;
    json_int_t context = (json_int_t)a->source->context;
    json_t *model = json_pack("{s:s,s:s,s:I,s:s}", "id", a->name, "object", "model", "created",
                              (json_int_t)a->created, "owned_by", owners[a->server]);
    if (a->server == CLOUD_AUTO && a->source->fingerprint[0]) {
        json_object_set_new(model, "fingerprint", json_string(a->source->fingerprint));
        json_object_set_new(model, "kv", json_string(kvcache_name(a->source->kv)));
    }
    if (a->server != CLOUD_LLAMACPP) {
        json_object_set_new(model, "root", json_string(a->name));
        json_object_set_new(model, "parent", json_null());
        json_object_set_new(model, "max_model_len", json_integer(context));
    }
    if (a->server == CLOUD_LLAMACPP || a->server == CLOUD_AUTO)
        json_object_set_new(model, "meta",
                            json_pack("{s:I,s:I,s:I}", "n_vocab", (json_int_t)a->source->vocab,
                                      "n_ctx", context, "n_ctx_train",
                                      (json_int_t)a->source->trained));
    return json_pack("{s:s,s:[o]}", "object", "list", "data", model);
}

/* llama.cpp's server properties. */
static json_t *get_props(const struct stand_in_query *q)
{
    const struct stand_in_paths *a = q->paths;
    const struct tokenizer *t = a->source->tokenizer;
    uint32_t eos;
    json_t *props = json_pack(
        "{s:{s:I,s:{s:f,s:i,s:i}},s:I,s:s,s:s,s:s}", "default_generation_settings", "n_ctx",
        (json_int_t)a->source->context, "params", "temperature", 0.0, "top_k", 1, "n_predict", -1,
        "total_slots", (json_int_t)texts_count(a->source->texts).slots, "model_path", a->name,
        "model_alias", a->name, "build_info", "mizzle-" MIZZLE_VERSION);
    if (props && tokenizer_eos(t, &eos))
        json_object_set_new(props, "eos_token", stand_in_reply_text(t, &eos, 1, true));
    return props;
}

static json_t *get_slots(const struct stand_in_query *q)
{
    const struct stand_in_source *s = q->paths->source;
    json_t *list = json_array();
    size_t n = texts_count(s->texts).slots;
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:I,s:I,s:b,s:b}", "id", (json_int_t)i, "n_ctx",
                                              (json_int_t)s->context, "speculative", 0,
                                              "is_processing", texts_busy(s->texts, i)));
    return list;
}

/* SGLang's model and server information. */
static json_t *get_model_info(const struct stand_in_query *q)
{
    const char *name = q->paths->name;
    return json_pack("{s:s,s:s,s:b,s:n,s:s}", "model_path", name, "tokenizer_path", name,
                     "is_generation", 1, "preferred_sampling_params", "weight_version", "default");
}

static json_t *get_server_info(const struct stand_in_query *q)
{
    const struct stand_in_paths *a = q->paths;
    const struct texts_counts count = texts_count(a->source->texts);
    return json_pack("{s:s,s:s,s:I,s:b,s:I,s:I,s:s}", "model_path", a->name, "served_model_name",
                     a->name, "context_length", (json_int_t)a->source->context,
                     "skip_tokenizer_init", 0, "max_running_requests", (json_int_t)count.slots,
                     "waiting_requests", (json_int_t)count.waiting, "version",
                     "mizzle-" MIZZLE_VERSION);
}

/* llama.cpp's request has "content", vLLM's "prompt"; with CLOUD_AUTO the field decides. */
static json_t *post_tokenize(const struct stand_in_query *q)
{
    const struct stand_in_source *s = q->paths->source;
    bool vllm = q->paths->server == CLOUD_OPENAI ||
                (q->paths->server == CLOUD_AUTO && json_object_get(q->in, "prompt"));
    const char *field = vllm ? "prompt" : "content";
    const json_t *content = json_object_get(q->in, field);
    uint32_t *ids;
    size_t n;
    if (!json_is_string(content)) {
        enum cloud_api form = q->no->server;
        q->no->server = vllm ? CLOUD_OPENAI : CLOUD_LLAMACPP;
        stand_in_question_mistyped(q->no, field, "string", content);
        q->no->server = form; /* of the reply around these words */
        return NULL;
    }
    if (tokenizer_encode_part(s->tokenizer, &ids, &n, json_string_value(content),
                              json_string_length(content), true, NULL))
        return NULL;
    json_t *list = json_report_ids(ids, n);
    free(ids);
    if (!vllm)
        return json_pack("{s:o}", "tokens", list);
    return json_pack("{s:I,s:I,s:o,s:n}", "count", (json_int_t)n, "max_model_len",
                     (json_int_t)s->context, "tokens", list, "token_strs");
}

/* vLLM's reply has "prompt", llama.cpp's "content"; CLOUD_AUTO sends both. */
static json_t *post_detokenize(const struct stand_in_query *q)
{
    const struct stand_in_paths *a = q->paths;
    const json_t *list = json_object_get(q->in, "tokens");
    uint32_t *ids = NULL;
    size_t n;
    if (!json_is_array(list))
        stand_in_question_mistyped(q->no, "tokens", "list", list);
    else
        stand_in_question_ids(&ids, &n, "tokens", list, a->source->vocab, SIZE_MAX, q->no);
    if (q->no->what)
        return NULL;
    json_t *text = stand_in_reply_text(a->source->tokenizer, ids, n, true);
    free(ids);
    json_t *reply = json_object();
    if (a->server != CLOUD_LLAMACPP)
        json_object_set(reply, "prompt", text);
    if (a->server != CLOUD_OPENAI)
        json_object_set(reply, "content", text);
    json_decref(text);
    return reply;
}

enum { A = 1 << CLOUD_AUTO, O = 1 << CLOUD_OPENAI, S = 1 << CLOUD_SGLANG, L = 1 << CLOUD_LLAMACPP };

/* Where a path appears twice, the servers differ. */
static const struct stand_in_route routes[] = {
    { "POST", "/v1/completions", A | O, CLOUD_OPENAI, .completion = true, .form = FORM_VLLM },
    { "POST", "/v1/completions", S | L, .completion = true, .form = FORM_TEXT },
    { "POST, PUT", "/generate", A | S, CLOUD_SGLANG, .completion = true, .form = FORM_GENERATE },
    { "POST", "/completion", A | L, CLOUD_LLAMACPP, .completion = true, .form = FORM_COMPLETION },
    { "POST", "/completions", L, CLOUD_LLAMACPP, .completion = true, .form = FORM_COMPLETION },
    { "POST", "/tokenize", A | O | L, CLOUD_LLAMACPP, .answer = post_tokenize },
    { "POST", "/detokenize", A | O | L, CLOUD_LLAMACPP, .answer = post_detokenize },
    { "GET", "/health", A | L, CLOUD_LLAMACPP, .open = true, .answer = get_health },
    { "GET", "/health", O | S, .open = true },
    { "GET", "/v1/health", L, .open = true, .answer = get_health },
    { "GET", "/health_generate", A | S, CLOUD_SGLANG, .open = true },
    { "GET", "/ping", O, .open = true },
    { "GET", "/version", A | O, CLOUD_OPENAI, .answer = get_version },
    { "GET", "/v1/models", A | O | S, CLOUD_OPENAI, .answer = get_models },
    { "GET", "/v1/models", L, .open = true, .answer = get_models },
    { "GET", "/models", L, .open = true, .answer = get_models },
    { "GET", "/props", A | L, CLOUD_LLAMACPP, .answer = get_props },
    { "GET", "/slots", A | L, CLOUD_LLAMACPP, .answer = get_slots },
    { "GET", "/model_info", A | S, CLOUD_SGLANG, .answer = get_model_info },
    { "GET", "/get_model_info", A | S, CLOUD_SGLANG, .answer = get_model_info },
    { "GET", "/server_info", A | S, CLOUD_SGLANG, .answer = get_server_info },
    { "GET", "/get_server_info", A | S, CLOUD_SGLANG, .answer = get_server_info },
};

const struct stand_in_route *stand_in_paths_find(const struct stand_in_paths *a, const char *method,
                                                 const char *path, struct stand_in_refusal *no)
{
    no->server = a->server                       ? a->server
                 : strncmp(path, "/v1/", 4) == 0 ? CLOUD_OPENAI
                                                 : CLOUD_LLAMACPP;
    no->what = WRONG_PATH;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        const struct stand_in_route *r = &routes[i];
        if (!(r->servers & 1u << a->server) || strcmp(r->path, path) != 0)
            continue;
        if (!a->server)
            no->server = r->as;
        if (text_among(strcmp(method, "HEAD") == 0 ? "GET" : method, r->methods)) {
            no->what = WRONG_NOTHING;
            return r;
        }
        stand_in_refusal_set(no, WRONG_METHOD, "%s", r->methods);
    }
    return NULL;
}
