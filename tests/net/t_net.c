/* Tests the parts of the client that need no network: requests field by field, replies recorded
 * from real servers, JSON from outside. */
#include "kernels/sys/buf.h"
#include "net/cloud.h"
#include "net/dialect/dialect.h"
#include "net/http/json_input.h"
#include "tests/support/test.h"

static const uint32_t prompt[] = { 0, 7, 4294967295u, 151644 };
static bool skipped;

static json_t *parsed(const char *p, size_t n)
{
    json_t *root;
    struct err err = { "" };
    CHECK_MSG(json_input_parse(&root, p, n, &err) == OK, "%s", err.msg);
    return root;
}

static json_t *request_of(const struct dialect *d, const struct ask *a)
{
    struct buf b = { 0 };
    CHECK(d->request(&b, a));
    CHECK(b.n <= 230 + 11 * a->n); /* it has no blanks */
    json_t *root = parsed(b.p, b.n);
    buf_free(&b);
    return root;
}

/* Every field that greedy decoding depends on is present with its greedy value. */
static void test_requests(void)
{
    const struct ask unnamed = { .ids = prompt, .n = 1, .vocab = SIZE_MAX, .want = 1 };
    const struct ask a = {
        .model = "\"a \\\"model\\\"\"", .ids = prompt, .n = 4, .vocab = SIZE_MAX, .want = 1
    };
#define IDS "[0,7,4294967295,151644]"
    static const struct {
        const struct dialect *d;
        const char *json;
    } rows[] = {
        { &dialect_openai,
          "{\"model\":\"a \\\"model\\\"\",\"prompt\":" IDS ",\"max_tokens\":1,\"temperature\":0,"
          "\"top_p\":1,\"top_k\":1,\"min_p\":0,\"repetition_penalty\":1,\"return_token_ids\":"
          "true}" },
        { &dialect_llamacpp,
          "{\"prompt\":" IDS
          ",\"n_predict\":1,\"temperature\":0,\"top_k\":1,\"top_p\":1,\"min_p\":0,"
          "\"repeat_penalty\":1,\"mirostat\":0,\"samplers\":[\"top_k\"],\"ignore_eos\":false,"
          "\"cache_prompt\":true,\"return_tokens\":true}" },
        { &dialect_sglang,
          "{\"input_ids\":" IDS ",\"sampling_params\":{\"max_new_tokens\":1,\"temperature\":0,"
          "\"top_p\":1,\"top_k\":1,\"min_p\":0,\"repetition_penalty\":1}}" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *r = request_of(rows[i].d, &a), *want = parsed(rows[i].json, strlen(rows[i].json));
        CHECK_MSG(json_equal(r, want), "%s", rows[i].json);
        json_decref(want);
        json_decref(r);
    }
    json_t *r = request_of(&dialect_openai, &unnamed);
    CHECK(!json_object_get(r, "model"));
    json_decref(r);
}

static void test_buf(void)
{
    struct buf b = { .max = 10 };
    CHECK(buf_str(&b, "12345") && buf_add(&b, "67890", 5) && !buf_str(&b, "x") && b.n == 10);
    CHECK(memcmp(b.p, "1234567890", 10) == 0 && buf_add(&b, "", 0));
    CHECK(!buf_add(&b, "", SIZE_MAX) && b.n == 10);
    buf_free(&b);
    CHECK(!buf_ids(&b, prompt, 4) && b.n == 0);
    b.max = 0;
    CHECK(buf_ids(&b, prompt, 4) && b.n == 23 && memcmp(b.p, "[0,7,4294967295,151644]", 23) == 0);
    b.n = 0;
    CHECK(buf_ids(&b, prompt, 0) && b.n == 2 && memcmp(b.p, "[]", 2) == 0);
    buf_free(&b);
}

/* json_input_line gives harmless lines that are cut between characters. */
static void test_lines(void)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "plain", "plain" },
        { "two\r\n\tlines\x1b[31m", "two lines [31m" },
        { "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
          "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
        { "a\xe2\x80\xae"
          "b\xc2\x9b"
          "c",
          "a b c" }, /* a right-to-left override and the C1 control CSI */
        { "cut \xe2\x82", "cut " },
        { "\xc0\xaf\xed\xa0\x80", " " }, /* overlong, surrogate */
        { "0123456789012345678901234567890123456789", "01234567890123456789012345678..." },
        { "012345678901234567890123456\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac",
          "012345678901234567890123456..." },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[33];
        json_input_line(out, sizeof(out), cases[i].in, strlen(cases[i].in));
        CHECK_MSG(strcmp(out, cases[i].out) == 0, "%zu: \"%s\"", i, out);
    }
}

/* Return the body of a recorded message, and its status. */
static json_t *recorded(const char *dir, const char *name, const char *kind, long *status)
{
    size_t n;
    char *text = slurp_all(test_data("http/%s/%s.%s", dir, name, kind), &n);
    if (!text)
        return NULL;
    char *body = strstr(text, "\r\n\r\n");
    CHECK(body);
    *status = strncmp(text, "HTTP/1.1 ", 9) == 0 ? strtol(text + 9, NULL, 10) : 0;
    json_t *root = parsed(body + 4, n - (size_t)(body + 4 - text));
    free(text);
    return root;
}

static const char *const dirs[] = { "llama_server_2025-02/qwen_random",
                                    "llama_server_2026-08/qwen_random" };

/* Compare what the recorded request has in common with ours, and check that the recorded reply
 * gives the id, or with `says` the error. */
