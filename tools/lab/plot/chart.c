/* chart.c - line charts, and horizontal bars. */
#include "tools/lab/plot/chart.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/cli/output_file.h"
#include "tools/lab/plot/chart_internal.h"

/* Pixels: of the area, beside it, between labels; those of an error bar's end and of a letter. */
enum { PLOT = 380, LEFT = 78, LEAST = 40, MOST = 300, APART = 17, CAP = 4, LETTER = 7 };
/* Pixels of bars: their height, that of a row, the foot of its text, room for the value. */
enum { BAR = 18, BETWEEN = 26, FOOT = 14, VALUE = 90 };

/* The label at the end of a line. */
struct chart_label {
    const struct chart_series *series;
    double x, y, at; /* end of the line; y of the label */
    bool lead;       /* a thin line connects the two */
};

/* A chart while it is drawn. */
struct drawing {
    FILE *f;
    const struct chart *c;
    struct chart_scale x, y;
    double top, right;          /* of the area */
    struct chart_label *labels; /* [c->n] */
};

static bool chart_shows(const struct chart *c, double v)
{
    return isfinite(v) && (!c->log || v > 0);
}

static bool chart_point_shown(const struct chart *c, const struct chart_point *p)
{
    return chart_shows(c, p->x) && chart_shows(c, p->y);
}

static void chart_include(const struct chart *c, double v, double *low, double *high)
{
    if (!chart_shows(c, v))
        return;
    *low = v < *low ? v : *low;
    *high = v > *high ? v : *high;
}

/* Set an axis around the data, and around 0 unless it is an x axis of which that would waste
 * half. */
static void chart_axis_open(struct chart_scale *s, const struct chart *c, bool y)
{
    double low = DBL_MAX, high = -DBL_MAX;
    for (size_t i = 0; i < c->n; i++) {
        const struct chart_series *t = &c->series[i];
        for (size_t k = 0; k < t->n; k++) {
            chart_include(c, y ? t->points[k].y : t->points[k].x, &low, &high);
            if (y && t->intervals) {
                chart_include(c, t->points[k].low, &low, &high);
                chart_include(c, t->points[k].high, &low, &high);
            }
        }
    }
    if (low <= high && (y || low <= high / 2))
        chart_include(c, 0, &low, &high);
    chart_scale_open(s, c->log, low, high);
}

/* Draw the grid, the numbers and the names of the axes. */
static void chart_axes(const struct drawing *d)
{
    char number[32];
    chart_across(d->f, &d->x, d->top, d->top + PLOT, d->c->x);
    for (size_t i = 0; i < d->y.n; i++) {
        double y = chart_at(&d->y, d->y.ticks[i]);
        chart_tick(number, d->y.ticks[i]);
        fprintf(d->f, "<path class=\"grid\" d=\"M%d %.1fH%.1f\"/>", LEFT, y, d->right);
        chart_text(d->f, LEFT - 8, y + 4.5, "end", number);
    }
    fprintf(d->f,
            "<path class=\"axis\" d=\"M%d %.1fv%d\"/>\n<g transform=\"translate(20 %.1f) "
            "rotate(-90)\">",
            LEFT, d->top, PLOT, d->top + PLOT / 2);
    chart_text(d->f, 0, 0, "middle", d->c->y);
    fputs("</g>\n", d->f);
}

static void chart_error_bar(const struct drawing *d, const struct chart_point *p)
{
    fprintf(d->f, "<path class=\"error\" d=\"M%.1f %.1fh%dm-%d 0V%.1fm-%d 0h%d\"/>\n",
            chart_at(&d->x, p->x) - CAP, chart_at(&d->y, p->high), 2 * CAP, CAP,
            chart_at(&d->y, p->low), CAP, 2 * CAP);
}

/* Draw the intervals: one shape for each run of points that have one, or an error bar each where
 * there is no line or a point stands alone. */
static void chart_intervals(const struct drawing *d, const struct chart_series *s)
{
    const struct chart_point *p = s->points;
    for (size_t i = 0, end; i < s->n; i = end + 1) {
        for (end = i; end < s->n && chart_point_shown(d->c, &p[end]) &&
                      chart_shows(d->c, p[end].low) && chart_shows(d->c, p[end].high);)
            end++;
        bool band = s->line && end > i + 1;
        for (size_t k = i; k < end && !band; k++)
            chart_error_bar(d, &p[k]);
        if (!band)
            continue;
        fputs("<path class=\"band\" d=\"", d->f);
        for (size_t k = i; k < end; k++)
            fprintf(d->f, "%c%.1f %.1f", k == i ? 'M' : 'L', chart_at(&d->x, p[k].x),
                    chart_at(&d->y, p[k].high));
        for (size_t k = end; k-- > i;)
            fprintf(d->f, "L%.1f %.1f", chart_at(&d->x, p[k].x), chart_at(&d->y, p[k].low));
        fputs("z\"/>\n", d->f);
    }
}

