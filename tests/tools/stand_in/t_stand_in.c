/* The stand-in server: both dialects return the model's own greedy token, a growing prefix is not
 * computed again, errors have the forms of the real servers, and many clients at once change
 * nothing. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/sample.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "net/cloud.h"
#include "net/http/http.h"
#include "net/http/json_input.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tests/support/http_client.h"
#include "tools/lab/stand_in/stand_in.h"

enum { CLIENTS = 12, STEPS = 12 };

static const char *model;
static struct stand_in *server;

/* Return the model's own token after ids[n], with an empty cache. */
static uint32_t truth(const uint32_t *ids, size_t n)
{
    const struct mizzle_options mo = { .model = model, .threads = 1 };
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    struct engine e;
    struct session *s;
    struct sampler *pick;
    struct err err = { "" };
    CHECK(engine_open(&e, &mo, true, &err) == OK);
    CHECK(session_open(&s, e.batch, TINY_CONTEXT, KVCACHE_F32, &err) == OK);
    CHECK(sampler_open(&pick, &greedy, tokenizer_size(e.tokenizer), &e.kernels, &err) == OK);
    CHECK(session_eval(s, ids, n, NULL, &err) == OK);
    uint32_t id = sampler_pick(pick, session_logits(s, 0), ids, n);
    sampler_close(pick);
    session_close(s);
    engine_close(&e);
    return id;
}

/* Open a client with the vocabulary of the test model. */
static struct cloud *client(enum cloud_api api)
{
    const struct cloud_options o = { .url = stand_in_url(server), .api = api, .vocab = TINY_VOCAB };
    struct cloud *c;
    struct err err = { "" };
    CHECK(cloud_open(&c, &o, &err) == OK);
    return c;
}

static void test_dialects(void)
{
    static const enum cloud_api apis[] = { CLOUD_AUTO, CLOUD_OPENAI, CLOUD_LLAMACPP };
    for (size_t a = 0; a < 3; a++) {
        uint32_t ids[STEPS + 3] = { 72, 105, 33 };
        struct err err = { "" };
        struct cloud *c = client(apis[a]);
        for (size_t n = 3; n < 3 + STEPS; n++) {
            CHECK(cloud_next(c, ids, n, &ids[n], &err) == OK);
            CHECK(ids[n] == truth(ids, n));
        }
        CHECK(cloud_ledger(c)->tokens == STEPS && cloud_ledger(c)->faults == 0);
        CHECK(cloud_known_info(c)->api == (a == 2 ? CLOUD_LLAMACPP : CLOUD_OPENAI));
        cloud_close(c);
    }
}

/* Send one request and return the parsed reply. */
static json_t *call(const char *key, const char *path, const char *body, size_t n, long *status)
{
    struct http *h;
    struct http_try *t, *ended = NULL;
    struct err err = { "" };
    char url[128];
    json_t *root;
    const struct http_options o = { .key = key, .max_reply = 1 << 20 };
    snprintf(url, sizeof(url), "%s%s", stand_in_url(server), path);
    CHECK(http_open(&h, &o, &err) == OK);
    const struct http_request r = { .url = url, .body = body, .n = n };
    CHECK(http_start(h, &t, &r, NULL, NULL, &err) == OK);
    while (http_perform(h, &err) == OK && !(ended = http_ended(h)))
        http_wait(h, 1000);
    CHECK(ended == t && t->rc == OK);
    *status = t->status;
    CHECK(json_input_parse(&root, t->body.p, t->body.n, &err) == OK);
    http_release(h, t);
    http_close(h);
    return root;
}

static json_t *post(const char *path, const char *body, long *status)
{
    return call(NULL, path, body, strlen(body), status);
}

/* Return the integer root.a, or root.a.b. */
static json_int_t number(const json_t *root, const char *a, const char *b)
{
    const json_t *v = json_object_get(root, a);
    v = b ? json_object_get(v, b) : v;
    CHECK(json_is_integer(v));
    return json_integer_value(v);
}

