/* model_report.c - prints the rows of `bench model`: a table for the terminal, or llama-bench's
 * keys, then Mizzle's own. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/os.h"
#include "model/model.h"
#include "router/engine.h"
#include "tools/bench/bench_model.h"
#include "tools/bench/bench_ops.h"
#include "tools/bench/counts.h"
#include "tools/cli/escaped.h"
#include "tools/cli/json_report.h"
#include "tools/cli/setup.h"

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

size_t model_pass_bytes(const struct model *m)
{
    const struct panels *rows = model_embedding(m);
    size_t unread = model_config(m)->tied ? 0 : rows->panel_bytes * panels_count(rows->rows);
    return model_bytes(m) - unread;
}

void model_figures(struct model_figures *out, const struct bench_test *t, size_t pass_bytes)
{
    static double ts[BENCH_REPEAT], ns[BENCH_REPEAT];
    *out = (struct model_figures){ .ts = 0 };
    model_report_speeds(ts, t);
    memcpy(ns, t->ns, t->samples * sizeof(*ns));
    out->deviation_ts = model_report_deviation(ts, t->samples);
    out->deviation_ns = model_report_deviation(ns, t->samples);
    out->ts = bench_median(ts, t->samples);
    out->ns = bench_median(ns, t->samples);
    out->each = out->ts / (double)t->texts;
    if (t->gen) {
        out->read = out->each * (double)pass_bytes / 1e9;
        out->probe = t->before > t->after ? t->before : t->after;
        out->share = out->read / out->probe;
    }
    bool cached = pass_bytes <= os_cache_size(3); /* then memory is no limit */
    doubt_text(out->doubtful, cached ? 0 : out->share, t->threads, t->one, out->ts);
    if (t->gen)
        doubt_changed(out->doubtful, t->before, t->after);
    doubt_busy(out->doubtful, t->on_cpu);
}

/* Return the type of the weights: the file's, or that of a random model. */
static const char *model_report_type(const struct engine *e)
{
    return e->weights && *e->weights ? e->weights : model_type_name(e->model);
}

/* Return the median of v[n] without reordering v; n <= 2 * BENCH_PAIRS. */
static double model_report_median(const double *v, size_t n)
{
    static double copy[2 * BENCH_PAIRS];
    memcpy(copy, v, n * sizeof(*v));
    return bench_median(copy, n);
}

static json_t *model_report_reals(const double *v, size_t n)
{
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++)
        json_report_add(&a, json_report_real(v[i]));
    return a;
}

static void model_report_real(json_t **o, const char *key, double v)
{
    json_report_set(o, key, json_report_real(v));
}

/* Add an integer. */
static void put_size(json_t **o, const char *key, size_t v)
{
    json_report_set(o, key, json_integer((json_int_t)v));
}

/* Add a count of events, null if it is negative, which means that there is none. */
static void put_count(json_t **o, const char *key, double v)
{
    json_report_set(o, key, v >= 0 ? json_report_real(v) : json_null());
}

/* Add the measurements of the router; null if they were not taken, so that every row has the same
 * keys. */
static void put_router(json_t **o, const struct bench_test *t)
{
    static const char *const keys[] = { "router_score_ns", "router_share",     "edge_token_ns",
                                        "routed_token_ns", "routed_saves",     "samples_score_ns",
                                        "samples_edge_ns", "samples_routed_ns" };
    for (size_t i = 0; !t->pairs && i < sizeof(keys) / sizeof(keys[0]); i++)
        json_report_set(o, keys[i], json_null());
    if (!t->pairs)
        return;
    double score = model_report_median(t->score, 2 * t->pairs),
           edge = model_report_median(t->edge, t->pairs);
    double routed = model_report_median(t->routed, t->pairs);
    model_report_real(o, keys[0], score);
    model_report_real(o, keys[1], score / edge);
    model_report_real(o, keys[2], edge);
    model_report_real(o, keys[3], routed);
    model_report_real(o, keys[4], 1 - routed / edge);
    json_report_set(o, keys[5], model_report_reals(t->score, 2 * t->pairs));
    json_report_set(o, keys[6], model_report_reals(t->edge, t->pairs));
    json_report_set(o, keys[7], model_report_reals(t->routed, t->pairs));
}

