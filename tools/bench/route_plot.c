/* route_plot.c - draws the pictures of `mizzle bench route`. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "tools/bench/bench_route.h"
#include "tools/plot/chart.h"

enum { LINES = 3, LABEL = 80 };  /* LINES: measured, event model, formula */
enum { TOKENS = 3, PARAMETERS }; /* a row's parameters, of which the last is its tokens a call */

static const char *const axis_names[PARAMETERS] = { "latency of a call, ms",
                                                    "tokens from the cloud, %",
                                                    "requests in flight", "tokens of a call" };

/* Return a parameter of the row, in the order of axis_names. */
static double parameter(const struct bench_route_row *r, size_t which)
{
    const double at[PARAMETERS] = { r->latency, 100 * r->share, (double)r->ahead,
                                    (double)r->cloud_tokens };
    return at[which];
}

/* True if the rows agree in all parameters but this one. */
static bool same_but(const struct bench_route_row *a, const struct bench_route_row *b, size_t which)
{
    for (size_t i = 0; i < PARAMETERS; i++)
        if (i != which && parameter(a, i) != parameter(b, i))
            return false;
    return true;
}

/* Return the parameter with most values among the rows that differ from the first in nothing
 * else. */
static size_t route_plot_widest(const struct bench_route_row *rows, size_t n)
{
    size_t best = 0, most = 0;
    for (size_t which = 0; which < PARAMETERS; which++) {
        size_t values = 0;
        for (size_t i = 0; i < n; i++)
            values += same_but(&rows[0], &rows[i], which);
        if (values > most) {
            most = values;
            best = which;
        }
    }
    return best;
}

/* Name the parameters of a row except `but` (PARAMETERS: name all); a single token of a call is not
 * named. */
static void route_plot_name(char out[LABEL], const struct bench_route_row *r, size_t but)
{
    static const char *const forms[PARAMETERS] = { "L %g ms", "r %g %%", "W %g", "N %g" };
    int used = 0;
    for (size_t i = 0; i < PARAMETERS && used < LABEL; i++)
        if (i != but && (i != TOKENS || r->cloud_tokens > 1)) {
            used += snprintf(out + used, LABEL - (size_t)used, "%s", used ? ", " : "");
            used += snprintf(out + used, LABEL - (size_t)used, forms[i], parameter(r, i));
        }
}

/* The series of a chart while they are made. */
struct route_lines {
    struct chart_series *series;
    struct chart_point *points; /* the next free one */
    char (*labels)[LABEL];
    size_t n;
};

/* Add the lines of the rows that are like rows[first] but for one parameter. */
static void route_plot_add(struct route_lines *l, const struct bench_route_row *rows, size_t n,
                           size_t first, size_t which)
{
    size_t style = l->n / LINES;
    route_plot_name(l->labels[style], &rows[first], which);
    for (size_t line = 0; line < LINES; line++) {
        struct chart_series *s = &l->series[l->n++];
        *s = (struct chart_series){ .points = l->points,
                                    .style = style,
                                    .label = line ? NULL : l->labels[style],
                                    .points_shown = line == 0,
                                    .line = line == 1,
                                    .dashed = line == 2 };
        for (size_t i = first; i < n; i++)
            if (same_but(&rows[first], &rows[i], which))
                l->points[s->n++] = (struct chart_point){ .x = parameter(&rows[i], which),
                                                          .y = line == 0   ? rows[i].ms
                                                               : line == 1 ? rows[i].model
                                                                           : rows[i].formula };
        l->points += s->n;
    }
}

/* Draw the lines; the title names the fastest and the slowest row. */
static int route_plot_draw(const char *path, const struct bench_route_row *rows, size_t n,
                           const struct route_lines *l, size_t which, struct err *err)
{
    char title[256], fast[LABEL], slow[LABEL];
    size_t best = 0, worst = 0;
    for (size_t i = 0; i < n; i++) {
        best = rows[i].ms < rows[best].ms ? i : best;
        worst = rows[i].ms > rows[worst].ms ? i : worst;
    }
    route_plot_name(fast, &rows[best], PARAMETERS);
    route_plot_name(slow, &rows[worst], PARAMETERS);
    snprintf(title, sizeof(title), "A token takes %.3g ms at best (%s), %.3g ms at worst (%s)",
             rows[best].ms, fast, rows[worst].ms, slow);
    const struct chart c = {
        .title = n > 1 ? title : "Time per token",
        .note = "Marks: measured; lines: event model; dashes: formula.",
        .x = { axis_names[which], false, 0, 0 },
        .y = { "time per token, ms", false, 0, 0 },
        .series = l->series,
        .n = l->n,
    };
    return chart_write(path, &c, err);
}

int route_plot(const char *path, const struct bench_route_row *rows, size_t n, struct err *err)
{
    size_t which = route_plot_widest(rows, n);
    struct chart_series *series = calloc(n * LINES, sizeof(*series));
    struct chart_point *points = calloc(n * LINES, sizeof(*points));
    char(*labels)[LABEL] = calloc(n, sizeof(*labels));
    struct route_lines l = { .series = series, .points = points, .labels = labels };
    int rc = OK;
    if (!series || !points || !labels)
        rc = err_set(err, ERR_NOMEM, "bench: out of memory");
    for (size_t i = 0; rc == OK && i < n; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = same_but(&rows[k], &rows[i], which);
        if (!seen)
            route_plot_add(&l, rows, n, i, which);
    }
    if (rc == OK)
        rc = route_plot_draw(path, rows, n, &l, which, err);
    free(labels);
    free(points);
    free(series);
    return rc;
}

int route_plot_ways(const char *path, const struct bench_route_way *ways, size_t n, struct err *err)
{
    char title[128];
    struct chart_bar *bars = calloc(n, sizeof(*bars));
    if (!bars)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    for (size_t i = 0; i < n; i++)
        bars[i] = (struct chart_bar){ ways[i].name, { ways[i].edge_s, ways[i].cloud_s } };
    snprintf(title, sizeof(title),
             "With the habits of the paper's demo, an answer takes %.3g times "
             "as long",
             ways[n - 1].s / ways[0].s);
    const struct chart_bars c = { .title = title,
                                  .note = "Time of an answer, by what it is spent on.",
                                  .unit = "s",
                                  .names = { "computing on the edge", "waiting for the cloud" },
                                  .bars = bars,
                                  .n = n };
    int rc = chart_bars_write(path, &c, err);
    free(bars);
    return rc;
}
