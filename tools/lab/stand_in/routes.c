/* routes.c - the routes of the imitated servers, and what they say of themselves. */
#include <string.h>

#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/mizzle.h"
#include "tools/cli/json_report.h"
#include "tools/lab/stand_in/stand_in_internal.h"

#define BUILD "mizzle-" MIZZLE_VERSION

static void routes_health(struct serve_exchange *x)
{
    serve_routes_json(x, 200, json_pack("{s:s}", "status", "ok"));
}

static void routes_nothing(struct serve_exchange *x)
{
    struct buf none = { 0 };
    serve_routes_send(x, 200, NULL, &none, NULL);
}

static void routes_version(struct serve_exchange *x)
{
    serve_routes_json(x, 200, json_pack("{s:s}", "version", BUILD));
}

/* The members differ by server, so that a client can tell which one it talks to. */
static void routes_models(struct serve_exchange *x)
{
    static const char *const owners[] = { "mizzle", "vllm", "llamacpp", "sglang" };
    const struct stand_in *in = stand_in_of(x);
    const struct serve *s = x->s;
    const struct model_config *c = &s->engine.model->config;
    json_t *model = json_pack("{s:s,s:s,s:I,s:s}", "id", s->name, "object", "model", "created",
                              (json_int_t)s->created, "owned_by", owners[in->server]);
    if (in->server == CLOUD_AUTO) {
        json_report_set(&model, "fingerprint", json_string(in->fingerprint));
        json_report_set(&model, "kv", json_string(kvcache_name(s->kv)));
    }
    if (in->server != CLOUD_LLAMACPP) {
        json_report_set(&model, "root", json_string(s->name));
        json_report_set(&model, "parent", json_null());
        json_report_set(&model, "max_model_len", json_integer((json_int_t)s->context));
    }
    if (in->server == CLOUD_LLAMACPP || in->server == CLOUD_AUTO)
        json_report_set(&model, "meta",
                        json_pack("{s:I,s:I,s:I}", "n_vocab", (json_int_t)c->vocab, "n_ctx",
                                  (json_int_t)s->context, "n_ctx_train", (json_int_t)c->context));
    serve_routes_json(x, 200, json_pack("{s:s,s:[o]}", "object", "list", "data", model));
}

/* llama.cpp's server properties. */
static void routes_props(struct serve_exchange *x)
{
    const struct serve *s = x->s;
    uint32_t eos;
    bool ends = tokenizer_eos(s->engine.tokenizer, &eos);
    serve_routes_json(x, 200,
                      json_pack("{s:{s:I,s:{s:f,s:i,s:i}},s:I,s:s,s:s,s:s,s:o}",
                                "default_generation_settings", "n_ctx", (json_int_t)s->context,
                                "params", "temperature", 0.0, "top_k", 1, "n_predict", -1,
                                "total_slots", (json_int_t)texts_count(s->texts).slots,
                                "model_path", s->name, "model_alias", s->name, "build_info", BUILD,
                                "eos_token", ends ? stand_in_form_text(s, &eos, 1) : json_null()));
}

static void routes_slots(struct serve_exchange *x)
{
    const struct serve *s = x->s;
    json_t *list = json_array();
    size_t n = texts_count(s->texts).slots;
    for (size_t i = 0; i < n; i++)
        json_report_add(&list, json_pack("{s:I,s:I,s:b,s:b}", "id", (json_int_t)i, "n_ctx",
                                         (json_int_t)s->context, "speculative", 0, "is_processing",
                                         (int)texts_busy(s->texts, i)));
    serve_routes_json(x, 200, list);
}

/* SGLang's model and server information. */
static void routes_model_info(struct serve_exchange *x)
{
    const char *name = x->s->name;
    serve_routes_json(x, 200,
                      json_pack("{s:s,s:s,s:b,s:n,s:s}", "model_path", name, "tokenizer_path", name,
                                "is_generation", 1, "preferred_sampling_params", "weight_version",
                                "default"));
}

