/* Requests and what they are answered: status, param and code, from a table; the headers of every
 * reply; what is open, what needs a key, and what is said while the model is loaded. */
#include <poll.h>

#include "tests/support/http_client.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"
#include "tools/serve/serve_exchange.h"

static struct serving server;

#define P "\"prompt\":\"a b\",\"max_tokens\":1"
#define M "\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"max_tokens\":1"

/* Rows that add something to a request that is fine, R for raw text and C for a chat, or that have
 * another prompt or message. */
#define PATH_R RAW
#define PATH_C CHAT
#define BODY_R P
#define BODY_C M
#define ROW(to, more, status, param, code)                                 \
    {                                                                      \
        "POST", PATH_##to, "{" BODY_##to "," more "}", status, param, code \
    }
#define FINE(to, more)              ROW(to, more, 200, NULL, NULL)
#define WRONG(to, more, param)      ROW(to, more, 400, param, "invalid_value")
#define NOT_SERVED(to, more, param) ROW(to, more, 400, param, "unsupported_parameter")
#define MIZZLE(wish, param)         WRONG(R, "\"mizzle\":{" wish "}", "mizzle." param)
#define UNKNOWN(wish, param) \
    ROW(R, "\"mizzle\":{" wish "}", 400, "mizzle." param, "unknown_parameter")
#define PROMPT(text, param)                                               \
    {                                                                     \
        "POST", RAW, "{\"prompt\":" text "}", 400, param, "invalid_value" \
    }
/* Two values of a field, or two prompts, that are wrong alike. */
#define WRONG2(to, field, a, b) \
    WRONG(to, "\"" field "\":" a, field), WRONG(to, "\"" field "\":" b, field)
#define MIZZLE2(field, a, b) MIZZLE("\"" field "\":" a, field), MIZZLE("\"" field "\":" b, field)
#define PROMPT2(param, a, b) PROMPT(a, param), PROMPT(b, param)
#define MESSAGE(text, param, code)                                                \
    {                                                                             \
        "POST", CHAT, "{\"messages\":[" text "]}", 400, "messages[0]" param, code \
    }

