/* chart.c - line charts. */
#include "tools/plot/chart.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "tools/cli/output_file.h"
#include "tools/plot/chart_internal.h"

enum { PLOT = 380, LEFT = 78, BELOW = 58, LABELS_LEAST = 40, LABELS_MOST = 300, APART = 17 };
enum { KEY_LINE = 18, MARK = 10, LETTERS = 13 }; /* pixels; LETTERS: height of a line of text */

/* Names stand out against the lines that they are written on. */
static const char name_styles[] =
    "<style>.name{font-size:11px;paint-order:stroke;stroke:#fff;stroke-width:3px;"
    "stroke-linejoin:round}@media(prefers-color-scheme:dark){.name{stroke:#16181d}}</style>\n";

struct chart_scale {
    bool log;
    double low, high;   /* values at the ends */
    double start, size; /* pixels: of the low end, and signed length */
    double ticks[CHART_TICKS];
    size_t n;
};

/* The label at the end of a line. */
struct chart_end_label {
    size_t series;
    double x, y, at; /* end of the line; y of the label */
};

/* A chart while it is drawn. */
struct drawing {
    FILE *f;
    const struct chart *c;
    struct chart_scale x, y;
    double top, right; /* of the area */
    /* [room] each: labels of series; marks and labels in the area; names of points. */
    struct chart_end_label *labels;
    struct chart_box *taken;
    struct chart_name *names;
    size_t room, ntaken;
};

static bool chart_shows(const struct chart_scale *s, double v)
{
    return isfinite(v) && (!s->log || v > 0);
}

/* Return the pixel of a value, at most the ends of the axis. */
static double chart_at(const struct chart_scale *s, double v)
{
    v = v < s->low ? s->low : v > s->high ? s->high : v;
    double part = s->log ? log_f64(v / s->low) / log_f64(s->high / s->low)
                         : (v - s->low) / (s->high - s->low);
    return s->start + s->size * part;
}

static bool chart_point_shown(const struct drawing *d, const struct chart_point *p)
{
    return chart_shows(&d->x, p->x) && chart_shows(&d->y, p->y);
}

static void chart_include(const struct chart_scale *s, double v, double *low, double *high)
{
    if (!chart_shows(s, v))
        return;
    *low = v < *low ? v : *low;
    *high = v > *high ? v : *high;
}

/* Set the ends of a scale and its round values. A linear axis starts at 0 if the data lie above,
 * except where that would waste half of it. */
static void chart_scale_open(struct chart_scale *s, const struct chart *c, bool y)
{
    const struct chart_axis *a = y ? &c->y : &c->x;
    bool fixed = a->low < a->high;
    double low = DBL_MAX, high = -DBL_MAX;
    s->log = a->log;
    for (size_t i = 0; i < c->n; i++) {
        const struct chart_series *t = &c->series[i];
        for (size_t k = 0; k < t->n; k++) {
            chart_include(s, y ? t->points[k].y : t->points[k].x, &low, &high);
            if (y && t->band) {
                chart_include(s, t->points[k].low, &low, &high);
                chart_include(s, t->points[k].high, &low, &high);
            }
        }
    }
    if (low > high) { /* no data */
        low = s->log ? 1 : 0;
        high = s->log ? 10 : 1;
    }
    if (!s->log && low > 0 && low <= high / 2)
        low = 0;
    s->low = fixed ? a->low : low;
    s->high = fixed ? a->high : high;
    s->n = chart_ticks(s->ticks, &s->low, &s->high, s->log, fixed);
}

