/* Scores of prompts against float64 log-softmax of the model's logits, as lm-evaluation-harness
 * asks for them, and the tokenizer as it uses it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/model.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"
#include "tools/serve/serve_choice.h"

static struct serving server;
static struct engine engine;

/* Return the log-softmax of one id in float64. */
static double log_softmax(const float *logits, size_t n, uint32_t id)
{
    double max = (double)-INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        max = (double)logits[i] > max ? (double)logits[i] : max;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - max);
    return (double)logits[id] - max - log(sum);
}

/* Check that tokens begin where the text has them; it holds no control tokens. */
static void check_offsets(const json_t *choice, const uint32_t *ids, size_t n)
{
    struct buf all = { 0 };
    size_t at = 0, chars = 0, starts[64];
    CHECK(n <= 64);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *bytes = tokenizer_bytes(engine.tokenizer, ids[i], &len);
        starts[i] = all.n;
        CHECK(buf_add(&all, bytes, len));
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t code;
        size_t len = text_decode(&code, all.p + at, all.n - at, NULL);
        for (; at + len <= starts[i]; len = text_decode(&code, all.p + at, all.n - at, NULL)) {
            at += len;
            chars++;
        }
        CHECK(json_integer_value(json_array_get(serving_at(choice, "logprobs.text_offset"), i)) ==
              (json_int_t)chars);
    }
    buf_free(&all);
}

/* Check the scores of ids[n] and of the token after them. */
static void check_scores(const json_t *choice, const uint32_t *ids, size_t n, struct session *s)
{
    size_t vocab = model_config(engine.model)->vocab, used;
    struct err err;
    used = tokenizer_size(engine.tokenizer);
    CHECK(json_array_size(serving_at(choice, "logprobs.tokens")) == n + 1);
    CHECK(json_array_size(serving_at(choice, "logprobs.top_logprobs")) == n + 1);
    CHECK(json_is_null(serving_at(choice, "logprobs.token_logprobs.0")));
    check_offsets(choice, ids, n);
    session_rewind(s, 0);
    for (size_t i = 0; i <= n; i++) {
        json_t *top = json_array_get(serving_at(choice, "logprobs.top_logprobs"), i);
        double got =
            json_real_value(json_array_get(serving_at(choice, "logprobs.token_logprobs"), i));
        const char *name =
            json_string_value(json_array_get(serving_at(choice, "logprobs.tokens"), i));
        if (i > 0) {
            const float *logits = session_logits(s, 0);
            uint32_t best = 0;
            for (uint32_t id = 1; id < used; id++)
                best = logits[id] > logits[best] ? id : best;
            uint32_t id = i < n ? ids[i] : best;
            CHECK(fabs(got - log_softmax(logits, vocab, id)) < 1e-5);
            double most = (double)-INFINITY;
            const char *key;
            json_t *v;
            json_object_foreach(top, key, v) most =
                json_real_value(v) > most ? json_real_value(v) : most;
            CHECK((got == most) == (id == best)); /* whether it was the likeliest one */
            CHECK(json_object_get(top, name));
        }
        if (i < n)
            CHECK(session_eval(s, ids + i, 1, NULL, &err) == OK);
    }
}

