/* Answers of the server against those of the library; streams against whole answers; stop strings,
 * several choices and prompts, token ids; prompts that are echoed, where their tokens begin, and
 * the tokenizer as lm-evaluation-harness uses it (t_serve_lm_eval.c has the scores); what is
 * private, and a cloud that is required. */
#include "model/text/tokenizer.h"
#include "router/mizzle.h"
#include "tests/support/http_client.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"
#include "tools/lab/stand_in/stand_in.h"
#include "tools/serve/serve_exchange.h"

static struct serving server;

/* Callback of the library: append the text. */
static bool on_token(void *arg, const struct mizzle_token *t)
{
    return buf_add(arg, t->piece, t->piece_size);
}

/* Write the text that the library gives, as `mizzle run` prints it. policy NULL: the usual one. */
static void library(struct buf *out, const char *prompt, bool chat, const char *cloud,
                    const char *policy)
{
    struct mizzle_options o;
    struct mizzle *m;
    struct mizzle_error err = { .size = sizeof(err) };
    char text[400];
    size_t n = 0;
    mizzle_options_init(&o, sizeof(o));
    o.model = serving_model;
    o.threads = 1;
    o.cloud_url = cloud;
    o.policy = cloud ? policy : "never";
    o.max_tokens = 40;
    CHECK(mizzle_open(&m, &o, &err) == MIZZLE_OK);
    for (const char *p = prompt; *p; p++) { /* as the JSON says it */
        bool line = *p == '\\' && p[1] == 'n';
        text[n++] = line ? '\n' : *p;
        p += line;
    }
    text[n] = '\0';
    const struct mizzle_message message = { "user", text, 0 };
    struct mizzle_prompt p = { .size = sizeof(p), .text = chat ? NULL : text };
    p.messages = chat ? &message : NULL;
    p.n_messages = chat;
    CHECK(mizzle_generate(m, &p, on_token, out, NULL, &err) == MIZZLE_OK);
    CHECK(mizzle_close(m) == MIZZLE_OK && buf_add(out, "", 1));
}

/* The server writes what the library writes: routed, by the small model, raw and in a chat. */
static void test_texts(void)
{
    const char *const url = stand_in_url(server.cloud);
    size_t from_cloud = 0;
    for (size_t i = 0; i < PROMPTS; i++)
        for (int way = 0; way < 4; way++) {
            bool chat = way & 1, edge = way & 2;
            struct buf want = { 0 };
            library(&want, serving_prompts[i], chat, edge ? NULL : url, NULL);
            json_t *got =
                serving_complete(&server, chat ? CHAT : RAW, serving_prompts[i],
                                 edge ? ",\"model\":\"edge-0.5:edge\"" : ",\"model\":\"any\"");
            const char *text =
                serving_text(got, chat ? "choices.0.message.content" : "choices.0.text");
            CHECK(text && strcmp(text, want.p) == 0);
            CHECK(strcmp(serving_text(got, "model"), edge ? "edge-0.5:edge" : "edge-0.5") == 0);
            from_cloud += (size_t)serving_number(got, "mizzle.ledger.cloud");
            CHECK(!edge || serving_number(got, "mizzle.ledger.cloud") == 0);
            buf_free(&want);
        }
    CHECK(from_cloud > 0);
}

/* A policy of the request alone has the threshold that it has in `run`, and the same text. */
static void test_policies(void)
{
    static const char *const policies[] = { "random", "entropy", "max-prob", "margin", "mlp" };
    for (size_t i = 0; i < PROMPTS * 5; i++) {
        const char *policy = policies[i % 5], *prompt = serving_prompts[i / 5];
        char more[80];
        struct buf want = { 0 };
        library(&want, prompt, false, stand_in_url(server.cloud), policy);
        snprintf(more, sizeof(more), ",\"mizzle\":{\"policy\":\"%s\"}", policy);
        json_t *got = serving_complete(&server, RAW, prompt, more);
        double threshold = json_number_value(serving_at(got, "mizzle.threshold"));
        CHECK(strcmp(serving_text(got, "choices.0.text"), want.p) == 0);
        CHECK((threshold == 0.5) == (i % 5 < 4));
        buf_free(&want);
    }
}