/* Draw the grid, the numbers and the names of the axes. */
static void chart_axes(struct drawing *d)
{
    char number[32];
    double bottom = d->top + PLOT;
    for (size_t i = 0; i < d->x.n; i++) {
        double x = chart_at(&d->x, d->x.ticks[i]);
        chart_number(number, d->x.ticks[i]);
        fprintf(d->f,
                "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"middle\">%s</text>\n",
                x, d->top, bottom, x, bottom + 19, number);
    }
    for (size_t i = 0; i < d->y.n; i++) {
        double y = chart_at(&d->y, d->y.ticks[i]);
        chart_number(number, d->y.ticks[i]);
        fprintf(d->f,
                "<path class=\"grid\" d=\"M%d %.1fH%.1f\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%s</text>\n",
                LEFT, y, d->right, LEFT - 8, y + 4.5, number);
    }
    fprintf(d->f,
            "<path class=\"axis\" fill=\"none\" d=\"M%d %.1fV%.1fH%.1f\"/>\n"
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
            LEFT, d->top, bottom, d->right, (LEFT + d->right) / 2, bottom + 43);
    chart_text(d->f, d->c->x.label);
    fprintf(d->f,
            "</text>\n<text transform=\"translate(20 %.1f) rotate(-90)\" text-anchor=\"middle\">",
            d->top + PLOT / 2);
    chart_text(d->f, d->c->y.label);
    fputs("</text>\n", d->f);
}

/* Draw the intervals: one shape for each run of points that have one. */
static void chart_band(const struct drawing *d, const struct chart_series *s)
{
    for (size_t i = 0, end; i < s->n; i = end + 1) {
        const struct chart_point *p = s->points;
        for (end = i; end < s->n && chart_point_shown(d, &p[end]) &&
                      chart_shows(&d->y, p[end].low) && chart_shows(&d->y, p[end].high);)
            end++;
        if (end - i < 2)
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
    bool on = false, any = false;
    for (size_t i = 0; i < s->n; i++) {
        const struct chart_point *p = &s->points[i];
        bool shown = chart_point_shown(d, p);
        if (shown && !any)
            fprintf(d->f, "<path class=\"%s\" d=\"", s->dashed ? "dash" : "line");
        if (shown)
            fprintf(d->f, "%c%.1f %.1f", on ? 'L' : 'M', chart_at(&d->x, p->x),
                    chart_at(&d->y, p->y));
        any = any || shown;
        on = shown;
    }
    if (any)
        fputs("\"/>\n", d->f);
}

static void chart_points(const struct drawing *d, const struct chart_series *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct chart_point *p = &s->points[i];
        char x[32], y[32], note[160];
        if (!chart_point_shown(d, p))
            continue;
        chart_number(x, p->x);
        chart_number(y, p->y);
        snprintf(note, sizeof(note), "%s: %s, %s", s->label ? s->label : d->c->y.label, x, y);
        chart_mark(d->f, s->style, chart_at(&d->x, p->x), chart_at(&d->y, p->y),
                   p->note ? p->note : note);
    }
}

/* Draw one series, apart from its label. */
static void chart_draw_series(const struct drawing *d, const struct chart_series *s)
{
    fprintf(d->f, "<g class=\"s%zu\">\n", s->style % CHART_COLOURS);
    if (s->band)
        chart_band(d, s);
    if (s->line || s->dashed)
        chart_line(d, s);
    if (s->points_shown)
        chart_points(d, s);
    fputs("</g>\n", d->f);
}

/* Move labels, sorted by y, until they are apart and between top and bottom. */
static void chart_spread(struct chart_end_label *labels, size_t n, double top, double bottom)
{
    double apart = n > 1 ? (bottom - top) / (double)(n - 1) : APART;
    apart = apart < APART ? apart : APART;
    for (size_t i = 0; i < n; i++) {
        double least = i ? labels[i - 1].at + apart : top;
        labels[i].at = labels[i].y > least ? labels[i].y : least;
    }
    for (size_t i = n; i-- > 0;) {
        double most = i + 1 < n ? labels[i + 1].at - apart : bottom;
        labels[i].at = labels[i].at < most ? labels[i].at : most;
    }
}

