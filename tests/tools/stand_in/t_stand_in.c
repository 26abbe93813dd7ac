/* The stand-in server: each dialect returns the model's own greedy token, a growing prefix is not
 * computed again, and errors have the forms of the real servers. Many clients at once, those that
 * leave, and a server that closes are serve's (tests/tools/serve), TLS is in
 * tests/net/t_net_proxy.c. */
#include "model/sample.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "tests/support/port.h"
#include "tests/support/tiny.h"
#include "tests/support/http_client.h"
#include "tools/lab/stand_in/stand_in.h"

enum { STEPS = 12 };

static const char *model;
static struct stand_in *server;

/* Write the model's own tokens behind ids[from], each with an empty cache. */
static void truth(uint32_t *ids, size_t from)
{
    const struct engine_options mo = { .model = model, .threads = 1 };
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    struct engine e;
    struct session *s;
    struct sampler *pick;
    CHECK(engine_open(&e, &mo, true, NULL) == OK);
    CHECK(session_open(&s, e.batch, TINY_CONTEXT, KVCACHE_F32, NULL) == OK);
    CHECK(sampler_open(&pick, &greedy, tokenizer_size(e.tokenizer), &e.kernels, NULL) == OK);
    for (size_t n = from; n < from + STEPS; n++) {
        session_rewind(s, 0);
        CHECK(session_eval(s, ids, n, NULL, NULL) == OK);
        ids[n] = sampler_pick(pick, session_logits(s, 0), ids, n);
    }
    sampler_close(pick);
    session_close(s);
    engine_close(&e);
}

static void test_dialects(void)
{
    uint32_t want[STEPS + 3] = { 72, 105, 33 };
    truth(want, 3);
    for (enum cloud_api api = CLOUD_AUTO; api <= CLOUD_SGLANG; api++) {
        const struct cloud_options o = { .url = stand_in_url(server),
                                         .api = api,
                                         .vocab = TINY_VOCAB };
        struct cloud *c;
        uint32_t id;
        CHECK(cloud_open(&c, &o, NULL) == OK);
        for (size_t n = 3; n < 3 + STEPS; n++)
            CHECK(port_next(c, want, n, &id, NULL) == OK && id == want[n]);
        CHECK(cloud_ledger(c)->tokens == STEPS && cloud_ledger(c)->faults == 0);
        CHECK(cloud_known_info(c).api == (api ? api : CLOUD_OPENAI));
        cloud_close(c);
    }
}

/* A request, and what is in its reply. */
struct row {
    unsigned server; /* an enum cloud_api, and KEYED if it requires the key "sesame" */
    const char *method, *path, *headers, *body;
    int status;
    const char *says; /* parts with "..." between them */
};

enum {
    ALL = CLOUD_AUTO,
    VLLM = CLOUD_OPENAI,
    SGL = CLOUD_SGLANG,
    LCPP = CLOUD_LLAMACPP,
    KEYED = 4
};

#define GET(path)  "GET", path, NULL, NULL
#define POST(path) "POST", path, NULL
#define C          POST("/completion")
#define V          POST("/v1/completions")
#define G          POST("/generate")
#define JSON(type) "POST", "/v1/completions", "Content-Type: " type "\r\n", "{\"prompt\":[1]}"
#define BEARER(k)  "Authorization: Bearer " k "\r\n"
#define BOTH       "{\"prompt\":[1],\"input_ids\":[1]}"

/* A prefix of which n ids are known. */
#define KNOWN(prompt, n) \
    ALL, C, "{\"prompt\":[" prompt "],\"n_predict\":1}", 200, "\"cache_n\":" n ","
/* What is open without the key; in which words the rest is refused. */
#define KEYS(api, path, no, models)                                                             \
    { KEYED + (api), "POST", path, BEARER("sesam"), "{}", 401, no },                            \
        { KEYED + (api), POST(path), BOTH, 401, no }, { KEYED + (api), GET("/nope"), 401, no }, \
        { KEYED + (api), GET("/health"), 200, "" },                                             \
        { KEYED + (api), GET("/v1/models"), models, "" },                                       \
        { KEYED + (api), "GET", "/v1/models", BEARER("sesame"), NULL, 200, "" },                \
    {                                                                                           \
        KEYED + (api), "POST", path, BEARER("sesame"), BOTH, 200, ""                            \
    }