static void chart_line(const struct drawing *d, const struct chart_series *s)
{
    bool on = false;
    fprintf(d->f, "<path class=\"%s\" d=\"", s->dashed ? "dash" : "line");
    for (size_t i = 0; i < s->n; i++) {
        const struct chart_point *p = &s->points[i];
        bool shown = chart_point_shown(d->c, p);
        if (shown)
            fprintf(d->f, "%c%.1f %.1f", on ? 'L' : 'M', chart_at(&d->x, p->x),
                    chart_at(&d->y, p->y));
        on = shown;
    }
    fputs("\"/>\n", d->f);
}

static void chart_marks(const struct drawing *d, const struct chart_series *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct chart_point *p = &s->points[i];
        char x[32], y[32], note[160];
        if (!chart_point_shown(d->c, p))
            continue;
        chart_number(x, p->x);
        chart_number(y, p->y);
        snprintf(note, sizeof(note), "%s: %s, %s", s->label ? s->label : d->c->y, x, y);
        chart_mark(d->f, s->style, chart_at(&d->x, p->x), chart_at(&d->y, p->y),
                   p->label ? p->label : note);
    }
}

/* Draw one series, apart from its label. */
static void chart_draw_series(const struct drawing *d, const struct chart_series *s)
{
    fprintf(d->f, "<g class=\"s%zu\">\n", s->style % CHART_COLOURS);
    if (s->intervals)
        chart_intervals(d, s);
    if (s->line || s->dashed)
        chart_line(d, s);
    if (s->marks)
        chart_marks(d, s);
    fputs("</g>\n", d->f);
}

/* Collect the labels, sorted by y, and move them until they are apart. Return their number. */
static size_t chart_collect(const struct drawing *d)
{
    struct chart_label *l = d->labels;
    size_t n = 0;
    for (size_t i = 0; i < d->c->n; i++) {
        const struct chart_series *s = &d->c->series[i];
        size_t to = s->n;
        while (to && !chart_point_shown(d->c, &s->points[to - 1]))
            to--;
        if (!s->label || !to)
            continue;
        double x = chart_at(&d->x, s->points[to - 1].x), y = chart_at(&d->y, s->points[to - 1].y);
        size_t at = n++;
        for (; at && l[at - 1].y > y; at--)
            l[at] = l[at - 1];
        /* From the left half it would look like a line of its own. */
        bool lead = (s->line || s->dashed) && to > 1 && x > (LEFT + d->right) / 2;
        l[at] = (struct chart_label){ s, x, y, y, lead };
    }
    double bottom = d->top + PLOT - CHART_GAP, apart = n > 1 ? PLOT / (double)(n - 1) : APART;
    apart = apart < APART ? apart : APART;
    for (size_t i = 1; i < n; i++)
        l[i].at = l[i].at > l[i - 1].at + apart ? l[i].at : l[i - 1].at + apart;
    for (size_t i = n; i-- > 0; bottom = l[i].at - apart)
        l[i].at = l[i].at < bottom ? l[i].at : bottom;
    return n;
}

/* Write the labels of the series right of the area. */
static void chart_labels(const struct drawing *d)
{
    size_t n = chart_collect(d);
    for (size_t i = 0; i < n; i++) {
        const struct chart_label *l = &d->labels[i];
        double x = d->right + 2 * CHART_GAP;
        fprintf(d->f, "<g class=\"s%zu\">", l->series->style % CHART_COLOURS);
        if (l->lead)
            fprintf(d->f, "<path class=\"lead\" d=\"M%.1f %.1fL%.1f %.1f\"/>", l->x, l->y, x,
                    l->at);
        if (l->series->marks)
            chart_mark(d->f, l->series->style, x, l->at, NULL);
        fputs("</g>", d->f);
        chart_text(d->f, x + (l->series->marks ? 10 : 4), l->at + 4.5, "start", l->series->label);
    }
}

/* Return the width that the labels need. */
static double chart_margin(const struct chart *c)
{
    double most = LEAST;
    for (size_t i = 0; i < c->n; i++) {
        const char *label = c->series[i].label;
        double width = label ? LETTER * (double)strlen(label) + 4 * CHART_GAP : 0;
        most = width > most ? width : most;
    }
    return most < MOST ? most : MOST;
}

/* Return the height of a chart with all that belongs to it. */
static double chart_height(const struct chart *c)
{
    return chart_head(NULL, 0, c->title, c->note) + PLOT + CHART_BELOW + CHART_GAP;
}