/* Return the ids that the small model writes with this bias of an id. */
static json_t *biased(json_int_t id, int bias)
{
    char more[140];
    snprintf(more, sizeof(more),
             ",\"model\":\"edge-0.5:edge\",\"return_token_ids\":true,\"logit_bias\":{\"%lld\":%d}",
             (long long)id, bias);
    json_t *got = serving_complete(&server, RAW, serving_prompts[1], more);
    return serving_at(got, "choices.0.token_ids");
}

/* A bias of 100 makes the small model write this id, and one of -100 any other. */
static void test_bias(void)
{
    json_t *plain = biased(9, 0), *more = biased(9, 100), *id;
    json_int_t first = serving_number(plain, "0");
    json_t *less = biased(first, -100);
    size_t i;
    CHECK(json_array_size(more) == 40 && json_array_size(less) > 0 && first != 9);
    json_array_foreach(more, i, id) CHECK(json_integer_value(id) == 9);
    json_array_foreach(less, i, id) CHECK(json_integer_value(id) != first);
}

/* Append the string at the path, if it is one. */
static void join(struct buf *out, const json_t *in, const char *path)
{
    if (serving_text(in, path))
        CHECK(buf_add(out, serving_text(in, path), json_string_length(serving_at(in, path))));
}

/* A trace has the ids, three likely tokens for each, and the text. */
static void check_trace(const json_t *tokens, const json_t *ids, const struct buf *text)
{
    struct buf traced = { 0 };
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        const json_t *t = json_array_get(tokens, i);
        CHECK(serving_number(t, "pos") == (json_int_t)i);
        CHECK(json_equal(json_object_get(t, "id"), json_array_get(ids, i)));
        CHECK(json_array_size(json_object_get(t, "top")) == 3);
        join(&traced, t, "text");
        CHECK(strcmp(serving_text(t, "source"), "edge") == 0 ||
              json_is_object(json_object_get(t, "call")));
    }
    /* The text may end within a character, which no token completes. */
    CHECK(traced.n <= text->n && memcmp(traced.p, text->p, traced.n) == 0);
    CHECK(traced.n == text->n || memcmp(text->p + traced.n, "\xef\xbf\xbd", 3) == 0);
    buf_free(&traced);
}

/* The events of a stream: role first, text and ids as in the whole answer, one finish_reason,
 * usage with empty choices last. */
static void check_stream(const char *path, const char *prompt, const char *sampling)
{
    bool chat = strcmp(path, CHAT) == 0;
    const char *where = chat ? "choices.0.delta.content" : "choices.0.text";
    const char *more = ",\"return_token_ids\":true,\"logprobs\":%s%s";
    char fields[200], streamed[400];
    snprintf(fields, sizeof(fields), more, chat ? "true,\"top_logprobs\":2" : "2", sampling);
    snprintf(streamed, sizeof(streamed),
             "%s,\"stream\":true,\"stream_options\":{\"include_usage\":true},\"mizzle\":{\"trace\":"
             "{\"top\":3,\"events\":true}}",
             fields);
    json_t *whole = serving_complete(&server, path, prompt, fields),
           *events = serving_complete(&server, path, prompt, streamed);
    struct buf text = { 0 };
    json_t *ids = json_array(), *tokens = json_array(), *probs = json_array();
    size_t n = json_array_size(events), finished = 0, happened = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *e = json_array_get(events, i);
        CHECK(json_object_get(e, "usage"));
        CHECK((i + 1 == n) == json_is_object(json_object_get(e, "usage")));
        if (i == 0 && chat)
            CHECK(strcmp(serving_text(e, "choices.0.delta.role"), "assistant") == 0);
        else
            CHECK(!serving_at(e, "choices.0.delta.role"));
        CHECK(!finished || !serving_at(e, "choices.0"));
        finished += json_is_string(serving_at(e, "choices.0.finish_reason"));
        join(&text, e, where);
        json_array_extend(ids, serving_at(e, "choices.0.token_ids"));
        json_array_extend(probs, serving_at(e, chat ? "choices.0.logprobs.content"
                                                    : "choices.0.logprobs.token_logprobs"));
        json_array_extend(tokens, serving_at(e, "mizzle.tokens"));
        happened += json_array_size(serving_at(e, "mizzle.events"));
    }
    CHECK(finished == 1 && happened > 2);
    CHECK(json_array_size(json_object_get(json_array_get(events, n - 1), "choices")) == 0);
    const json_t *want = serving_at(whole, chat ? "choices.0.message.content" : "choices.0.text");
    CHECK(text.n == json_string_length(want) && !memcmp(text.p, json_string_value(want), text.n));
    CHECK(json_equal(ids, serving_at(whole, "choices.0.token_ids")));
    CHECK(json_equal(probs, serving_at(whole, chat ? "choices.0.logprobs.content"
                                                   : "choices.0.logprobs.token_logprobs")));
    CHECK(json_array_size(ids) == json_array_size(tokens));
    check_trace(tokens, ids, &text);
    CHECK(json_array_size(serving_at(json_array_get(events, 0), "choices.0.prompt_token_ids")) > 0);
    buf_free(&text);
    json_decref(ids);
    json_decref(tokens);
    json_decref(probs);
}