static const struct {
    const char *method, *path, *body;
    int status;
    const char *param, *code;
} rows[] = {
    /* What is fine, although it says nothing or nothing that matters. */
    { "POST", RAW, "{" P "}", 200, NULL, NULL },
    { "POST", CHAT, "{" M "}", 200, NULL, NULL },
    FINE(R, "\"model\":\"gpt-4o\""),
    FINE(R, "\"unknown\":{\"a\":[1]}"),
    FINE(R, "\"logit_bias\":{},\"suffix\":null,\"best_of\":1,\"stop\":null"),
    FINE(C, "\"tools\":[],\"tool_choice\":\"auto\",\"response_format\":{\"type\":\"text\"}"),
    FINE(C, "\"n\":1,\"presence_penalty\":0.0,\"modalities\":[\"text\"]"),
    FINE(C, "\"max_completion_tokens\":1,\"top_logprobs\":0"),
    FINE(R, "\"top_k\":-1,\"top_p\":1,\"min_p\":0,\"repetition_penalty\":1.1"),
    FINE(R, "\"mizzle\":{\"policy\":null,\"trace\":{}}"),
    FINE(R, "\"mizzle\":{\"private\":[\"secret\",\"\\\\d\\\\d\"]}"),
    { "POST", RAW, "{\"prompt\":\"a\",\"max_tokens\":1000000}", 200, NULL, NULL },
    { "GET", "/v1/models", NULL, 200, NULL, NULL },
    { "GET", "/v1/models/edge-0.5", NULL, 200, NULL, NULL },
    { "GET", "/v1/models/edge-0.5:cloud", NULL, 200, NULL, NULL },
    { "GET", "/health", NULL, 200, NULL, NULL },
    { "GET", "/tokenizer_info", NULL, 200, NULL, NULL },
    { "GET", "/mizzle/info", NULL, 200, NULL, NULL },
    { "POST", "/tokenize", "{\"prompt\":\"a\"}", 200, NULL, NULL },
    { "POST", "/tokenize", "{\"content\":\"a\"}", 200, NULL, NULL },
    { "POST", "/tokenize", "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", 200, NULL,
      NULL },
    { "POST", "/detokenize", "{\"tokens\":[1,2]}", 200, NULL, NULL },
    /* Bodies. */
    { "POST", RAW, "", 400, NULL, "invalid_json" },
    { "POST", RAW, "{", 400, NULL, "invalid_json" },
    { "POST", RAW, "[]", 400, NULL, "invalid_json" },
    { "POST", RAW, "{} {}", 400, NULL, "invalid_json" },
    ROW(R, "\"mizzle\":{\"private\":\"S\"},\"mizzle\":{}", 400, NULL, "invalid_json"),
    { "POST", RAW, "\xef\xbb\xbf{\"prompt\":\"a\\ud83d b\",\"max_tokens\":1e0}", 200, NULL, NULL },
    { "POST", RAW, "{\"prompt\":\"\xff\"}", 400, NULL, "invalid_json" },
    /* Prompts. */
    { "POST", RAW, "{}", 400, "prompt", "missing_required_parameter" },
    { "POST", RAW, "{\"prompt\":null}", 400, "prompt", "missing_required_parameter" },
    PROMPT2("prompt", "\"\"", "[]"),
    PROMPT2("prompt", "7", "{\"a\":1}"),
    PROMPT2("prompt[1]", "[\"a\",\"\"]", "[[1],[]]"),
    PROMPT2("prompt[1]", "[1,99999]", "[1,-1]"),
    PROMPT("[1,2.0]", "prompt[1]"),
    PROMPT("[[1],[2,\"x\"]]", "prompt[1][1]"),
    PROMPT("[\"a\",[1],7]", "prompt[2]"),
    NOT_SERVED(R, "\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]", "messages"),
    /* Messages. */
    { "POST", CHAT, "{}", 400, "messages", "invalid_value" },
    { "POST", CHAT, "{\"messages\":[]}", 400, "messages", "invalid_value" },
    MESSAGE("7", "", "invalid_value"),
    MESSAGE("{\"content\":\"a\"}", ".role", "invalid_value"),
    MESSAGE("{\"role\":\"tool\",\"content\":\"a\"}", ".role", "invalid_value"),
    MESSAGE("{\"role\":\"user\"}", ".content", "invalid_value"),
    MESSAGE("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_"
            "url\",\"image_url\":{}}]}",
            ".content[1]", "invalid_value"),
    MESSAGE("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{}]}", ".tool_calls",
            "unsupported_parameter"),
    MESSAGE("{\"role\":\"assistant\",\"content\":\"a\",\"tool_calls\":{}}", ".tool_calls",
            "unsupported_parameter"),
    { "POST", CHAT,
      "{\"messages\":[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"b\","
      "\"reasoning\":\"c\",\"tool_calls\":[],\"function_call\":null}],\"max_tokens\":1}",
      200, NULL, NULL },
    /* Numbers and their ranges. */
    { "POST", RAW, "{\"prompt\":\"a\",\"max_tokens\":0}", 400, "max_tokens", "invalid_value" },
    { "POST", RAW, "{\"prompt\":\"a\",\"max_tokens\":\"1\"}", 400, "max_tokens", "invalid_value" },
    FINE(C, "\"max_completion_tokens\":-1"),
    ROW(R, "\"model\":\"egde-0.5:cloud\"", 404, "model", "model_not_found"),
    ROW(C, "\"model\":\"other:edge\"", 404, "model", "model_not_found"),
    WRONG2(R, "temperature", "-0.1", "\"hot\""),
    FINE(R, "\"temperature\":1,\"top_p\":0"),
    WRONG(R, "\"top_p\":1.1", "top_p"),
    WRONG(R, "\"top_k\":1.5", "top_k"),
    WRONG(R, "\"min_p\":2", "min_p"),
    WRONG(R, "\"repetition_penalty\":0", "repetition_penalty"),
    WRONG2(R, "seed", "\"x\"", "1e19"),
    WRONG(R, "\"seed\":18446744073709551615", "seed"),
    WRONG2(R, "n", "0", "129"),
    FINE(R, "\"n\":10.0,\"seed\":-5.0"),
    WRONG2(R, "logprobs", "21", "true"),
    WRONG(C, "\"logprobs\":1", "logprobs"),
    WRONG(C, "\"logprobs\":true,\"top_logprobs\":21", "top_logprobs"),
    WRONG(C, "\"top_logprobs\":2", "top_logprobs"),
    { "POST", RAW, "{\"prompt\":\"a\",\"echo\":true,\"logprobs\":1,\"max_tokens\":2}", 400,
      "max_tokens", "invalid_value" },
    { "POST", RAW, "{\"prompt\":\"a\",\"echo\":true,\"logprobs\":1,\"max_tokens\":-1}", 400,
      "max_tokens", "invalid_value" },
    WRONG(R, "\"echo\":1", "echo"),
    NOT_SERVED(R, "\"prompt_logprobs\":1", "prompt_logprobs"),
    WRONG(R, "\"stream\":\"yes\"", "stream"),
    WRONG(R, "\"stream_options\":true", "stream_options"),
    /* What ends a text. */
    WRONG2(R, "stop", "7", "[\"a\",1]"),
    WRONG(R, "\"stop\":\"a\\u0000b\"", "stop"),
    FINE(R, "\"stop\":\"\""),
    FINE(R, "\"stop\":[\"\",\"zz\"]"),
    WRONG(R,
          "\"stop\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\","
          "\"13\",\"14\",\"15\",\"16\",\"17\"]",
          "stop"),
    WRONG(R, "\"stop_token_ids\":[99999]", "stop_token_ids"),
    WRONG(R, "\"ignore_eos\":0", "ignore_eos"),
    /* What is not served. */
    NOT_SERVED(C, "\"tools\":[{\"type\":\"function\"}]", "tools"),
    NOT_SERVED(C, "\"tool_choice\":\"required\"", "tool_choice"),
    NOT_SERVED(C, "\"response_format\":{\"type\":\"json_object\"}", "response_format"),
    FINE(R, "\"logit_bias\":{\"5\":-100,\"7\":0.5}"),
    NOT_SERVED(R, "\"logit_bias\":{\"5\":-100},\"model\":\"edge-0.5:cloud\"", "logit_bias"),
    WRONG2(R, "logit_bias", "{\"5\":-101}", "{\"5\":\"1\"}"),
    WRONG(R, "\"logit_bias\":{\"-5\":1}", "logit_bias"),
    WRONG2(C, "logit_bias", "{\"5x\":1}", "{\"99999\":1}"),
    WRONG2(C, "logit_bias", "{\"18446744073709551616\":1}", "[5]"),
    NOT_SERVED(R, "\"suffix\":\"x\"", "suffix"),
    NOT_SERVED(C, "\"add_generation_prompt\":false", "add_generation_prompt"),
    FINE(C, "\"add_generation_prompt\":true"),
    NOT_SERVED(R, "\"best_of\":2", "best_of"),
    NOT_SERVED(R, "\"frequency_penalty\":0.5", "frequency_penalty"),
    NOT_SERVED(C, "\"echo\":true", "echo"),
    NOT_SERVED(R, "\"guided_regex\":\"a*\"", "guided_regex"),
    WRONG(C, "\"chat_template_kwargs\":1", "chat_template_kwargs"),
    WRONG(C, "\"chat_template_kwargs\":{\"enable_thinking\":1}",
          "chat_template_kwargs.enable_thinking"),
    ROW(C, "\"chat_template_kwargs\":{\"x\":1}", 400, "chat_template_kwargs.x",
        "unknown_parameter"),
    FINE(C, "\"chat_template_kwargs\":{\"enable_thinking\":false}"),
    NOT_SERVED(C, "\"chat_template\":\"{{x}}\"", "chat_template"),
    /* The object "mizzle". */
    WRONG(R, "\"mizzle\":[]", "mizzle"),
    MIZZLE2("policy", "\"luck\"", "\"context\""),
    MIZZLE2("policy", "\"price\"", "\"position\""),
    MIZZLE("\"threshold\":1.5", "threshold"),
    MIZZLE("\"ahead\":2", "ahead"),
    MIZZLE("\"cloud\":\"maybe\"", "cloud"),
    MIZZLE("\"trace\":true", "trace"),
    MIZZLE("\"trace\":{\"top\":21}", "trace.top"),
    MIZZLE2("private", "7", "[\"a\",\" #b\"]"),
    MIZZLE2("private", "\"\\\\q\"", "[\"zzz\\n#secret\"]"),
    MIZZLE2("private", "[\"a\",\"\\ufeffsecret\"]", "[\"\\ufeff#secret\",\"a\"]"),
    MIZZLE("\"private\":[\"a\",\" \"]", "private"),
    FINE(R, "\"mizzle\":{\"private\":[\"a\",\" b #\"]}"),
    UNKNOWN("\"privat\":\"secret\"", "privat"),
    UNKNOWN("\"policy\":\"never\",\"polic\":null", "polic"),
    UNKNOWN("\"top, events\":1", "top, events"),
    UNKNOWN("\"trace\":{\"topp\":2}", "trace.topp"),
    UNKNOWN("\"trace\":{\"top, events\":2}", "trace.top, events"),
    UNKNOWN("\"\\u202e\\u0007\":2", " "),
    /* Paths and methods. */
    { "GET", "/nothing", NULL, 404, NULL, "not_found" },
    { "GET", "/v1/models/nobody", NULL, 404, "model", "model_not_found" },
    { "GET", "/v1/models/", NULL, 404, NULL, "not_found" },
    { "GET", "/page.html", NULL, 404, NULL, "not_found" },
    { "GET", "/../LICENSE", NULL, 404, NULL, "not_found" },
    { "GET", RAW, NULL, 405, NULL, "method_not_allowed" },
    { "POST", "/health", "{}", 405, NULL, "method_not_allowed" },
    { "PUT", CHAT, "{}", 405, NULL, "method_not_allowed" },
    { "DELETE", "/v1/models", NULL, 405, NULL, "method_not_allowed" },
    { "POST", "/tokenize", "{}", 400, "prompt", "invalid_value" },
    { "POST", "/tokenize", "{\"content\":7}", 400, "content", "invalid_value" },
    { "POST", "/detokenize", "{\"tokens\":[99999]}", 400, "tokens[0]", "invalid_value" },
    { "POST", "/detokenize", "{}", 400, "tokens", "invalid_value" },
};