/* Collect the labels of one side, sorted by y, and spread them; return their number. */
static size_t chart_collect(const struct drawing *d, bool first)
{
    struct chart_end_label *labels = d->labels;
    size_t n = 0;
    for (size_t i = 0; i < d->c->n; i++) {
        const struct chart_series *s = &d->c->series[i];
        size_t from = 0, to = s->n;
        while (to && !chart_point_shown(d, &s->points[to - 1]))
            to--;
        while (from < to && !chart_point_shown(d, &s->points[from]))
            from++;
        if (!s->label || !to || s->label_first != first)
            continue;
        const struct chart_point *end = &s->points[first ? from : to - 1];
        struct chart_end_label l = { .series = i,
                                     .x = chart_at(&d->x, end->x),
                                     .y = chart_at(&d->y, end->y) };
        size_t at = n++;
        for (; at && labels[at - 1].y > l.y; at--)
            labels[at] = labels[at - 1];
        labels[at] = l;
    }
    chart_spread(labels, n, d->top + (first ? LETTERS / 2 : 0),
                 d->top + PLOT - (first ? LETTERS : 0));
    return n;
}

/* Write the labels of the series right of the ends of their lines. */
static void chart_labels(const struct drawing *d)
{
    size_t n = chart_collect(d, false);
    for (size_t i = 0; i < n; i++) {
        const struct chart_end_label *l = &d->labels[i];
        const struct chart_series *s = &d->c->series[l->series];
        double x = d->right + 2 * CHART_GAP;
        fprintf(d->f, "<g class=\"s%zu\">", s->style % CHART_COLOURS);
        if (s->line || s->dashed || l->x > d->right - 1) /* else it would look like a line */
            fprintf(d->f, "<path class=\"lead\" d=\"M%.1f %.1fL%.1f %.1f\"/>", l->x, l->y, x,
                    l->at);
        if (s->points_shown)
            chart_mark(d->f, s->style, x, l->at, NULL);
        fprintf(d->f, "</g><text x=\"%.1f\" y=\"%.1f\">", x + (s->points_shown ? 10 : 4),
                l->at + 4.5);
        chart_text(d->f, s->label);
        fputs("</text>\n", d->f);
    }
}

/* Write the labels that stand left of the beginnings of their lines, where names cannot. */
static void chart_first_labels(struct drawing *d)
{
    size_t n = chart_collect(d, true);
    for (size_t i = 0; i < n; i++) {
        const struct chart_end_label *l = &d->labels[i];
        const struct chart_series *s = &d->c->series[l->series];
        double x = l->x - CHART_GAP, width = chart_text_width(s->label);
        fprintf(d->f,
                "<g class=\"s%zu\"><path class=\"lead\" d=\"M%.1f %.1fL%.1f %.1f\"/></g>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">",
                s->style % CHART_COLOURS, l->x, l->y, x, l->at, x - 3, l->at + 4.5);
        chart_text(d->f, s->label);
        fputs("</text>\n", d->f);
        d->taken[d->ntaken++] =
            (struct chart_box){ x - 3 - width, l->at - LETTERS / 2.0, width + CHART_GAP, LETTERS };
    }
}

/* Write the names of all points, where neither marks nor labels nor other names are. */
static void chart_names(struct drawing *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->c->n; i++)
        for (size_t k = 0; k < d->c->series[i].n; k++) {
            const struct chart_point *p = &d->c->series[i].points[k];
            if (!d->c->series[i].points_shown || !chart_point_shown(d, p))
                continue;
            double x = chart_at(&d->x, p->x), y = chart_at(&d->y, p->y);
            d->taken[d->ntaken++] =
                (struct chart_box){ x - MARK / 2.0, y - MARK / 2.0, MARK, MARK };
            if (p->name)
                d->names[n++] = (struct chart_name){ .text = p->name, .x = x, .y = y };
        }
    if (!n)
        return;
    const struct chart_box area = { LEFT, d->top, d->right - LEFT, PLOT };
    chart_names_place(d->names, n, d->taken, d->ntaken, &area);
    fputs(name_styles, d->f);
    for (size_t i = 0; i < n; i++) {
        const struct chart_name *name = &d->names[i];
        double x, y;
        if (!name->placed)
            continue;
        if (chart_name_lead(name, &x, &y))
            fprintf(d->f, "<path class=\"lead axis\" d=\"M%.1f %.1fL%.1f %.1f\"/>", name->x,
                    name->y, x, y);
        fprintf(d->f, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                name->box.x + name->box.w / 2, name->box.y + name->box.h - 2);
        chart_text(d->f, name->text);
        fputs("</text>\n", d->f);
    }
}

