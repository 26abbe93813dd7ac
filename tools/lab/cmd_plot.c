/* cmd_plot.c - `mizzle plot`: draw a table as SVG: as lines, one for each group of rows, or as
 * bars, one for each row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/text.h"
#include "tools/command.h"
#include "tools/lab/plot/chart.h"
#include "tools/cli/input_file.h"

enum { GUIDES = 16, STYLE_GUIDE = CHART_COLOURS - 1 };

static struct {
    const char *x, *y, *bars, *by, *interval, *title, *note;
    struct option_list guides;
    bool dots;
} options;
static const char *output = "-";

/* A table of comma-separated values. The first line names the columns. A field may stand in
 * quotation marks (RFC 4180), within one line. An empty field is a number that is not there. */
struct table {
    const char *path;
    char *text;   /* the file; fields are cut out of it in place */
    char **cells; /* [rows + 1][columns]; row 0 has the names */
    size_t columns, rows, line;
};

/* A picture while it is made. */
struct plot {
    struct table table;
    size_t x, y, bars, by, low, high; /* columns, if there are such options */
    struct chart_series *series;      /* [rows + GUIDES] */
    struct chart_point *points, ends[GUIDES][2];
    size_t nseries, npoints;
    double left, right; /* the smallest and the largest x */
};

/* Cut a field out of the text at *rest, which then is what follows it. Return what ends the field:
 * a comma, a newline or 0, or a quotation mark where that is missing. */
static char table_field(char **rest)
{
    char *from = *rest, *to = from, *p = from;
    bool quoted = *p == '"';
    for (p += quoted; *p && *p != '\n' && (quoted || *p != ','); p++) {
        if (quoted && *p == '"' && *++p != '"')
            quoted = false;
        if (!quoted && strchr(",\n", *p)) /* or at the end of the text */
            break;
        *to++ = *p;
    }
    char end = quoted ? '"' : *p;
    *rest = p + (*p != '\0');
    to -= end == '\n' && to > from && to[-1] == '\r';
    *to = '\0';
    return end;
}

/* Add the line at *rest as a row; the first one names the columns. */
static int table_line(struct table *t, char **rest, struct err *err)
{
    size_t row = t->columns ? t->rows + 1 : 0, n = 0, ends = strcspn(*rest, "\r\n");
    char end = ',';
    t->line++;
    if (!ends && strcspn(*rest, "\n") <= 1) { /* an empty line is none */
        *rest += strcspn(*rest, "\n");
        *rest += **rest == '\n';
        return OK;
    }
    while (end == ',') {
        t->cells[row * t->columns + n++] = *rest;
        end = table_field(rest);
    }
    if (end == '"')
        return err_set(err, ERR_FORMAT, "%s: line %zu: expected a quotation mark at the end",
                       t->path, t->line);
    if (row && n != t->columns)
        return err_set(err, ERR_FORMAT, "%s: line %zu: expected %zu fields, found %zu", t->path,
                       t->line, t->columns, n);
    t->columns = n;
    t->rows = row;
    return OK;
}

/* Read a table of at least one row. */
static int table_read(struct table *t, const char *path, struct err *err)
{
    size_t bytes;
    *t = (struct table){ .path = path };
    int rc = input_file_read(&t->text, &bytes, path, INPUT_FILE_USUAL, err);
    if (rc == OK && (memchr(t->text, 0, bytes) || !text_valid(t->text, bytes)))
        rc = err_set(err, ERR_FORMAT, "%s: expected text in UTF-8, found other bytes", path);
    if (rc == OK) {
        /* Each field is followed by a comma or the end of its line. */
        t->cells = calloc(bytes + 2, sizeof(*t->cells));
        rc = t->cells ? OK : err_set(err, ERR_NOMEM, "%s: out of memory", path);
    }
    for (char *rest = t->text; rc == OK && *rest;)
        rc = table_line(t, &rest, err);
    if (rc == OK && !t->rows)
        rc = err_set(err, ERR_FORMAT, "%s: expected a header and rows, found %s", path,
                     t->columns ? "the header alone" : "an empty file");
    return rc;
}

/* Set *out to the number of the column with the name[n], if there is a name. */
static int table_column(size_t *out, const struct table *t, const char *name, size_t n,
                        struct err *err)
{
    char all[256] = "";
    for (size_t i = 0; i < t->columns; i++) {
        size_t used = strlen(all);
        *out = i;
        if (strlen(t->cells[i]) == n && memcmp(t->cells[i], name, n) == 0)
            return OK;
        snprintf(all + used, sizeof(all) - used, "%s%s", i ? "," : "", t->cells[i]);
    }
    return err_set(err, ERR_ARG, "%s: expected a column %.*s, found %s", t->path, (int)n, name,
                   all);
}

