#include "tools/eval/eval_chart.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "tools/plot/chart.h"

enum { ALONE = 2, STYLE_ALONE = CHART_COLOURS - 1, TITLE = 256 };

/* A chart while its series are made. */
struct eval_picture {
    struct chart_series *series; /* [n + ALONE] */
    struct chart_point *points;  /* [n] */
    struct chart_point ends[ALONE][2];
    size_t nseries, npoints;
    double widest; /* the largest share, in percent */
};

static double eval_chart_share(const struct eval_result *r)
{
    return 100 * eval_result_share(r);
}

static bool eval_chart_shows(const struct eval_result *r, bool shown)
{
    return shown && r->questions && !eval_entry_alone(r->entry);
}

/* Insert the point of a result among those of its series, in the order of shares. */
static void eval_chart_point(struct eval_picture *p, struct chart_series *s,
                             const struct eval_result *r)
{
    const struct statistics_interval i = eval_result_interval(r);
    const struct chart_point point = { eval_chart_share(r), 100 * eval_result_accuracy(r),
                                       100 * i.low, 100 * i.high, NULL };
    size_t at = p->npoints++;
    for (; at > p->npoints - 1 - s->n && p->points[at - 1].x > point.x; at--)
        p->points[at] = p->points[at - 1];
    p->points[at] = point;
    s->n++;
    p->widest = point.x > p->widest ? point.x : p->widest;
}

/* Add a series for every entry but a model alone. */
static void eval_chart_entries(struct eval_picture *p, const struct eval_result *r,
                               const bool *shown, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool first = eval_chart_shows(&r[i], shown[i]);
        for (size_t k = 0; k < i && first; k++)
            first = !(eval_chart_shows(&r[k], shown[k]) && r[k].entry == r[i].entry);
        if (!first)
            continue;
        struct chart_series *s = &p->series[p->nseries];
        *s = (struct chart_series){ .label = r[i].entry->label,
                                    .points = p->points + p->npoints,
                                    .style = p->nseries++,
                                    .line = true,
                                    .marks = true,
                                    .intervals = true };
        for (size_t k = i; k < n; k++)
            if (eval_chart_shows(&r[k], shown[k]) && r[k].entry == r[i].entry)
                eval_chart_point(p, s, &r[k]);
    }
}

/* Add a dashed line for a model alone. */
static void eval_chart_alone(struct eval_picture *p, size_t which, const struct eval_result *r)
{
    static const char *const labels[ALONE] = { "small model alone", "large model alone" };
    if (!r)
        return;
    double y = 100 * eval_result_accuracy(r);
    p->ends[which][0] = (struct chart_point){ .x = 0, .y = y };
    p->ends[which][1] = (struct chart_point){ .x = p->widest > 0 ? p->widest : 100, .y = y };
    p->series[p->nseries++] = (struct chart_series){ .label = labels[which],
                                                     .points = p->ends[which],
                                                     .n = 2,
                                                     .style = STYLE_ALONE,
                                                     .dashed = true };
}

/* Write the title: the most accurate result, and of these the one with the smallest share. */
static void eval_chart_title(char out[TITLE], const struct eval_result *r, const bool *shown,
                             size_t n, const struct eval_result *edge,
                             const struct eval_result *cloud)
{
    const struct eval_result *best = NULL;
    char alone[48] = "", whole[48] = "";
    for (size_t i = 0; i < n; i++) {
        if (!eval_chart_shows(&r[i], shown[i]))
            continue;
        double more = best ? eval_result_accuracy(&r[i]) - eval_result_accuracy(best) : 1;
        if (more > 0 || (!(more < 0) && eval_chart_share(&r[i]) < eval_chart_share(best)))
            best = &r[i];
    }
    if (edge)
        snprintf(alone, sizeof(alone), "; small model alone %.1f %%",
                 100 * eval_result_accuracy(edge));
    if (cloud)
        snprintf(whole, sizeof(whole), "; large model alone %.1f %%",
                 100 * eval_result_accuracy(cloud));
    if (best)
        snprintf(out, TITLE, "%s: %.1f %% right with %.1f %% of the tokens from the cloud%s%s",
                 best->entry->label, 100 * eval_result_accuracy(best), eval_chart_share(best),
                 alone, whole);
    else
        snprintf(out, TITLE, "Accuracy of each model%s%s", alone, whole);
}

/* Return the result of a model alone, shown or not; NULL: it was not asked. */
static const struct eval_result *eval_chart_find(const struct eval_result *r, size_t n,
                                                 enum policy policy)
{
    for (size_t i = 0; i < n; i++)
        if (r[i].entry && r[i].entry->policy == policy && !r[i].entry->slot && r[i].questions)
            return &r[i];
    return NULL;
}

int eval_chart(const char *path, const struct eval_about *about, const struct eval_result *r,
               const bool *shown, size_t n, struct err *err)
{
    const struct eval_result *edge = eval_chart_find(r, n, POLICY_NEVER);
    const struct eval_result *cloud = eval_chart_find(r, n, POLICY_ALWAYS);
    char title[TITLE], y[64];
    struct eval_picture p = { .series = calloc(n + ALONE, sizeof(*p.series)),
                              .points = calloc(n + 1, sizeof(*p.points)) };
    int rc = p.series && p.points ? OK : err_set(err, ERR_NOMEM, "%s: out of memory", path);
    if (rc == OK) {
        eval_chart_entries(&p, r, shown, n);
        eval_chart_alone(&p, 0, edge);
        eval_chart_alone(&p, 1, cloud);
        eval_chart_title(title, r, shown, n, edge, cloud);
        snprintf(y, sizeof(y), "answers of %s that are right, %%", about->task);
        const struct chart c = {
            .title = title,
            .note = "Bands: 95 % intervals of the accuracy (Wilson).",
            .x = { "tokens from the cloud, %", false },
            .y = { y, false },
            .series = p.series,
            .n = p.nseries,
        };
        rc = charts_write(path, &c, 1, err);
    }
    free(p.points);
    free(p.series);
    return rc;
}
