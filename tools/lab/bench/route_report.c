#include "tools/lab/bench/route_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/bench/row.h"

/* Begin a row with what is the same for all. */
static void route_report_begin(struct row *r, const struct route_setting *s)
{
    row_text(r, "model", NULL, s->model);
    row_named(r, "n_prompt", NULL, (double)s->prompt, 0);
    row_named(r, "n_gen", NULL, (double)s->tokens, 0);
    row_named(r, "agree", NULL, s->agree, 4);
}

int route_report_rows(const char *format, const struct route_setting *s,
                      const struct route_row *rows, size_t n, struct err *err)
{
    struct row c = { .format = format };
    int rc = OK;
    for (size_t i = 0; i < n && rc == OK; i++) {
        const struct route_row *r = &rows[i];
        route_report_begin(&c, s);
        row_named(&c, "routed", "r", r->share, 4);
        row_named(&c, "latency_ms", "L", r->latency, 0);
        row_named(&c, "ahead", "W", (double)r->ahead, 0);
        row_named(&c, "edge_ms", "t", r->edge_ms, 3);
        row_named(&c, "ms", "measured", r->ms, 3);
        row_named(&c, "formula_ms", "formula", r->formula, 3);
        row_named(&c, "model_ms", "model", r->model, 3);
        row_named(&c, "cloud", NULL, (double)r->cloud, 0);
        row_named(&c, "agreed", NULL, (double)r->agreed, 0);
        row_named(&c, "fallback", NULL, (double)r->fallback, 0);
        row_put(&c, "calls", (double)r->calls, 0);
        row_put(&c, "wasted", (double)r->wasted, 0);
        row_named(&c, "up_bytes", "up", r->up, 0);
        row_named(&c, "down_bytes", "down", r->down, 0);
        row_hash(&c, "text", "text", r->text);
        rc = row_print(&c, err);
    }
    row_end(&c);
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
    struct row c = { .format = format };
    int rc = OK;
    for (size_t i = 0; i < n && rc == OK; i++) {
        const struct route_way *w = &ways[i];
        route_report_begin(&c, s);
        row_text(&c, "way", "way", w->name);
        row_put(&c, "s", w->s, 4);
        row_named(&c, "edge_s", "edge", w->edge_s, 4);
        row_named(&c, "cloud_s", "waiting", w->cloud_s, 4);
        row_named(&c, "rest_s", "rest", w->s - w->edge_s - w->cloud_s, 4);
        row_named(&c, "more_s", "extra s", w->more_s, 4);
        row_put(&c, "times", w->s / ways[0].s, 2);
        row_put(&c, "calls", (double)w->calls, 0);
        row_named(&c, "up_bytes", "up", w->up, 0);
        row_named(&c, "down_bytes", "down", w->down, 0);
        row_hash(&c, "text", NULL, w->text);
        rc = row_print(&c, err);
    }
    row_end(&c);
    if (rc == OK && !strcmp(format, "md"))
        route_report_parts(s, &ways[n - 1]);
    return rc;
}
