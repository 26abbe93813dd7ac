/* chart.h - draws line charts and bars as SVG.
 *
 * A picture needs no font, script or other file, and the same data give the same bytes on every
 * machine. It follows the reader's light or dark scheme. Series differ in colour and in the shape
 * of their marks, so a picture can be read in greyscale. Source of the colours: Okabe and Ito,
 * "Color Universal Design", 2008; their yellow is left out because it is hard to see on white. */
#ifndef TOOLS_LAB_PLOT_CHART_H
#define TOOLS_LAB_PLOT_CHART_H

#include <stdbool.h>
#include <stddef.h>

struct err;

/* Number of distinct colours and of distinct marks: styles i and j look alike only if
 * i = j modulo 56. */
enum { CHART_COLOURS = 7, CHART_MARKS = 8 };

/* A point with a coordinate that is not finite is left out and interrupts the line. On logarithmic
 * axes the same goes for values <= 0. */
struct chart_point {
    double x, y;
    double low, high;  /* interval of y, if the series has intervals; NaN: this point has none */
    const char *label; /* of a bar; of a mark, what a pointer on it shows, and a mark is pale if it
                        * has "doubtful" in it; NULL: series, x, y */
};

struct chart_series {
    const char *label;                /* beside the chart, where the line ends; NULL: none */
    const struct chart_point *points; /* in the order in which the line connects them */
    size_t n;
    size_t style;             /* number of colour and mark */
    bool line, dashed, marks; /* what is drawn; dashed is a line, too */
    bool intervals;           /* a band on a line, error bars on marks alone */
};

struct chart {
    const char *title; /* says what is shown */
    const char *note;  /* below the title: what marks and lines are; NULL: none */
    const char *x, *y; /* names of the axes, with their units */
    bool log;          /* both axes are logarithmic */
    const struct chart_series *series;
    size_t n;
};

/* Write n >= 1 charts below each other as one picture to path ("-": stdout). Axes have round values
 * at their ends; a linear y axis has 0 in it. All text may be any bytes; what SVG cannot hold is
 * replaced. ERR_IO, ERR_NOMEM. */
int charts_write(const char *path, const struct chart *c, size_t n, struct err *err);

/* Write a horizontal bar from 0 to y for each point. x does not count, and the points of a series
 * stand below its label, with a colour each. One whose label has "(assumed)" in it is pale, in a
 * dashed frame. Errors as above. */
int chart_bars_write(const char *path, const struct chart *c, struct err *err);

#endif
