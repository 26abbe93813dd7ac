#include "tools/plot/plot_draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/cli/options.h"
#include "tools/plot/chart.h"
#include "tools/plot/plot_table.h"

enum { SERIES = CHART_COLOURS * CHART_MARKS, GUIDES = 16, STYLE_GUIDE = CHART_COLOURS - 1 };

/* A picture while its series are made. */
struct plot {
    const struct plot_options *o;
    struct plot_table table;
    size_t by[PLOT_KEYS], nby;
    size_t x, y, low, high; /* columns */
    double x_scale, y_scale;
    struct chart_axis x_axis, y_axis;
    double left, right; /* the smallest and the largest x */
    struct chart_series series[SERIES + GUIDES];
    struct chart_point *points, ends[GUIDES][2];
    char labels[SERIES + GUIDES][PLOT_LABEL];
    char x_label[PLOT_LABEL + 3], y_label[PLOT_LABEL + 3]; /* may end with ", %" */
    size_t nseries, npoints;
};

/* Parse LOW,HIGH, or for a guide a single number, which is both. Both must be finite. */
static int plot_pair(double *low, double *high, const char *option, const char *text, bool single,
                     struct err *err)
{
    int end = 0;
    bool parsed = sscanf(text, "%lf,%lf%n", low, high, &end) == 2 && !text[end];
    if (!parsed && single) {
        parsed = sscanf(text, "%lf%n", low, &end) == 1 && !text[end];
        *high = *low;
    }
    if (parsed && isfinite(*low) && isfinite(*high))
        return OK;
    return err_set(err, ERR_ARG, "%s: expected %s, finite numbers, found %s", option,
                   single ? "LABEL=Y or LABEL=LEFT,RIGHT" : "LOW,HIGH", text);
}

/* Copy n bytes of text as a label. */
static int plot_label(char out[PLOT_LABEL], const char *option, const char *text, size_t n,
                      struct err *err)
{
    if (n >= PLOT_LABEL)
        return err_set(err, ERR_ARG, "%s: expected a label of up to %d bytes, found %s", option,
                       PLOT_LABEL - 1, text);
    memcpy(out, text, n);
    out[n] = '\0';
    return OK;
}

/* Set *scale to 100 for a column that is shown in percent, else to 1. */
static int plot_scale(double *scale, const struct plot *p, size_t column, struct err *err)
{
    size_t percent[PLOT_KEYS], n = 0;
    *scale = 1;
    int rc = p->o->percent
                 ? plot_table_columns(percent, &n, PLOT_KEYS, &p->table, p->o->percent, err)
                 : OK;
    for (size_t i = 0; i < n; i++)
        if (percent[i] == column)
            *scale = 100;
    return rc;
}

/* Find the column of an axis, and set what the axis shows. */
static int plot_axis(struct plot *p, bool y, struct err *err)
{
    const struct plot_options *o = p->o;
    const char *name = y ? o->y : o->x, *label = y ? o->y_label : o->x_label;
    const char *range = y ? o->y_range : o->x_range;
    char *own = y ? p->y_label : p->x_label;
    struct chart_axis *axis = y ? &p->y_axis : &p->x_axis;
    size_t column = 0;
    double *scale = y ? &p->y_scale : &p->x_scale;
    int rc = plot_table_column(&column, &p->table, name, strlen(name), err);
    if (rc == OK)
        rc = plot_scale(scale, p, column, err);
    if (rc == OK)
        rc = plot_label(own, y ? "--y-label" : "--x-label", label ? label : name,
                        strlen(label ? label : name), err);
    if (rc == OK && *scale > 1 && !label)
        snprintf(own + strlen(own), sizeof(p->x_label) - strlen(own), ", %%");
    *axis = (struct chart_axis){ .label = own, .log = y ? o->log_y : o->log_x };
    *(y ? &p->y : &p->x) = column;
    if (rc == OK && range)
        rc = plot_pair(&axis->low, &axis->high, y ? "--y-range" : "--x-range", range, false, err);
    if (rc == OK && range && (axis->low >= axis->high || (axis->log && axis->low <= 0)))
        rc = err_set(err, ERR_ARG, "%s: expected LOW < HIGH%s, found %s",
                     y ? "--y-range" : "--x-range", axis->log ? ", both above 0" : "", range);
    return rc;
}