static void replay(const char *dir, const char *name, const struct dialect *d, int code,
                   uint32_t id, const char *says)
{
    long status = 0;
    json_t *in = recorded(dir, name, "request", &status);
    json_t *reply = recorded(dir, name, "response", &status);
    if (!in || !reply) {
        skipped = true;
        return;
    }
    static uint32_t ids[4096];
    const json_t *list = json_object_get(in, "prompt");
    size_t n = json_array_size(list);
    CHECK(n && n <= 4096);
    for (size_t i = 0; i < n; i++)
        CHECK(json_input_id(&ids[i], json_array_get(list, i), 151936));
    const struct ask a = { .ids = ids, .n = n, .vocab = 151936, .want = 1 };
    json_t *ours = request_of(d, &a);
    static const char *const common[] = { "prompt", "top_k", "cache_prompt" };
    for (size_t i = 0; i < 3; i++) {
        const json_t *theirs = json_object_get(in, common[i]);
        CHECK_MSG(!theirs || json_equal(json_object_get(ours, common[i]), theirs), "%s/%s: %s", dir,
                  name, common[i]);
    }
    struct reply out = { .ids = { 77 } };
    struct err err = { "" };
    CHECK(status == 200);
    int rc = d->read(&out, reply, &a, &err);
    CHECK_MSG(rc == code && (says ? out.n == 0 && strstr(err.msg, says) : out.n == 1),
              "%s/%s: %d %s", dir, name, rc, err.msg);
    CHECK(out.ids[0] == (says ? 77 : id));
    json_decref(ours);
    json_decref(in);
    json_decref(reply);
}

/* Read replies that llama.cpp gave in two versions. */
static void test_replies(void)
{
    const struct dialect *l = &dialect_llamacpp, *o = &dialect_openai;
    for (size_t i = 0; i < 2; i++) {
        replay(dirs[i], "completion_ids_1", l, OK, 116825, NULL);
        replay(dirs[i], "completion_ids_1_probs", l, OK, 116825, NULL);
        replay(dirs[i], "completion_append_cached", l, OK, 136417, NULL);
        replay(dirs[i], "completion_n_predict_0", l, OK, 116825, NULL);
        replay(dirs[i], "completion_response_fields", l, OK, 116825, NULL);
        replay(dirs[i], "completion_ids_8_probs", l, ERR_NET, 0, "found 8");
        replay(dirs[i], "completion_no_return_tokens", l, OK, 0, ""); /* there is none */
        replay(dirs[i], "v1_completions_ids", o, ERR_REMOTE, 0, "without token ids");
    }
    /* End-of-text is an id like any other. */
    replay(dirs[1], "completion_stop_eos_bias", l, OK, 151645, NULL);
    /* Old servers cut a long prompt and answer with status 200; that token must be refused. */
    replay(dirs[0], "err_too_long", l, ERR_TEXT, 0, "context is full");
}

/* dialect_message finds the words in every recorded error body and in no other JSON. */
static void test_messages(void)
{
    static const char *const names[] = {
        "err_404",       "err_405",         "err_bad_json",       "err_empty_body",
        "err_no_prompt", "err_prompt_type", "err_token_negative", "err_token_out_of_vocab"
    };
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
            long status = 0;
            json_t *r = recorded(dirs[i], names[j], "response", &status);
            if (r)
                CHECK(status >= 400 && dialect_message(r));
            json_decref(r);
        }
    static const char *const forms[] = { /* the first four have words */
                                         "{\"error\":{\"message\":\"m\"}}",
                                         "{\"error\":\"m\"}",
                                         "{\"detail\":\"m\"}",
                                         "{\"object\":\"error\",\"message\":\"m\"}",
                                         "[]",
                                         "1",
                                         "null",
                                         "{}",
                                         "{\"error\":7}",
                                         "{\"detail\":[]}"
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        json_t *r = parsed(forms[i], strlen(forms[i]));
        const char *words = dialect_message(r);
        CHECK_MSG(i < 4 ? words && !strcmp(words, "m") : !words, "%s", forms[i]);
        json_decref(r);
    }
}

/* Of JSONTestSuite, accept what must be accepted and refuse what must be refused. */
static void test_json(void)
{
    DIR *d = opendir(test_data("badinput/json"));
    const struct dirent *e;
    size_t seen = 0;
    if (!d) {
        skipped = true;
        return;
    }
    while ((e = readdir(d))) {
        size_t n;
        if ((e->d_name[0] != 'y' && e->d_name[0] != 'n') || e->d_name[1] != '_')
            continue;
        if (strcmp(e->d_name, "y_object_escaped_null_in_key.json") == 0)
            continue; /* jansson refuses this one, because its keys are C strings */
        bool twice = strstr(e->d_name, "duplicated_key") != NULL; /* may be refused, and is */
        char *text = slurp_all(test_data("badinput/json/%s", e->d_name), &n);
        json_t *v;
        CHECK(text);
        int rc = json_input_parse(&v, text, n, NULL);
        CHECK_MSG((rc == OK) == (e->d_name[0] == 'y' && !twice), "%s: %d", e->d_name, rc);
        json_decref(v);
        free(text);
        seen++;
    }
    closedir(d);
    CHECK(seen > 200);
}

int main(void)
{
    json_malloc_t before, after;
    json_free_t end;
    json_get_alloc_funcs(&before, &end);
    test_buf();
    test_requests();
    test_lines();
    test_replies();
    test_messages();
    test_json();
    json_get_alloc_funcs(&after, &end);
    CHECK(after == before); /* a host may use jansson when the library is gone */
    if (skipped)
        SKIP("recorded exchanges: no data at $MIZZLE_TESTDATA (default ../shared/data)");
    return 0;
}