#define UNAUTHORIZED "{\"error\":\"Unauthorized\"}"

static const struct row rows[] = {
    /* The prefix of the previous call is kept, and so are those of a few other texts. */
    { KNOWN("1,2,3,4,5", "0") },
    { KNOWN("90,91,92,93", "0") },
    { KNOWN("1,2,3,4,5,6", "5") },
    { KNOWN("90,91,92,93,94", "4") },
    { KNOWN("1,2,3,4,5,6", "5") },
    { KNOWN("1,2,3,4", "3") },
    /* What is fine. */
    { ALL, V,
      "{\"model\":\"x\",\"prompt\":\"Hello\",\"max_tokens\":4,\"temperature\":0,\"ignore_eos\":"
      "true,\"return_token_ids\":true}",
      200,
      "\"completion_tokens\":4,\"total_tokens\":9...\"length\",\"prompt_token_ids\":[72,101,108,"
      "108,111]" },
    { ALL, V, "{\"prompt\":[72,105],\"max_tokens\":1}", 200, "\"length\"}]}" },
    { ALL, C, "{\"prompt\":[72,105],\"n_predict\":0,\"return_tokens\":true}", 200,
      "\"stop\":true...\"tokens_predicted\":1,\"tokens_evaluated\":2...\"stop_type\":\"limit\"" },
    { ALL, POST("/tokenize"), "{\"content\":\"Hi<|im_end|>\"}", 200, "[72,105,256]" },
    { ALL, POST("/detokenize"), "{\"tokens\":[72,105,256,255]}", 200, "Hi<|im_end|>\xef\xbf\xbd" },
    { ALL, GET("/health"), 200, "\"status\":\"ok\"" },
    { ALL, GET("/props"), 200, "\"n_ctx\":256" },
    { VLLM, POST("/tokenize"), "{\"prompt\":\"Hi<|im_end|>\"}", 200,
      "{\"count\":3,\"max_model_len\":256,\"tokens\":[72,105,256],\"token_strs\":null}" },
    { VLLM, POST("/detokenize"), "{\"tokens\":[72,105]}", 200, "{\"prompt\":\"Hi\"}" },
    { VLLM, JSON("application/json; charset=utf-8"), 200, "" },
    /* What is refused. */
    { ALL, "POST", "/completion", "Content-Encoding: gzip\r\n", "{}", 415, "expected none" },
    { ALL, "GET", "/health", "Origin: http://evil.example\r\n", NULL, 403, "" },
    { KEYED, "GET", "/health", "Origin: http://evil.example\r\n", NULL, 403, "" },
    { VLLM, JSON("text/plain"), 400, "" },
    { VLLM, JSON("application/jsonx"), 400, "" },
    KEYS(VLLM, "/v1/completions", UNAUTHORIZED, 401),
    KEYS(SGL, "/generate", UNAUTHORIZED, 401),
    KEYS(LCPP, "/completion",
         "{\"error\":{\"code\":401,\"message\":\"Invalid API "
         "Key\",\"type\":\"authentication_error\"}}",
         200),
    { KEYED + ALL, GET("/health"), 200, "" },
    { KEYED + ALL, "GET", "/v1/models", BEARER("wrong"), NULL, 401, UNAUTHORIZED },
    { KEYED + ALL, GET("/props"), 401, "\"code\":401" },
    { KEYED + ALL, "GET", "/v1/models", BEARER("sesame"), NULL, 200, "" },
    { ALL, GET("/nope"), 404, "{\"error\":{\"code\":404,\"message\":\"File Not Found\"" },
    { VLLM, GET("/nope"), 404, "{\"detail\":\"Not Found\"}" },
    { SGL, POST("/generatee"), "{}", 404, "{\"detail\":\"Not Found\"}" },
    { LCPP, POST("/generate"), "{}", 404, "File Not Found" },
    { SGL, POST("/completion"), "{}", 404, "Not Found" },
    { VLLM, GET("/props"), 404, "Not Found" },
    { ALL, GET("/v1/completions"), 405, "{\"detail\":\"Method Not Allowed\"}" },
    { SGL, GET("/generate"), 405, "{\"detail\":\"Method Not Allowed\"}" },
    { SGL, "DELETE", "/generate", NULL, NULL, 405, "Method Not Allowed" },
    { LCPP, GET("/completion"), 404, "not_found_error" },
    { ALL, POST("/health"), "{}", 404, "File Not Found" },
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
      "{\"error\":{\"code\":400,\"message\":\"Field 'temperature': [json.exception.type_error.302] "
      "type must be number, but is string\",\"type\":\"invalid_request_error\"}}" },
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
      "{\"error\":{\"message\":\"The model `x ` does not "
      "exist.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}" },
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
    { ALL, POST("/tokenize"), "{\"content\":7}", 400, "content" },
    { VLLM, POST("/tokenize"), "{\"prompt\":7}", 400, "prompt" },
    { ALL, POST("/detokenize"), "{\"tokens\":[99999]}", 400, "expected a token id of this model" },
    { ALL, POST("/detokenize"), "{\"tokens\":7}", 400, "tokens" },
};