/* True if the value is this string, or null for NULL. */
static bool says(const json_t *v, const char *text)
{
    return text ? json_is_string(v) && strcmp(json_string_value(v), text) == 0 : json_is_null(v);
}

static void test_rows(void)
{
    size_t n = sizeof(rows) / sizeof(rows[0]);
    for (size_t i = 0; i < n; i++) {
        json_t *reply = serving_ask(&server, rows[i].method, rows[i].path, NULL, rows[i].body);
        bool fine = server.status == rows[i].status && reply &&
                    strstr(server.head, "x-request-id: req-") && strstr(server.head, "nosniff");
        if (rows[i].status != 200)
            fine = fine && says(serving_at(reply, "error.param"), rows[i].param) &&
                   says(serving_at(reply, "error.code"), rows[i].code) &&
                   json_string_length(serving_at(reply, "error.message")) > 5 &&
                   json_is_string(serving_at(reply, "error.type"));
        if (rows[i].status == 405)
            fine = fine && strstr(server.head, "\nAllow: ");
        if (!fine) {
            char *text = json_dumps(reply, 0);
            fprintf(stderr, "%s %s %s: status %d: %s\n%s\n", rows[i].method, rows[i].path,
                    rows[i].body ? rows[i].body : "", server.status, text ? text : "", server.head);
            free(text);
        }
        CHECK(fine);
    }
    printf("%zu rows\n", n);
}