/* Return the lines that the key needs: two columns of entries if all are short enough, else one. */
static size_t chart_key_lines(const struct chart *c)
{
    for (size_t i = 0; i < c->nkey; i++)
        if (chart_text_width(c->key[i]) > CHART_WIDTH / 2.0 - CHART_HEAD)
            return c->nkey;
    return (c->nkey + 1) / 2;
}

/* Write the key, whose first line begins below y. */
static void chart_key(const struct drawing *d, double y)
{
    size_t lines = chart_key_lines(d->c);
    for (size_t i = 0; i < d->c->nkey; i++) {
        fprintf(d->f, "<text x=\"%d\" y=\"%.1f\">",
                i < lines ? CHART_HEAD : CHART_WIDTH / 2 + CHART_HEAD / 2,
                y + LETTERS + KEY_LINE * (double)(i % lines));
        chart_text(d->f, d->c->key[i]);
        fputs("</text>\n", d->f);
    }
}

/* Return the width that the labels need. */
static double chart_margin(const struct chart *c)
{
    double most = LABELS_LEAST;
    for (size_t i = 0; i < c->n; i++) {
        const char *label = c->series[i].label_first ? NULL : c->series[i].label;
        double width = label ? chart_text_width(label) + 4 * CHART_GAP : 0;
        most = width > most ? width : most;
    }
    return most < LABELS_MOST ? most : LABELS_MOST;
}

/* Return the height of a chart with all that belongs to it. */
static double chart_height(const struct chart *c)
{
    return chart_head(NULL, 0, c->title, c->note) + PLOT + BELOW + CHART_GAP +
           (c->nkey ? CHART_GAP : 0) + KEY_LINE * (double)chart_key_lines(c);
}

/* Draw one chart below y. */
static void chart_draw(struct drawing *d, double y)
{
    const struct chart *c = d->c;
    d->ntaken = 0;
    d->right = CHART_WIDTH - chart_margin(c);
    chart_scale_open(&d->x, c, false);
    chart_scale_open(&d->y, c, true);
    d->top = chart_head(d->f, y, c->title, c->note) + CHART_GAP;
    d->x.start = LEFT;
    d->x.size = d->right - LEFT;
    d->y.start = d->top + PLOT;
    d->y.size = -PLOT;
    chart_axes(d);
    for (size_t i = 0; i < c->n; i++)
        chart_draw_series(d, &c->series[i]);
    chart_first_labels(d);
    chart_names(d);
    chart_labels(d);
    chart_key(d, d->top + PLOT + BELOW);
}

/* Return how many labels and points a chart has at most. */
static size_t chart_room(const struct chart *c)
{
    size_t n = c->n;
    for (size_t i = 0; i < c->n; i++)
        n += c->series[i].n;
    return n;
}

int charts_write(const char *path, const struct chart *c, size_t n, struct err *err)
{
    struct output_file to;
    struct drawing d = { .room = 1 };
    double height = 0;
    for (size_t i = 0; i < n; i++) {
        d.room = chart_room(&c[i]) > d.room ? chart_room(&c[i]) : d.room;
        height += chart_height(&c[i]);
    }
    d.labels = calloc(d.room, sizeof(*d.labels));
    d.taken = calloc(d.room, sizeof(*d.taken));
    d.names = calloc(d.room, sizeof(*d.names));
    int rc = d.labels && d.taken && d.names ? output_file_open(&to, path, err)
                                            : err_set(err, ERR_NOMEM, "chart: no memory");
    if (rc == OK) {
        d.f = to.f;
        chart_begin(d.f, c->title, height);
        height = 0;
        for (size_t i = 0; i < n; i++, height += chart_height(d.c)) {
            d.c = &c[i];
            chart_draw(&d, height);
        }
        chart_end(d.f);
        rc = output_file_close(&to, true, err);
    }
    free(d.labels);
    free(d.taken);
    free(d.names);
    return rc;
}

int chart_write(const char *path, const struct chart *c, struct err *err)
{
    return charts_write(path, c, 1, err);
}