/* True if the text has all parts of these words, in their order. */
static bool has_all(const char *text, const char *words)
{
    char parts[500];
    CHECK(strlen(words) < sizeof(parts));
    strcpy(parts, words);
    for (char *part = parts, *end; text && part; part = end ? end + 3 : NULL) {
        if ((end = strstr(part, "...")))
            *end = 0;
        text = strstr(text, part);
    }
    return text;
}

/* A page of another site may not ask, even under a name that leads here. With a key any name may.
 */
static void test_sites(struct stand_in *const *servers)
{
    static const char evil[] =
        "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n"
        "Authorization: Bearer sesame\r\n\r\n";
    static struct raw_reply r;
    for (unsigned keyed = 0; keyed <= KEYED; keyed += KEYED) {
        raw_http_ask(stand_in_port(servers[keyed]), &r, evil, sizeof(evil) - 1, 1, 5000);
        CHECK(r.status == (keyed ? 200 : 403));
    }
}

static void test_rows(void)
{
    struct stand_in *servers[8] = { server };
    for (unsigned i = 1; i < 8; i++) {
        const struct stand_in_options o = { .model = model,
                                            .threads = 1,
                                            .server = (enum cloud_api)(i % KEYED),
                                            .listen.key = i < KEYED ? NULL : "sesame" };
        CHECK(stand_in_open(&servers[i], &o, NULL) == OK);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *w = &rows[i];
        const struct http_client_reply *r = http_client_reply(
            stand_in_port(servers[w->server]), w->method, w->path, w->headers, w->body);
        CHECK_MSG(r->status == w->status && r->whole && has_all(r->body, w->says),
                  "%u %s %s: %d %s", w->server, w->path, w->body ? w->body : "", r->status,
                  r->body);
        CHECK(w->status != 405 || strstr(r->head, "Allow: POST"));
    }
    test_sites(servers);
    for (unsigned i = 1; i < 8; i++)
        stand_in_close(servers[i]);
}

/* Bodies that are too large, too deep or too long for the context are refused. */
static void test_large(void)
{
    const size_t most = 5 << 20;
    unsigned port = stand_in_port(server);
    char *big = calloc(1, most + 1);
    CHECK(big);
    memset(big, '[', 1 << 20);
    CHECK(http_client_reply(port, C, big)->status == 500); /* nested too deeply */
    memset(big, '[', most);
    CHECK(http_client_reply(port, C, big)->status == 413);
    size_t at = (size_t)sprintf(big, "{\"prompt\":[1");
    for (int i = 1; i < TINY_CONTEXT; i++)
        at += (size_t)sprintf(big + at, ",1");
    strcpy(big + at, "]}");
    const char *says = "\"exceed_context_size_error\"...\"n_prompt_tokens\":256...\"n_ctx\":256";
    const struct http_client_reply *r = http_client_reply(port, C, big);
    CHECK_MSG(r->status == 400 && has_all(r->body, says), "%s", r->body);
    free(big);
}