/* A text ends before a stop string, also where it began in an event of its own. */
static void test_stops(void)
{
    json_t *all = serving_complete(&server, RAW, serving_prompts[0], ""), *events;
    const char *text = serving_text(all, "choices.0.text");
    char more[300];
    for (size_t at = 1; text[at] && text[at + 3]; at += 2) {
        struct buf got = { 0 };
        char stop[4] = { text[at], text[at + 1], text[at + 2], 0 };
        size_t want = (size_t)(strstr(text, stop) - text);
        snprintf(more, sizeof(more), ",\"stop\":[\"@@@\",\"%s\"],\"stream\":true", stop);
        events = serving_complete(&server, RAW, serving_prompts[0], more);
        for (size_t i = 0; i < json_array_size(events); i++)
            join(&got, json_array_get(events, i), "choices.0.text");
        CHECK(got.n == want && memcmp(got.p ? got.p : "", text, want) == 0);
        *strstr(more, ",\"stream\"") = '\0';
        events = serving_complete(&server, RAW, serving_prompts[0], more);
        CHECK(strlen(serving_text(events, "choices.0.text")) == want);
        CHECK(strcmp(serving_text(events, "choices.0.finish_reason"), "stop") == 0);
        buf_free(&got);
    }
}

/* Choice i of prompt p has index p * n + i and the text that it has alone with seed + i. */
static void test_choices(void)
{
    json_t *all = serving_post(&server, RAW,
                               "{\"prompt\":[\"Once upon\",[5,6,7]],\"max_tokens\":12,\"n\":3,"
                               "\"temperature\":1.5,\"seed\":40}");
    bool differ = false;
    CHECK(json_array_size(json_object_get(all, "choices")) == 6);
    for (int i = 0; i < 6; i++) {
        char path[40];
        json_t *one = serving_postf(
            &server, RAW, "{\"prompt\":%s,\"max_tokens\":12,\"temperature\":1.5,\"seed\":%d}",
            i < 3 ? "\"Once upon\"" : "[5,6,7]", 40 + i % 3);
        snprintf(path, sizeof(path), "choices.%d.text", i);
        CHECK(strcmp(serving_text(one, "choices.0.text"), serving_text(all, path)) == 0);
        differ =
            differ || strcmp(serving_text(all, path), serving_text(all, "choices.0.text")) != 0;
        snprintf(path, sizeof(path), "choices.%d.index", i);
        CHECK(serving_number(all, path) == i);
    }
    CHECK(differ);
    /* A seed that is drawn is told, and gives the same text again. */
    json_t *drawn = serving_complete(&server, RAW, serving_prompts[0], ",\"temperature\":1.5");
    char again[100];
    snprintf(again, sizeof(again), ",\"temperature\":1.5,\"seed\":%lld",
             (long long)serving_number(drawn, "mizzle.seed"));
    json_t *same = serving_complete(&server, RAW, serving_prompts[0], again);
    CHECK(strcmp(serving_text(drawn, "choices.0.text"), serving_text(same, "choices.0.text")) == 0);
}