/* A text is quoted, so that "1" is not taken for 1; what is not there says what is. */
static void test_words(void)
{
    json_t *reply = serving_post(&server, RAW, "{" P ",\"top_k\":\"1\"}");
    CHECK(strcmp(serving_text(reply, "error.message"),
                 "top_k: expected a whole number from -1, found \"1\"") == 0);
    reply = serving_post(&server, "/v1/responses", "{\"input\":\"a\"}");
    CHECK(server.status == 404 && strstr(serving_text(reply, "error.message"), "/v1/completions"));
}

/* Ask and check the status. */
static void expect(int status, const char *code, const char *method, const char *path,
                   const char *headers, const char *body)
{
    json_t *reply = serving_ask(&server, method, path, headers, body);
    bool fine = server.status == status && (!code || says(serving_at(reply, "error.code"), code));
    CHECK_MSG(fine, "%s %s: status %d, not %d\n%s", method, path, server.status, status,
              server.head);
}

/* Return the head, n times the item, and the end. The caller frees it. */
static char *filled(const char *head, const char *item, size_t n, const char *end)
{
    struct buf body = { 0 };
    CHECK(buf_str(&body, head));
    while (n--)
        CHECK(buf_str(&body, item));
    CHECK(buf_add(&body, end, strlen(end) + 1));
    return body.p;
}

