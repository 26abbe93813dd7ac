/* Prompts that are echoed, where their tokens begin, and the tokenizer as lm-evaluation-harness
 * uses it. t_serve_lm_eval.c has the scores. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/mizzle.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"

static struct serving server;
static struct engine engine;

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
    CHECK(tokenizer_special(engine.tokenizer, "<|im_end|>", &end) &&
          tokenizer_eos(engine.tokenizer, &eos));
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

int main(void)
{
    const struct serve_options o = { .parallel = 8 };
    const struct mizzle_options mo = { .model = serving_model, .threads = 1 };
    serving_open(&server, &o, SERVING_CLOUD);
    CHECK(engine_open(&engine, &mo, true, NULL) == OK);
    test_echo();
    test_offsets();
    test_tokenizer();
    serving_close(&server);
    engine_close(&engine);
    return 0;
}
