/* chart_internal.h - what the files of the drawing module share. */
#ifndef TOOLS_LAB_PLOT_CHART_INTERNAL_H
#define TOOLS_LAB_PLOT_CHART_INTERNAL_H

#include <stdio.h>

#include "tools/lab/plot/chart.h"

/* Pixels. */
enum { CHART_WIDTH = 860, CHART_HEAD = 16, CHART_GAP = 12, CHART_BELOW = 58, CHART_TICKS = 16 };

struct chart_scale {
    bool log;
    double low, high;   /* values at the ends */
    double start, size; /* pixels: of the low end, and signed length */
    double ticks[CHART_TICKS];
    size_t n;
};

/* Set ends and round values of a scale for data from low to high; with low > high there are none.
 * The round values are multiples of 1, 2 or 5 times a power of ten, 3 to 11 of them; on a
 * logarithmic axis powers of ten. The ends are the first and the last. */
void chart_scale_open(struct chart_scale *s, bool log, double low, double high);
/* Return the pixel of a value. */
double chart_at(const struct chart_scale *s, double v);
/* Write v as people do: "0.25", "10,000". Values are rounded to six digits. */
void chart_number(char out[32], double v);
/* The same for an axis, which has little room: from a million on "1M", "2.5G". */
void chart_tick(char out[32], double v);

/* Write text, which may be any bytes, at a place; anchor: "start", "middle" or "end". */
void chart_text(FILE *f, double x, double y, const char *anchor, const char *text);
/* Write the beginning of a file of this height, which ends with </svg>: styles and background.
 * title: of the whole picture, for readers that cannot see it. */
void chart_begin(FILE *f, const char *title, double height);
/* Write title and note (NULL: none) below y. Return the y coordinate below them; without a file
 * (NULL), only this. */
double chart_head(FILE *f, double y, const char *title, const char *note);
/* Draw grid, numbers and name of a horizontal axis at the bottom of an area. */
void chart_across(FILE *f, const struct chart_scale *x, double top, double bottom,
                  const char *label);
/* Write the mark of a style at a place. note: shown by a pointer; may be NULL. */
void chart_mark(FILE *f, size_t style, double x, double y, const char *note);

#endif
