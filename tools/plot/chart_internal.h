/* chart_internal.h - what the files of the drawing module share. */
#ifndef TOOLS_PLOT_CHART_INTERNAL_H
#define TOOLS_PLOT_CHART_INTERNAL_H

#include <stdio.h>

#include "tools/plot/chart.h"

/* Pixels. */
enum { CHART_WIDTH = 860, CHART_LINE = 22, CHART_HEAD = 16, CHART_GAP = 12 };

/* Write text, escaped for elements and attributes. */
void chart_text(FILE *f, const char *text);
/* Return an estimate of the width of text at the normal font size. */
double chart_text_width(const char *text);
/* Write the beginning of a file of this height, with styles and background. title: of the whole
 * picture, for readers that cannot see it. */
void chart_begin(FILE *f, const char *title, double height);
void chart_end(FILE *f);
/* Write title and note (NULL: none) below y. Return the y coordinate below them; without a file
 * (NULL), only this. */
double chart_head(FILE *f, double y, const char *title, const char *note);
/* Write the mark of a style at a place. note: shown by a pointer; may be NULL. */
void chart_mark(FILE *f, size_t style, double x, double y, const char *note);

struct chart_box {
    double x, y, w, h; /* of the upper left corner; size */
};
/* The name of the point at (x, y). placed: there was room for it, and box is where. */
struct chart_name {
    const char *text;
    double x, y;
    struct chart_box box;
    bool placed;
};
/* Place the names, one after the other, in the area, each as near to its point as it can be without
 * meeting a taken box, a name before it, or a line that leads to one. A name for which there is no
 * room is not placed. */
void chart_names_place(struct chart_name *names, size_t n, const struct chart_box *taken,
                       size_t ntaken, const struct chart_box *area);
/* True if a line should lead from the point to (*x, *y), because the name is too far away. */
bool chart_name_lead(const struct chart_name *name, double *x, double *y);
/* Return the width of the box of a name. */
double chart_name_width(const char *name);
bool chart_boxes_meet(const struct chart_box *a, const struct chart_box *b);

#endif