/* Add where the time goes: for each kind of operation, by token or by prompt. */
static void put_ops(json_t **o, const struct bench_ops *ops)
{
    struct bench_ops_row rows[BATCH_OPS], sum = bench_ops_rows(rows, ops);
    json_t *list = json_array();
    for (size_t i = 0; i < BATCH_OPS; i++) {
        const struct bench_ops_row *r = &rows[i];
        json_t *row = json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:s}", "op", r->op, "calls",
                                json_report_real(r->calls), "ns", json_report_real(r->ns), "bytes",
                                json_report_real(r->bytes), "ops", json_report_real(r->ops),
                                "least_ns", json_report_real(r->least), "limit", r->limit);
        for (size_t k = 0; k < COUNT_COLUMNS; k++)
            put_count(&row, count_columns[k].key, r->count[count_columns[k].event]);
        json_report_add(&list, row);
    }
    json_report_set(o, "by_op", list);
    model_report_real(o, "by_op_sum_ns", sum.ns);
    model_report_real(o, "by_op_watched_ns", bench_ops_ns(ops, false));
    model_report_real(o, "by_op_plain_ns", bench_ops_ns(ops, true));
}

/* Return the row as an object with llama-bench's keys. */
static json_t *model_report_json_row(const struct model_report *b, const struct bench_test *t,
                                     const struct model_figures *f)
{
    static double ts[BENCH_REPEAT];
    char when[32] = "";
    time_t now = time(NULL);
    struct tm tm;
    json_t *o = json_object();
    const struct engine *e = b->engine;
    model_report_speeds(ts, t);
    if (gmtime_r(&now, &tm))
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_report_set(&o, "cpu_info", escaped_json(cpu_name(), strlen(cpu_name())));
    json_report_set(&o, "model_filename", escaped_json(b->model, strlen(b->model)));
    json_report_set(&o, "model_type", json_string(model_report_type(e)));
    put_size(&o, "model_size", model_bytes(e->model));
    put_size(&o, "model_n_params", model_params(e->model));
    json_report_set(&o, "backends", json_string("CPU"));
    json_report_set(&o, "isa", json_string(e->kernels.isa));
    put_size(&o, "n_threads", t->threads);
    json_report_set(&o, "type_k", json_string(b->kv));
    json_report_set(&o, "type_v", json_string(b->kv));
    put_size(&o, "n_prompt", t->prompt);
    put_size(&o, "n_gen", t->gen);
    put_size(&o, "n_depth", t->depth);
    put_size(&o, "n_texts", t->texts);
    json_report_set(&o, "test_time", json_string(when));
    model_report_real(&o, "avg_ns", f->ns);
    model_report_real(&o, "stddev_ns", f->deviation_ns);
    model_report_real(&o, "avg_ts", f->ts);
    model_report_real(&o, "stddev_ts", f->deviation_ts);
    model_report_real(&o, "text_ts", f->each);
    json_report_set(&o, "samples_ns", model_report_reals(t->ns, t->samples));
    json_report_set(&o, "samples_ts", model_report_reals(ts, t->samples));
    json_report_set(&o, "read_gb_s", t->gen ? json_report_real(f->read) : json_null());
    model_report_real(&o, "probe_gb_s", t->gen ? f->probe : t->before);
    model_report_real(&o, "probe_before_gb_s", t->before);
    json_report_set(&o, "probe_after_gb_s", t->gen ? json_report_real(t->after) : json_null());
    json_report_set(&o, "of_probe", t->gen ? json_report_real(f->share) : json_null());
    model_report_real(&o, "on_cpu", t->on_cpu);
    json_report_set(&o, "doubtful", *f->doubtful ? json_string(f->doubtful) : json_null());
    model_report_real(&o, "joules_per_token", t->joules);
    for (size_t i = 0; i < COUNT_COLUMNS; i++)
        put_count(&o, count_columns[i].key, t->count[count_columns[i].event]);
    put_count(&o, "ipc", counts_ipc(t->count));
    put_size(&o, "peak_bytes", t->peak);
    put_router(&o, t);
    return o;
}

