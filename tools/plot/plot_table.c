#include "tools/plot/plot_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "tools/run/prompt_input.h"

/* Cut the next field out of a line and return it; *rest is what follows, NULL at the end. A field
 * in quotation marks that does not end is NULL. */
static char *plot_table_field(char **rest)
{
    char *from = *rest, *to = from, *p = from;
    bool quoted = *p == '"';
    for (p += quoted; *p && (quoted || *p != ','); p++) {
        if (quoted && *p == '"' && *++p != '"')
            quoted = false;
        if (!quoted && (*p == ',' || !*p))
            break;
        *to++ = *p;
    }
    *rest = *p ? p + 1 : NULL;
    *to = '\0';
    return quoted ? NULL : from;
}

/* Cut a line into fields. Return how many there are; 0 if a quotation mark is missing. */
static size_t plot_table_cut(char **fields, char *line)
{
    size_t n = 0;
    while (line) {
        fields[n] = plot_table_field(&line);
        if (!fields[n++])
            return 0;
    }
    return n;
}

/* Add a line as a row; the first one names the columns. */
static int plot_table_line(struct plot_table *t, char *line, size_t number, struct err *err)
{
    bool header = !t->columns;
    size_t row = header ? 0 : t->rows + 1;
    /* Lines so far have at least one byte for each field, so that there is room for any number. */
    size_t n = plot_table_cut(t->cells + row * t->columns, line);
    if (!n)
        return err_set(err, ERR_FORMAT, "%s: line %zu: expected a quotation mark at the end",
                       t->path, number);
    if (header && n > PLOT_COLUMNS)
        return err_set(err, ERR_FORMAT, "%s: line %zu: expected at most %d columns, found %zu",
                       t->path, number, PLOT_COLUMNS, n);
    if (!header && n != t->columns)
        return err_set(err, ERR_FORMAT, "%s: line %zu: expected %zu fields, found %zu", t->path,
                       number, t->columns, n);
    t->columns = n;
    t->rows = row;
    t->lines[row] = number;
    return OK;
}

/* Split the file into rows; empty lines are none. */
static int plot_table_split(struct plot_table *t, struct err *err)
{
    size_t number = 0;
    int rc = OK;
    for (char *line = t->text, *end; rc == OK && line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        number++;
        size_t n = strlen(line);
        if (n && line[n - 1] == '\r')
            line[--n] = '\0';
        if (n)
            rc = plot_table_line(t, line, number, err);
    }
    if (rc == OK && !t->rows)
        rc = err_set(err, ERR_FORMAT, "%s: expected a header and rows, found %s", t->path,
                     t->columns ? "the header alone" : "an empty file");
    return rc;
}

int plot_table_read(struct plot_table *t, const char *path, struct err *err)
{
    size_t bytes, lines = 1, cells;
    *t = (struct plot_table){ .path = path };
    int rc = prompt_input_read(&t->text, &bytes, path, err);
    if (rc == OK && (memchr(t->text, 0, bytes) || !text_valid(t->text, bytes)))
        rc = err_set(err, ERR_FORMAT, "%s: expected text in UTF-8, found other bytes", path);
    for (size_t i = 0; rc == OK && i < bytes; i++)
        lines += t->text[i] == '\n';
    if (rc == OK) {
        /* Each field is followed by a comma or the end of its line. */
        cells = bytes + 2;
        t->cells = calloc(cells, sizeof(*t->cells));
        t->lines = calloc(lines, sizeof(*t->lines));
        rc = t->cells && t->lines ? plot_table_split(t, err)
                                  : err_set(err, ERR_NOMEM, "%s: out of memory", path);
    }
    if (rc != OK)
        plot_table_close(t);
    return rc;
}

void plot_table_close(struct plot_table *t)
{
    free(t->text);
    free(t->cells);
    free(t->lines);
    *t = (struct plot_table){ 0 };
}

int plot_table_column(size_t *out, const struct plot_table *t, const char *name, size_t n,
                      struct err *err)
{
    char all[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < t->columns; i++) {
        if (strlen(t->cells[i]) == n && memcmp(t->cells[i], name, n) == 0) {
            *out = i;
            return OK;
        }
        if (used + strlen(t->cells[i]) + 2 < sizeof(all))
            used +=
                (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? "," : "", t->cells[i]);
    }
    return err_set(err, ERR_ARG, "%s: expected a column %.*s, found %s", t->path, (int)n, name,
                   all);
}

int plot_table_columns(size_t *columns, size_t *count, size_t most, const struct plot_table *t,
                       const char *list, struct err *err)
{
    *count = 0;
    for (const char *p = list;; p++) {
        size_t n = strcspn(p, ",");
        if (*count == most)
            return err_set(err, ERR_ARG, "expected at most %zu columns, found %s", most, list);
        int rc = plot_table_column(&columns[(*count)++], t, p, n, err);
        p += n;
        if (rc != OK || !*p)
            return rc;
    }
}

const char *plot_table_cell(const struct plot_table *t, size_t row, size_t column)
{
    return t->cells[row * t->columns + column];
}

int plot_table_number(double *out, const struct plot_table *t, size_t row, size_t column,
                      struct err *err)
{
    const char *text = plot_table_cell(t, row, column);
    char *end;
    *out = *text ? strtod(text, &end) : (double)NAN;
    if (*text && (*end || !isfinite(*out)))
        return err_set(err, ERR_FORMAT, "%s: line %zu, %s: expected a number, found %s", t->path,
                       t->lines[row], t->cells[column], text);
    return OK;
}

/* True when the list VALUE,VALUE has this value. */
static bool plot_table_lists(const char *list, const char *value)
{
    size_t want = strlen(value);
    for (;;) {
        size_t n = strcspn(list, ",");
        if (n == want && memcmp(list, value, n) == 0)
            return true;
        if (!list[n])
            return false;
        list += n + 1;
    }
}

int plot_table_where(struct plot_table *t, const char *condition, struct err *err)
{
    const char *values = strchr(condition, '=');
    size_t column, kept = 0;
    if (!values)
        return err_set(err, ERR_ARG, "--where: expected COLUMN=VALUE, found %s", condition);
    int rc = plot_table_column(&column, t, condition, (size_t)(values - condition), err);
    if (rc != OK)
        return rc;
    for (size_t row = 1; row <= t->rows; row++) {
        if (!plot_table_lists(values + 1, plot_table_cell(t, row, column)))
            continue;
        kept++;
        t->lines[kept] = t->lines[row];
        memmove(t->cells + kept * t->columns, t->cells + row * t->columns,
                t->columns * sizeof(*t->cells));
    }
    t->rows = kept;
    return kept ? OK
                : err_set(err, ERR_ARG, "--where %s: no row of %s is left", condition, t->path);
}

int plot_table_label(char out[PLOT_LABEL], const struct plot_table *t, size_t row,
                     const size_t *columns, size_t n, struct err *err)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        used += (size_t)snprintf(out + used, PLOT_LABEL - used, "%s%s", i ? ", " : "",
                                 plot_table_cell(t, row, columns[i]));
        if (used >= PLOT_LABEL)
            return err_set(err, ERR_FORMAT, "%s: line %zu, %s: expected a label of up to %d bytes",
                           t->path, t->lines[row], t->cells[columns[i]], PLOT_LABEL - 1);
    }
    return OK;
}
