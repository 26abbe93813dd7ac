/* Tests the router: a case by hand, networks whose values are high where a token is critical,
 * tables of contexts, what a file says about itself, hostile files, failing allocations. */
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "router/learn/form_save.h"
#include "tests/router/router_help.h"
#include "router/learn/safetensors_write.h"

static struct kernels kernels;
static const char *path; /* a file that this test may write */

static float w1[] = { 1, 0, 0, 0, -1, 0 }, b1[] = { 0, 0.5f }, w2[] = { 2, 4 }, b2[] = { -1 };
static const struct router_form by_hand = {
    .dim = 3, .width = 2, .members = 1, .w1 = w1, .b1 = b1, .w2 = w2, .b2 = { -1 }
};

/* By hand: h = relu([3, -2 + 0.5]) = [3, 0]; z = 2 * 3 - 1 = 5. */
static void check_by_hand(void)
{
    struct router_form f = by_hand;
    f.has_threshold = true;
    f.threshold = 0.3f;
    struct router *r, *again;
    float scratch[64], threshold = 0;
    CHECK(router_make(&r, &f, "form", &kernels, NULL) == OK);
    CHECK(router_dim(r) == 3 && router_scratch(r) <= 64);
    CHECK(router_threshold(r, &threshold) && threshold == 0.3f);
    float x[] = { 3, 2, 9 }, y = router_score(r, x, scratch);
    CHECK(fabsf(y - 0.99330715f) < 1e-6f && y == sigmoid_f32(5));
    float parts[2]; /* 2 * 3, 4 * 0 */
    CHECK(router_net(r).width == 2 && router_parts(r, scratch, parts) == -1);
    CHECK(parts[0] == 6 && parts[1] == 0);
    CHECK(form_save(path, &f, NULL) == OK);
    open_without_memory(path, &kernels);
    CHECK(router_open(&again, path, &kernels, NULL) == OK);
    CHECK(router_score(again, x, scratch) == y);
    CHECK(router_threshold(again, &threshold) && threshold == 0.3f);
    x[0] = NAN;
    CHECK(router_score(r, x, scratch) == 0);
    x[0] = INFINITY;
    x[1] = -INFINITY;
    float wild = router_score(r, x, scratch);
    CHECK(wild >= 0 && wild <= 1);
    router_close(again);
    router_close(r);
}

/* A network with features reads them behind the hidden state, or alone, and keeps its table. */
static void check_features(void)
{
    float first[FEATURES + 2] = { [0] = 2, [2] = 3, [FEATURES + 1] = 5 }, zero = 0, one = 1,
                           scratch[80];
    float hidden[2] = { 7, 11 }, features[FEATURES] = { 0.5f, [FEATURE_CONTEXT] = 0.25f };
    struct router_context rows[] = { { -1, -1, 0.5f }, { -1, 3, 0.25f } };
    struct router_form f = {
        .dim = FEATURES + 2, .width = 1, .members = 1, .w1 = first, .b1 = &zero, .w2 = &one
    };
    struct router_form again;
    struct router *r;
    struct err err;
    f.contexts = rows;
    f.ncontexts = 2;
    for (int alone = 0; alone < 2; alone++) {
        first[FEATURES - 1] = alone ? 5 : 0; /* the context's, if there is no hidden state */
        f.dim = FEATURES + (alone ? 0 : 2);
        CHECK(form_save(path, &f, &err) == OK && router_open(&r, path, &kernels, &err) == OK);
        CHECK(router_form_read(&again, path, &err) == OK);
        CHECK(again.dim == f.dim && !memcmp(again.w1, first, f.dim * sizeof(*first)));
        CHECK(again.ncontexts == 2 && !memcmp(again.contexts, rows, sizeof(rows)));
        router_form_close(&again);
        CHECK(router_extra(r) == FEATURES && (router_kind(r) == ROUTER_NETWORK) == !alone &&
              !router_is_table(r) && !strcmp(router_name(r), alone ? "combined" : "mix"));
        CHECK(router_score_ids(r, (const uint32_t[]){ 9, 3 }, 2) == 0.25f);
        const float *x = router_inputs(r, hidden, features, scratch);
        float sum = alone ? 2 * 0.5f + 5 * 0.25f : 2 * 7 + 3 * 0.5f + 5 * 0.25f;
        CHECK(x != hidden && router_score(r, x, scratch) == sigmoid_f32(sum));
        router_close(r);
    }
    f.dim = FEATURES - 1;
    CHECK(router_make(&r, &f, "form", &kernels, &err) == ERR_FORMAT && strstr(err.msg, "inputs"));
}

/* A file with these tensors is refused with these words. */
static void refuse(struct tensor *tensors, size_t n, const char *const *meta, const char *said)
{
    CHECK(safetensors_write(path, tensors, n, meta, NULL) == OK);
    router_refused(path, &kernels, said);
}