static void test_forms(void)
{
    long status;
    json_t *r = post("/v1/completions",
                     "{\"model\":\"x\",\"prompt\":\"Hello\",\"max_tokens\":4,\"temperature\":0,"
                     "\"ignore_eos\":true,\"return_token_ids\":true}",
                     &status);
    const json_t *choice = json_array_get(json_object_get(r, "choices"), 0);
    CHECK(status == 200 && json_is_string(json_object_get(choice, "text")));
    CHECK(json_array_size(json_object_get(choice, "token_ids")) == 4);
    CHECK(json_array_size(json_object_get(choice, "prompt_token_ids")) == 5);
    CHECK(strcmp(json_string_value(json_object_get(choice, "finish_reason")), "length") == 0);
    CHECK(number(r, "usage", "total_tokens") == 9);
    json_decref(r);
    r = post("/v1/completions", "{\"prompt\":[72,105],\"max_tokens\":1}", &status);
    choice = json_array_get(json_object_get(r, "choices"), 0);
    CHECK(status == 200 && choice && !json_object_get(choice, "token_ids"));
    json_decref(r);
    r = post("/completion", "{\"prompt\":[72,105],\"n_predict\":0,\"return_tokens\":true}",
             &status);
    CHECK(status == 200 && json_array_size(json_object_get(r, "tokens")) == 1);
    CHECK(number(r, "tokens_evaluated", NULL) == 2 && number(r, "tokens_predicted", NULL) == 1);
    CHECK(json_is_true(json_object_get(r, "stop")) && json_object_get(r, "stop_type"));
    json_decref(r);
    r = post("/tokenize", "{\"content\":\"Hi<|im_end|>\"}", &status);
    const json_t *ids = json_object_get(r, "tokens");
    CHECK(json_array_size(ids) == 3 && json_integer_value(json_array_get(ids, 2)) == TINY_IM_END);
    json_decref(r);
    r = post("/detokenize", "{\"tokens\":[72,105,256,255]}", &status);
    const char *text = json_string_value(json_object_get(r, "content"));
    CHECK(status == 200 && text && strcmp(text, "Hi<|im_end|>\xef\xbf\xbd") == 0);
    json_decref(r);
    r = call(NULL, "/health", NULL, 0, &status);
    CHECK(status == 200 && strcmp(json_string_value(json_object_get(r, "status")), "ok") == 0);
    json_decref(r);
    r = call(NULL, "/props", NULL, 0, &status);
    CHECK(number(r, "default_generation_settings", "n_ctx") == TINY_CONTEXT);
    json_decref(r);
}

/* The prefix of the previous call is kept, and so are those of a few other texts. */
static void test_prefixes(void)
{
    static const char *const grow[] = { "{\"prompt\":[1,2,3,4,5],\"n_predict\":1}",
                                        "{\"prompt\":[90,91,92,93],\"n_predict\":1}",
                                        "{\"prompt\":[1,2,3,4,5,6],\"n_predict\":1}",
                                        "{\"prompt\":[90,91,92,93,94],\"n_predict\":1}",
                                        "{\"prompt\":[1,2,3,4,5,6],\"n_predict\":1}",
                                        "{\"prompt\":[1,2,3,4],\"n_predict\":1}" };
    static const json_int_t kept[] = { 0, 0, 5, 4, 5, 3 };
    for (size_t i = 0; i < sizeof(grow) / sizeof(grow[0]); i++) {
        long status;
        json_t *r = post("/completion", grow[i], &status);
        CHECK(status == 200 && number(r, "timings", "cache_n") == kept[i]);
        json_decref(r);
    }
}

/* A request that must be refused. */
struct bad {
    enum cloud_api server;
    const char *method, *path, *body;
    int status;
    const char *says; /* expected in the body */
};

#define ALL  CLOUD_AUTO
#define VLLM CLOUD_OPENAI
#define SGL  CLOUD_SGLANG
#define LCPP CLOUD_LLAMACPP

