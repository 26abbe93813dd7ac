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
/* Write the head of the file with styles, background, title and note. Return the y coordinate below
 * it. rows: height of the rest. */
double chart_begin(FILE *f, const char *title, const char *note, double rows);
void chart_end(FILE *f);
/* Write the mark of a style at a place. note: shown by a pointer; may be NULL. */
void chart_mark(FILE *f, size_t style, double x, double y, const char *note);

#endif
