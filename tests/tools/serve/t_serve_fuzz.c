/* Changes requests at random, bytes and whole values, and reads them: what is accepted keeps to the
 * limits, and what is refused says why. FUZZ_RUNS sets how many; each run repeats with its number
 * as FUZZ_FIRST. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/http/json_input.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"
#include "tools/serve/serve_exchange.h"

enum { RUNS = SANITIZED ? 4000 : 30000, ROOM = 4096 };

static const char *const seeds[] = {
    "{\"prompt\":[\"a b\",[1,2,3]],\"stop\":[\"x\",\"y\"],\"stop_token_ids\":[5],\"logprobs\":2,"
    "\"mizzle\":{\"policy\":\"max-prob\",\"private\":[\"p\\\\d\",\"q\"],\"cloud\":\"auto\","
    "\"trace\":{\"top\":2,\"events\":true},\"ahead\":1,\"threshold\":0.5}}",
    "{\"prompt\":\"Once upon\",\"echo\":true,\"logprobs\":1,\"max_tokens\":1,\"n\":2,\"seed\":-1}",
    "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":[{"
    "\"type\":\"text\",\"text\":\"a\"}]}],\"logprobs\":true,\"top_logprobs\":2,\"n\":8}",
    "{\"prompt\":[1,2,3],\"temperature\":0.5,\"top_p\":0.9,\"top_k\":4,\"min_p\":0.1,\"seed\":7,"
    "\"repetition_penalty\":1.1,\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"\\u00e9\\u0000<|im_end|>\"}],\"tools\":[],"
    "\"response_format\":{\"type\":\"text\"},\"max_completion_tokens\":9,\"ignore_eos\":true}",
};

static const char *const values[] = { "null",
                                      "-1",
                                      "0",
                                      "1e308",
                                      "-0.0",
                                      "\"\"",
                                      "[]",
                                      "{}",
                                      "[[]]",
                                      "true",
                                      "false",
                                      "18446744073709551615",
                                      "[null]",
                                      "\"\\u0000\"",
                                      "9223372036854775807",
                                      "0.5",
                                      "[[1],\"a\"]",
                                      "\"\\ud83d\\ude00\"",
                                      "{\"type\":\"text\"}" };

static struct serving server;
static uint64_t state;

static size_t below(size_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)((state >> 33) % n);
}

/* Replace text[at, at + n) by the word; false if there is no room. */
static bool replace(char *text, size_t at, size_t n, const char *word)
{
    size_t len = strlen(text), more = strlen(word);
    if (len - n + more >= ROOM)
        return false;
    memmove(text + at + more, text + at + n, len - at - n + 1);
    memcpy(text + at, word, more);
    return true;
}

/* Change one thing: a value, a byte, a length. */
static void change(char *text)
{
    size_t len = strlen(text), at = below(len ? len : 1), n;
    const char *colon = strpbrk(text + at, ":,[");
    switch (below(8)) {
    case 0:
        text[at] = (char)(1 + below(255));
        return;
    case 1:
        n = below(len - at + 1);
        replace(text, at, n < 20 ? n : 20, "");
        return;
    case 2: { /* repeat a part */
        char part[64] = "";
        n = below(sizeof(part));
        n = n < len - at ? n : len - at;
        memcpy(part, text + at, n);
        replace(text, below(len + 1), 0, part);
        return;
    }
    case 3:
        replace(text, at, 0, values[below(sizeof(values) / sizeof(values[0]))]);
        return;
    default: /* a value */
        if (!colon)
            return;
        at = (size_t)(colon - text) + 1;
        n = strcspn(text + at, ",]}");
        replace(text, at, n, values[below(sizeof(values) / sizeof(values[0]))]);
    }
}

/* Read the request and check what came of it. */
static bool reads(const char *text, bool chat)
{
    struct serve *s = server.serve;
    struct serve_ask a = { 0 };
    struct serve_error e = { 0 };
    json_t *in;
    if (json_input_parse(&in, text, strlen(text), NULL) != OK)
        return false;
    bool fine = serve_request_read(&a, s, in, chat, &e);
    json_decref(in);
    if (fine) {
        const struct sample_params *p = &a.wish.sample;
        CHECK(a.nprompts >= 1 && a.nprompts <= SERVE_PROMPTS && a.n >= 1 && a.n <= SERVE_CHOICES);
        CHECK(sample_check(p, NULL) == OK && a.wish.top <= TEXTS_TOP);
        CHECK(a.max || a.wish.score);
        CHECK(!chat || !a.echo);
        for (size_t i = 0; i < a.nprompts; i++) {
            CHECK(a.prompts[i].n >= 1 && a.prompts[i].n <= s->context);
            for (size_t k = 0; k < a.prompts[i].n; k++)
                CHECK(a.prompts[i].ids[k] < s->vocab);
        }
    } else {
        json_t *said = serve_error_json(&e);
        CHECK(e.status >= 400 && e.status < 500 && e.code && e.why[0] && said);
        json_decref(said);
    }
    serve_request_free(&a);
    return fine;
}

int main(void)
{
    const struct serve_options o = { .parallel = 8 };
    const char *runs = getenv("FUZZ_RUNS"), *first = getenv("FUZZ_FIRST");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0;
    uint64_t n = runs ? strtoull(runs, NULL, 10) : RUNS, accepted = 0;
    serving_open(&server, &o, SERVING_ALONE);
    for (uint64_t i = from; i < from + n; i++) {
        char text[ROOM];
        state = i * UINT64_C(0x9e3779b97f4a7c15) + 1;
        snprintf(text, sizeof(text), "%s", seeds[below(sizeof(seeds) / sizeof(seeds[0]))]);
        bool chat = strstr(text, "messages") != NULL;
        for (size_t k = 0, changes = 1 + below(4); k < changes; k++)
            change(text);
        accepted += reads(text, below(8) ? chat : !chat);
    }
    printf("%llu requests, %llu accepted\n", (unsigned long long)n, (unsigned long long)accepted);
    CHECK(accepted > n / 50 && accepted < n);
    serving_close(&server);
    return 0;
}