#define C "POST", "/completion"
#define V "POST", "/v1/completions"
#define G "POST", "/generate"

static const struct bad bads[] = {
    { ALL, "GET", "/nope", NULL, 404, "{\"error\":{\"code\":404,\"message\":\"File Not Found\"" },
    { VLLM, "GET", "/nope", NULL, 404, "{\"detail\":\"Not Found\"}" },
    { SGL, "POST", "/generatee", "{}", 404, "{\"detail\":\"Not Found\"}" },
    { LCPP, "POST", "/generate", "{}", 404, "File Not Found" },
    { SGL, "POST", "/completion", "{}", 404, "Not Found" },
    { VLLM, "GET", "/props", NULL, 404, "Not Found" },
    { ALL, "GET", "/v1/completions", NULL, 405, "{\"detail\":\"Method Not Allowed\"}" },
    { SGL, "GET", "/generate", NULL, 405, "{\"detail\":\"Method Not Allowed\"}" },
    { SGL, "DELETE", "/generate", NULL, 405, "Method Not Allowed" },
    { LCPP, "GET", "/completion", NULL, 404, "not_found_error" },
    { ALL, "POST", "/health", "{}", 404, "File Not Found" },
    { ALL, C, "{\"prompt\": [1,2,", 500, "\"server_error\"" },
    { ALL, C, "", 500, "json.exception.parse_error.101" },
    { ALL, C, "[]", 400, "a JSON object as the body, found a list" },
    { ALL, C, "{}", 400, "[json.exception.out_of_range.403] key 'prompt' not found" },
    { ALL, C, "{\"prompt\":[]}", 400, "\\\"prompt\\\" must not be empty" },
    { ALL, C, "{\"prompt\":\"\"}", 400, "must not be empty" },
    { ALL, C, "{\"prompt\":{\"a\":1}}", 400, "elements must be a string" },
    { ALL, C, "{\"prompt\":[1,-5]}", 400, "Prompt contains invalid tokens" },
    { ALL, C, "{\"prompt\":[1,272]}", 400, "Prompt contains invalid tokens" },
    { ALL, C, "{\"prompt\":[1,2.5]}", 400,
      "prompt[1]: expected a token id of this model, found 2.5" },
    { ALL, C, "{\"prompt\":[1,\"x\"]}", 400,
      "prompt[1]: expected a token id of this model, found \\\"x\\\"" },
    { ALL, C, "{\"prompt\":[1],\"temperature\":\"hot\"}", 400,
      "{\"error\":{\"code\":400,\"message\":\"Field 'temperature': "
      "[json.exception.type_error.302] type must be number, but is string\",\"type\":"
      "\"invalid_request_error\"}}" },
    { ALL, C, "{\"prompt\":[1],\"n_probs\":3}", 400, "n_probs" },
    { ALL, C, "{\"prompt\":[1],\"stream\":3}", 400, "stream" },
    { ALL, C, "{\"prompt\":[1],\"stop\":[7]}", 400, "stop: expected texts" },
    { ALL, C, "{\"prompt\":[[1],[2]]}", 400, "one prompt" },
    { VLLM, V, "{\"prompt\": [1,2,", 400, "\"type\":\"Bad Request\"" },
    { ALL, V, "{\"prompt\":[1],\"temperature\":-1}", 400, "temperature: expected a number" },
    { ALL, V, "{\"prompt\":[1],\"n\":0}", 400, "n: " },
    { ALL, V, "{\"prompt\":[1],\"max_tokens\":0}", 400, "max_tokens" },
    { ALL, V, "{\"prompt\":[1],\"max_tokens\":256}", 400, "maximum context length is 256" },
    { ALL, V, "{\"prompt\":[1],\"max_tokens\":9223372036854775807}", 400, "context" },
    { ALL, V, "{\"prompt\":[1],\"max_tokens\":\"1\"}", 400, "max_tokens: expected a whole number" },
    { ALL, V, "{\"prompt\":[1],\"return_token_ids\":\"yes\"}", 400, "return_token_ids" },
    { ALL, V, "{\"prompt\":[[1],[]]}", 400, "prompt[1]: expected at least one token" },
    { ALL, V, "{\"prompt\":[999]}", 400, "expected a token id of this model, found 999" },
    { VLLM, V, "{\"model\":\"x\\u001b\",\"prompt\":[1]}", 404,
      "{\"error\":{\"message\":\"The model `x ` does not exist.\",\"type\":\"NotFoundError\","
      "\"param\":\"model\",\"code\":404}}" },
    { SGL, V, "{\"prompt\":[1],\"temperature\":-1}", 400, "\"type\":\"BadRequestError\"" },
    { SGL, G, "{\"input_ids\":[1,2", 400, "\"type\":\"Bad Request\",\"param\":null,\"code\":400}" },
    { SGL, G, "{\"input_ids\":\"abc\"}", 400, "body -> input_ids" },
    { ALL, G, "{\"input_ids\":[]}", 400,
      "{\"error\":{\"message\":\"input_ids cannot be empty.\"}}" },
    { ALL, G, "{\"sampling_params\":{}}", 400,
      "{\"error\":{\"message\":\"Either text, input_ids or input_embeds should be provided.\"}}" },
    { ALL, G, "{\"input_ids\":[272]}", 400,
      "{\"error\":{\"message\":\"The input_ids [272] contains values greater than the vocab size "
      "(258).\"}}" },
    { ALL, G, "{\"input_ids\":[272],\"stream\":true}", 200,
      "data: {\"error\":{\"message\":\"The input_ids [272] contains values greater than the vocab "
      "size (258).\"}}\n\ndata: [DONE]\n\n" },
    { ALL, G, "{\"input_ids\":[1],\"sampling_params\":{\"bogus\":1}}", 500,
      "Internal Server Error" },
    { ALL, G, "{\"input_ids\":[1],\"sampling_params\":{\"temperature\":-1}}", 400,
      "temperature: expected a number" },
    { ALL, G, "{\"input_ids\":[1],\"sampling_params\":{\"max_new_tokens\":256}}", 400,
      "maximum context length is 256 tokens" },
    { ALL, G, "{\"input_ids\":[1],\"sampling_params\":7}", 400, "sampling_params" },
    { ALL, G, "{\"input_ids\":[1],\"return_logprob\":true}", 400, "return_logprob" },
    { ALL, "POST", "/tokenize", "{\"content\":7}", 400, "content" },
    { VLLM, "POST", "/tokenize", "{\"prompt\":7}", 400, "prompt" },
    { ALL, "POST", "/detokenize", "{\"tokens\":[99999]}", 400,
      "expected a token id of this model" },
    { ALL, "POST", "/detokenize", "{\"tokens\":7}", 400, "tokens" },
};

