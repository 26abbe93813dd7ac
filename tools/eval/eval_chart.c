#include "tools/eval/eval_chart.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "tools/plot/chart.h"

/* Set a point to a result, in percent. */
static void eval_chart_point(struct chart_point *p, const struct eval_result *r)
{
    struct statistics_interval i = statistics_wilson(r->right, r->questions);
    *p = (struct chart_point){ .x = 100 * eval_result_share(r),
                               .y = 100 * eval_result_accuracy(r),
                               .low = 100 * i.low,
                               .high = 100 * i.high };
}

/* Return the largest share in percent of the policies that choose what they route. */
static double eval_chart_width(const struct eval_result *r, const bool *shown, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (shown[i] && eval_entry_scores(r[i].entry) && 100 * eval_result_share(&r[i]) > most)
            most = 100 * eval_result_share(&r[i]);
    return most > 0 ? most : 100;
}

/* Fill in the series: results of one entry follow each other. Returns their number. */
static size_t eval_chart_series(struct chart_series *series, struct chart_point *points,
                                const struct eval_result *r, const bool *shown, size_t n)
{
    const double width = eval_chart_width(r, shown, n);
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        if (!shown[i])
            continue;
        bool alone = !eval_entry_scores(r[i].entry);
        bool same = used && i && shown[i - 1] && r[i - 1].entry == r[i].entry && !alone;
        struct chart_series *s = &series[used - same];
        struct chart_point *p = &points[2 * i];
        eval_chart_point(p, &r[i]);
        if (same) { /* next to its last point */
            p = (struct chart_point *)(size_t)&s->points[s->n++];
            *p = points[2 * i];
            s->line = s->band = true;
            continue;
        }
        p[1] = p[0];
        p[0].x = alone ? 0 : p[0].x;
        p[1].x = width;
        *s = (struct chart_series){ .label = r[i].entry->label,
                                    .points = p,
                                    .n = alone ? 2 : 1,
                                    .style = used,
                                    .dashed = alone,
                                    .line = alone,
                                    .points_shown = !alone };
        used++;
    }
    return used;
}

int eval_chart(const char *path, const struct eval_about *about, const struct eval_result *r,
               const bool *shown, size_t n, struct err *err)
{
    struct chart_series *series = calloc(n, sizeof(*series));
    struct chart_point *points = calloc(2 * n, sizeof(*points));
    char title[128];
    snprintf(title, sizeof(title), "%s: accuracy over the share of tokens from the cloud",
             about->task);
    int rc = series && points ? OK : err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (rc == OK) {
        const struct chart c = { .title = title,
                                 .note = "bands: 95 % interval (Wilson); dashed: one model alone",
                                 .x = { .label = "share of tokens from the cloud, %" },
                                 .y = { .label = "accuracy, %" },
                                 .series = series,
                                 .n = eval_chart_series(series, points, r, shown, n) };
        rc = chart_write(path, &c, err);
    }
    free(series);
    free(points);
    return rc;
}
