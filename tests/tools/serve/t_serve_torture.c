/* Reads requests and formats tokens while the n-th allocation fails, jansson's included, for every
 * n: the result is an error or no answer, without crash or leak. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"
#include "tools/cli/json_report.h"
#include "tools/serve/serve_choice.h"
#include "tools/serve/serve_internal.h"

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

/* Print the JSON as a reply would be. */
static void print(json_t *json)
{
    struct buf out = { 0 };
    serve_routes_print(&out, json);
    buf_free(&out);
}

/* Format an answer of three tokens: a word, a part of a character, end-of-text. */
static void tell(const struct serve_ask *a)
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
        print(a->chat ? serve_logprobs_chat(&c) : serve_logprobs_raw(&c));
        print(serve_mizzle(&c, 0, true));
        print(json_report_text("a\xff", 2));
    }
    serve_choice_end(&c);
}

int main(void)
{
    const struct serve_options o = { .parallel = 8 };
    json_set_alloc_funcs(malloc, free); /* those that can fail */
    serving_open(&server, &o, SERVING_ALONE);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        json_t *in = json_loads(requests[i].body, 0, NULL);
        long n = 1;
        CHECK(in);
        do {
            struct serve_ask a = { 0 };
            struct serve_error e = { 0 };
            torture_begin(n++);
            if (serve_request_read(&a, server.serve, in, requests[i].chat, &e)) {
                CHECK(!e.status);
                a.events = false; /* there is no text that has some */
                tell(&a);
            } else {
                CHECK(e.status == 400 || e.status == 500);
                print(serve_error_json(&e));
            }
            serve_request_free(&a);
            CHECK(torture_live() == 0);
        } while (torture_end());
        printf("request %zu: %ld allocations\n", i, n);
        json_decref(in);
    }
    serving_close(&server);
    return 0;
}