static void test_errors(void)
{
    struct stand_in *servers[4] = { server };
    struct err err = { "" };
    for (unsigned i = 1; i < 4; i++) {
        const struct stand_in_options o = { .model = model,
                                            .threads = 1,
                                            .server = (enum cloud_api)i };
        CHECK(stand_in_open(&servers[i], &o, &err) == OK);
    }
    for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
        const struct bad *b = &bads[i];
        struct http_client_reply *r =
            http_client_reply(stand_in_port(servers[b->server]), b->method, b->path, NULL, b->body);
        CHECK_MSG(r->status == b->status && r->whole && strstr(r->body, b->says), "%d %s %s: %d %s",
                  (int)b->server, b->path, b->body ? b->body : "", r->status, r->body);
        CHECK(strstr(r->head, "Accept-Encoding: gzip, deflate"));
        CHECK(b->status != 405 || strstr(r->head, "Allow: POST"));
    }
    for (unsigned i = 1; i < 4; i++)
        stand_in_close(servers[i]);
}

/* Bodies that are too large, too deep or too long for the context are refused. */
static void test_large(void)
{
    long status;
    size_t n = 5 << 20;
    char *big = malloc(n);
    CHECK(big);
    memset(big, '[', n);
    json_decref(call(NULL, "/completion", big, 1 << 20, &status));
    CHECK(status == 500); /* nested too deeply */
    json_decref(call(NULL, "/completion", big, n, &status));
    CHECK(status == 413);
    memset(big, ' ', n);
    size_t at = (size_t)snprintf(big, n, "{\"prompt\":[1");
    for (int i = 1; i < TINY_CONTEXT; i++)
        at += (size_t)snprintf(big + at, n - at, ",1");
    at += (size_t)snprintf(big + at, n - at, "]}");
    json_t *r = call(NULL, "/completion", big, at, &status);
    const json_t *error = json_object_get(r, "error");
    CHECK(status == 400 && number(error, "n_prompt_tokens", NULL) == TINY_CONTEXT &&
          number(error, "n_ctx", NULL) == TINY_CONTEXT);
    CHECK(strcmp(json_string_value(json_object_get(error, "type")), "exceed_context_size_error") ==
          0);
    json_decref(r);
    free(big);
}

