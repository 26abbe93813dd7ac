/* Reads a question and formats its answer while the n-th allocation fails, jansson's included, for
 * every n: the result is an error or no answer, without crash or leak. Covers all dialects, errors
 * and edits of faults. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "tests/support/test.h"
#include "tests/support/tiny.h"
#include "tests/support/torture.h"
#include "tools/lab/stand_in/stand_in.h"
#include "tools/lab/stand_in/paths.h"
#include "tools/lab/stand_in/fault.h"
#include "tools/lab/stand_in/reply.h"
#include "tools/lab/stand_in/source.h"

static struct stand_in_source *source;
static const uint32_t answer[] = { 72, 0xe4, TINY_IM_END };
static const struct text_token tokens[] = { { .t.id = 72 },
                                            { .t.id = 0xe4 },
                                            { .t.id = TINY_IM_END } };

static const struct question {
    enum cloud_api server;
    enum stand_in_form form;
    const char *body;
} questions[] = {
    { CLOUD_OPENAI, FORM_VLLM,
      "{\"prompt\":[1,2,3],\"max_tokens\":3,\"return_token_ids\":true,\"stream_options\":"
      "{\"include_usage\":true}}" },
    { CLOUD_SGLANG, FORM_TEXT, "{\"prompt\":\"Hello\",\"max_tokens\":3}" },
    { CLOUD_SGLANG, FORM_GENERATE,
      "{\"input_ids\":[1,2,3],\"rid\":\"r\",\"sampling_params\":{\"max_new_tokens\":3}}" },
    { CLOUD_LLAMACPP, FORM_COMPLETION,
      "{\"prompt\":[1,2,3],\"n_predict\":3,\"return_tokens\":true}" },
    { CLOUD_OPENAI, FORM_VLLM, "{\"prompt\":[1,2,999]}" },
    { CLOUD_SGLANG, FORM_GENERATE, "{\"input_ids\":[1,2,999]}" },
    { CLOUD_LLAMACPP, FORM_COMPLETION, "{\"prompt\":[1,2,999]}" },
};

/* Print the JSON as a reply would be, with the fault's edit of the text. */
static void print(json_t *json, const struct stand_in_fault *f)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    struct buf out = { 0 };
    if (text && buf_str(&out, text) && f && f->text && f->name[0] != 'g') /* compressing is slow */
        f->text(&out, f->with);
    buf_free(&out);
    free(text);
    json_decref(json);
}

/* Format the answer whole and as events. */
static void tell(const struct stand_in_question *ask, const struct stand_in_fault *f)
{
    const struct text_view t = {
        .ids = answer, .tokens = tokens, .n = 3, .finished = true, .ended = true
    };
    const struct stand_in_case c = { .fault = f, .ask = ask, .vocab = TINY_VOCAB, .other = 5 };
    struct stand_in_reply say;
    stand_in_reply_begin(&say, source, ask, "tiny", 1, 1);
    json_t *json = stand_in_reply_all(&say, &t);
    if (json && f && f->json)
        f->json(&json, &c);
    print(json, f);
    stand_in_reply_end(&say);
    stand_in_reply_begin(&say, source, ask, "tiny", 1, 1);
    for (size_t i = 0; i < t.n; i++)
        print(stand_in_reply_event(&say, &t, i, i + 1 == t.n), NULL);
    print(stand_in_reply_closing(&say, &t), NULL);
    stand_in_reply_end(&say);
}

/* Do everything that one request does; json is its body. */
static void exchange(const struct question *q, const json_t *json, const struct stand_in_fault *f)
{
    struct stand_in_question ask;
    struct stand_in_refusal no = { .server = q->server };
    if (stand_in_question_read(&ask, source, q->form, NULL, json, &no) == WRONG_NOTHING)
        tell(&ask, f);
    else
        print(stand_in_refusal_answer("/v1/x", &no).json, NULL);
    free(ask.ids);
}

/* Run the exchange with each allocation failing in turn. */
static void torture(const struct question *q, const struct stand_in_fault *f)
{
    json_t *json = json_loads(q->body, 0, NULL);
    CHECK(json);
    long n = 1;
    do {
        torture_begin(n++);
        exchange(q, json, f);
        CHECK(torture_live() == 0);
    } while (torture_end());
    CHECK(n > 5);
    json_decref(json);
}

static void test_paths(void)
{
    static const char *const paths[] = { "/v1/models",  "/props",       "/slots",
                                         "/model_info", "/server_info", "/version" };
    const struct stand_in_paths a = { .source = source, .name = "tiny", .created = 1 };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        long n = 1;
        do {
            struct stand_in_refusal no;
            const struct stand_in_route *r = stand_in_paths_find(&a, "GET", paths[i], &no);
            CHECK(r && r->answer);
            torture_begin(n++);
            json_decref(r->answer(&(struct stand_in_query){ &a, NULL, &no }));
            CHECK(torture_live() == 0);
        } while (torture_end());
        CHECK(n > 2);
    }
}

/* The same for a question to the source itself. */
static void test_source(void)
{
    uint32_t prompt[] = { 1, 2, 3 };
    const struct stand_in_question q = { .ids = prompt, .n = 3, .max = 2, .slot = -1 };
    for (long n = 1; n <= 2; n++) {
        struct text *t;
        struct err err = { "" };
        torture_begin(n);
        CHECK(stand_in_source_ask(source, &t, &q, &err) == ERR_NOMEM && !t);
        CHECK(torture_end() && torture_live() == 0);
    }
}

int main(void)
{
    const char *model = tiny_make();
    const struct stand_in_options o = { .model = model, .threads = 1 };
    struct err err = { "" };
    json_set_alloc_funcs(malloc, free);
    json_object_seed(1);
    CHECK(stand_in_source_open(&source, model, &o, &err) == OK);
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
        torture(&questions[i], NULL);
    for (const struct stand_in_fault *f = stand_in_fault_table; f->name; f++)
        for (size_t i = 0; i < 4 && (f->json || f->text); i++)
            torture(&questions[i], f);
    test_paths();
    test_source();
    stand_in_source_close(source);
    return 0;
}
