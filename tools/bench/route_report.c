#include "tools/bench/route_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/cli/escaped.h"
#include "tools/cli/json_report.h"

enum { CELLS = 16, HASH = 20 };

/* A value of a row: a text, or a number with so many digits. */
struct cell {
    const char *key, *title; /* title: in Markdown; NULL: not there */
    double value;
    int digits;
    const char *text; /* NULL: a number */
};

/* The cells of a row, and the text of its hash. */
struct cells {
    struct cell at[CELLS];
    size_t n;
    char hash[HASH];
};

static void route_report_put(struct cells *c, const char *key, const char *title, double value,
                             int digits)
{
    c->at[c->n++] = (struct cell){ key, title, value, digits, NULL };
}

/* title: as above. */
static void route_report_hash(struct cells *c, const char *title, uint64_t text)
{
    snprintf(c->hash, sizeof(c->hash), "%016" PRIx64, text);
    c->at[c->n++] = (struct cell){ "text", title, 0, 0, c->hash };
}

/* Print a line of Markdown or CSV: the names of the cells, or their values. */
static void route_report_line(bool md, const struct cells *c, bool names)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct cell *cell = &c->at[i];
        const char *name = md ? cell->title : cell->key;
        if (!name)
            continue;
        fputs(md ? "| " : i ? "," : "", stdout);
        if (names || cell->text)
            fputs(names ? name : cell->text, stdout);
        else
            printf("%.*f", cell->digits, cell->value);
        fputs(md ? " " : "", stdout);
    }
    puts(md ? "|" : "");
}

static void route_report_head(bool md, const struct cells *c)
{
    route_report_line(md, c, true);
    for (size_t i = 0; md && i < c->n; i++)
        fputs(c->at[i].title ? "|---" : "", stdout);
    fputs(md ? "|\n" : "", stdout);
}

static json_t *route_report_json(const struct route_setting *s, const struct cells *c)
{
    json_t *o = json_object();
    json_report_set(&o, "model", escaped_json(s->model, strlen(s->model)));
    json_report_set(&o, "n_prompt", json_integer((json_int_t)s->prompt));
    json_report_set(&o, "n_gen", json_integer((json_int_t)s->tokens));
    json_report_set(&o, "agree", json_report_real(s->agree));
    for (size_t i = 0; i < c->n; i++) {
        const struct cell *cell = &c->at[i];
        json_report_set(&o, cell->key,
                        cell->text     ? json_string(cell->text)
                        : cell->digits ? json_report_real(cell->value)
                                       : json_integer((json_int_t)llround(cell->value)));
    }
    return o;
}

/* Print row i of n, with the head of the table before the first. */
static int route_report_row(const char *format, const struct route_setting *s,
                            const struct cells *c, size_t i, size_t n, struct err *err)
{
    bool md = !strcmp(format, "md"), list = !strcmp(format, "json");
    if (!md && strcmp(format, "csv") != 0) /* options are floats: 0.7 is 0.7 */
        return json_report_print("bench", route_report_json(s, c), JSON_REAL_PRECISION(7),
                                 list && !i ? "[\n" : "",
                                 !list       ? ""
                                 : i + 1 < n ? ","
                                             : "\n]",
                                 err);
    if (!i)
        route_report_head(md, c);
    route_report_line(md, c, false);
    return OK;
}

int route_report_rows(const char *format, const struct route_setting *s,
                      const struct route_row *rows, size_t n, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; i < n && rc == OK; i++) {
        const struct route_row *r = &rows[i];
        struct cells c = { .n = 0 };
        route_report_put(&c, "routed", "r", r->share, 4);
        route_report_put(&c, "latency_ms", "L", r->latency, 0);
        route_report_put(&c, "ahead", "W", (double)r->ahead, 0);
        route_report_put(&c, "edge_ms", "t", r->edge_ms, 3);
        route_report_put(&c, "ms", "measured", r->ms, 3);
        route_report_put(&c, "formula_ms", "formula", r->formula, 3);
        route_report_put(&c, "model_ms", "model", r->model, 3);
        route_report_put(&c, "cloud", NULL, (double)r->cloud, 0);
        route_report_put(&c, "agreed", NULL, (double)r->agreed, 0);
        route_report_put(&c, "fallback", NULL, (double)r->fallback, 0);
        route_report_put(&c, "calls", "calls", (double)r->calls, 0);
        route_report_put(&c, "wasted", "wasted", (double)r->wasted, 0);
        route_report_put(&c, "up_bytes", "up", r->up, 0);
        route_report_put(&c, "down_bytes", "down", r->down, 0);
        route_report_hash(&c, "text", r->text);
        rc = route_report_row(format, s, &c, i, n, err);
    }
    return rc;
}

static int route_report_ascending(const void *a, const void *b)
{
    const struct route_way *x = a, *y = b;
    return (x->s > y->s) - (x->s < y->s);
}

struct route_way route_report_median(struct route_way *samples, size_t n)
{
    qsort(samples, n, sizeof(*samples), route_report_ascending);
    return samples[n / 2];
}

void route_report_extra(struct route_way *ways, size_t n)
{
    double sum = 0;
    for (size_t i = 1; i < n; i++) {
        ways[i].more_s = ways[i].s - ways[i == 1 || i == n - 1 ? 0 : 1].s;
        sum += i < n - 1 ? ways[i].more_s : 0;
    }
    ways[n - 1].parts_s = sum;
}

/* Say what the table compares, and by how much the parts miss the whole. */
static void route_report_parts(const struct route_setting *s, const struct route_way *all)
{
    double missed = all->more_s - all->parts_s;
    printf("\n%s: %zu tokens after %zu, the median of samples (-r): %zu. Extra time is over the\n"
           "default for \"in step\" and \"as the paper\", and over \"in step\" for the others.\n"
           "The parts sum to %+.3f s of the paper's %+.3f s; they miss %+.3f s of it (%.1f %%).\n",
           s->model, s->tokens, s->prompt, s->repeat, all->parts_s, all->more_s, missed,
           100 * missed / all->more_s);
}

int route_report_ways(const char *format, const struct route_setting *s,
                      const struct route_way *ways, size_t n, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; i < n && rc == OK; i++) {
        const struct route_way *w = &ways[i];
        struct cells c = { .at = { { "way", "way", 0, 0, w->name } }, .n = 1 };
        route_report_put(&c, "s", "s", w->s, 4);
        route_report_put(&c, "edge_s", "edge", w->edge_s, 4);
        route_report_put(&c, "cloud_s", "waiting", w->cloud_s, 4);
        route_report_put(&c, "rest_s", "rest", w->s - w->edge_s - w->cloud_s, 4);
        route_report_put(&c, "more_s", "extra s", w->more_s, 4);
        route_report_put(&c, "times", "times", w->s / ways[0].s, 2);
        route_report_put(&c, "calls", "calls", (double)w->calls, 0);
        route_report_put(&c, "up_bytes", "up", w->up, 0);
        route_report_put(&c, "down_bytes", "down", w->down, 0);
        route_report_hash(&c, NULL, w->text);
        rc = route_report_row(format, s, &c, i, n, err);
    }
    if (rc == OK && !strcmp(format, "md"))
        route_report_parts(s, &ways[n - 1]);
    return rc;
}