/* A prompt that does not fit is refused with both counts; one that just fits is not. */
static void test_length(void)
{
    for (size_t extra = 0; extra < 2; extra++) {
        char *body = filled("{\"max_tokens\":5,\"prompt\":[5", ",5", 1023 + extra, "]}");
        json_t *reply = serving_post(&server, RAW, body);
        free(body);
        if (extra) {
            const char *said = json_string_value(serving_at(reply, "error.message"));
            CHECK(server.status == 400 &&
                  says(serving_at(reply, "error.code"), "context_length_exceeded"));
            CHECK(strstr(said, "1024") && strstr(said, "1025"));
        } else {
            CHECK(server.status == 200 &&
                  says(serving_at(reply, "choices.0.finish_reason"), "length"));
            CHECK(json_integer_value(serving_at(reply, "usage.completion_tokens")) == 1);
        }
    }
}

/* The files of the page, and what their headers forbid a browser. */
static const char *const pages[][2] = { { "/", "Content-Type: text/html" },
                                        { "/page.css", "Content-Type: text/css" },
                                        { "/page.js", "Content-Type: text/javascript" } };
static const char *const promises[] = {
    "X-Content-Type-Options: nosniff",
    "Cross-Origin-Resource-Policy: same-origin",
    "Referrer-Policy: no-referrer",
    "default-src 'none'",
    "script-src 'self'",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
};

static void test_heads(void)
{
    expect(415, "unsupported_media_type", "POST", RAW, "Content-Type: text/plain\r\n", "{" P "}");
    expect(200, NULL, "POST", RAW, "Content-Type: Application/JSON; charset=utf-8\r\n", "{" P "}");
    expect(403, "origin_not_allowed", "GET", "/v1/models", "Origin: http://evil.example\r\n", NULL);
    expect(404, "not_found", "POST", "/v1/embeddings", NULL, "{}");
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        expect(200, NULL, "GET", pages[i][0], NULL, NULL);
        CHECK(strstr(server.head, pages[i][1]) && !strstr(server.head, "unsafe"));
        for (size_t k = 0; k < sizeof(promises) / sizeof(promises[0]); k++)
            CHECK_MSG(strstr(server.head, promises[k]), "%s: no %s", pages[i][0], promises[k]);
    }
    serving_ask(&server, "GET", "/metrics", NULL, NULL);
    CHECK(server.status == 200 && strstr(server.head, "version=0.0.4"));
}