struct worker {
    pthread_t thread;
    uint32_t ids[4 + STEPS];
};

static void *work(void *arg)
{
    struct worker *w = arg;
    struct err err = { "" };
    struct cloud *c = client(CLOUD_OPENAI);
    for (size_t n = 4; n < 4 + STEPS; n++)
        CHECK(cloud_next(c, w->ids, n, &w->ids[n], &err) == OK);
    cloud_close(c);
    return NULL;
}

/* Clients with their own texts get the model's tokens. */
static void test_many(void)
{
    static struct worker workers[CLIENTS];
    for (uint32_t i = 0; i < CLIENTS; i++) {
        memcpy(workers[i].ids, (uint32_t[]){ 10 + i, 20, 30, i }, 4 * sizeof(uint32_t));
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        pthread_join(workers[i].thread, NULL);
        for (size_t n = 4; n < 4 + STEPS; n += 5)
            CHECK(workers[i].ids[n] == truth(workers[i].ids, n));
    }
}

static void test_key_and_port(void)
{
    long status;
    struct err err = { "" };
    struct stand_in *second;
    struct stand_in_options o = { .model = model, .listen.key = "sesame" };
    CHECK(stand_in_open(&server, &o, &err) == OK);
    o.listen.port = stand_in_port(server);
    CHECK(stand_in_open(&second, &o, &err) == ERR_NET && !second && strstr(err.msg, "listen"));
    json_decref(call(NULL, "/health", NULL, 0, &status));
    CHECK(status == 200);
    json_t *r = call("wrong", "/v1/models", NULL, 0, &status);
    CHECK(status == 401 &&
          strcmp(json_string_value(json_object_get(r, "error")), "Unauthorized") == 0);
    json_decref(r);
    r = call(NULL, "/props", NULL, 0, &status);
    CHECK(status == 401 && number(r, "error", "code") == 401);
    json_decref(r);
    json_decref(call("sesame", "/v1/models", NULL, 0, &status));
    CHECK(status == 200);
    stand_in_close(server);
    o.model = "build/no-such-model";
    o.listen.port = 0;
    CHECK(stand_in_open(&server, &o, &err) == ERR_IO && !server);
    o.listen.host = "not an address";
    CHECK(stand_in_open(&server, &o, &err) == ERR_ARG && !server);
}

int main(void)
{
    model = tiny_make();
    const struct stand_in_options o = { .model = model, .slots = 3 }; /* fewer than CLIENTS */
    struct err err = { "" };
    CHECK_MSG(stand_in_open(&server, &o, &err) == OK, "%s", err.msg);
    test_prefixes();
    test_dialects();
    test_forms();
    test_errors();
    test_large();
    test_many();
    stand_in_close(server);
    test_key_and_port();
    return 0;
}
