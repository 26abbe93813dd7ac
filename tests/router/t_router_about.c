/* Tests tables of contexts, and what a router file says about itself: round trips, refusals. */
#include <math.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "router/learn/form_save.h"
#include "router/router.h"
#include "tests/router/router_help.h"
#include "tests/support/files.h"
#include "router/learn/safetensors_write.h"

static struct kernels kernels;
static const char *path;

static struct router_context rows[] = {
    { -1, -1, 0.5f }, { -1, 3, 0.25f }, { -1, 7, 0.75f }, { 2, 3, 0.125f }, { 7, 7, 1 },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Write rows[n] as a file with these metadata and read it. */
static int table_read(struct router **r, const struct router_context *from, size_t n, size_t cols,
                      const char *const *meta, struct err *err)
{
    const struct tensor t = { "context.table", W_F32, 2, { n, cols }, from, n * cols * 4 };
    CHECK(safetensors_write(path, &t, 1, meta, err) == OK);
    return router_open(r, path, &kernels, err);
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
    struct err err = { "" };
    CHECK(table_read(&r, rows, ROWS, 3, NULL, &err) == OK);
    CHECK(router_is_table(r) && router_dim(r) == 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK(router_score_ids(r, cases[i].ids, cases[i].n) == cases[i].score);
    router_close(r);
}

static void refuse_table(const struct router_context *from, size_t n, size_t cols, const char *said)
{
    struct router *r;
    struct err err = { "" };
    CHECK(table_read(&r, from, n, cols, NULL, &err) == ERR_FORMAT && !r);
    CHECK(strstr(err.msg, "context.table") && strstr(err.msg, said) && strstr(err.msg, path));
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
    struct err err = { "" };
    float threshold = 0;
    CHECK(table ? router_form_open_contexts(&f, 1, &err) == OK
                : router_form_open(&f, 3, 2, &err) == OK);
    if (table)
        f.contexts[0] = rows[0];
    f.has_threshold = f.about.has_share = f.about.has_model = true;
    f.threshold = 0.25f;
    f.about.share = 0.0625f;
    f.about.model = UINT64_C(0x0123456789abcdef);
    strcpy(f.about.name, "Qwen2.5-0.5B");
    strcpy(f.about.weights, "Q8_0");
    strcpy(f.about.task, "csqa");
    CHECK(form_save(path, &f, &err) == OK);
    router_form_close(&f);
    CHECK(router_open(&r, path, &kernels, &err) == OK);
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
    struct router *r;
    struct err err;
    CHECK(table_read(&r, rows, ROWS, 3, meta, &err) == OK);
    router_close(r);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *some[] = { wrong[i][0], wrong[i][1], NULL };
        CHECK(table_read(&r, rows, ROWS, 3, some, &err) == ERR_FORMAT && !r);
        CHECK(strstr(err.msg, wrong[i][0]) && strstr(err.msg, path) && strstr(err.msg, "expected"));
    }
}

static void check_torture(void)
{
    struct err err;
    struct router *r;
    CHECK(table_read(&r, rows, ROWS, 3, meta, &err) == OK);
    router_close(r);
    open_without_memory(path, &kernels);
}

int main(void)
{
    path = in_scratch("router");
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), NULL) == OK);
    check_lookup();
    check_bad_tables();
    check_about(false);
    check_about(true);
    check_bad_about();
    check_torture();
    struct router_form f;
    CHECK(router_form_open_contexts(&f, 0, NULL) == ERR_ARG);
    CHECK(router_form_open_contexts(&f, ROUTER_MAX_CONTEXTS + 1, NULL) == ERR_ARG);
    return 0;
}