static const char *table_cell(const struct table *t, size_t row, size_t column)
{
    return t->cells[row * t->columns + column];
}

/* Set *out to the number in a field, NaN if the field is empty. */
static int table_number(double *out, const struct table *t, size_t row, size_t column,
                        struct err *err)
{
    const char *text = table_cell(t, row, column);
    char *end;
    *out = *text ? strtod(text, &end) : (double)NAN;
    if (*text && (*end || !isfinite(*out)))
        return err_set(err, ERR_FORMAT, "%s: line %zu, %s: expected a number, found %s", t->path,
                       row + 1, t->cells[column], text);
    return OK;
}

/* Find the columns that the options name. */
static int plot_columns(struct plot *p, struct err *err)
{
    const struct {
        size_t *column;
        const char *name;
    } wanted[] = { { &p->x, options.x },
                   { &p->y, options.y },
                   { &p->bars, options.bars },
                   { &p->by, options.by } };
    const char *low = options.interval, *high = low ? strchr(low, ',') : NULL;
    int rc = OK;
    for (size_t i = 0; rc == OK && i < sizeof(wanted) / sizeof(*wanted); i++)
        if (wanted[i].name)
            rc = table_column(wanted[i].column, &p->table, wanted[i].name, strlen(wanted[i].name),
                              err);
    if (rc != OK || !low)
        return rc;
    if (!high || strchr(high + 1, ','))
        return err_set(err, ERR_ARG, "--interval: expected LOW,HIGH, found %s", low);
    rc = table_column(&p->low, &p->table, low, (size_t)(high - low), err);
    return rc == OK ? table_column(&p->high, &p->table, high + 1, strlen(high + 1), err) : rc;
}

/* Insert the point of a row among those of its series, in the order of x, which for bars is that of
 * the rows. */
