/* roofline.c - draws rooflines: operations per second against operations per byte, both
 * logarithmic, with a chart for each operation. Source: Williams, Waterman and Patterson,
 * "Roofline: an insightful visual performance model for multicore architectures", 2009. */
#include "tools/lab/tuning/roofline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "tools/lab/machine/read_probe.h"
#include "tools/lab/plot/chart.h"

enum { SETS = 12, PEAKS = 12, LINE = 320, NOTE = 320, LEVEL_STYLE = 6 };

/* Space beside the points, the least range of operations per byte, and how far a roof that no peak
 * ends rises over the points: factors. */
static const double BESIDE = 1.6, LEAST_RANGE = 40, ABOVE = 8;

/* The chart of one operation while it is made: its calls, and series for the levels, the peaks and
 * the sets. */
struct roofline {
    const struct bench_point *points; /* [n], of one operation */
    size_t n;
    const struct read_level *levels;
    struct chart chart;
    char title[LINE], note[NOTE];
    struct chart_series series[READ_LEVELS + PEAKS + SETS];
    size_t nseries;
    struct chart_point roofs[READ_LEVELS + PEAKS][2];
    char labels[READ_LEVELS + PEAKS][LINE]; /* of the peaks */
    double peaks[PEAKS];
    size_t npeaks;
    size_t above, busy;     /* points above their roof, and of a busy machine */
    struct chart_point *at; /* [n] */
    char (*notes)[LINE];    /* [n] */
    double start, end, top; /* where the roofs begin and end, operations per byte; highest peak */
};

double roofline_share(const struct bench_point *p)
{
    double reading = p->bytes / p->ns / p->level->gb_s;
    double computing = p->peak > 0 ? p->ops / p->ns / p->peak : 0;
    return reading > computing ? reading : computing;
}

static double roofline_x(const struct bench_point *p)
{
    return p->ops / p->bytes;
}

static double roofline_y(const struct bench_point *p)
{
    return p->ops / p->ns;
}

/* Return the number of an instruction set among all that were measured, which is its style. */
static size_t roofline_set(const char *sets[SETS], size_t *nsets, const char *isa)
{
    size_t set = 0;
    while (set < *nsets && strcmp(sets[set], isa) != 0)
        set++;
    if (set == *nsets && set < SETS)
        sets[(*nsets)++] = isa;
    return set < SETS ? set : SETS - 1;
}

/* Set where the roofs begin and end: around the points, and so that each level has one. */
static void roofline_ends(struct roofline *r)
{
    double x0 = roofline_x(r->points), x1 = x0, y1 = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct bench_point *p = &r->points[i];
        x0 = roofline_x(p) < x0 ? roofline_x(p) : x0;
        x1 = roofline_x(p) > x1 ? roofline_x(p) : x1;
        y1 = roofline_y(p) > y1 ? roofline_y(p) : y1;
        r->top = p->peak > r->top ? p->peak : r->top;
    }
    for (size_t i = 0; r->top > 0 && i < READ_LEVELS; i++)
        if (r->top / r->levels[i].gb_s < x0)
            x0 = r->top / r->levels[i].gb_s;
    r->start = x0 / BESIDE;
    r->end = x1 * BESIDE > r->start * LEAST_RANGE ? x1 * BESIDE : r->start * LEAST_RANGE;
    r->top = r->top > 0 ? r->top : ABOVE * y1;
}

/* Add the line of a roof. */
static void roofline_roof(struct roofline *r, double x0, double y0, double x1, double y1,
                          size_t style, bool level)
{
    size_t i = r->nseries;
    r->roofs[i][0] = (struct chart_point){ .x = x0, .y = y0 };
    r->roofs[i][1] = (struct chart_point){ .x = x1, .y = y1 };
    r->series[r->nseries++] = (struct chart_series){ .label = level ? NULL : r->labels[i],
                                                     .points = r->roofs[i],
                                                     .n = 2,
                                                     .style = style,
                                                     .line = level,
                                                     .dashed = !level };
}

/* Add the roof of each level, which rises until it meets the highest peak or the right end, and
 * name them in the note. */
static void roofline_levels(struct roofline *r)
{
    int used = snprintf(r->note, NOTE, "One thread. Solid, from the left: ");
    for (size_t i = 0; i < READ_LEVELS; i++) {
        const struct read_level *l = &r->levels[i];
        double end = r->top / l->gb_s < r->end ? r->top / l->gb_s : r->end;
        if (l->gb_s > 0 && end > r->start) {
            roofline_roof(r, r->start, r->start * l->gb_s, end, end * l->gb_s, LEVEL_STYLE, true);
            used += snprintf(r->note + used, NOTE - (size_t)used, "%s %.3g, ", l->name, l->gb_s);
        }
    }
    snprintf(r->note + used - 2, NOTE - (size_t)used + 2, " GB/s. Dashed: a set's peak.");
}

/* Add the roof of a peak, or the set's name to a peak that another one has, too. */
static void roofline_peak(struct roofline *r, const struct bench_point *p, size_t style)
{
    size_t i = 0, first = r->nseries - r->npeaks;
    double read = 0;
    while (i < r->npeaks && !(r->peaks[i] >= p->peak && r->peaks[i] <= p->peak))
        i++;
    if (!(p->peak > 0) || i == PEAKS)
        return;
    if (i < r->npeaks) {
        size_t used = strlen(r->labels[first + i]);
        if (!strstr(r->labels[first + i], p->isa))
            snprintf(r->labels[first + i] + used, LINE - used, ", %s", p->isa);
        return;
    }
    for (size_t k = 0; k < READ_LEVELS; k++)
        read = r->levels[k].gb_s > read ? r->levels[k].gb_s : read;
    double x = p->peak / read > r->start ? p->peak / read : r->start;
    r->peaks[r->npeaks++] = p->peak;
    snprintf(r->labels[r->nseries], LINE, "peak %.3g: %s", p->peak, p->isa);
    roofline_roof(r, x, p->peak, r->end, p->peak, style, false);
}

