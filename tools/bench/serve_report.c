/* serve_report.c - prints the table of `mizzle bench serve`. */
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/bench/bench_serve.h"
#include "tools/cli/escaped.h"
#include "tools/cli/json_report.h"

/* A column: its value, NaN where there is none. */
struct serve_cell {
    const char *title; /* in md; NULL: not shown there */
    const char *key;   /* in csv, json */
    double value;
    int decimals; /* in md */
};

enum { CELLS = 16 };

/* Fill the cells of a row and return their number; one is the speed of one client, or NaN. */
static size_t serve_report_cells(struct serve_cell out[CELLS], struct serve_row *r, double one,
                                 bool has_long)
{
    double rate = series_share(&r->rate, 0.5);
    const struct serve_cell cells[] = {
        { "clients", "clients", (double)r->clients, 0 },
        { "prompt", "prompt_tokens", series_share(&r->prompt, 0.5), 0 },
        { "n", "tokens", series_share(&r->tokens, 0.5), 0 },
        { "t/s", "tokens_per_s", rate, 1 },
        { "x one", "times_one", rate / one, 2 },
        { "each", "text_tokens_per_s", series_share(&r->each, 0.5), 1 },
        { "TTFT", "ttft_ms", series_share(&r->ttft, 0.5), 1 },
        { "TTFT p95", "ttft_p95_ms", series_share(&r->ttft, 0.95), 1 },
        { "gap", "gap_ms", series_share(&r->gap, 0.5), 1 },
        { "gap p95", "gap_p95_ms", series_share(&r->gap, 0.95), 1 },
        { "gap max", "gap_max_ms", series_share(&r->gap, 1), 1 },
        { "errors", "errors", (double)r->errors, 0 },
        { has_long ? "long" : NULL, "long_ms", series_share(&r->longs, 0.5), 0 },
        { has_long ? "pause" : NULL, "long_gap_ms", series_share(&r->pauses, 1), 1 },
    };
    memcpy(out, cells, sizeof(cells));
    return sizeof(cells) / sizeof(*cells);
}

/* Print a row of md or csv, or its titles. */
static void serve_report_line(const struct serve_cell *cells, size_t n, bool md, bool titles)
{
    size_t shown = 0;
    for (size_t i = 0; i < n; i++) {
        if (md && !cells[i].title)
            continue;
        fputs(md ? "| " : shown ? "," : "", stdout);
        shown++;
        if (titles)
            fputs(md ? cells[i].title : cells[i].key, stdout);
        else if (isfinite(cells[i].value))
            printf("%.*f", md || !cells[i].decimals ? cells[i].decimals : 3, cells[i].value);
        fputs(md ? " " : "", stdout);
    }
    puts(md ? "|" : "");
    for (size_t i = 0; md && titles && i < shown; i++)
        fputs(i + 1 < shown ? "|---" : "|---|\n", stdout);
}

/* Print a row as a JSON object. */
static int serve_report_json(const struct serve_target *t, const char *model,
                             const struct serve_row *r, const struct serve_cell *cells, size_t n,
                             const char *end, struct err *err)
{
    json_t *o =
        json_pack("{s:o,s:o,s:I,s:I,s:I}", "url", escaped_json(t->url, strlen(t->url)), "model",
                  escaped_json(model, strlen(model)), "n_prompt", (json_int_t)t->prompt, "n_gen",
                  (json_int_t)t->tokens, "n_long", (json_int_t)t->long_prompt);
    json_t *samples = json_array();
    for (size_t i = 0; i < n; i++)
        json_report_set(&o, cells[i].key,
                        isfinite(cells[i].value) && !cells[i].decimals
                            ? json_integer((json_int_t)cells[i].value)
                            : json_report_real(cells[i].value));
    for (size_t i = 0; i < r->rate.n; i++)
        json_report_add(&samples, json_report_real(r->rate.at[i]));
    json_report_set(&o, "samples_tokens_per_s", samples);
    return json_report_print("bench", o, JSON_REAL_PRECISION(7), "", end, err);
}

int serve_report(const char *format, const struct serve_target *t, const char *model,
                 struct serve_row *rows, size_t n, struct err *err)
{
    int rc = OK;
    bool md = !strcmp(format, "md"), csv = !strcmp(format, "csv"), json = !strcmp(format, "json");
    double one = (double)NAN;
    for (size_t i = 0; i < n; i++)
        if (rows[i].clients == 1)
            one = series_share(&rows[i].rate, 0.5);
    if (json)
        puts("[");
    for (size_t i = 0; i < n && rc == OK; i++) {
        struct serve_cell cells[CELLS];
        size_t count = serve_report_cells(cells, &rows[i], one, t->long_prompt > 0);
        if ((md || csv) && !i)
            serve_report_line(cells, count, md, true);
        if (md || csv)
            serve_report_line(cells, count, md, false);
        else
            rc = serve_report_json(t, model, &rows[i], cells, count, json && i + 1 < n ? "," : "",
                                   err);
    }
    if (json && rc == OK)
        puts("]");
    if (md)
        printf("\n%s at %s. t/s: all together; gap, TTFT: ms.\n", model, t->url);
    return rc;
}