/* The tensors of a router that is fine. */
static struct tensor good[4] = {
    { "router.w1", W_F32, 2, { 2, 3 }, w1, sizeof(w1) },
    { "router.b1", W_F32, 1, { 2 }, b1, sizeof(b1) },
    { "router.w2", W_F32, 2, { 1, 2 }, w2, sizeof(w2) },
    { "router.b2", W_F32, 1, { 1 }, b2, sizeof(b2) },
};

/* Tensors that are missing, misshapen, not finite or of a wrong type are refused by name. */
static void check_refused_tensors(void)
{
    static const char *const names[] = { "router.w1", "router.b1", "router.w2", "router.b2" };
    struct tensor t[4];
    for (size_t i = 0; i < 4; i++) {
        memcpy(t, good, sizeof(t));
        t[i].name = "other";
        refuse(t, 4, NULL, names[i]); /* missing */
        memcpy(t, good, sizeof(t));
        t[i] = (struct tensor){ names[i], W_F32, 2, { 1, 1 }, b2, sizeof(b2) };
        if (i)
            refuse(t, 4, NULL, names[i]); /* misshapen */
        memcpy(t, good, sizeof(t));
        float bad[6] = { 0 };
        bad[0] = i % 2 ? INFINITY : NAN;
        t[i].data = bad;
        refuse(t, 4, NULL, names[i]);
        char said[64];
        memcpy(t, good, sizeof(t));
        t[i].type = W_I32;
        snprintf(said, sizeof(said), "tensor %s: expected F64, F32", names[i]);
        refuse(t, 4, NULL, said);
    }
    memcpy(t, good, sizeof(t));
    t[2] = (struct tensor){ "router.w2", W_F32, 2, { 2, 2 }, w1, 4 * sizeof(*w1) };
    refuse(t, 4, NULL, "router.b2: expected [2]"); /* two outputs */
    t[2] = (struct tensor){ "router.w2", W_F32, 2, { 3, 2 }, w1, sizeof(w1) };
    refuse(t, 4, NULL, "router.w2");
    memcpy(t, good, sizeof(t));
    t[0] = (struct tensor){ "router.w1", W_F32, 2, { 0, 3 }, w1, 0 };
    refuse(t, 4, NULL, "router.w1");
    t[0] = (struct tensor){ "router.w1", W_F32, 1, { 6 }, w1, sizeof(w1) };
    refuse(t, 4, NULL, "router.w1");
}