/* True for values outside a given range; those at its ends may be an ulp away. */
static bool plot_beyond(const struct chart_axis *a, double v)
{
    double near = 1e-9 * (a->high - a->low);
    return a->low < a->high && (v < a->low - near || v > a->high + near);
}

/* Insert the point of a row among those of its series, in the order of x. Points beyond a given
 * range are left out. */
static int plot_point(struct plot *p, struct chart_series *s, size_t row, struct err *err)
{
    struct chart_point new = { .low = (double)NAN, .high = (double)NAN };
    int rc = plot_table_number(&new.x, &p->table, row, p->x, err);
    if (rc == OK)
        rc = plot_table_number(&new.y, &p->table, row, p->y, err);
    if (rc == OK && p->o->band)
        rc = plot_table_number(&new.low, &p->table, row, p->low, err);
    if (rc == OK && p->o->band)
        rc = plot_table_number(&new.high, &p->table, row, p->high, err);
    new.x *= p->x_scale;
    new.y *= p->y_scale;
    new.low *= p->y_scale;
    new.high *= p->y_scale;
    if (rc != OK || isnan(new.x) || plot_beyond(&p->x_axis, new.x) ||
        plot_beyond(&p->y_axis, new.y))
        return rc;
    size_t at = p->npoints++;
    for (; at > p->npoints - 1 - s->n && p->points[at - 1].x > new.x; at--)
        p->points[at] = p->points[at - 1];
    p->points[at] = new;
    s->n++;
    p->left = new.x < p->left ? new.x : p->left;
    p->right = new.x > p->right ? new.x : p->right;
    return OK;
}

/* Make a series of all rows that have this label. */
static int plot_series(struct plot *p, const char *label, struct err *err)
{
    struct chart_series *s = &p->series[p->nseries];
    char own[PLOT_LABEL];
    int rc = OK;
    if (p->nseries == SERIES)
        return err_set(err, ERR_ARG, "--by %s: expected at most %d lines", p->o->by, SERIES);
    snprintf(p->labels[p->nseries], PLOT_LABEL, "%s", label);
    *s = (struct chart_series){ .label = p->nby ? p->labels[p->nseries] : NULL,
                                .points = p->points + p->npoints,
                                .style = p->nseries,
                                .line = true,
                                .points_shown = true,
                                .band = p->o->band != NULL };
    for (size_t row = 1; rc == OK && row <= p->table.rows; row++) {
        rc = plot_table_label(own, &p->table, row, p->by, p->nby, err);
        if (rc == OK && strcmp(own, label) == 0)
            rc = plot_point(p, s, row, err);
    }
    p->nseries++;
    return rc;
}

/* Make all series, in the order in which the table names them. */
static int plot_all_series(struct plot *p, struct err *err)
{
    int rc = OK;
    for (size_t row = 1; rc == OK && row <= p->table.rows; row++) {
        char label[PLOT_LABEL];
        bool known = false;
        rc = plot_table_label(label, &p->table, row, p->by, p->nby, err);
        for (size_t i = 0; rc == OK && i < p->nseries && !known; i++)
            known = strcmp(p->labels[i], label) == 0;
        if (rc == OK && !known)
            rc = plot_series(p, label, err);
    }
    return rc;
}

/* Add a dashed line from the left end of the axis to the right one. */
static int plot_guide(struct plot *p, size_t i, const char *text, struct err *err)
{
    const char *values = strrchr(text, '=');
    const struct chart_axis *a = &p->x_axis;
    bool fixed = a->low < a->high;
    struct chart_point *end = p->ends[i];
    char *label = p->labels[p->nseries];
    int rc = plot_pair(&end[0].y, &end[1].y, "--guide", values ? values + 1 : text, true, err);
    if (rc != OK || !values)
        return rc == OK ? plot_pair(&end[0].y, &end[1].y, "--guide", "", true, err) : rc;
    rc = plot_label(label, "--guide", text, (size_t)(values - text), err);
    if (rc != OK)
        return rc;
    end[0].x = fixed ? a->low : p->left;
    end[1].x = fixed ? a->high : p->right;
    p->series[p->nseries++] = (struct chart_series){
        .label = label, .points = end, .n = 2, .style = STYLE_GUIDE, .dashed = true
    };
    return OK;
}

