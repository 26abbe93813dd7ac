/* route_report.c - prints the tables of `mizzle bench route`. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/bench/bench_route.h"
#include "tools/cli/escaped.h"
#include "tools/cli/json_report.h"
#include "tools/paper_table.h"

enum form { FORM_MD, FORM_CSV, FORM_JSON, FORM_JSONL };

static enum form form_of(const char *format)
{
    return !strcmp(format, "json")    ? FORM_JSON
           : !strcmp(format, "jsonl") ? FORM_JSONL
           : !strcmp(format, "csv")   ? FORM_CSV
                                      : FORM_MD;
}

static void route_report_put(json_t **o, const char *key, double v)
{
    json_report_set(o, key, json_report_real(v));
}

static void route_report_count(json_t **o, const char *key, size_t v)
{
    json_report_set(o, key, json_integer((json_int_t)v));
}

static void route_report_hash(json_t **o, uint64_t text)
{
    char hex[20];
    snprintf(hex, sizeof(hex), "%016" PRIx64, text);
    json_report_set(o, "text", json_string(hex));
}

/* Return an object with the settings that all rows share. */
static json_t *route_report_about(const struct bench_route_setting *s)
{
    json_t *o = json_object();
    json_report_set(&o, "model", escaped_json(s->model, strlen(s->model)));
    route_report_count(&o, "n_prompt", s->prompt);
    route_report_count(&o, "n_gen", s->tokens);
    route_report_put(&o, "agree", s->agree);
    route_report_put(&o, "agree_next", s->agree_next);
    route_report_count(&o, "cloud_ms", s->cloud_ms);
    route_report_count(&o, "bandwidth", s->bandwidth);
    route_report_put(&o, "loss", s->loss);
    route_report_count(&o, "trips", s->trips);
    return o;
}

/* Print object i of n and release it. */
static int route_report_emit(enum form form, json_t *o, size_t i, size_t n, struct err *err)
{
    const char *after = form == FORM_JSONL ? "" : i + 1 < n ? "," : "\n]";
    /* Options are floats: 0.7 is 0.7. */
    return json_report_print("bench", o, JSON_REAL_PRECISION(7),
                             form == FORM_JSON && !i ? "[\n" : "", after, err);
}

static json_t *row_json(const struct bench_route_setting *s, const struct bench_route_row *r)
{
    json_t *o = route_report_about(s), *samples = json_array();
    for (size_t i = 0; i < s->repeat; i++)
        json_report_add(&samples, json_report_real(r->samples[i]));
    route_report_put(&o, "routed", r->share);
    route_report_put(&o, "latency_ms", r->latency);
    route_report_count(&o, "ahead", r->ahead);
    route_report_count(&o, "cloud_tokens", r->cloud_tokens);
    route_report_put(&o, "edge_ms", r->edge_ms);
    route_report_put(&o, "ms", r->ms);
    json_report_set(&o, "samples_ms", samples);
    route_report_put(&o, "formula_ms", r->formula);
    route_report_put(&o, "model_ms", r->model);
    route_report_put(&o, "here_ms", r->here);
    route_report_put(&o, "hidden", r->hidden);
    route_report_count(&o, "cloud", r->cloud);
    route_report_count(&o, "agreed", r->agreed);
    route_report_count(&o, "fallback", r->fallback);
    route_report_count(&o, "calls", r->calls);
    route_report_count(&o, "wasted", r->wasted);
    route_report_count(&o, "passes", r->passes);
    route_report_count(&o, "drafted", r->drafted);
    route_report_count(&o, "accepted", r->accepted);
    route_report_put(&o, "up_bytes", r->up);
    route_report_put(&o, "down_bytes", r->down);
    route_report_put(&o, "header_up_bytes", r->header_up);
    route_report_put(&o, "header_down_bytes", r->header_down);
    route_report_hash(&o, r->text);
    return o;
}

/* Print a number in this format; where it is not finite, nothing but what stands before it. */
static void route_report_cell(const char *format, double v)
{
    if (isfinite(v))
        printf(format, v);
    else
        printf("%.*s", (int)strcspn(format, "%"), format);
}

static void row_csv(const struct bench_route_row *r)
{
    printf("%g,%g,%zu,%zu,%.3f,%.3f", r->share, r->latency, r->ahead, r->cloud_tokens, r->edge_ms,
           r->ms);
    route_report_cell(",%.3f", r->formula);
    route_report_cell(",%.3f", r->model);
    route_report_cell(",%.3f", r->here);
    route_report_cell(",%.4f", r->hidden);
    printf(",%zu,%zu,%zu,%zu,%.0f,%.0f,%016" PRIx64 ",%zu,%zu,%zu\n", r->cloud, r->fallback,
           r->calls, r->wasted, r->up, r->down, r->text, r->passes, r->drafted, r->accepted);
}

/* Print a row of the table; with drafts, what the passes did takes the place of two expectations.
 */