/* Ask for one token after ids 1 to same, then one id often enough to make n of them, in the slot,
 * or in any with -1. Return how many ids the server knew. */
static int cached(const struct stand_in *s, int same, int id, int n, int slot)
{
    char body[2048];
    size_t at = (size_t)sprintf(body, "{\"n_predict\":1,\"id_slot\":%d,\"prompt\":[", slot);
    for (int i = 0; i < n; i++)
        at += (size_t)sprintf(body + at, i ? ",%d" : "%d", i < same ? i + 1 : id);
    strcpy(body + at, "]}");
    const struct http_client_reply *r = http_client_reply(stand_in_port(s), C, body);
    const char *known = strstr(r->body, "\"cache_n\":");
    CHECK(r->status == 200 && known);
    return (int)strtol(known + 10, NULL, 10);
}

/* A prompt that begins like a text in another slot gets a copy of that part; the other text stays.
 */
static void test_copy(void)
{
    const struct stand_in_options o = { .model = model, .threads = 1, .slots = 2 };
    struct stand_in *s;
    CHECK(stand_in_open(&s, &o, NULL) == OK);
    CHECK(cached(s, 60, 0, 60, -1) == 0 && cached(s, 20, 90, 60, -1) == 20);
    CHECK(cached(s, 60, 0, 60, -1) == 59 && cached(s, 20, 0, 20, 0) == 19);
    stand_in_close(s);
}

/* With one slot and one place in the queue, some of many requests are refused with status 503. */
static void test_queue(void)
{
    static const char *const bodies[] = {
        "{\"prompt\":[5],\"n_predict\":255,\"ignore_eos\":true}",
        "{\"input_ids\":[6],\"sampling_params\":{\"max_new_tokens\":255,\"ignore_eos\":true}}"
    };
    const struct stand_in_options o = { .model = model, .threads = 1, .slots = 1, .queue = 1 };
    struct http_client_reply *r;
    struct stand_in *s;
    int fds[40];
    size_t refused = 0;
    CHECK(stand_in_open(&s, &o, NULL) == OK);
    for (size_t i = 0; i < 40; i++) {
        fds[i] = http_client_open(stand_in_port(s));
        http_client_put(fds[i], "POST", i % 2 ? "/generate" : "/completion", NULL, bodies[i % 2],
                        strlen(bodies[i % 2]));
    }
    for (size_t i = 0; i < 40; i++) {
        r = http_client_read(fds[i], 60000);
        bool full = r->status == 503 && strstr(r->body, "all places are taken") &&
                    strstr(r->body, i % 2 ? "\"type\":\"503\"" : "unavailable_error");
        CHECK(r->whole && (r->status == 200 || full));
        refused += full;
        close(fds[i]);
    }
    CHECK(refused >= 1 && refused <= 38);
    stand_in_close(s);
}

/* What keeps a server from opening. */
static void test_open(void)
{
    struct err err = { "" };
    struct stand_in *second;
    struct stand_in_options o = { .model = model, .listen.port = stand_in_port(server) };
    CHECK(stand_in_open(&second, &o, &err) == ERR_NET && !second && strstr(err.msg, "listen"));
    o.model = "build/no-such-model";
    o.listen.port = 0;
    CHECK(stand_in_open(&second, &o, NULL) == ERR_IO && !second);
    o.listen.host = "not an address";
    CHECK(stand_in_open(&second, &o, NULL) == ERR_ARG && !second);
}

int main(void)
{
    model = tiny_make();
    const struct stand_in_options o = { .model = model, .slots = 3 };
    struct err err = { "" };
    CHECK_MSG(stand_in_open(&server, &o, &err) == OK, "%s", err.msg);
    test_rows();
    test_dialects();
    test_large();
    test_copy();
    test_queue();
    test_open();
    stand_in_close(server);
    return 0;
}