static int plot_lines(struct plot *p, const char *svg, struct err *err)
{
    const struct plot_options *o = p->o;
    char title[sizeof(p->x_label) + sizeof(p->y_label) + 8];
    size_t band[2] = { 0, 0 }, nband = 2;
    int rc = plot_axis(p, false, err);
    if (rc == OK)
        rc = plot_axis(p, true, err);
    if (rc == OK && o->band)
        rc = plot_table_columns(band, &nband, 2, &p->table, o->band, err);
    if (rc == OK && nband != 2)
        rc = err_set(err, ERR_ARG, "--band: expected LOW,HIGH, found %s", o->band);
    p->low = band[0];
    p->high = band[1];
    if (rc == OK)
        rc = plot_all_series(p, err);
    if (rc == OK && !p->npoints)
        rc = err_set(err, ERR_ARG, "%s: no point is left to draw", p->table.path);
    for (size_t i = 0; rc == OK && i < o->guides->n; i++)
        rc = plot_guide(p, i, o->guides->at[i], err);
    if (rc != OK)
        return rc;
    snprintf(title, sizeof(title), "%s over %s", p->y_label, p->x_label);
    const struct chart c = { .title = o->title ? o->title : title,
                             .note = o->note,
                             .x = p->x_axis,
                             .y = p->y_axis,
                             .series = p->series,
                             .n = p->nseries };
    return chart_write(svg, &c, err);
}

/* Draw a bar for each row. */
static int plot_bars(struct plot *p, const char *svg, struct err *err)
{
    const struct plot_options *o = p->o;
    const struct plot_table *t = &p->table;
    size_t parts[CHART_PARTS], n = 0;
    struct chart_bar *bars = calloc(t->rows, sizeof(*bars));
    char(*labels)[PLOT_LABEL] = calloc(t->rows, sizeof(*labels));
    int rc = bars && labels ? plot_table_columns(parts, &n, CHART_PARTS, t, o->bars, err)
                            : err_set(err, ERR_NOMEM, "plot: out of memory");
    for (size_t row = 1; rc == OK && row <= t->rows; row++) {
        rc = plot_table_label(labels[row - 1], t, row, p->by, p->nby, err);
        bars[row - 1].label = labels[row - 1];
        for (size_t i = 0; rc == OK && i < n; i++) {
            double scale, *part = &bars[row - 1].parts[i];
            rc = plot_scale(&scale, p, parts[i], err);
            if (rc == OK)
                rc = plot_table_number(part, t, row, parts[i], err);
            *part = isnan(*part) ? 0 : scale * *part;
            if (rc == OK && *part < 0)
                rc = err_set(err, ERR_FORMAT, "%s: line %zu, %s: expected a number >= 0, found %g",
                             t->path, t->lines[row], t->cells[parts[i]], *part);
        }
    }
    struct chart_bars c = { .title = o->title ? o->title : o->bars,
                            .note = o->note,
                            .unit = o->x_label ? o->x_label : "",
                            .bars = bars,
                            .n = t->rows };
    for (size_t i = 0; i < n; i++)
        c.names[i] = t->cells[parts[i]];
    if (rc == OK)
        rc = chart_bars_write(svg, &c, err);
    free(bars);
    free(labels);
    return rc;
}

int plot_draw(const char *svg, const char *csv, const struct plot_options *o, struct err *err)
{
    if (!o->bars == !(o->x && o->y) || !o->x != !o->y)
        return err_set(err, ERR_ARG, "expected either --x and --y or --bars");
    struct plot *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(err, ERR_NOMEM, "plot: out of memory");
    p->o = o;
    p->left = HUGE_VAL;
    p->right = -HUGE_VAL;
    int rc = plot_table_read(&p->table, csv, err);
    for (size_t i = 0; rc == OK && i < o->where->n; i++)
        rc = plot_table_where(&p->table, o->where->at[i], err);
    if (rc == OK && o->by)
        rc = plot_table_columns(p->by, &p->nby, PLOT_KEYS, &p->table, o->by, err);
    if (rc == OK) {
        p->points = calloc(p->table.rows, sizeof(*p->points));
        rc = !p->points ? err_set(err, ERR_NOMEM, "plot: out of memory")
             : o->bars  ? plot_bars(p, svg, err)
                        : plot_lines(p, svg, err);
    }
    free(p->points);
    plot_table_close(&p->table);
    free(p);
    return rc;
}
