/* model_report.c - prints the rows of `bench model`: a table for the terminal, or llama-bench's
 * keys, then Mizzle's own. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "model/model.h"
#include "model/tuning.h"
#include "router/engine.h"
#include "tools/lab/bench/bench_model.h"
#include "tools/lab/bench/bench_ops.h"
#include "tools/lab/machine/limits.h"
#include "tools/cli/json_report.h"

bool model_tuned(const struct tuning *t)
{
    size_t timed = 0, done = 0;
    for (size_t i = 0; i < TUNING_SLOTS; i++) {
        timed += t->slot[i].passes > 0;
        done += tuning_chosen(&t->slot[i]);
    }
    return t->fixed || (timed && done == timed);
}

/* Return the sample standard deviation of v[n]. */
static double model_report_deviation(const double *v, size_t n)
{
    double mean = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        sum += (v[i] - mean) * (v[i] - mean);
    return n > 1 ? sqrt(sum / (double)(n - 1)) : 0;
}

/* Set ts to the tokens per second of each sample, those of all texts together. */
static void model_report_speeds(double ts[BENCH_REPEAT], const struct bench_test *t)
{
    for (size_t i = 0; i < t->samples; i++)
        ts[i] = (double)((t->prompt + t->gen) * t->texts) * 1e9 / t->ns[i];
}

void model_figures(struct model_figures *out, const struct bench_test *t, size_t pass_bytes)
{
    static double ts[BENCH_REPEAT], ns[BENCH_REPEAT];
    *out = (struct model_figures){ .ts = 0 };
    model_report_speeds(ts, t);
    memcpy(ns, t->ns, t->samples * sizeof(*ns));
    out->deviation_ts = model_report_deviation(ts, t->samples);
    out->deviation_ns = model_report_deviation(ns, t->samples);
    out->ts = limits_median(ts, t->samples);
    out->ns = limits_median(ns, t->samples);
    out->each = out->ts / (double)t->texts;
    out->probe = t->before > t->after ? t->before : t->after;
    out->read = t->gen ? out->each * (double)pass_bytes / 1e9 : (double)NAN;
    out->share = out->read / out->probe;
    double all = 0, most = ts[t->samples - 1]; /* the median has sorted them */
    for (size_t i = 0; i < t->samples; i++)
        all += ns[i];
    double tokens = (double)((t->prompt + t->gen) * t->texts * t->samples);
    out->best = t->pass > 0 ? (double)t->texts * 1e9 / t->pass : most;
    out->by_cpu = t->on_cpu > 0 ? tokens * 1e9 / all / t->on_cpu : 0;
    out->times = t->one > 0 ? out->ts / t->one : (double)NAN;
    doubt_text(out->doubtful, pass_bytes <= t->l3 ? 0 : out->share, t->threads, t->one, out->ts);
    if (t->gen)
        doubt_changed(out->doubtful, t->before, t->after);
    if (doubt_busy(out->doubtful, t->on_cpu, t->others))
        doubt_best(out->doubtful, out->best, out->by_cpu, "t/s");
}

/* Return the type of the weights: the file's, or that of a random model. */
static const char *model_report_type(const struct engine *e)
{
    return e->weights && *e->weights ? e->weights : model_type_name(e->model);
}

static void model_report_real(struct row *r, const char *key, double v)
{
    row_named(r, key, NULL, v, 6);
}

static void model_report_size(struct row *r, const char *key, size_t v)
{
    row_named(r, key, NULL, (double)v, 0);
}

/* Add where the time goes: for each kind of operation, by token or by prompt. */
static void model_report_ops(struct row *r, const struct bench_ops *ops)
{
    struct bench_ops_row rows[BATCH_OPS], sum = bench_ops_rows(rows, ops);
    json_t *list = json_array();
    for (size_t i = 0; i < BATCH_OPS; i++) {
        const struct bench_ops_row *o = &rows[i];
        json_t *row = json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:s}", "op", o->op, "calls",
                                json_report_real(o->calls), "ns", json_report_real(o->ns), "bytes",
                                json_report_real(o->bytes), "ops", json_report_real(o->ops),
                                "least_ns", json_report_real(o->least), "limit", o->limit);
        json_report_add(&list, row);
    }
    row_json(r, "by_op", list);
    model_report_real(r, "by_op_sum_ns", sum.ns);
    model_report_real(r, "by_op_watched_ns", bench_ops_ns(ops, false));
    model_report_real(r, "by_op_plain_ns", bench_ops_ns(ops, true));
}

