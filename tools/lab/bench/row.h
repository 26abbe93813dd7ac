/* row.h - prints the rows of a measurement: as a table in Markdown, as CSV, or as objects of
 * JSON. */
#ifndef TOOLS_LAB_BENCH_ROW_H
#define TOOLS_LAB_BENCH_ROW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct err;

enum { ROW_CELLS = 128, ROW_OWN = 24 };

struct row {
    const char *format; /* "md", "csv", "json" or "jsonl"; borrowed */
    size_t flags;       /* jansson's flags; 0: JSON_REAL_PRECISION(7) */
    size_t n;           /* cells of the present row */
    size_t printed;     /* rows */
    bool headed;        /* the names of the columns stand above the next row */
    struct row_cell {
        const char *key, *title; /* in CSV and JSON, in Markdown; NULL: it is not there */
        const char *text;        /* NULL: a number, or nothing */
        double value;            /* not finite: nothing; JSON's null */
        int digits;              /* after the point, in Markdown and CSV; 0: an integer; -9:
                                  * up to nine significant ones */
        char own[ROW_OWN];       /* what text may point to */
        const double *list;      /* [n]; NULL: none */
        size_t n;
        bool is_json;
        json_t *json; /* in JSON alone, if is_json; NULL: there was no memory for it */
    } cells[ROW_CELLS];
};

/* Add a cell to the present row. Names and texts are borrowed until it is printed. */
void row_put(struct row *r, const char *name, double value, int digits); /* key and title */
void row_named(struct row *r, const char *key, const char *title, double value, int digits);
void row_text(struct row *r, const char *key, const char *title, const char *text);
/* Add a share to tables alone, in percent; nothing if it is not finite. */
void row_percent(struct row *r, const char *title, double share);

/* Add a list of numbers, which CSV has with blanks between them. n 0: nothing, JSON's null. */
void row_list(struct row *r, const char *key, const double *list, size_t n);
/* Add a value that JSON alone can show; it is taken over. NULL: there was no memory for it. */
void row_json(struct row *r, const char *key, json_t *value);

/* Print the row, below the names of its columns if they do not stand there yet, and begin another.
 * ERR_NOMEM: it cannot be made; then nothing is printed. */
int row_print(struct row *r, struct err *err);
/* End the list of JSON, if there is one. */
void row_end(const struct row *r);

#endif