/* Metadata that is wrong, sizes that are none, and a file that is not there are refused. */
static void check_refused(void)
{
    static const char *const wrong[][3] = {
        { "tap", "", NULL },
        { "tap", "post_attn", NULL },
        { "tap", "1,final", NULL },
        { "tap", "finals", NULL },
        { "threshold", "", NULL },
        { "threshold", "x", NULL },
        { "threshold", "0.5x", NULL },
        { "threshold", "nan", NULL },
        { "threshold", "-0.1", NULL },
        { "threshold", "1.5", NULL },
        { "threshold", "0.50000000000000000000000000000000000000000", NULL },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        refuse(good, 4, wrong[i], wrong[i][0]);

    struct router_form f;
    struct err err;
    CHECK(router_form_open(&f, 0, 2, &err) == ERR_ARG);
    CHECK(router_form_open(&f, 3, ROUTER_MAX + 1, &err) == ERR_ARG && !f.w1);
    CHECK(router_form_open_contexts(&f, 0, &err) == ERR_ARG);
    CHECK(router_form_open_contexts(&f, ROUTER_MAX_CONTEXTS + 1, &err) == ERR_ARG);
    struct router *r;
    CHECK(router_open(&r, "tests/no-such-file", &kernels, &err) == ERR_IO && !r);
}

/* A network whose values are high where a token is critical, as llama-route's are, has 1 - value as
 * its score: by hand, with z = 5 and z = 2 * 1 + 4 * 1.5 - 1 = 7. */
static void check_high(void)
{
    static const char *const meta[] = { "tap", "final", "high", "critical", NULL };
    const float x[][3] = { { 3, 2, 9 }, { 1, -1, 0 } };
    struct router *r;
    float scratch[64];
    CHECK(safetensors_write(path, good, 4, meta, NULL) == OK);
    CHECK(router_open(&r, path, &kernels, NULL) == OK && router_net(r).high);
    for (size_t i = 0; i < 2; i++)
        CHECK(fabsf(router_score(r, x[i], scratch) - sigmoid_f32(i ? -7 : -5)) < 1e-6f);
    router_close(r);
    refuse(good, 4, (const char *[]){ "high", "good", NULL },
           "high: expected critical, found good");
    spill(path, "PK\003\004 is how a zip archive begins", 32);
    router_refused(path, &kernels, "");
}

static struct router_context rows[] = {
    { -1, -1, 0.5f }, { -1, 3, 0.25f }, { -1, 7, 0.75f }, { 2, 3, 0.125f }, { 7, 7, 1 },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Write rows[n] as a file with these metadata. */
static void table_write(const struct router_context *from, size_t n, size_t cols,
                        const char *const *meta)
{
    const struct tensor t = { "context.table", W_F32, 2, { n, cols }, from, n * cols * 4 };
    CHECK(safetensors_write(path, &t, 1, meta, NULL) == OK);
}

/* Pairs that are not in the table fall back to the last id, and these to the mean. */
static void check_lookup(void)
{
    static const struct {
        uint32_t ids[3];
        size_t n;
        float score;
    } cases[] = {
        { { 9, 2, 3 }, 3, 0.125f }, { { 2, 3 }, 2, 0.125f }, { { 3, 3 }, 2, 0.25f },
        { { 3 }, 1, 0.25f },        { { 7, 7 }, 2, 1 },      { { 2, 7 }, 2, 0.75f },
        { { 3, 2 }, 2, 0.5f },      { { 0 }, 0, 0.5f },      { { 2, UINT32_MAX }, 2, 0.5f },
    };
    struct router *r;
    table_write(rows, ROWS, 3, NULL);
    CHECK(router_open(&r, path, &kernels, NULL) == OK);
    CHECK(router_is_table(r) && router_dim(r) == 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK(router_score_ids(r, cases[i].ids, cases[i].n) == cases[i].score);
    router_close(r);
}

static void refuse_table(const struct router_context *from, size_t n, size_t cols, const char *said)
{
    table_write(from, n, cols, NULL);
    router_refused(path, &kernels, "context.table");
    router_refused(path, &kernels, said);
}

static void check_bad_tables(void)
{
    static const struct router_context wrong[] = {
        { 2, 3, 1 },          /* twice */
        { 1, 9, 1 },          /* out of order */
        { 8, 0.5f, 1 },       /* no id */
        { 8, -2, 1 },         /* no id */
        { 16777216, 0, 1 },   /* ids beyond are not exact */
        { 8, 0, 1.5f },       /* no probability */
        { 8, 0, (float)NAN }, /* nor this */
        { (float)NAN, 0, 1 },
    };
    struct router_context t[ROWS];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        memcpy(t, rows, sizeof(t));
        t[ROWS - 1] = wrong[i];
        refuse_table(t, ROWS, 3, "at 4");
    }
    refuse_table(rows + 1, ROWS - 1, 3, "(-1, 3)");
    refuse_table(rows, 0, 3, "[0,3]");
    refuse_table(rows, 2, 2, "[2,2]");
}

static const char *const meta[] = { "tap",        "final",        "threshold", "0.25",
                                    "share",      "0.0625",       "model",     "0123456789abcdef",
                                    "model_name", "Qwen2.5-0.5B", "weights",   "Q8_0",
                                    "task",       "csqa",         NULL };

/* Metadata survive reading and writing, for both forms, to the byte. */
static void check_about(bool table)
{
    struct router_form f;
    struct router *r;
    float threshold = 0;
    CHECK(table ? router_form_open_contexts(&f, 1, NULL) == OK
                : router_form_open(&f, 3, 2, NULL) == OK);
    if (table)
        f.contexts[0] = rows[0];
    f.has_threshold = f.about.has_share = f.about.has_model = true;
    f.threshold = 0.25f;
    f.about.share = 0.0625f;
    f.about.model = UINT64_C(0x0123456789abcdef);
    strcpy(f.about.name, "Qwen2.5-0.5B");
    strcpy(f.about.weights, "Q8_0");
    strcpy(f.about.task, "csqa");
    CHECK(form_save(path, &f, NULL) == OK);
    router_form_close(&f);
    CHECK(router_open(&r, path, &kernels, NULL) == OK);
    const struct router_about *a = router_about(r);
    CHECK(router_threshold(r, &threshold) && threshold == 0.25f);
    CHECK(a->has_share && a->share == 0.0625f);
    CHECK(a->has_model && a->model == UINT64_C(0x0123456789abcdef));
    CHECK(!strcmp(a->name, "Qwen2.5-0.5B") && !strcmp(a->weights, "Q8_0"));
    CHECK(!strcmp(a->task, "csqa") && router_is_table(r) == table);
    router_close(r);
}

/* Each entry in a form that cannot be read is refused by its name. */
static void check_bad_about(void)
{
    static const char *const wrong[][2] = {
        { "share", "1.5" },
        { "share", "" },
        { "model", "0123456789abcde" },
        { "model", "0123456789abcdeg" },
        { "model", "0123456789abcdef0" },
        { "model", "0123456789ABCDEF" },
        { "model_name",
          "a name of more than sixty-three bytes, which no model should really have" },
        { "weights", "a type of sixteen" },
        { "task", "a task with a name of more than sixty-three bytes, which nobody should type" },
    };
    table_write(rows, ROWS, 3, meta);
    open_without_memory(path, &kernels);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *some[] = { wrong[i][0], wrong[i][1], NULL };
        table_write(rows, ROWS, 3, some);
        router_refused(path, &kernels, wrong[i][0]);
        router_refused(path, &kernels, "expected");
    }
}

int main(void)
{
    path = in_scratch("router");
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), NULL) == OK);
    check_by_hand();
    check_features();
    check_refused_tensors();
    check_refused();
    check_high();
    check_lookup();
    check_bad_tables();
    check_about(false);
    check_about(true);
    check_bad_about();
    return 0;
}