static void row_md(const struct bench_route_row *r, bool drafts)
{
    printf("| %g | %g | %zu | %zu | %.2f | %.2f", 100 * r->share, r->latency, r->ahead,
           r->cloud_tokens, r->edge_ms, r->ms);
    if (!drafts)
        route_report_cell(" | %.2f", r->formula);
    route_report_cell(" | %.2f", r->model);
    if (!drafts)
        route_report_cell(" | %.2f", r->here);
    route_report_cell(" | %.0f %%", 100 * r->hidden);
    if (drafts)
        printf(" | %zu | %zu", r->passes, r->accepted);
    printf(" | %zu | %zu | %.0f | %.0f |\n", r->calls, r->wasted, r->up, r->down);
}

/* Below the table, name the text of each share: a hash, the same in all of its rows. */
static void route_report_texts(const struct bench_route_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t first = 0;
        while (!(rows[first].share >= rows[i].share && rows[first].share <= rows[i].share))
            first++;
        if (first == i || rows[first].text != rows[i].text)
            printf("%sText with r = %g %%: %016" PRIx64 "%s\n", i ? "" : "\n", 100 * rows[i].share,
                   rows[i].text, first == i ? "" : ", which differs");
    }
}

/* Below the table, say what its columns are. */
static void route_report_legend(bool drafts)
{
    puts("\nr: routed tokens; L: latency, ms; W: requests in flight; N: tokens of a call; t: the "
         "edge "
         "alone,\nms per token; measured: ms per token after the first;");
    puts(drafts ? "model: expected of it, ms; hidden: latency not waited for; passes: of the edge; "
                  "accepted:\ndrafted tokens that stood;"
                : "formula, model, here: expected of it, ms; hidden: latency not waited for;");
    puts("calls, wasted: all calls, and those for another text; up, down: bytes per cloud token.");
}

int route_report(const char *format, const struct bench_route_setting *s,
                 const struct bench_route_row *rows, size_t n, struct err *err)
{
    int rc = OK;
    enum form form = form_of(format);
    bool drafts = false;
    for (size_t i = 0; i < n; i++)
        drafts = drafts || rows[i].cloud_tokens > 1;
    if (form == FORM_CSV)
        puts("routed,latency_ms,ahead,cloud_tokens,edge_ms,ms,formula_ms,model_ms,here_ms,hidden,"
             "cloud,fallback,calls,wasted,up_bytes,down_bytes,text,passes,drafted,accepted");
    if (form == FORM_MD)
        printf("| r %% | L | W | N | t | measured | %s | calls | wasted | up | down |\n"
               "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
               drafts ? "model | hidden | passes | accepted" : "formula | model | here | hidden");
    for (size_t i = 0; i < n && rc == OK; i++) {
        if (form == FORM_CSV)
            row_csv(&rows[i]);
        else if (form == FORM_MD)
            row_md(&rows[i], drafts);
        else
            rc = route_report_emit(form, row_json(s, &rows[i]), i, n, err);
    }
    if (form == FORM_MD) {
        route_report_legend(drafts);
        route_report_texts(rows, n);
    }
    if (form == FORM_MD && drafts && s->no_drafts)
        puts("No drafts: a step of --edge-ms would verify them at no cost.");
    return rc;
}

static json_t *way_json(const struct bench_route_setting *s, const struct bench_route_way *w,
                        double times, bool last)
{
    json_t *o = route_report_about(s);
    json_report_set(&o, "way", json_string(w->name));
    route_report_put(&o, "s", w->s);
    route_report_put(&o, "edge_s", w->edge_s);
    route_report_put(&o, "cloud_s", w->cloud_s);
    route_report_put(&o, "rest_s", w->s - w->edge_s - w->cloud_s);
    route_report_put(&o, "more_s", w->more_s);
    route_report_put(&o, "parts_s", last ? w->parts_s : (double)NAN);
    route_report_put(&o, "missed_s", last ? w->more_s - w->parts_s : (double)NAN);
    route_report_put(&o, "times", times);
    route_report_count(&o, "calls", w->calls);
    route_report_put(&o, "up_bytes", w->up);
    route_report_put(&o, "down_bytes", w->down);
    route_report_hash(&o, w->text);
    return o;
}

/* Say what the table compares, and by how much the parts miss the whole. */
static void route_report_parts(const struct bench_route_setting *s,
                               const struct bench_route_way *all)
{
    double missed = all->more_s - all->parts_s;
    printf("\n%s: %zu tokens after %zu, the median of samples (-r): %zu. Extra time is over the\n"
           "default for \"in step\" and \"as the paper\", and over \"in step\" for the others.\n"
           "The parts sum to %+.3f s of the paper's %+.3f s; they miss %+.3f s of it (%.1f %%).\n",
           s->model, s->tokens, s->prompt, s->repeat, all->parts_s, all->more_s, missed,
           100 * missed / all->more_s);
}

