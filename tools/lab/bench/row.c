#include "tools/lab/bench/row.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/cli/json_report.h"

static struct row_cell *row_add(struct row *r, const char *key, const char *title)
{
    struct row_cell *c = &r->cells[r->n++];
    *c = (struct row_cell){ .key = key, .title = title, .value = (double)NAN };
    return c;
}

void row_named(struct row *r, const char *key, const char *title, double value, int digits)
{
    struct row_cell *c = row_add(r, key, title);
    c->value = value;
    c->digits = digits;
}

void row_put(struct row *r, const char *name, double value, int digits)
{
    row_named(r, name, name, value, digits);
}

void row_text(struct row *r, const char *key, const char *title, const char *text)
{
    row_add(r, key, title)->text = text;
}

void row_percent(struct row *r, const char *title, double share)
{
    struct row_cell *c = row_add(r, NULL, title);
    if (isfinite(share))
        snprintf(c->own, sizeof(c->own), "%.0f %%", 100 * share);
    c->text = c->own;
}

void row_list(struct row *r, const char *key, const double *list, size_t n)
{
    struct row_cell *c = row_add(r, key, NULL);
    c->list = n ? list : NULL;
    c->n = n;
}

void row_json(struct row *r, const char *key, json_t *value)
{
    struct row_cell *c = row_add(r, key, NULL);
    c->is_json = true;
    c->json = value;
}

/* Print a text as a cell of CSV, in quotes if it needs them. */
static void row_quoted(const char *text)
{
    const char *quote = strpbrk(text, ",\"") ? "\"" : "";
    char *shown = escaped_text(text, strlen(text));
    fputs(quote, stdout);
    for (const char *p = shown ? shown : "?"; *p; p++)
        printf(*p == '"' ? "\"%c" : "%c", *p);
    fputs(quote, stdout);
    free(shown);
}

/* Print the value of a cell in a table or in CSV. */
static void row_show(const struct row_cell *c, bool md)
{
    if (c->text && md)
        escaped_put(c->text, strlen(c->text));
    else if (c->text)
        row_quoted(c->text);
    else if (isfinite(c->value))
        printf(c->digits < 0 ? "%.*g" : "%.*f", abs(c->digits), c->value);
    for (size_t i = 0; c->list && i < c->n; i++)
        printf("%s%.3f", i ? " " : "", c->list[i]);
}

/* Print a line of a table or of CSV: the names of the columns, or the values. */
static void row_line(const struct row *r, bool md, bool names)
{
    const char *before = md ? "| " : "";
    for (size_t i = 0; i < r->n; i++) {
        const struct row_cell *c = &r->cells[i];
        const char *name = md ? c->title : c->key;
        if (!name)
            continue;
        fputs(before, stdout);
        before = md ? " | " : ",";
        if (names)
            fputs(name, stdout);
        else
            row_show(c, md);
    }
    fputs(md ? " |\n" : "\n", stdout);
}

static void row_head(struct row *r, bool md)
{
    row_line(r, md, true);
    for (size_t i = 0; md && i < r->n; i++)
        fputs(r->cells[i].title ? "|---" : "", stdout);
    fputs(md ? "|\n" : "", stdout);
    r->headed = true;
}

/* Options are floats: 0.7f is 0.7. */
static double row_real(double v)
{
    char text[32];
    double f = (double)(float)v;
    if (f < v || f > v || fabs(v) > 1e6)
        return v;
    snprintf(text, sizeof(text), "%.7g", v);
    return strtod(text, NULL);
}

static json_t *row_value(const struct row_cell *c)
{
    json_t *list = c->list ? json_array() : NULL;
    for (size_t i = 0; list && i < c->n; i++)
        json_report_add(&list, json_report_real(c->list[i]));
    return c->is_json            ? c->json
           : c->list             ? list
           : c->text             ? escaped_json(c->text, strlen(c->text))
           : !isfinite(c->value) ? json_null()
           : c->digits           ? json_real(row_real(c->value))
                                 : json_integer((json_int_t)llround(c->value));
}

/* Print the row as an object, after the bracket or the comma that stands before it in a list. */
static int row_object(const struct row *r, struct err *err)
{
    bool list = !strcmp(r->format, "json");
    json_t *o = json_object();
    for (size_t i = 0; i < r->n; i++)
        if (r->cells[i].key)
            json_report_set(&o, r->cells[i].key, row_value(&r->cells[i]));
    return json_report_print("output", o, r->flags ? r->flags : JSON_REAL_PRECISION(15),
                             !list        ? ""
                             : r->printed ? ","
                                          : "[\n",
                             "", err);
}

int row_print(struct row *r, struct err *err)
{
    bool md = !strcmp(r->format, "md");
    int rc = OK;
    if (*r->format == 'j') {
        rc = row_object(r, err);
    } else {
        if (!r->headed)
            row_head(r, md);
        row_line(r, md, false);
        for (size_t i = 0; i < r->n; i++)
            json_decref(r->cells[i].json);
    }
    r->printed += rc == OK;
    r->n = 0;
    return rc;
}

void row_end(const struct row *r)
{
    if (!strcmp(r->format, "json"))
        puts(r->printed ? "]" : "[\n]");
}
