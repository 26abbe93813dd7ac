/* plot_table.h - a table of comma-separated values, and the series in it.
 *
 * The first line names the columns. A field may stand in quotation marks (RFC 4180), within one
 * line. An empty field is a number that is not there. */
#ifndef TOOLS_PLOT_PLOT_TABLE_H
#define TOOLS_PLOT_PLOT_TABLE_H

#include <stddef.h>

#include "tools/plot/chart.h"

struct err;

enum { PLOT_COLUMNS = 256, PLOT_KEYS = 4, PLOT_LABEL = 96 };

struct plot_table {
    const char *path; /* borrowed */
    char *text;       /* the file; fields are cut out of it in place */
    char **cells;     /* [rows + 1][columns]; row 0 has the names */
    size_t *lines;    /* [rows + 1] lines of the file, from 1 */
    size_t columns, rows;
};

/* Read a table; "-" is standard input. Every row must have the fields of the header. ERR_IO,
 * ERR_FORMAT, ERR_NOMEM; on error *t is empty. */
int plot_table_read(struct plot_table *t, const char *path, struct err *err);
void plot_table_close(struct plot_table *t); /* all zero is fine */

/* Set *out to the number of the column with this name. ERR_ARG lists those that the table has. */
int plot_table_column(size_t *out, const struct plot_table *t, const char *name, size_t n,
                      struct err *err);
/* Set columns[*count] to those of a list NAME,NAME of at most `most`. ERR_ARG. */
int plot_table_columns(size_t *columns, size_t *count, size_t most, const struct plot_table *t,
                       const char *list, struct err *err);
/* Return the field of row 1 to t->rows. */
const char *plot_table_cell(const struct plot_table *t, size_t row, size_t column);
/* Set *out to the number in a field, NaN if the field is empty. ERR_FORMAT. */
int plot_table_number(double *out, const struct plot_table *t, size_t row, size_t column,
                      struct err *err);

/* Drop the rows whose field is none of the values of a condition COLUMN=VALUE,VALUE. ERR_ARG if no
 * row is left. */
int plot_table_where(struct plot_table *t, const char *condition, struct err *err);
/* Write the label of a row: its fields of these columns, separated by commas. ERR_FORMAT: it does
 * not fit, and cut off it might equal another. */
int plot_table_label(char out[PLOT_LABEL], const struct plot_table *t, size_t row,
                     const size_t *columns, size_t n, struct err *err);

#endif