/* Draw one chart below y. */
static void chart_draw(struct drawing *d, double y)
{
    const struct chart *c = d->c;
    d->right = CHART_WIDTH - chart_margin(c);
    d->top = chart_head(d->f, y, c->title, c->note) + CHART_GAP;
    chart_axis_open(&d->x, c, false);
    chart_axis_open(&d->y, c, true);
    d->x.start = LEFT;
    d->x.size = d->right - LEFT;
    d->y.start = d->top + PLOT;
    d->y.size = -PLOT;
    chart_axes(d);
    for (size_t i = 0; i < c->n; i++)
        chart_draw_series(d, &c->series[i]);
    chart_labels(d);
}

int charts_write(const char *path, const struct chart *c, size_t n, struct err *err)
{
    struct output_file to;
    struct drawing d = { 0 };
    double height = 0;
    size_t most = 1;
    for (size_t i = 0; i < n; i++) {
        most = c[i].n > most ? c[i].n : most;
        height += chart_height(&c[i]);
    }
    d.labels = calloc(most, sizeof(*d.labels));
    int rc = d.labels ? output_file_open(&to, path, err)
                      : err_set(err, ERR_NOMEM, "chart: out of memory");
    if (rc == OK) {
        d.f = to.f;
        chart_begin(d.f, c->title, height);
        height = 0;
        for (size_t i = 0; i < n; i++, height += chart_height(d.c)) {
            d.c = &c[i];
            chart_draw(&d, height);
        }
        fputs("</svg>\n", d.f);
        rc = output_file_close(&to, true, err);
    }
    free(d.labels);
    return rc;
}

/* Draw a bar with its label, its interval and its value; y is its top. None is black, as intervals
 * are. */
static void chart_bar(FILE *f, const struct chart_point *p, size_t style, double y,
                      const struct chart_scale *scale)
{
    double zero = chart_at(scale, 0), end = chart_at(scale, p->y), right = end > zero ? end : zero;
    bool assumed = p->label && strstr(p->label, "(assumed)");
    char value[32];
    chart_text(f, scale->start - 8, y + FOOT, "end", p->label);
    if (!isfinite(p->y))
        return;
    fprintf(f, "<rect class=\"bar%s s%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n",
            assumed ? " assumed" : "", style % (CHART_COLOURS - 1), end < zero ? end : zero, y,
            fabs(end - zero), BAR);
    if (isfinite(p->low) && isfinite(p->high)) {
        double low = chart_at(scale, p->low), high = chart_at(scale, p->high);
        fprintf(f, "<path class=\"error ink\" d=\"M%.1f %.1fv%dm0-%dH%.1fm0-%dv%d\"/>\n", low,
                y + BAR / 2.0 - CAP, 2 * CAP, CAP, high, CAP, 2 * CAP);
        right = high > right ? high : right;
    }
    snprintf(value, sizeof(value), "%.3g", p->y);
    chart_number(value, strtod(value, NULL));
    chart_text(f, right + 8, y + FOOT, "start", value);
}

int chart_bars_write(const char *path, const struct chart *c, struct err *err)
{
    struct output_file to;
    struct chart_scale scale;
    double left = 0, rows = 0;
    int rc = output_file_open(&to, path, err);
    if (rc != OK)
        return rc;
    for (size_t i = 0; i < c->n; i++) {
        rows += (double)c->series[i].n + (c->series[i].label != NULL);
        for (size_t k = 0; k < c->series[i].n; k++) {
            double width = LETTER * (double)strlen(c->series[i].points[k].label) + 2 * CHART_HEAD;
            left = width > left ? width : left;
        }
    }
    chart_axis_open(&scale, c, true);
    scale.start = left;
    scale.size = CHART_WIDTH - left - VALUE;
    double y = chart_head(NULL, 0, c->title, c->note), bottom = y + BETWEEN * rows + CHART_GAP;
    chart_begin(to.f, c->title, bottom + CHART_BELOW);
    chart_head(to.f, 0, c->title, c->note);
    chart_across(to.f, &scale, y, bottom, c->y);
    y += CHART_GAP / 2;
    for (size_t i = 0; i < c->n; i++) {
        const struct chart_series *s = &c->series[i];
        if (s->label) {
            fputs("<g font-weight=\"bold\">", to.f);
            chart_text(to.f, CHART_HEAD, y + FOOT, "start", s->label);
            fputs("</g>", to.f);
            y += BETWEEN;
        }
        for (size_t k = 0; k < s->n; k++, y += BETWEEN)
            chart_bar(to.f, &s->points[k], s->label ? k : 0, y, &scale);
    }
    fputs("</svg>\n", to.f);
    return output_file_close(&to, true, err);
}