/* Print one CSV cell, quoted as in llama-bench; the numbers of a list are separated by blanks, and
 * a list of objects has no text. */
static void print_value(json_t *v)
{
    putchar('"');
    for (const char *p = json_string_value(v); p && *p; p++) {
        if (*p == '"')
            putchar('"');
        putchar(*p);
    }
    if (json_is_integer(v))
        printf("%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        printf("%.6f", json_real_value(v));
    else if (json_is_boolean(v))
        printf(json_is_true(v) ? "true" : "false");
    for (size_t i = 0; json_is_real(json_array_get(v, i)); i++)
        printf("%s%.3f", i ? " " : "", json_real_value(json_array_get(v, i)));
    putchar('"');
}

/* Print a row as CSV, with the header line before the first, and release it. */
static int print_csv(const struct model_report *b, json_t *o, struct err *err)
{
    const char *key;
    json_t *v;
    bool first = true;
    if (!o)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    if (!b->rows)
        json_object_foreach(o, key, v)
        {
            printf("%s%s", first ? "" : ",", key);
            first = false;
        }
    if (!b->rows)
        putchar('\n');
    first = true;
    json_object_foreach(o, key, v)
    {
        if (!first)
            putchar(',');
        first = false;
        print_value(v);
    }
    putchar('\n');
    json_decref(o);
    return OK;
}

/* Print the names of the columns. */
static void model_report_columns(const struct model_report *b)
{
    printf("\n| threads | test | t/s |%s read GB/s | probe GB/s | of probe |%s%s doubtful |\n",
           b->texts ? " each |" : "", *b->no_joules ? "" : " J/token |",
           *b->no_counts ? "" : " IPC | LLC misses | TLB misses |");
    printf("|---|---|---|%s---|---|---|%s%s---|\n", b->texts ? "---|" : "",
           *b->no_joules ? "" : "---|", *b->no_counts ? "" : "---|---|---|");
}

/* Print the head of the table, below what is the same for all of its rows. */
static void model_report_head(const struct model_report *b)
{
    const struct model *m = b->engine->model;
    printf("%s %s: %.2f MiB, %.2f M parameters; kernels: %s; keys and values: %s\n", b->model,
           model_report_type(b->engine), (double)model_bytes(m) / (1 << 20),
           (double)model_params(m) / 1e6, b->engine->kernels.isa, b->kv);
    model_report_columns(b);
}

/* Print a cell, which is empty if the event was not counted. */
static void print_count(const char *form, double v)
{
    putchar(' ');
    if (v >= 0)
        printf(form, v);
    fputs(v >= 0 ? " |" : "|", stdout);
}

/* Write the name of a test. */
static void model_report_name(char *out, size_t size, const struct bench_test *t)
{
    char texts[32] = "", depth[32] = "";
    if (t->texts > 1)
        snprintf(texts, sizeof(texts), " x %zu", t->texts);
    if (t->depth)
        snprintf(depth, sizeof(depth), " @ d%zu", t->depth);
    snprintf(out, size, "%s%zu%s%s", t->gen ? "tg" : "pp", t->gen ? t->gen : t->prompt, texts,
             depth);
}

/* Print a row of the table. */
static void print_md(const struct model_report *b, const struct bench_test *t,
                     const struct model_figures *f, const char *name)
{
    printf("| %zu | %s", t->threads, name);
    printf(" | %.2f +- %.2f |", f->ts, f->deviation_ts);
    if (b->texts)
        printf(t->gen ? " %.2f |" : " |", f->each);
    if (t->gen)
        printf(" %.1f | %.1f, %.1f | %.0f %% |", f->read, t->before, t->after, 100 * f->share);
    else
        printf(" | %.1f | |", t->before);
    if (!*b->no_joules)
        printf(" %.3g |", t->joules);
    if (!*b->no_counts) {
        print_count("%.2f", counts_ipc(t->count));
        print_count("%.3g", t->count[OS_LLC_MISSES]);
        print_count("%.3g", t->count[OS_TLB_MISSES]);
    }
    printf(" %s |\n", f->doubtful);
}

/* One line below the table: what a score costs and what it saves. */
struct line {
    size_t depth, threads;
    double score, edge, routed;
};
enum { MOST_LINES = BENCH_LIST * BENCH_LIST };
static struct line lines[MOST_LINES];
static size_t nlines;

/* Remember the router's measurements until the table is complete. */
static void keep_line(const struct bench_test *t)
{
    if (t->pairs && nlines < MOST_LINES)
        lines[nlines++] =
            (struct line){ t->depth, t->threads, model_report_median(t->score, 2 * t->pairs),
                           model_report_median(t->edge, t->pairs),
                           model_report_median(t->routed, t->pairs) };
}

void model_report_begin(const struct model_report *b)
{
    if (!strcmp(b->format, "json"))
        puts("[");
    else if (!strcmp(b->format, "md"))
        model_report_head(b);
}

int model_report_row(struct model_report *b, const struct bench_test *t,
                     const struct model_figures *f, const struct bench_ops *ops, struct err *err)
{
    int rc = OK;
    char name[128];
    model_report_name(name, sizeof(name), t);
    if (!strcmp(b->format, "md")) {
        if (ops && b->rows)
            model_report_columns(b);
        print_md(b, t, f, name);
        keep_line(t);
        if (ops)
            bench_ops_print(ops, name, !*b->no_counts);
    } else {
        json_t *o = model_report_json_row(b, t, f);
        if (ops)
            put_ops(&o, ops);
        bool comma = !strcmp(b->format, "json") && b->rows;
        rc = *b->format == 'c' ? print_csv(b, o, err)
                               : json_report_print("bench", o, 0, comma ? "," : "", "", err);
    }
    b->rows++;
    b->peak = t->peak;
    b->closed = fflush(stdout) != 0;
    return rc;
}

/* Print what a router's score costs and what it saves. */
static void model_report_lines(const struct model_report *b)
{
    size_t hidden = model_config(b->engine->model)->hidden;
    printf("\nA router %zu -> %zu -> 1; a routed token skips the output head:\n\n"
           "| threads | depth | score ms | step ms | score, of a step | routed ms | saves |\n"
           "|---|---|---|---|---|---|---|\n",
           hidden, 2 * hidden);
    for (size_t i = 0; i < nlines; i++) {
        const struct line *l = &lines[i];
        printf("| %zu | %zu | %.3f | %.2f | %.2f %% | %.2f | %.1f %% |\n", l->threads, l->depth,
               l->score / 1e6, l->edge / 1e6, 100 * l->score / l->edge, l->routed / 1e6,
               100 * (1 - l->routed / l->edge));
    }
}

void model_report_end(const struct model_report *b)
{
    if (!strcmp(b->format, "json"))
        puts("]");
    if (strcmp(b->format, "md") != 0 || !b->rows)
        return;
    if (nlines)
        model_report_lines(b);
    printf("\nPeak memory of the process: %.1f MiB.\n", (double)b->peak / (1 << 20));
    if (b->no_joules[0])
        printf("Joules per token are not known: %s.\n", b->no_joules);
    if (b->no_counts[0])
        printf("Cycles and cache misses are not known: %s.\n", b->no_counts);
}
