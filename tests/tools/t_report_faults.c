/* t_report_faults.c - the reports of `mizzle bench` as JSON, while the n-th allocation
 * fails, for every n, jansson's included: a row is printed whole or not at all, the error says that
 * memory was lacking, and nothing leaks. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "model/model.h"
#include "model/train/random.h"
#include "router/engine.h"
#include "tests/support/files.h"
#include "tests/support/tiny.h"
#include "tests/support/torture.h"
#include "tools/lab/bench/bench_model.h"
#include "tools/lab/bench/bench_ops.h"
#include "tools/lab/machine/read_probe.h"
#include "tools/cli/setup.h"

static const char *form;
static struct engine engine;
static struct err err;

static int report_kernels(void)
{
    static const struct read_level l3 = { "L3", 1 << 20, 50 };
    struct kernels_report b = { .row.format = form };
    struct bench_point p = {
        .op = "x", .isa = "y", .shape = "z", .level = &l3, .bytes = 3000, .ns = 100, .on_cpu = 1
    };
    return kernels_report_row(&b, &p, 2, &err);
}

/* A row with the times of the operations and of the router. */
static int report_model(void)
{
    static struct bench_test t;
    static struct bench_ops ops = { .samples = 1, .plain = { 1e6 }, .watched = { 1e6 } };
    static struct op_limits limits = { .int8 = 10, .f32 = 10 };
    struct model_figures f;
    struct model_report b = { .row.format = form,
                              .model = "tiny\xff", /* no UTF-8 */
                              .kv = "f16",
                              .engine = &engine };
    t = (struct bench_test){ .gen = 10,
                             .texts = 1,
                             .threads = 1,
                             .samples = 1,
                             .before = 25,
                             .after = 24,
                             .on_cpu = 1,
                             .pairs = 2 };
    t.ns[0] = 1e9;
    for (size_t i = 0; i < READ_LEVELS; i++)
        limits.levels[i] = (struct read_level){ "L1", 1 << 20, 10 };
    limits.level = limits.levels;
    ops.limits = &limits;
    ops.times.model = engine.model;
    for (size_t i = 0; i < 4; i++)
        t.score[i] = t.edge[i % 2] = t.routed[i % 2] = 1e6;
    model_figures(&f, &t, 2000000000);
    return model_report_row(&b, &t, &f, &ops, &err);
}

static int (*report)(void);
static size_t fails;

/* Let each allocation fail, and at last none. */
static void print_all(void)
{
    int reached = 1;
    for (long n = 1; reached; n++) {
        torture_begin(n);
        int rc = report();
        reached = torture_end();
        CHECK(torture_live() == 0 && rc == (reached ? ERR_NOMEM : OK));
        CHECK(!reached || strstr(err.msg, "memory"));
        fails = (size_t)n - 1;
    }
}

/* Each line that is printed is an object with as many members as the last one, which is whole. */
static void check_report(const char *name, int (*print)(void))
{
    report = print;
    char *text = strdup(printed(print_all));
    size_t lines = 0, whole = 0;
    CHECK(text && *text && text[strlen(text) - 1] == '\n');
    for (int pass = 0; pass < 2; pass++)
        for (char *line = text; *line; line = strchr(line, '\n') + 1) {
            json_t *o = json_loadb(line, strcspn(line, "\n"), 0, NULL);
            CHECK(json_is_object(o));
            if (pass)
                CHECK(json_object_size(o) == whole);
            whole = json_object_size(o);
            lines++;
            json_decref(o);
        }
    printf("%s: %zu allocations, %zu rows\n", name, fails, lines / 2);
    CHECK(fails > 10);
    free(text);
}

/* A row of CSV: a name that is no UTF-8 is escaped, and operations have no text. */
static void print_csv(void)
{
    CHECK(report_model() == OK);
}

int main(void)
{
    CHECK(kernels_pick(&engine.kernels, NULL, cpu_detect(), &err) == OK);
    CHECK(model_random(&engine.model, &tiny_shape, P_F32, &engine.kernels, NULL, 1, &err) == OK);
    json_set_alloc_funcs(malloc, free); /* those that can fail */
    form = "csv";
    report = report_model;
    const char *row = printed(print_csv);
    CHECK(strstr(row, ",tiny\\xff,") && strstr(row, ",1000000000.000,10.000,"));
    form = "jsonl";
    check_report("kernels", report_kernels);
    check_report("model", report_model);
    model_close(engine.model);
    return 0;
}