/* Add the points of a set as a series; *used counts the points of all sets. */
static void roofline_points(struct roofline *r, const char *isa, size_t style, size_t *used)
{
    struct chart_series *s = &r->series[r->nseries];
    *s = (struct chart_series){
        .label = isa, .points = &r->at[*used], .style = style, .marks = true
    };
    for (size_t i = 0; i < r->n; i++) {
        const struct bench_point *p = &r->points[i];
        if (strcmp(p->isa, isa) != 0)
            continue;
        size_t k = (*used)++;
        double share = roofline_share(p);
        int n = snprintf(r->notes[k], LINE, "%s %s, %s: %.1f GOP/s, data in %s, ", p->op, p->isa,
                         p->shape, roofline_y(p), p->level->name);
        char why[DOUBT_TEXT], of_roof[32] = "above its roof";
        bool busy = bench_point_doubt(why, p);
        if (share <= 1)
            snprintf(of_roof, sizeof(of_roof), "%.0f %% of its roof", 100 * share);
        if (n > 0 && n < LINE)
            snprintf(r->notes[k] + n, LINE - (size_t)n, "%s%s%s", of_roof,
                     *why ? "; doubtful: " : "", why);
        r->above += share > 1;
        r->busy += busy;
        r->at[k] = (struct chart_point){ roofline_x(p), roofline_y(p), 0, 0, r->notes[k] };
        s->n++;
    }
    r->nseries += s->n > 0;
}

/* Write the title, which names the fastest call, and in the note how many points are above their
 * roof: nothing is faster than its limit, so a roof below a point was measured too low, as on a
 * machine that was busy at that time. */
static void roofline_title(struct roofline *r)
{
    const struct bench_point *best = r->points;
    char why[DOUBT_TEXT];
    for (size_t i = 1; i < r->n; i++)
        best = roofline_y(&r->points[i]) > roofline_y(best) ? &r->points[i] : best;
    int used = snprintf(r->title, LINE, "%s is fastest with %s on %.60s: %.3g GOP/s", best->op,
                        best->isa, cpu_name(), roofline_y(best));
    double of_peak = best->peak > 0 ? roofline_y(best) / best->peak : 0;
    if (of_peak > 0 && of_peak <= 1 && used > 0 && used < LINE)
        snprintf(r->title + used, LINE - (size_t)used, ", %.0f %% of its instructions' peak",
                 100 * of_peak);
    used = (int)strlen(r->title);
    if (bench_point_doubt(why, best))
        snprintf(r->title + used, LINE - (size_t)used, " (doubtful: a busy machine)");
    size_t noted = strlen(r->note);
    if (r->above)
        snprintf(r->note + noted, NOTE - noted,
                 " %zu above their roof, which was measured too low.", r->above);
    noted = strlen(r->note);
    if (r->busy)
        snprintf(r->note + noted, NOTE - noted, " Other programs disturbed %zu of %zu points.",
                 r->busy, r->n);
    r->chart.title = r->title;
    r->chart.note = r->note;
    r->chart.x = "operations per byte";
    r->chart.y = "speed, GOP/s";
    r->chart.log = true;
}

/* Make the chart of r->points. */
static int roofline_open(struct roofline *r, const char *sets[SETS], size_t *nsets, struct err *err)
{
    size_t used = 0;
    r->at = calloc(r->n, sizeof(*r->at));
    r->notes = calloc(r->n, sizeof(*r->notes));
    if (!r->at || !r->notes)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    roofline_ends(r);
    roofline_levels(r);
    for (size_t i = 0; i < r->n; i++)
        roofline_peak(r, &r->points[i], roofline_set(sets, nsets, r->points[i].isa));
    for (size_t i = 0; i < *nsets; i++)
        roofline_points(r, sets[i], i, &used);
    roofline_title(r);
    r->chart.series = r->series;
    r->chart.n = r->nseries;
    return OK;
}

int roofline_plot(const char *path, const struct bench_point *points, size_t n,
                  const struct read_level levels[READ_LEVELS], struct err *err)
{
    const char *sets[SETS];
    size_t count = 0, nsets = 0;
    struct roofline *r = calloc(n ? n : 1, sizeof(*r));
    struct chart *charts = calloc(n ? n : 1, sizeof(*charts));
    int rc = !r || !charts ? err_set(err, ERR_NOMEM, "bench: out of memory")
             : !n          ? err_set(err, ERR_ARG, "--plot: expected an operation that multiplies")
                           : OK;
    for (size_t i = 0; rc == OK && i < n; count++) {
        r[count] = (struct roofline){ .points = points + i, .levels = levels };
        for (; i < n && !strcmp(points[i].op, r[count].points->op); i++)
            r[count].n++;
        rc = roofline_open(&r[count], sets, &nsets, err);
        charts[count] = r[count].chart;
    }
    if (rc == OK)
        rc = charts_write(path, charts, count, err);
    for (size_t i = 0; i < count; i++) {
        free(r[i].at);
        free(r[i].notes);
    }
    free(charts);
    free(r);
    return rc;
}