/* Return the name of the matrices of a slot. */
static const char *model_report_slot(size_t slot)
{
    return slot == TUNING_HEAD ? "head" : panels_type_name((enum ptype)slot);
}

/* Add how the weights are walked, and what each way took: for each type that was tried. */
static void model_report_tuning(struct row *r, const struct tuning *t)
{
    json_t *list = json_array();
    for (size_t i = 0; t && i < TUNING_SLOTS; i++) {
        const struct tuning_slot *s = &t->slot[i];
        if (!tuning_chosen(s))
            continue;
        json_t *ways = json_array();
        for (size_t w = 0; w < TUNING_WAYS; w++) {
            json_t *way =
                json_pack("{s:I,s:I,s:I}", "panels", (json_int_t)s->way[w].panels, "ahead",
                          (json_int_t)s->way[w].ahead, "ns", (json_int_t)s->least[w]);
            json_report_add(&ways, way);
        }
        json_report_add(&list, json_pack("{s:s,s:I,s:I,s:o}", "slot", model_report_slot(i),
                                         "panels", (json_int_t)s->now.panels, "ahead",
                                         (json_int_t)s->now.ahead, "ways", ways));
    }
    row_json(r, "tuning", list);
}

/* Add what was tested, with llama-bench's keys; in a table, threads and the name of the test. when:
 * the time. */
static void model_report_about(struct row *r, const struct model_report *b,
                               const struct bench_test *t, const char *name, const char *when)
{
    const struct engine *e = b->engine;
    row_text(r, "cpu_info", NULL, cpu_name());
    row_text(r, "model_filename", NULL, b->model);
    row_text(r, "model_type", NULL, model_report_type(e));
    model_report_size(r, "model_size", e->model->bytes);
    model_report_size(r, "model_n_params", e->model->params);
    const struct model_config *c = &e->model->config;
    model_report_size(r, "n_products",
                      e->model->params - c->vocab * c->hidden * ((size_t)2 - c->tied));
    row_text(r, "backends", NULL, "CPU");
    row_text(r, "isa", NULL, e->kernels.isa);
    row_named(r, "n_threads", "threads", (double)t->threads, 0);
    row_text(r, NULL, "test", name);
    row_text(r, "type_k", NULL, b->kv);
    row_text(r, "type_v", NULL, b->kv);
    model_report_size(r, "n_prompt", t->prompt);
    model_report_size(r, "n_gen", t->gen);
    model_report_size(r, "n_depth", t->depth);
    model_report_size(r, "n_texts", t->texts);
    row_text(r, "test_time", NULL, when);
}

/* Add the figures: each as a number, and what the table shows of it. speed and probe are for the
 * table alone; ts: tokens per second of each sample. */
static void model_report_figures(struct model_report *b, const struct bench_test *t,
                                 const struct model_figures *f, const double *ts, const char *speed,
                                 const char *probe)
{
    struct row *r = &b->row;
    double waiting = t->threads > 1 ? t->waiting : (double)NAN;
    row_text(r, NULL, "t/s", speed);
    model_report_real(r, "avg_ns", f->ns);
    model_report_real(r, "stddev_ns", f->deviation_ns);
    model_report_real(r, "avg_ts", f->ts);
    model_report_real(r, "stddev_ts", f->deviation_ts);
    model_report_real(r, "text_ts", f->each);
    row_named(r, NULL, b->texts ? "each" : NULL, t->gen ? f->each : (double)NAN, 2);
    row_list(r, "samples_ns", t->ns, t->samples);
    row_list(r, "samples_ts", ts, t->samples);
    model_report_real(r, "read_gb_s", f->read);
    row_named(r, NULL, "read GB/s", f->read, 1);
    row_text(r, NULL, "probe GB/s", probe);
    model_report_real(r, "probe_gb_s", f->probe);
    model_report_real(r, "probe_before_gb_s", t->before);
    model_report_real(r, "probe_after_gb_s", t->gen ? t->after : (double)NAN);
    model_report_real(r, "of_probe", f->share);
    row_percent(r, "of probe", f->share);
    model_report_real(r, "on_cpu", t->on_cpu);
    model_report_real(r, "others", t->others < 0 ? (double)NAN : t->others);
    model_report_real(r, "best_ts", f->best);
    model_report_real(r, "cpu_ts", f->by_cpu);
    model_report_real(r, "times_one", f->times);
    row_named(r, NULL, b->threads ? "x 1 thread" : NULL, f->times, 2);
    model_report_real(r, "waiting", waiting);
    row_percent(r, "waiting", waiting);
    row_text(r, "doubtful", "doubtful", *f->doubtful ? f->doubtful : NULL);
    model_report_size(r, "peak_bytes", t->peak);
}

