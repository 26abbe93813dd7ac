/* Reads requests that are changed at random, bytes and whole values: what is accepted keeps to the
 * limits, and what is refused says why. FUZZ_RUNS sets how many; each run repeats with its number
 * as FUZZ_FIRST. Then reads requests, formats tokens and asks for every path while the n-th
 * allocation fails, jansson's included, for every n: the result is an error or no answer, never a
 * shorter one, without crash or leak. */
#include "net/http/json_input.h"
#include "tests/support/serving.h"
#include "tests/tools/torture_path.h"
#include "tools/cli/json_report.h"
#include "tools/serve/serve_choice.h"
#include "tools/serve/serve_exchange.h"

static struct serving server;

static const struct {
    bool chat;
    const char *body;
} requests[] = {
    { false,
      "{\"prompt\":[\"a b\",[1,2,3]],\"stop\":[\"x\",\"y\"],\"stop_token_ids\":[5],"
      "\"logprobs\":2,\"mizzle\":{\"policy\":\"max-prob\",\"private\":[\"p\",\"q\"],"
      "\"trace\":{\"top\":2,\"events\":true},\"cloud\":\"auto\",\"ahead\":1,\"threshold\":0.5}}" },
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

/* ACCEPTED: of the requests above, in front. */
enum { RUNS = SANITIZED ? 4000 : 30000, ROOM = 4096, ACCEPTED = 3 };

static const char *const seeds[] = {
    /* besides the requests above */
    "{\"prompt\":[1,2,3],\"temperature\":0.5,\"top_p\":0.9,\"top_k\":4,\"min_p\":0.1,\"seed\":7,"
    "\"repetition_penalty\":1.1,\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"\\u00e9\\u0000<|im_end|>\"}],\"tools\":[],"
    "\"response_format\":{\"type\":\"text\"},\"max_completion_tokens\":9,\"ignore_eos\":true}",
};

static uint64_t state;

static size_t below(size_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)((state >> 33) % n);
}

/* Return a value of JSON. */
static const char *value(void)
{
    static const char values[] =
        "null -1 0 1e308 -0.0 \"\" [] {} [[]] true false 18446744073709551615 [null] \"\\u0000\" "
        "9223372036854775807 0.5 [[1],\"a\"] \"\\ud83d\\ude00\" {\"type\":\"text\"} ";
    static char one[32];
    const char *at = values;
    for (size_t n = below(19); n > 0; n--)
        at = strchr(at, ' ') + 1;
    snprintf(one, sizeof(one), "%.*s", (int)strcspn(at, " "), at);
    return one;
}

/* Replace text[at, at + n) by the word, if there is room. */
static void replace(char *text, size_t at, size_t n, const char *word)
{
    size_t len = strlen(text), more = strlen(word);
    if (len - n + more >= ROOM)
        return;
    memmove(text + at + more, text + at + n, len - at - n + 1);
    memcpy(text + at, word, more);
}

/* Change one thing: a byte, a length, a part that comes twice, a value. */
static void change(char *text)
{
    size_t len = strlen(text), at = below(len ? len : 1), n = below(len - at + 1);
    const char *colon = strpbrk(text + at, ":,[");
    char part[64];
    snprintf(part, sizeof(part), "%.*s", (int)n, text + at);
    switch (below(8)) {
    case 0:
        text[at] = (char)(1 + below(255));
        return;
    case 1:
        replace(text, at, n < 20 ? n : 20, "");
        return;
    case 2:
        replace(text, below(len + 1), 0, part);
        return;
    case 3:
        replace(text, at, 0, value());
        return;
    default:
        if (colon)
            replace(text, (size_t)(colon - text) + 1, strcspn(colon + 1, ",]}"), value());
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

static void test_changed(void)
{
    const char *runs = getenv("FUZZ_RUNS"), *first = getenv("FUZZ_FIRST");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0, accepted = 0;
    uint64_t n = runs ? strtoull(runs, NULL, 10) : RUNS;
    for (uint64_t i = from; i < from + n; i++) {
        char text[ROOM];
        state = i * UINT64_C(0x9e3779b97f4a7c15) + 1;
        size_t at = below(sizeof(seeds) / sizeof(seeds[0]) + ACCEPTED);
        strcpy(text, at < ACCEPTED ? requests[at].body : seeds[at - ACCEPTED]);
        bool chat = strstr(text, "messages") != NULL;
        for (size_t k = 0, changes = 1 + below(4); k < changes; k++)
            change(text);
        accepted += reads(text, below(8) ? chat : !chat);
    }
    printf("%llu requests, %llu accepted\n", (unsigned long long)n, (unsigned long long)accepted);
    CHECK(accepted > n / 50 && accepted < n);
}

/* Whatever allocation fails, a request is read and answered, or refused. */
static void test_request(size_t i)
{
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
            bool memory = e.status == 503;
            CHECK(memory || e.status == 400);
            print(serve_error_json(&e), memory ? NO_MEMORY : ERROR, memory || n == 0);
        }
        serve_request_free(&a);
        CHECK(torture_live() == 0);
    } while (torture_end() + (n++ == 0));
    printf("request %zu: %ld allocations\n", i, n);
    json_decref(in);
}

int main(void)
{
    json_set_alloc_funcs(malloc, free); /* those that can fail */
    serving_open(&server, &(struct serve_options){ .parallel = 8 }, SERVING_ALONE);
    test_changed();
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        test_request(i);
    test_strings();
    test_paths();
    serving_close(&server);
    return 0;
}