int route_report_ways(const char *format, const struct bench_route_setting *s,
                      const struct bench_route_way *ways, size_t n, struct err *err)
{
    int rc = OK;
    enum form form = form_of(format);
    if (form == FORM_CSV)
        puts("way,s,edge_s,cloud_s,more_s,times,calls,up_bytes,down_bytes,text");
    if (form == FORM_MD)
        puts("| way | s | edge | waiting | rest | extra s | times | calls | up | down |\n"
             "|---|---|---|---|---|---|---|---|---|---|");
    for (size_t i = 0; i < n && rc == OK; i++) {
        const struct bench_route_way *w = &ways[i];
        double times = w->s / ways[0].s;
        if (form == FORM_CSV)
            printf("%s,%.4f,%.4f,%.4f,%.4f,%.2f,%zu,%.0f,%.0f,%016" PRIx64 "\n", w->name, w->s,
                   w->edge_s, w->cloud_s, w->more_s, times, w->calls, w->up, w->down, w->text);
        else if (form == FORM_MD)
            printf("| %s | %.3f | %.3f | %.3f | %.3f | %+.3f | %.2f | %zu | %.0f | %.0f |\n",
                   w->name, w->s, w->edge_s, w->cloud_s, w->s - w->edge_s - w->cloud_s, w->more_s,
                   times, w->calls, w->up, w->down);
        else
            rc = route_report_emit(form, way_json(s, w, times, i + 1 == n), i, n, err);
    }
    if (form == FORM_MD)
        route_report_parts(s, &ways[n - 1]);
    return rc;
}

/* Columns of a row of the paper's Table 1, in its order. */
enum { PAPER_COLUMNS = 5 };
static const char *const paper_keys[PAPER_COLUMNS] = { "edge_s", "ttft_s", "tbt_s", "cloud_s",
                                                       "overall_s" };

static double route_report_column(const struct paper_row *r, size_t i)
{
    const double at[PAPER_COLUMNS] = { r->edge_s, r->ttft_s, r->tbt_s, r->cloud_s, r->overall_s };
    return at[i];
}

/* Add the columns of a row; their keys begin with prefix. */
static void route_report_columns(json_t **o, const char *prefix, const struct paper_row *r)
{
    for (size_t i = 0; i < PAPER_COLUMNS; i++) {
        char key[32];
        snprintf(key, sizeof(key), "%s%s", prefix, paper_keys[i]);
        route_report_put(o, key, route_report_column(r, i));
    }
}

/* Print the columns of a row, each after a separator; none where it is not finite. */
static void route_report_cells(const char *format, const struct paper_row *r)
{
    for (size_t i = 0; i < PAPER_COLUMNS; i++)
        route_report_cell(format, route_report_column(r, i));
}

static void route_report_paper_head(enum form form)
{
    if (form == FORM_CSV)
        puts("threshold,routed,edge_s,ttft_s,tbt_s,cloud_s,overall_s,paper_routed,paper_edge_s,"
             "paper_ttft_s,paper_tbt_s,paper_cloud_s,paper_overall_s");
    if (form == FORM_MD)
        puts("| threshold | routed | SLM s | TTFT s | TBT s | comm + LLM s | overall s | printed: "
             "routed | SLM s | TTFT s | TBT s | comm + LLM s | overall s |\n"
             "|---|---|---|---|---|---|---|---|---|---|---|---|---|");
}

int route_report_paper(const char *format, const struct bench_route_setting *s,
                       const struct paper_row *rows, struct err *err)
{
    int rc = OK;
    enum form form = form_of(format);
    route_report_paper_head(form);
    for (size_t i = 0; i < PAPER_ROWS && rc == OK; i++) {
        const struct paper_row *r = &rows[i], *p = &paper_rows[i];
        if (form == FORM_CSV) {
            printf("%.2f,%g", r->threshold, r->routed);
            route_report_cells(",%.6f", r);
            printf(",%g", p->routed);
            route_report_cells(",%.2f", p);
            putchar('\n');
        } else if (form == FORM_MD) {
            printf("| %.2f | %g", r->threshold, r->routed);
            route_report_cells(" | %.3f", r);
            printf(" | %g", p->routed);
            route_report_cells(" | %.2f", p);
            puts(" |");
        } else {
            json_t *o = route_report_about(s);
            route_report_put(&o, "threshold", r->threshold);
            route_report_put(&o, "routed", r->routed);
            route_report_columns(&o, "", r);
            route_report_put(&o, "paper_routed", p->routed);
            route_report_columns(&o, "paper_", p);
            rc = route_report_emit(form, o, i, PAPER_ROWS, err);
        }
    }
    if (form == FORM_MD)
        printf(
            "\n%s: %zu tokens after %zu; seconds are for 100 tokens. TBT: SLM s by token of the\n"
            "small model. Printed: She et al., arXiv 2504.07878, Table 1.\n",
            s->model, s->tokens, s->prompt);
    return rc;
}