/* Scoring as lm-evaluation-harness asks for it: ids in batches, and texts. */
static void test_scoring(void)
{
    struct session *s;
    struct err err;
    uint32_t ids[2][40];
    char body[2000] = "{\"temperature\":0,\"max_tokens\":1,\"logprobs\":1,\"seed\":1234,"
                      "\"echo\":true,\"model\":\"any\",\"prompt\":[";
    CHECK(session_open(&s, engine.batch, 200, engine_best_kv(&engine), &err) == OK);
    for (int k = 0; k < 2; k++) {
        strcat(body, k ? "],[" : "[");
        for (int i = 0; i < 40; i++) {
            ids[k][i] = (uint32_t)((i * 37 + k * 11) % 900 + (i % 3 == 0 ? 0 : 50));
            sprintf(body + strlen(body), "%s%u", i ? "," : "", (unsigned)ids[k][i]);
        }
    }
    strcat(body, "]]}");
    json_t *reply = serving_post(&server, RAW, body);
    CHECK(server.status == 200);
    CHECK(json_array_size(json_object_get(reply, "choices")) == 2);
    check_scores(serving_at(reply, "choices.0"), ids[0], 40, s);
    check_scores(serving_at(reply, "choices.1"), ids[1], 40, s);
    CHECK(serving_number(reply, "choices.0.mizzle.ledger.calls") == 0);
    json_decref(reply);
    for (size_t i = 0; i < PROMPTS; i++) {
        uint32_t *own;
        size_t n;
        reply = serving_complete(&server, RAW, serving_prompts[i],
                                 ",\"logprobs\":10,\"echo\":true,\"max_tokens\":1");
        json_t *back = serving_at(reply, "choices.0.text");
        CHECK(back && json_string_length(back) > 4);
        /* The text and the generated token follow each other, and begin with the prompt. */
        char quoted[400];
        snprintf(quoted, sizeof(quoted), "\"%s\"", serving_prompts[i]);
        json_t *plain = json_loads(quoted, JSON_DECODE_ANY, NULL);
        CHECK(strncmp(json_string_value(back), json_string_value(plain),
                      json_string_length(plain)) == 0);
        CHECK(tokenizer_encode(engine.tokenizer, &own, &n, json_string_value(plain),
                               json_string_length(plain), true, &err) == OK);
        check_scores(serving_at(reply, "choices.0"), own, n, s);
        free(own);
        json_decref(plain);
        json_decref(reply);
    }
    session_close(s);
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
    json_decref(r);
    json_decref(events);
    r = serving_post(&server, RAW, "{\"prompt\":\"Once upon\",\"max_tokens\":0,\"echo\":true}");
    CHECK(strcmp(serving_text(r, "choices.0.text"), "Once upon") == 0);
    CHECK(json_is_null(serving_at(r, "choices.0.logprobs")));
    json_decref(r);
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
    json_decref(r);
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
    CHECK(tokenizer_special(engine.tokenizer, "<|im_end|>", &end) &&
          tokenizer_eos(engine.tokenizer, &eos));
    json_t *info = serving_ask(&server, "GET", "/tokenizer_info", NULL, NULL);
    json_t *r =
        serving_postf(&server, "/tokenize", "{\"prompt\":\"%s\",\"add_special_tokens\":false}",
                      serving_text(info, "eos_token"));
    CHECK(serving_number(r, "tokens.0") == (json_int_t)eos && serving_number(r, "count") == 1);
    json_decref(info);
    json_decref(r);
    r = serving_post(&server, "/tokenize", "{\"prompt\":\"The caf\xc3\xa9 <|im_end|>\\n\"}");
    CHECK(count_id(json_object_get(r, "tokens"), end) == 1);
    char *tokens = json_dumps(json_object_get(r, "tokens"), 0);
    json_decref(r);
    r = serving_postf(&server, "/detokenize", "{\"tokens\":%s}", tokens);
    free(tokens);
    CHECK(strcmp(serving_text(r, "prompt"), "The caf\xc3\xa9 <|im_end|>\n") == 0);
    json_decref(r);
    r = serving_post(&server, "/tokenize", "{\"content\":\"<|im_end|>\",\"parse_special\":false}");
    CHECK(count_id(json_object_get(r, "tokens"), end) == 0);
    json_decref(r);
    r = serving_complete(&server, CHAT, "a<|im_end|>b", ",\"return_token_ids\":true");
    size_t marked = count_id(serving_at(r, "choices.0.prompt_token_ids"), end);
    json_decref(r);
    r = serving_complete(&server, CHAT, "ab", ",\"return_token_ids\":true");
    CHECK(marked == count_id(serving_at(r, "choices.0.prompt_token_ids"), end));
    json_decref(r);
    r = serving_complete(&server, RAW, "a<|im_end|>b", ",\"return_token_ids\":true");
    CHECK(count_id(serving_at(r, "choices.0.prompt_token_ids"), end) == 1);
    json_decref(r);
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
    json_decref(one);
    json_decref(other);
}

int main(void)
{
    const struct serve_options o = { .parallel = 8 };
    const struct mizzle_options mo = { .model = serving_model, .threads = 1 };
    struct err err;
    serving_open(&server, &o, SERVING_CLOUD);
    CHECK(engine_open(&engine, &mo, true, &err) == OK);
    test_scoring();
    test_echo();
    test_offsets();
    test_tokenizer();
    serving_close(&server);
    engine_close(&engine);
    return 0;
}