static void routes_server_info(struct serve_exchange *x)
{
    const struct serve *s = x->s;
    const struct texts_counts count = texts_count(s->texts);
    serve_routes_json(x, 200,
                      json_pack("{s:s,s:s,s:I,s:b,s:I,s:I,s:s}", "model_path", s->name,
                                "served_model_name", s->name, "context_length",
                                (json_int_t)s->context, "skip_tokenizer_init", 0,
                                "max_running_requests", (json_int_t)count.slots, "waiting_requests",
                                (json_int_t)count.waiting, "version", BUILD));
}

enum { A = 1 << CLOUD_AUTO, O = 1 << CLOUD_OPENAI, S = 1 << CLOUD_SGLANG, L = 1 << CLOUD_LLAMACPP };

#define POST .post = true, .any_type = true /* else read only if declared as JSON */

/* Where a path appears twice, the servers differ. */
static const struct {
    unsigned servers;  /* bit mask of 1 << enum cloud_api */
    enum cloud_api as; /* whose words and forms to use with CLOUD_AUTO */
    struct serve_route route;
} rows[] = {
    { A | L, CLOUD_OPENAI, { "/v1/completions", POST, .answer = stand_in_ask_openai } },
    { O | S, CLOUD_OPENAI, { "/v1/completions", .post = true, .answer = stand_in_ask_openai } },
    { A | S, CLOUD_SGLANG, { "/generate", POST, .answer = stand_in_ask_sglang } },
    { A | L, CLOUD_LLAMACPP, { "/completion", POST, .answer = stand_in_ask_llamacpp } },
    { L, CLOUD_LLAMACPP, { "/completions", POST, .answer = stand_in_ask_llamacpp } },
    { A | O | L,
      CLOUD_LLAMACPP,
      { "/tokenize", POST, .answer = serve_tokens_encode, .room = serve_tokens_room } },
    { A,
      CLOUD_LLAMACPP,
      { "/detokenize", POST, .answer = serve_tokens_decode, .room = serve_tokens_room } },
    { O,
      CLOUD_OPENAI,
      { "/detokenize", POST, .answer = serve_tokens_decode, .room = serve_tokens_room,
        .field = "prompt" } },
    { L,
      CLOUD_LLAMACPP,
      { "/detokenize", POST, .answer = serve_tokens_decode, .room = serve_tokens_room,
        .field = "content" } },
    { A | L, CLOUD_LLAMACPP, { "/health", .open = true, .answer = routes_health } },
    { O | S, CLOUD_OPENAI, { "/health", .open = true, .answer = routes_nothing } },
    { A | O, CLOUD_OPENAI, { "/version", .answer = routes_version } },
    { A | O | S, CLOUD_OPENAI, { "/v1/models", .answer = routes_models } },
    { L, CLOUD_LLAMACPP, { "/v1/models", .open = true, .answer = routes_models } },
    { L, CLOUD_LLAMACPP, { "/models", .open = true, .answer = routes_models } },
    { A | L, CLOUD_LLAMACPP, { "/props", .answer = routes_props } },
    { A | L, CLOUD_LLAMACPP, { "/slots", .answer = routes_slots } },
    { A | S, CLOUD_SGLANG, { "/model_info", .answer = routes_model_info } },
    { A | S, CLOUD_SGLANG, { "/get_model_info", .answer = routes_model_info } },
    { A | S, CLOUD_SGLANG, { "/server_info", .answer = routes_server_info } },
    { A | S, CLOUD_SGLANG, { "/get_server_info", .answer = routes_server_info } },
};

void stand_in_routes(struct stand_in *s)
{
    size_t n = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].servers & 1u << s->server && n < STAND_IN_ROUTES) {
            s->as[n] = rows[i].as;
            s->routes[n++] = rows[i].route;
        }
}

enum cloud_api stand_in_dialect(const struct serve_exchange *x)
{
    const struct stand_in *s = stand_in_of(x);
    if (s->server || x->route)
        return s->server ? s->server : s->as[x->route - s->routes];
    return strncmp(server_path(x->r), "/v1/", 4) == 0 ? CLOUD_OPENAI : CLOUD_LLAMACPP;
}