/* max_tokens 0 scores the prompt alone, streamed or not, and a prompt can be echoed unscored. */
static void test_echo(void)
{
    json_t *r = serving_post(&server, RAW,
                             "{\"prompt\":\"Once upon\",\"max_tokens\":0,\"echo\":true,"
                             "\"logprobs\":0}");
    json_t *events = serving_events(&server, RAW,
                                    "{\"prompt\":\"Once upon\",\"max_tokens\":0,\"echo\":true,"
                                    "\"logprobs\":0,\"stream\":true}");
    CHECK(strcmp(serving_text(r, "choices.0.text"), "Once upon") == 0);
    CHECK(json_array_size(serving_at(r, "choices.0.logprobs.token_logprobs")) == 5);
    CHECK(json_equal(serving_at(r, "choices.0.logprobs"),
                     serving_at(events, "0.choices.0.logprobs")));
    CHECK(serving_number(r, "usage.completion_tokens") == 0);
    r = serving_post(&server, RAW,
                     "{\"prompt\":\"Once upon\",\"max_tokens\":1,\"echo\":true,\"logprobs\":1,"
                     "\"temperature\":0}"); /* for which no cloud is asked */
    CHECK(server.status == 200 && serving_number(r, "choices.0.mizzle.ledger.calls") == 0);
    r = serving_post(&server, RAW, "{\"prompt\":\"Once upon\",\"max_tokens\":0,\"echo\":true}");
    CHECK(strcmp(serving_text(r, "choices.0.text"), "Once upon") == 0);
    CHECK(json_is_null(serving_at(r, "choices.0.logprobs")));
}

/* Offsets are those of the text, which leaves control tokens out. */
static void test_offsets(void)
{
    json_t *r = serving_complete(&server, RAW, "Hello",
                                 ",\"ignore_eos\":true,\"logprobs\":1,\"model\":\"edge-0.5:edge\"");
    const json_t *tokens = serving_at(r, "choices.0.logprobs.tokens");
    const json_t *offsets = serving_at(r, "choices.0.logprobs.text_offset");
    const char *text = serving_text(r, "choices.0.text");
    size_t marks = 0;
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        const char *token = json_string_value(json_array_get(tokens, i));
        size_t at = (size_t)json_integer_value(json_array_get(offsets, i));
        if (strcmp(token, "<|endoftext|>") == 0)
            marks++;
        else
            CHECK(at <= strlen(text) && strncmp(text + at, token, strlen(token)) == 0);
    }
    CHECK(marks > 0 && json_array_size(tokens) == 40);
}

/* Return how often id is in the list. */
static size_t count_id(const json_t *list, uint32_t id)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        n += json_integer_value(json_array_get(list, i)) == (json_int_t)id;
    return n;
}

