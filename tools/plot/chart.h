/* chart.h - draws line charts and bars as SVG.
 *
 * A picture needs no font, script or other file, and the same data give the same bytes on every
 * machine. It follows the reader's light or dark scheme. Series differ in colour and in the shape
 * of their marks, so a picture can be read in greyscale. Source of the colours: Okabe and Ito,
 * "Color Universal Design", 2008; their yellow is left out because it is hard to see on white. */
#ifndef TOOLS_PLOT_CHART_H
#define TOOLS_PLOT_CHART_H

#include <stdbool.h>
#include <stddef.h>

struct err;

/* Number of distinct colours and of distinct marks: styles i and j look alike only if
 * i = j modulo 56. */
enum { CHART_COLOURS = 7, CHART_MARKS = 8, CHART_TICKS = 16, CHART_PARTS = 4 };

/* A point with a coordinate that is not finite is left out and interrupts the line. On a
 * logarithmic axis the same goes for values <= 0. */
struct chart_point {
    double x, y;
    double low, high; /* interval of y, if the series has a band */
    const char *note; /* text that is shown when a pointer rests on the mark; NULL: label, x, y */
    const char *name; /* written beside the mark, where nothing else is; NULL: none */
};

struct chart_series {
    const char *label;                /* right of the end of the line; NULL: none */
    bool label_first;                 /* or left of the line's beginning, in the area */
    const struct chart_point *points; /* in the order in which the line connects them */
    size_t n;
    size_t style;                          /* number of colour and mark */
    bool line, dashed, points_shown, band; /* what is drawn; dashed implies line */
};

struct chart_axis {
    const char *label; /* with the unit */
    bool log;
    double low, high; /* ends of the axis; both 0: round values around the data. Points beyond a
                         given end are drawn at the edge. */
};

struct chart {
    const char *title; /* says the finding; wrapped to two lines */
    const char *note;  /* one line below the title: what marks and lines are; NULL: none */
    struct chart_axis x, y;
    const struct chart_series *series;
    size_t n;
    const char *const *key; /* [nkey] lines below the chart, such as what short names mean */
    size_t nkey;
};

/* Write the chart to path ("-": stdout). All text may be any bytes; what SVG cannot hold is
 * replaced. ERR_IO, ERR_NOMEM. */
int chart_write(const char *path, const struct chart *c, struct err *err);
/* Write n >= 1 charts below each other as one picture. */
int charts_write(const char *path, const struct chart *c, size_t n, struct err *err);

/* Horizontal bars, each a sum of parts. */
struct chart_bar {
    const char *label;
    double parts[CHART_PARTS]; /* >= 0 */
};

struct chart_bars {
    const char *title, *note;       /* as in struct chart */
    const char *unit;               /* of the sums that are printed beside the bars */
    const char *names[CHART_PARTS]; /* of the parts, up to the first NULL */
    const struct chart_bar *bars;
    size_t n;
};

/* Write the bars as chart_write does. */
int chart_bars_write(const char *path, const struct chart_bars *c, struct err *err);

/* Choose round values for an axis that contains low <= high: multiples of 1, 2 or 5 times a power
 * of ten, 3 to 11 of them; on a logarithmic axis (low > 0) powers of ten or 1, 2 and 5 times them.
 * *low and *high are widened to the first and the last; with `fixed` they stay, and only values
 * between them are returned. Return the number of values in out. */
size_t chart_ticks(double out[CHART_TICKS], double *low, double *high, bool log, bool fixed);

/* Write v as people do: "0.25", "10,000". Values are rounded to six digits. */
void chart_number(char out[32], double v);

#endif