/* An answer that would fill the memory is refused; the same without alternatives is not. */
static void test_memory(void)
{
    struct buf body = { 0 };
    CHECK(buf_str(&body, "{\"echo\":true,\"max_tokens\":0,\"n\":8,\"logprobs\":20,\"prompt\":["));
    for (int i = 0; i < 64 * 900; i++)
        CHECK(buf_str(&body, i % 900 ? ",7" : i ? "],[7" : "[7"));
    CHECK(buf_add(&body, "]]}", 4));
    expect(400, "invalid_value", "POST", RAW, NULL, body.p);
    buf_free(&body);
    /* 8 texts, of which none fills the context. */
    expect(200, NULL, "POST", RAW, NULL, "{" P ",\"n\":8,\"logprobs\":20}");
}

/* Replies of the tokenizer that nobody reads are counted; a text that is too long is refused. */
static void test_unread(void)
{
    enum { IDS = 20000 };
    struct serve *s = server.serve;
    const size_t text = 1000000, most = (size_t)1 << 20;
    char *body = filled("{\"prompt\":\"", "a", text, "\"}");
    int fd = http_client_open(server.port);
    http_client_put(fd, "POST", "/tokenize", NULL, body, strlen(body));
    CHECK(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 60000) == 1);
    size_t held = atomic_load(&s->held);
    CHECK_MSG(held > text && held < 16 * text, "held: %zu", held);
    atomic_fetch_add(&s->held, SERVE_ANSWERS - 20 * text);
    expect(503, "busy", "POST", "/tokenize", NULL, body);
    CHECK(strstr(server.head, "Retry-After: 1"));
    expect(200, NULL, "POST", "/tokenize", NULL, "{" P "}");
    expect(200, NULL, "POST", RAW, NULL, "{" P "}");
    atomic_fetch_sub(&s->held, SERVE_ANSWERS - 20 * text);
    close(fd);
    free(body);
    for (int i = 0; atomic_load(&s->held); i++) {
        CHECK(i < 60000);
        rest_us(1000);
    }
    body = filled("{\"prompt\":\"", "a", most, "\"}");
    expect(400, "invalid_value", "POST", "/tokenize", NULL, body);
    free(body);
    body = filled("{\"tokens\":[0", ",999", most / 8, "]}"); /* of nine bytes each */
    expect(400, "invalid_value", "POST", "/detokenize", NULL, body);
    free(body);
    /* Of 13 bytes each, which take 40 times as many. */
    body = filled("{\"tokens\":[1005", ",1005", IDS - 1, "]}");
    for (int fits = 0; fits < 2; fits++) {
        const size_t room = IDS * (fits ? 530 : 510);
        atomic_fetch_add(&s->held, SERVE_ANSWERS - room);
        expect(fits ? 200 : 503, fits ? NULL : "busy", "POST", "/detokenize", NULL, body);
        atomic_fetch_sub(&s->held, SERVE_ANSWERS - room);
    }
    free(body);
}

/* Return a number of /proc/self/status, in KiB; 0 if it has none. */
static size_t status_kb(const char *name)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[200];
    size_t kb = 0;
    while (f && !kb && fgets(line, sizeof(line), f))
        if (!strncmp(line, name, strlen(name)))
            kb = strtoul(line + strlen(name), NULL, 10);
    if (f)
        fclose(f);
    return kb;
}

/* Ask with a body of 4 MB, most of it empty objects, whose tree would take 400 MB; then return the
 * most memory that has been taken, in MiB. */
