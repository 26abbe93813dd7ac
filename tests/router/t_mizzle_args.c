/* Bad arguments of the public interface: NULL, sizes of older and newer structs, prompts and
 * options that make no sense. Each is refused with a code and a message. */
#include "model/text/tokenizer.h"
#include "router/learn/form_save.h"
#include "router/router.h"
#include "tests/router/mizzle_help.h"

static void *(*volatile room)(size_t) = malloc; /* hides the sizes from the compiler */

/* mizzle_open must fail with this code and a message that contains part. */
static void refuses(const struct mizzle_options *o, int code, const char *part)
{
    struct mizzle *m = (struct mizzle *)&m;
    struct mizzle_error e = { .size = sizeof(e) };
    int rc = mizzle_open(&m, o, &e);
    CHECK_MSG(rc == code && e.code == code && strstr(e.message, part) && !m,
              "expected %d, %s; found %d, %s", code, part, rc, e.message);
    CHECK(!strchr(e.message, '\n'));
}

/* NULL is refused, or ignored where the header allows it. */
static void test_null(void)
{
    struct mizzle *m = NULL;
    struct mizzle_error e = { .size = sizeof(e) };
    const struct mizzle_prompt p = { .size = sizeof(p), .text = "x" };
    CHECK(strcmp(mizzle_version(), MIZZLE_VERSION) == 0);
    mizzle_options_init(NULL, 64);
    CHECK(mizzle_open(NULL, &base, &e) == MIZZLE_ARG && e.code == MIZZLE_ARG && *e.message);
    CHECK(mizzle_open(NULL, NULL, NULL) == MIZZLE_ARG);
    CHECK(mizzle_open(&m, NULL, &e) == MIZZLE_ARG && strstr(e.message, "NULL") && !m);
    CHECK(mizzle_generate(NULL, &p, on_token, NULL, NULL, &e) == MIZZLE_ARG);
    CHECK(mizzle_close(NULL) == MIZZLE_OK && !mizzle_note(NULL, &e));
    mizzle_stop(NULL);
    m = open_with(&base);
    CHECK(mizzle_generate(m, NULL, on_token, NULL, NULL, &e) == MIZZLE_ARG);
    CHECK(mizzle_generate(m, &p, NULL, NULL, NULL, NULL) == MIZZLE_OK);
    CHECK(!mizzle_note(m, NULL));
    expect_answer(m);
    CHECK(mizzle_close(m) == MIZZLE_OK);
}

/* Sizes of older and newer structs; small ones are on the heap, for sanitizers. */
static void test_sizes(void)
{
    struct mizzle *m;
    static const size_t bad[] = { 0, 7, 12, SIZE_MAX, (size_t)1 << 40 };
    struct mizzle_options *small = room(3 * sizeof(void *));
    CHECK(small);
    mizzle_options_init(small, 3 * sizeof(void *));
    CHECK(small->size == 3 * sizeof(void *) && !small->model);
    small->model = model;
    CHECK(mizzle_open(&m, small, NULL) == MIZZLE_OK);
    CHECK(mizzle_close(m) == MIZZLE_OK);
    free(small);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct mizzle_options o = base;
        o.size = bad[i];
        refuses(&o, MIZZLE_ARG, "size");
    }
    struct mizzle_options old = base; /* as 0.5.1's header has it: the model behind the size */
    memcpy(&old.abi, &model, sizeof(model));
    refuses(&old, MIZZLE_ARG, "options: abi: expected 1, found");
    struct {
        struct mizzle_options o;
        size_t more;
    } newer = { base, 0 };
    newer.o.size = sizeof(newer);
    m = open_with(&newer.o);
    newer.more = 1;
    refuses(&newer.o, MIZZLE_ARG, "does not know");

    struct mizzle_prompt *p = room(2 * sizeof(void *));
    struct mizzle_stats *st = room(3 * sizeof(void *));
    struct mizzle_error *e = room(2 * sizeof(void *));
    CHECK(p && st && e);
    p->size = e->size = 2 * sizeof(void *);
    st->size = 3 * sizeof(void *);
    p->text = "some text";
    CHECK(mizzle_generate(m, p, NULL, NULL, st, e) == MIZZLE_OK);
    CHECK(st->size == 3 * sizeof(void *) && st->tokens > 4 && st->cloud == 0 && e->code == 0);
    p->text = "";
    CHECK(mizzle_generate(m, p, NULL, NULL, st, e) == MIZZLE_ARG && e->code == MIZZLE_ARG);
    CHECK(memcmp(e->message, "the\0", 4) == 0); /* the part of the message that fits */
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        st->size = bad[i];
        CHECK(mizzle_generate(m, p, NULL, NULL, st, NULL) == MIZZLE_ARG && st->size == bad[i]);
        e->size = bad[i];
        e->code = 5;
        CHECK(mizzle_generate(m, p, NULL, NULL, NULL, e) == MIZZLE_ARG && e->code == 5);
    }
    struct {
        struct mizzle_stats s;
        size_t more;
    } wide = { .s.size = sizeof(wide), .more = 9 };
    p->text = "some text";
    CHECK(mizzle_generate(m, p, NULL, NULL, &wide.s, NULL) == MIZZLE_OK);
    CHECK(wide.s.tokens > 4 && strcmp(wide.s.finish, "length") == 0 && wide.more == 0);
    free(p);
    free(st);
    free(e);
    CHECK(mizzle_close(m) == MIZZLE_OK);
}