static int plot_point(struct plot *p, struct chart_series *s, size_t row, struct err *err)
{
    const struct table *t = &p->table;
    struct chart_point new = { .x = (double)row, .low = (double)NAN, .high = (double)NAN };
    int rc = options.x ? table_number(&new.x, t, row, p->x, err) : OK;
    if (rc == OK)
        rc = table_number(&new.y, t, row, p->y, err);
    if (rc == OK && options.interval)
        rc = table_number(&new.low, t, row, p->low, err);
    if (rc == OK && options.interval)
        rc = table_number(&new.high, t, row, p->high, err);
    new.label = options.bars ? table_cell(t, row, p->bars) : NULL;
    if (rc != OK || isnan(new.x))
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

/* Return what --by says of a row: the label of its series. */
static const char *plot_label(const struct plot *p, size_t row)
{
    return options.by ? table_cell(&p->table, row, p->by) : NULL;
}

/* Make a series of all rows that have the label of this one, unless it has been made. */
static int plot_series(struct plot *p, size_t first, struct err *err)
{
    const char *label = plot_label(p, first);
    for (size_t i = 0; i < p->nseries; i++)
        if (!label || !strcmp(p->series[i].label, label))
            return OK;
    struct chart_series *s = &p->series[p->nseries];
    *s = (struct chart_series){ .label = label,
                                .points = p->points + p->npoints,
                                .style = p->nseries++,
                                .line = !options.dots,
                                .marks = true,
                                .intervals = options.interval != NULL };
    int rc = OK;
    for (size_t row = first; rc == OK && row <= p->table.rows; row++)
        if (!label || !strcmp(plot_label(p, row), label))
            rc = plot_point(p, s, row, err);
    return rc;
}

/* Add a dashed line over the width of the data. */
static int plot_guide(struct plot *p, size_t i, const char *text, struct err *err)
{
    char *label;
    double y = strtod(text, &label);
    if (label == text || *label != '=' || !isfinite(y))
        return err_set(err, ERR_ARG, "--guide: expected Y=LABEL, found %s", text);
    p->ends[i][0] = (struct chart_point){ .x = p->left, .y = y };
    p->ends[i][1] = (struct chart_point){ .x = p->right, .y = y };
    p->series[p->nseries++] = (struct chart_series){
        .label = label + 1, .points = p->ends[i], .n = 2, .style = STYLE_GUIDE, .dashed = true
    };
    return OK;
}

/* Make series and guides of the table, and draw them. */
static int plot_picture(struct plot *p, struct err *err)
{
    int rc = OK;
    p->left = HUGE_VAL;
    p->right = -HUGE_VAL;
    p->points = calloc(p->table.rows, sizeof(*p->points));
    p->series = calloc(p->table.rows + GUIDES, sizeof(*p->series));
    if (!p->points || !p->series)
        return err_set(err, ERR_NOMEM, "plot: out of memory");
    for (size_t row = 1; rc == OK && row <= p->table.rows; row++)
        rc = plot_series(p, row, err);
    if (rc == OK && !p->npoints)
        rc = err_set(err, ERR_ARG, "%s: no point is left to draw", p->table.path);
    for (size_t i = 0; rc == OK && i < options.guides.n; i++)
        rc = plot_guide(p, i, options.guides.at[i], err);
    const struct chart c = { .title = options.title ? options.title : options.y,
                             .note = options.note,
                             .x = options.x,
                             .y = options.y,
                             .series = p->series,
                             .n = p->nseries };
    if (rc != OK)
        return rc;
    return options.bars ? chart_bars_write(output, &c, err) : charts_write(output, &c, 1, err);
}

static int plot_draw(const char *csv, struct err *err)
{
    if (!options.y || !options.x == !options.bars)
        return err_set(err, ERR_ARG, "expected --y and either --x or --bars");
    if (options.bars && (options.dots || options.guides.n))
        return err_set(err, ERR_ARG, "--bars: expected without --dots and --guide");
    struct plot *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(err, ERR_NOMEM, "plot: out of memory");
    int rc = table_read(&p->table, csv, err);
    if (rc == OK)
        rc = plot_columns(p, err);
    if (rc == OK)
        rc = plot_picture(p, err);
    free(p->table.text);
    free(p->table.cells);
    free(p->points);
    free(p->series);
    free(p);
    return rc;
}

static const struct option_group own = {
    "Picture",
    (const struct option[]){
        { "--x", NULL, OPTION_STR, &options.x, "COL", "Take x from this column" },
        { "--y", NULL, OPTION_STR, &options.y, "COL", "Take y from this column" },
        { "--bars", NULL, OPTION_STR, &options.bars, "COL",
          "Instead of lines over x, draw a bar from 0 to y for each row, with its label from this "
          "column" },
        { "--by", NULL, OPTION_STR, &options.by, "COL",
          "Draw one line, or group of bars, for each value of this column, which is its label "
          "(default: one)" },
        { "--dots", NULL, OPTION_FLAG, &options.dots, NULL, "Do not connect the points by lines" },
        { "--interval", NULL, OPTION_STR, &options.interval, "LOW,HIGH",
          "Draw the interval between these columns: as a band of a line, else as error bars "
          "(default: none)" },
        { "--guide", NULL, OPTION_LIST, &options.guides, "Y=LABEL",
          "Draw a dashed line at Y; may be given several times (default: none)" },
        { "--title", NULL, OPTION_STR, &options.title, "TEXT",
          "Write this above the picture (default: the column y)" },
        { "--note", NULL, OPTION_STR, &options.note, "TEXT",
          "Write this below the title (default: nothing)" },
        { "--output", "-o", OPTION_STR, &output, "FILE",
          "Write the picture to FILE (default: standard output)" },
        OPTION_END,
    },
};

static int cmd_plot_main(int n, char **args, struct err *err)
{
    return n ? plot_draw(args[0], err)
             : err_set(err, ERR_ARG, "expected one FILE.csv; see mizzle plot --help");
}

const struct command cmd_plot = {
    .name = "plot",
    .summary = "draw a table of comma-separated values",
    .args = "FILE.csv",
    .description =
        "Draws columns of FILE.csv, whose first line names them, as SVG. Axes have round values "
        "and the names of their columns; lines differ in colour and in the shape of their marks "
        "and have their labels at their ends; the picture follows the reader's light or dark "
        "scheme. The same table and options give the same bytes on every machine. Points are "
        "joined in the order of x; an empty field interrupts the line. FILE may be - for standard "
        "input, as for a table that awk has made of some of the rows.\n\n"
        "  mizzle eval --policy mlp,random --target-routed 0:0.07:8 -o sweep.csv\n"
        "  mizzle plot sweep.csv --x routed --y accuracy --by policy -o sweep.svg \\\n"
        "      --interval accuracy_low,accuracy_high\n",
    .groups = (const struct option_group *const[]){ &own, NULL },
    .run = cmd_plot_main,
    .most = 1,
};