static size_t tree_mb(const char *path, const char *key, size_t clients)
{
    enum { OBJECTS = 1300000 };
    int fd[6];
    char head[40];
    CHECK(clients <= 6);
    snprintf(head, sizeof(head), "{\"%s\":[{}", key);
    char *body = filled(head, ",{}", OBJECTS, "]}");
    for (size_t i = 0; i < clients; i++) {
        fd[i] = http_client_open(server.port);
        http_client_put(fd[i], "POST", path, NULL, body, strlen(body));
    }
    for (size_t i = 0; i < clients; i++) {
        struct http_client_reply *r = http_client_read(fd[i], 60000);
        CHECK(r->status == 400);
        close(fd[i]);
    }
    free(body);
    size_t most = status_kb("VmHWM:") >> 10;
    printf("%s, %zu clients: at most %zu MiB\n", path, clients, most);
    return most;
}

/* A tree of JSON takes a hundred times its text, so one that is too large is not even begun. */
static void test_tree(void)
{
    serving_open(&server, &(struct serve_options){ .parallel = 1 }, SERVING_ALONE);
    CHECK(SANITIZED || tree_mb("/tokenize", "prompt", 4) < 200);
    CHECK(SANITIZED || tree_mb("/detokenize", "tokens", 4) < 200);
    CHECK(SANITIZED || tree_mb(CHAT, "messages", 6) < 200);
    serving_close(&server);
}

/* With a key all but /health and the files of the page need it. */
static void test_key(void)
{
    const char *key = "Authorization: Bearer sesame\r\n";
    serving_open(&server, &(struct serve_options){ .listen.key = "sesame" }, SERVING_ALONE);
    expect(200, NULL, "GET", "/health", NULL, NULL);
    expect(401, "invalid_api_key", "GET", "/v1/models", NULL, NULL);
    expect(401, "invalid_api_key", "GET", "/mizzle/info", NULL, NULL);
    for (size_t i = 0; i < 3; i++)
        expect(200, NULL, "GET", pages[i][0], NULL, NULL); /* the page asks for the key */
    expect(401, "invalid_api_key", "GET", "/metrics", NULL, NULL);
    expect(401, "invalid_api_key", "GET", "/nothing", NULL, NULL);
    expect(401, "invalid_api_key", "POST", RAW, "Authorization: Bearer sesam\r\n", "{" P "}");
    expect(200, NULL, "POST", RAW, key, "{" P "}");
    expect(200, NULL, "POST", RAW, key, "{" P ",\"model\":\"edge-0.5:edge\"}");
    expect(400, "no_cloud", "POST", RAW, key, "{" P ",\"model\":\"edge-0.5:cloud\"}");
    serving_close(&server);
}

/* While the model is loaded all but the page says so. */
static void test_loading(void)
{
    server = (struct serving){ 0 };
    CHECK(serve_open(&server.serve, &(struct serve_options){ .parallel = 1 }, NULL) == OK);
    server.port = (unsigned)strtoul(strrchr(serve_url(server.serve), ':') + 1, NULL, 10);
    expect(503, "loading", "GET", "/health", NULL, NULL);
    CHECK(strstr(server.head, "Retry-After: 1"));
    expect(503, "loading", "POST", RAW, NULL, "{" P "}");
    expect(503, "loading", "GET", "/mizzle/info", NULL, NULL);
    expect(404, "not_found", "GET", "/nothing", NULL, NULL);
    serving_ask(&server, "GET", "/", NULL, NULL);
    CHECK(server.status == 200);
    serving_close(&server);
}

int main(void)
{
    test_tree(); /* first: the process has taken nothing yet */
    serving_open(&server, &(struct serve_options){ .parallel = 8 }, SERVING_CLOUD);
    test_rows();
    test_words();
    test_length();
    test_heads();
    test_memory();
    test_unread();
    serving_close(&server);
    test_key();
    test_loading();
    return 0;
}