/* Prompts that are invalid or too long; stops and limits that a prompt sets. */
static void test_prompts(void)
{
    struct mizzle *m = open_with(&base);
    struct mizzle_error e = { .size = sizeof(e) };
    struct tokenizer *tok;
    struct seen text = { 0 }, ids = { 0 }, stopped = { .most = 3 };
    struct mizzle_stats st = { .size = sizeof(st) };
    const struct mizzle_message bad[] = { { .role = "user", .text = "x" }, { .text = "y" } };
    const char *const empty[] = { "", NULL };
    static const uint32_t zeros[TINY_CONTEXT + 1];
    struct mizzle_prompt p = { .size = sizeof(p) };
    uint32_t *list;
    size_t n;
    CHECK(tokenizer_open_path(&tok, model, NULL) == OK);
    CHECK(tokenizer_encode(tok, &list, &n, "some text", 9, true, NULL) == OK);
    CHECK(write_text(m, "some text", &text, NULL) == MIZZLE_OK && text.n == TOKENS);
    p.ids = list;
    p.n_ids = n;
    CHECK(mizzle_generate(m, &p, on_token, &ids, &st, &e) == MIZZLE_OK && st.prompt_tokens == n);
    CHECK(memcmp(text.ids, ids.ids, sizeof(ids.ids)) == 0);
    CHECK(write_text(m, "some text", &stopped, &st) == MIZZLE_OK && stopped.n == 3);
    CHECK(strcmp(st.finish, "stop") == 0 && st.tokens == 3);
    p.max_tokens = 2;
    CHECK(mizzle_generate(m, &p, NULL, NULL, &st, &e) == MIZZLE_OK && st.tokens == 2);
    const struct {
        struct mizzle_prompt p;
        const char *says;
    } wrong[] = {
        { { .text = "x", .ids = list, .n_ids = n }, "found 2" },
        { { .ids = list }, "" },
        { { .ids = zeros, .n_ids = TINY_CONTEXT + 1 }, "256" },
        { { .ids = (const uint32_t[]){ UINT32_MAX }, .n_ids = 1 }, "" },
        { { .messages = bad, .n_messages = 2 }, "[1]" },
        { { .text = "x", .stops = empty }, "" },
        { { .text = NULL }, "found 0" },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        p = wrong[i].p;
        p.size = sizeof(p);
        CHECK(mizzle_generate(m, &p, NULL, NULL, &st, &e) == MIZZLE_ARG);
        CHECK_MSG(strstr(e.message, wrong[i].says), "%s", e.message);
        CHECK(st.tokens == 0 && strcmp(st.finish, "error") == 0);
    }
    expect_answer(m); /* after all these errors */
    CHECK(mizzle_close(m) == MIZZLE_OK);
    free(list);
    tokenizer_close(tok);
}

