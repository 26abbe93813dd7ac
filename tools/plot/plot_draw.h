/* plot_draw.h - draws a table: as lines, one for each group of rows, or as bars, one for each row.
 */
#ifndef TOOLS_PLOT_PLOT_DRAW_H
#define TOOLS_PLOT_PLOT_DRAW_H

#include <stdbool.h>

struct err;
struct option_list;

/* Columns are named; lists are separated by commas. Everything is borrowed; NULL: not given. */
struct plot_options {
    const char *x, *y;   /* columns of numbers; or */
    const char *bars;    /* columns whose numbers make up a bar */
    const char *by;      /* rows that agree in these columns are a line, or labels of the bars */
    const char *band;    /* LOW,HIGH: columns of the interval of y */
    const char *percent; /* columns that are multiplied by 100 */
    const struct option_list *where;  /* COLUMN=VALUE,VALUE: rows to draw */
    const struct option_list *guides; /* LABEL=Y or LABEL=LEFT,RIGHT: dashed straight lines */
    const char *title, *note;         /* title NULL: the columns */
    const char *x_label, *y_label;    /* NULL: the column; of bars, x_label is the unit */
    const char *x_range, *y_range;    /* LOW,HIGH */
    bool log_x, log_y;
};

/* Draw the table of one file into another; "-" is standard input or output. ERR_ARG: an option is
 * wrong, or the table has no such column; ERR_FORMAT: the table is malformed; ERR_IO, ERR_NOMEM. */
int plot_draw(const char *svg, const char *csv, const struct plot_options *o, struct err *err);

#endif
