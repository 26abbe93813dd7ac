/* Reads requests, formats tokens and asks for every path while the n-th allocation fails, jansson's
 * included, for every n: the result is an error or no answer, never a shorter one, without crash or
 * leak. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "net/http/json_input.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"
#include "tests/tools/torture_path.h"
#include "tools/cli/json_report.h"
#include "tools/serve/serve_choice.h"
#include "tools/serve/serve_exchange.h"

static struct serving server;

static const struct {
    bool chat;
    const char *body;
} requests[] = {
    { false, "{\"prompt\":[\"a b\",[1,2,3]],\"stop\":[\"x\",\"y\"],\"stop_token_ids\":[5],"
             "\"logprobs\":2,\"mizzle\":{\"policy\":\"max-prob\",\"private\":[\"p\",\"q\"],"
             "\"trace\":{\"top\":2,\"events\":true}}}" },
    { false, "{\"prompt\":\"Once upon\",\"echo\":true,\"logprobs\":1,\"max_tokens\":1}" },
    { true, "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\","
            "\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]},"
            "{\"role\":\"assistant\",\"content\":null},{\"role\":\"user\",\"content\":\"c\"}],"
            "\"logprobs\":true,\"top_logprobs\":2,\"model\":\"edge-0.5:edge\"}" },
    { false, "{\"prompt\":[1,99999]}" },
    { true, "{\"messages\":[{\"role\":\"tool\"}]}" },
    { false, "{\"prompt\":\"a\",\"mizzle\":{\"threshold\":7}}" },
};

/* A string of 2^n - 2 letters: jansson's buffer has to grow for its closing quote. */
static int parse_string(const void *arg)
{
    static char text[70000];
    size_t n = *(const size_t *)arg;
    json_t *v;
    memset(text, 'a', n + 1);
    text[0] = text[n] = '"';
    int rc = json_input_parse(&v, text, n + 1, NULL);
    CHECK(rc == OK ? json_string_length(v) == n - 1 : !v);
    json_decref(v);
    return rc;
}

static void test_strings(void)
{
    for (size_t n = 8; n <= 1 << 16; n *= 2)
        for (size_t more = 0; more < 3; more++)
            torture_each(parse_string, &(size_t){ n - 2 + more });
}

/* What an answer has without a failure. It is told while failures go on, until none is left. */
enum { ERROR = 3, NO_MEMORY, PARTS, ANSWER = 64 << 10 };
static struct {
    char text[ANSWER];
    size_t n;
} whole[PARTS];

/* Print the JSON as a reply would be, unless memory fails: then there is none. */
static void print(json_t *json, size_t part, bool first)
{
    struct buf out = { 0 };
    if (serve_routes_print(&out, json)) {
        CHECK(out.n < ANSWER);
        if (first)
            memcpy(whole[part].text, out.p, whole[part].n = out.n);
        CHECK_MSG(out.n == whole[part].n && memcmp(out.p, whole[part].text, out.n) == 0,
                  "expected %.*s, found %.*s", (int)whole[part].n, whole[part].text, (int)out.n,
                  out.p);
    } else {
        CHECK_MSG(!out.n && !first, "part %zu", part);
    }
    buf_free(&out);
}

/* Format an answer of three tokens: a word, a part of a character, end-of-text. */
static void tell(const struct serve_ask *a, bool first)
{
    static const struct text_top tops[15] = { { 40, -0.5 }, { 41, -1 }, { 200, -2 }, { 5, -3 } };
    static const double scores[8] = { 0, -1, -2, -3, -4, -5, -6, -7 };
    const struct serve_prompt *p = &a->prompts[0];
    struct text_token tokens[3] = { { .t.id = 40, .t.fault = "why", .t.reason = GATE_FAULT },
                                    { .t.id = 200, .memo = true, .t.has_edge = true },
                                    { .t.id = 0, .t.eog = true } };
    struct serve_choice c = { .ask = a,
                              .tokenizer = ((struct serve *)server.serve)->engine.tokenizer,
                              .prompt = p,
                              .taken = 3,
                              .view = { .tokens = tokens,
                                        .tops = tops,
                                        .scores = scores,
                                        .score_tops = tops,
                                        .n = 3,
                                        .top = 2,
                                        .prompt_n = p->n,
                                        .finished = true } };
    if (serve_choice_begin(&c) && (!a->echo || p->n <= 5)) {
        print(a->chat ? serve_logprobs_chat(&c) : serve_logprobs_raw(&c), 0, first);
        print(serve_mizzle(&c, 0, true), 1, first);
        print(json_pack("[o]", json_report_text("a\xff", 2)), 2, first);
    }
    serve_choice_end(&c);
}

/* Every path answers whole, with an error, or not at all. */
static void test_paths(void)
{
    static const char *const paths[][2] = {
        { "/health", NULL },
        { "/metrics", NULL },
        { "/v1/models", NULL },
        { "/v1/models/edge-0.5", NULL },
        { "/mizzle/info", NULL },
        { "/tokenizer_info", NULL },
        { "/tokenize", "{\"prompt\":\"Once upon a time, the \xc3\xa9\"}" },
        { "/tokenize", "{\"content\":\"Once upon\"}" },
        { "/tokenize", "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}" },
        { "/detokenize", "{\"tokens\":[1,2,3,200]}" },
        { RAW,
          "{\"prompt\":\"Once\",\"max_tokens\":2,\"return_token_ids\":true,\"mizzle\":{\"trace\":"
          "{\"top\":1}}}" },
        { RAW, "{\"prompt\":\"Once upon\",\"max_tokens\":1,\"echo\":true,\"logprobs\":1}" },
        { CHAT,
          "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"max_tokens\":2,\"logprobs\":"
          "true,\"top_logprobs\":1}" },
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        torture_path(server.port, paths[i][0], paths[i][1], 200);
}

int main(void)
{
    const struct serve_options o = { .parallel = 8 };
    json_set_alloc_funcs(malloc, free); /* those that can fail */
    serving_open(&server, &o, SERVING_ALONE);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        json_t *in = json_loads(requests[i].body, 0, NULL);
        long n = 0;
        CHECK(in);
        do { /* at first none fails */
            struct serve_ask a = { 0 };
            struct serve_error e = { 0 };
            torture_begin(n);
            if (serve_request_read(&a, server.serve, in, requests[i].chat, &e)) {
                CHECK(!e.status);
                a.events = false; /* there is no text that has some */
                tell(&a, n == 0);
            } else {
                CHECK(e.status == 400 || e.status == 503);
                bool memory = e.status == 503;
                print(serve_error_json(&e), memory ? NO_MEMORY : ERROR, memory || n == 0);
            }
            serve_request_free(&a);
            CHECK(torture_live() == 0);
        } while (torture_end() + (n++ == 0));
        printf("request %zu: %ld allocations\n", i, n);
        json_decref(in);
    }
    test_strings();
    test_paths();
    serving_close(&server);
    return 0;
}