/* Write the name of a test. */
static void model_report_name(char *out, size_t size, const struct bench_test *t)
{
    int n = snprintf(out, size, "%s%zu", t->gen ? "tg" : "pp", t->gen ? t->gen : t->prompt);
    if (t->texts > 1)
        n += snprintf(out + n, size - (size_t)n, " x %zu", t->texts);
    if (t->depth)
        snprintf(out + n, size - (size_t)n, " @ d%zu", t->depth);
}

/* How the batch of the latest row walks the weights: printed below the table. */
static struct tuning walked;

int model_report_row(struct model_report *b, const struct bench_test *t,
                     const struct model_figures *f, const struct bench_ops *ops, struct err *err)
{
    static double ts[BENCH_REPEAT];
    const struct model *m = b->engine->model;
    bool md = !strcmp(b->row.format, "md");
    char name[128], when[32] = "", speed[64], probe[64];
    time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm))
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    model_report_name(name, sizeof(name), t);
    model_report_speeds(ts, t);
    snprintf(speed, sizeof(speed), "%.2f +- %.2f", f->ts, f->deviation_ts);
    snprintf(probe, sizeof(probe), t->gen ? "%.1f, %.1f" : "%.1f", t->before, t->after);
    if (md && !b->row.printed)
        printf("%s %s: %.2f MiB, %.2f M parameters; kernels: %s; keys and values: %s\n", b->model,
               model_report_type(b->engine), (double)m->bytes / (1 << 20), (double)m->params / 1e6,
               b->engine->kernels.isa, b->kv);
    if (md && !b->row.headed)
        puts("");
    model_report_about(&b->row, b, t, name, when);
    model_report_figures(b, t, f, ts, speed, probe);
    model_report_tuning(&b->row, b->tuning);
    if (ops)
        model_report_ops(&b->row, ops);
    int rc = row_print(&b->row, err);
    if (b->tuning)
        walked = *b->tuning;
    if (md && ops) {
        bench_ops_print(ops, name, f->doubtful);
        b->row.headed = false;
    }
    b->peak = t->peak;
    b->closed = fflush(stdout) != 0;
    return rc;
}

/* Print how each type is walked, and the processor time that each way took. */
static void model_report_walks(void)
{
    puts(
        "\nWalks of one token: panels/ahead, and ms of processor time a token (kernels/tune.h):\n");
    for (size_t i = 0; i < TUNING_SLOTS; i++) {
        const struct tuning_slot *s = &walked.slot[i];
        if (!tuning_chosen(s))
            continue;
        printf("%-7s %zu/%-6zu of", model_report_slot(i), s->now.panels, s->now.ahead);
        for (size_t w = 0; w < TUNING_WAYS; w++)
            printf(" %zu/%zu %.2f%s", s->way[w].panels, s->way[w].ahead, (double)s->least[w] / 1e6,
                   w + 1 < TUNING_WAYS ? "," : "\n");
    }
}

void model_report_end(const struct model_report *b)
{
    row_end(&b->row);
    if (strcmp(b->row.format, "md") != 0 || !b->row.printed)
        return;
    if (!walked.fixed && model_tuned(&walked))
        model_report_walks();
    printf("\nPeak memory of the process: %.1f MiB.\n", (double)b->peak / (1 << 20));
}