static float no_score(void *arg, const struct mizzle_state *state)
{
    (void)arg, (void)state;
    return 0;
}

/* Options that mizzle_open refuses; the message names the option or its value. */
static void test_refused(void)
{
    static const char *const empty[] = { "", NULL };
#define BAD(field, value, code, part)     \
    do {                                  \
        struct mizzle_options o = base;   \
        o.policy = NULL;                  \
        o.field = value;                  \
        refuses(&o, MIZZLE_##code, part); \
    } while (0)
    BAD(model, NULL, ARG, "model");
    BAD(model, "none.gguf", IO, "none.gguf");
    BAD(model, "/dev/null", FORMAT, "/dev/null");
    BAD(router, "none.safetensors", IO, "none.safetensors");
    BAD(router, "/dev/null", FORMAT, "/dev/null");
    BAD(policy, "maybe", ARG, "maybe");
    BAD(policy, "oracle", ARG, "policy: expected mlp");
    BAD(policy, "mlp", ARG, "router");
    base.on_score = no_score;
    BAD(policy, "entropy", ARG, "on_score: expected policy mlp and no router, found entropy");
    BAD(router, "none", ARG, "on_score: expected policy mlp and no router, found none");
    base.on_score = NULL;
    BAD(threshold, 2, ARG, "threshold");
    BAD(max_routed, 1.5, ARG, "max_routed: expected 0 to 1, found 1.5");
    BAD(policy, "price", ARG, "policy: expected mlp");
    BAD(policy, "position", ARG, "place: expected a number or a text, found none");
    BAD(place, "", ARG, "place: expected a number or a text, found none");
    BAD(ahead, 2, ARG, "ahead");
    BAD(draft, "most", ARG, "draft");
    BAD(context, 1 << 30, ARG, "context");
    BAD(stops, empty, ARG, "stop");
    BAD(temp, -1, ARG, "temp");
    BAD(isa, "z80", ARG, "z80");
    BAD(kv, "q3", ARG, "q3");
    BAD(cloud, "perhaps", ARG, "perhaps");
    BAD(private_file, "none.txt", IO, "none.txt");
    BAD(answers_limit, 1 << 20, ARG, "answers_limit: expected 1 to");
    BAD(answers_limit, 5, ARG, "answers_limit: expected answers, a file; found none");
    BAD(answers, "none/x.jsonl", IO, "none/x.jsonl");
    BAD(offline, 1, ARG, "offline");
#undef BAD
}

/* A router that was made for another model with hidden states of the same size is refused. */
static void test_other_router(void)
{
    struct mizzle_options o = base;
    struct router_form f;
    CHECK(router_form_open(&f, 32, 2, NULL) == OK);
    f.about.has_model = true;
    f.about.model = 1;
    o.router = in_scratch("router");
    o.policy = "mlp";
    CHECK(form_save(o.router, &f, NULL) == OK);
    router_form_close(&f);
    refuses(&o, MIZZLE_FORMAT, "which runs here");
}

/* A key in the options is checked like one from a file, and a note warns of plain http. */
static void test_key(void)
{
    struct mizzle_options o = base;
    struct mizzle_error e = { .size = sizeof(e) };
    o.policy = "always";
    o.cloud_api = "openai"; /* so that opening does not wait for the server */
    o.cloud_url = "http://127.0.0.1:1";
    o.cloud_key = "";
    refuses(&o, MIZZLE_ARG, "cloud_key: the API key is empty");
    o.cloud_key = "secret\r\nX-More: 1";
    refuses(&o, MIZZLE_ARG, "cloud_key: the API key must be one word");
    o.cloud_key = "secret";
    struct mizzle *m = open_with(&o);
    CHECK(!mizzle_note(m, &e) && mizzle_close(m) == MIZZLE_OK);
    o.cloud_url = "http://0.0.0.0:1";
    m = open_with(&o);
    CHECK(mizzle_note(m, &e) && strstr(e.message, "plain http") && !strstr(e.message, "secret"));
    CHECK(mizzle_close(m) == MIZZLE_OK);
}

int main(void)
{
    base_make();
    test_null();
    test_sizes();
    test_prompts();
    test_refused();
    test_other_router();
    test_key();
    return 0;
}