/* The tokenizer as lm-evaluation-harness uses it, and marks in prompts and in messages. */
static void test_tokenizer(void)
{
    uint32_t end, eos;
    const struct tokenizer *t = server.serve->engine.tokenizer;
    CHECK(tokenizer_special(t, "<|im_end|>", &end) && tokenizer_eos(t, &eos));
    json_t *info = serving_ask(&server, "GET", "/tokenizer_info", NULL, NULL);
    json_t *r =
        serving_postf(&server, "/tokenize", "{\"prompt\":\"%s\",\"add_special_tokens\":false}",
                      serving_text(info, "eos_token"));
    CHECK(serving_number(r, "tokens.0") == (json_int_t)eos && serving_number(r, "count") == 1);
    r = serving_post(&server, "/tokenize", "{\"prompt\":\"The caf\xc3\xa9 <|im_end|>\\n\"}");
    CHECK(count_id(json_object_get(r, "tokens"), end) == 1);
    char *tokens = json_dumps(json_object_get(r, "tokens"), 0);
    r = serving_postf(&server, "/detokenize", "{\"tokens\":%s}", tokens);
    free(tokens);
    CHECK(strcmp(serving_text(r, "prompt"), "The caf\xc3\xa9 <|im_end|>\n") == 0);
    r = serving_post(&server, "/tokenize", "{\"content\":\"<|im_end|>\",\"parse_special\":false}");
    CHECK(count_id(json_object_get(r, "tokens"), end) == 0);
    r = serving_complete(&server, CHAT, "a<|im_end|>b", ",\"return_token_ids\":true");
    size_t marked = count_id(serving_at(r, "choices.0.prompt_token_ids"), end);
    r = serving_complete(&server, CHAT, "ab", ",\"return_token_ids\":true");
    CHECK(marked == count_id(serving_at(r, "choices.0.prompt_token_ids"), end));
    r = serving_complete(&server, RAW, "a<|im_end|>b", ",\"return_token_ids\":true");
    CHECK(count_id(serving_at(r, "choices.0.prompt_token_ids"), end) == 1);
    /* Parts of a message are joined; a developer speaks as the system. */
    const char *const same[] = {
        "{\"messages\":[{\"role\":\"developer\",\"content\":\"x\"},{\"role\":\"user\","
        "\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]}",
        "{\"messages\":[{\"role\":\"system\",\"content\":\"x\"},{\"role\":\"user\","
        "\"content\":\"ab\"}]}"
    };
    json_t *one = serving_post(&server, "/tokenize", same[0]);
    json_t *other = serving_post(&server, "/tokenize", same[1]);
    CHECK(server.status == 200 && json_equal(one, other));
}

/* A call takes the time of its network; what the server says of itself. */
static void test_network(void)
{
    stand_in_set_latency(server.cloud, 120);
    json_t *r = serving_post(&server, RAW,
                             "{\"prompt\":\"Fourth upon\",\"max_tokens\":1,\"mizzle\":{\"policy\":"
                             "\"always\",\"trace\":{}}}");
    CHECK(json_number_value(serving_at(r, "mizzle.tokens.0.call.ms")) >= 100);
    stand_in_set_latency(server.cloud, 0);
    r = serving_ask(&server, "GET", "/mizzle/info", NULL, NULL);
    CHECK(json_is_false(serving_at(r, "cloud.local")) && json_is_true(serving_at(r, "chat")));
    CHECK(json_is_false(serving_at(r, "cloud.limited")));
    CHECK(strcmp(serving_text(r, "cloud.state"), "working") == 0);
    CHECK(strcmp(serving_text(r, "names.1"), "edge-0.5:edge") == 0);
    r = serving_ask(&server, "GET", "/v1/models", NULL, NULL); /* what --answers names it by */
    CHECK(strcmp(serving_text(r, "data.0.kv"), "f16") == 0);
    CHECK(strncmp(serving_text(r, "data.0.fingerprint"), "mz-", 3) == 0);
}

/* A cloud that is required and fails ends the text with 502, which clients must not repeat; else
 * the small model's token stands. `off` does not ask. */
static void test_required(void)
{
    struct serving alone;
    serving_open(&alone, &(struct serve_options){ .parallel = 8 }, SERVING_CLOUD);
    stand_in_close(alone.cloud);
    alone.cloud = NULL;
#define REQUIRED(stream, cloud)                                                                  \
    "{" stream "\"prompt\":\"Once upon\",\"max_tokens\":20,\"mizzle\":{\"policy\":\"max-prob\"," \
    "\"threshold\":1,\"cloud\":\"" cloud "\"}}"
    json_t *r = serving_post(&alone, RAW, REQUIRED("", "required"));
    CHECK(alone.status == 502 && strstr(alone.head, "x-should-retry: false"));
    CHECK(strcmp(serving_text(r, "error.code"), "cloud_failed") == 0);
    struct http_client_reply stream;
    http_client_ask(alone.port, &stream, "POST", RAW, NULL,
                    REQUIRED("\"stream\":true,", "required"));
    CHECK(stream.status == 200 && strstr(stream.body, "data: {\"error\":{") &&
          strstr(stream.body, "cloud_failed") && !strstr(stream.body, "[DONE]"));
    http_client_free(&stream);
    r = serving_post(&alone, RAW, REQUIRED("", "auto"));
    CHECK(alone.status == 200 && serving_number(r, "mizzle.ledger.fallback") > 0);
    r = serving_ask(&alone, "GET", "/mizzle/info", NULL, NULL); /* three faults were enough */
    CHECK(strcmp(serving_text(r, "cloud.state"), "paused") == 0 && *serving_text(r, "cloud.why"));
    r = serving_post(&alone, RAW, REQUIRED("", "off"));
    CHECK(alone.status == 200 && serving_number(r, "mizzle.ledger.fallback") == 0);
    serving_close(&alone);
}

/* A pattern of the request keeps its text at home. */
static void test_private(void)
{
#define THRICE(private)     \
    "{\"prompt\":\"Thrice " \
    "upon\",\"max_tokens\":8,\"mizzle\":{\"policy\":\"always\",\"trace\":{}" private "}}"
    const char *body = THRICE(",\"private\":[\"upon\"]");
    json_t *r = serving_post(&server, RAW, body);
    CHECK(serving_number(r, "mizzle.ledger.cloud") == 0 &&
          serving_number(r, "mizzle.ledger.calls") == 0);
    CHECK(strcmp(serving_text(r, "mizzle.tokens.0.reason"), "private") == 0);
    char *first = json_dumps(serving_at(r, "choices"), 0);
    r = serving_post(&server, RAW, THRICE(""));
    CHECK(serving_number(r, "mizzle.ledger.cloud") > 0);
    /* Now the memo has the cloud's tokens, but the text stays what it was. */
    r = serving_post(&server, RAW, body);
    char *again = json_dumps(serving_at(r, "choices"), 0);
    CHECK(serving_number(r, "mizzle.ledger.cloud") == 0 && strcmp(first, again) == 0);
    free(first);
    free(again);
    /* Who names the large model does not get the small one instead; a stream that has not begun has
     * the status, too. */
    static const char *const held[] = { "\"private\":\"upon\"}", "\"max_cloud_tokens\":2}",
                                        "\"private\":\"upon\"},\"stream\":true" };
    for (size_t i = 0; i < 3; i++) {
        serving_postf(&server, RAW,
                      "{\"model\":\"edge-0.5:cloud\",\"prompt\":\"Thrice upon\","
                      "\"max_tokens\":4,\"ignore_eos\":true,\"mizzle\":{%s}",
                      held[i]);
        CHECK(server.status == 502 && strstr(server.head, "x-should-retry: false"));
    }
}

/* What the memo has counts against a text's limit, so the same request has the same answer. */
static void test_limit(void)
{
    const char *body = "{\"prompt\":\"Four times upon\",\"max_tokens\":12,\"ignore_eos\":true,"
                       "\"mizzle\":{\"policy\":\"always\",\"max_cloud_tokens\":2}}";
    char *first = NULL;
    for (int i = 0; i < 3; i++) {
        json_t *r = serving_post(&server, RAW, body);
        char *text = json_dumps(serving_at(r, "choices"), 0);
        CHECK(serving_number(r, "mizzle.ledger.cloud") == 2);
        CHECK(serving_number(r, "mizzle.ledger.fallback") == 10);
        CHECK(!first || strcmp(first, text) == 0);
        free(first);
        first = text;
    }
    free(first);
}

int main(void)
{
    serving_open(&server, &(struct serve_options){ .parallel = 8 }, SERVING_CLOUD);
    test_texts();
    test_policies();
    test_bias();
    for (size_t i = 0; i < PROMPTS; i++) {
        check_stream(RAW, serving_prompts[i], "");
        check_stream(CHAT, serving_prompts[i], "");
    }
    for (int seed = 1; seed <= 8; seed++) { /* any tokens, such as parts of characters */
        char sampling[60];
        snprintf(sampling, sizeof(sampling), ",\"temperature\":50,\"seed\":%d", seed);
        check_stream(RAW, serving_prompts[0], sampling);
        check_stream(CHAT, serving_prompts[0], sampling);
    }
    test_stops();
    test_choices();
    test_echo();
    test_offsets();
    test_tokenizer();
    test_network();
    test_private();
    test_limit();
    serving_close(&server);
    test_required();
    return 0;
}
