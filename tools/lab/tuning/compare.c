#include "kernels/sys/text.h"
#include "tools/lab/tuning/compare.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/bench/bench.h"
#include "tools/lab/machine/limits.h"
#include "tools/lab/bench/doubt.h"

static const double TAIL = 0.025; /* most probable error on each side of an interval */
enum { EXACT = 50 };              /* rounds up to which they are counted, not approximated */

/* Return how many of n sorted ratios lie outside the interval on each side; -1 if even none are too
 * many. Each is as likely above the median as below, so they are the heads of n fair coins. */
static long compare_outside(size_t n)
{
    long outside = -1;
    if (n > EXACT)
        return (long)((double)n / 2 - 1.96 * sqrt((double)n) / 2) - 1;
    double chance = ldexp(1, -(int)n), sum = 0; /* that none shows heads */
    for (size_t u = 0; u <= n && (sum += chance) <= TAIL; u++) {
        outside = (long)u;
        chance = chance * (double)(n - u) / (double)(u + 1);
    }
    return outside;
}

bool compare_rounds(struct compare_ratio *out, const double *before, const double *after, size_t n)
{
    double *ratios = malloc(n * sizeof(*ratios));
    long outside = compare_outside(n);
    if (!ratios)
        return false;
    for (size_t i = 0; i < n; i++)
        ratios[i] = after[i] / before[i];
    *out = (struct compare_ratio){ .ratio = limits_median(ratios, n), .known = outside >= 0 };
    if (out->known) {
        out->low = ratios[outside];
        out->high = ratios[n - 1 - (size_t)outside];
    }
    free(ratios);
    return true;
}

/* One of the two measurements. rows: an object with an array for each call that was timed, in the
 * order in which the file has them; a round is a row each. */
struct compare_file {
    const char *name; /* as it was given, borrowed */
    char *path;
    const char *set; /* whose rows alone count, in path's memory; NULL: all */
    size_t seen;     /* rows that were read */
    json_t *rows;
    const char *cpu; /* that all rows come from, borrowed from the first one */
};

/* True for a text that can be shown on one line. */
static bool compare_harmless(const json_t *text)
{
    const char *s = json_string_value(text);
    size_t n = json_string_length(text), at = 0, shown;
    while (at < n && (shown = text_shown(s + at, n - at)) > 0)
        at += shown;
    return n && at == n;
}

static const char *compare_text(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

/* Check that a row has what is compared, and comes from the file's processor. */
static int compare_check(struct compare_file *f, const json_t *row, struct err *err)
{
    static const char *const texts[] = { "op", "isa", "shape", "cpu_info" };
    double ns = json_number_value(json_object_get(row, "ns"));
    bool fine = ns > 0 && ns < 1e18;
    for (size_t i = 0; fine && i < sizeof(texts) / sizeof(*texts); i++)
        fine = compare_harmless(json_object_get(row, texts[i]));
    if (!fine)
        return err_set(err, ERR_FORMAT,
                       "%s: row %zu: expected op, isa, shape, cpu_info and ns as `bench "
                       "kernels -o json` writes them",
                       f->path, f->seen);
    const char *cpu = compare_text(row, "cpu_info");
    if (f->cpu && strcmp(f->cpu, cpu) != 0)
        return err_set(err, ERR_FORMAT, "%s: expected a measurement on %s, found %s", f->path,
                       f->cpu, cpu);
    return OK;
}

/* Put a row among those of the same operation, shape and, unless the file's set is named, set. */
static int compare_put(struct compare_file *f, json_t *row, struct err *err)
{
    const char *isa = compare_text(row, "isa");
    if (f->set && strcmp(f->set, isa) != 0)
        return OK;
    json_t *name = json_sprintf("%s\n%s\n%s", compare_text(row, "op"), compare_text(row, "shape"),
                                f->set ? "" : isa);
    const char *key = json_string_value(name);
    json_t *rounds = key ? json_object_get(f->rows, key) : NULL;
    bool kept = key && (rounds || !json_object_set_new(f->rows, key, rounds = json_array())) &&
                !json_array_append(rounds, row);
    if (kept && !f->cpu)
        f->cpu = compare_text(row, "cpu_info");
    json_decref(name);
    return kept ? OK : err_set(err, ERR_NOMEM, "bench: out of memory");
}

/* Add the rows of a JSON value, which is one of them or an array. */
static int compare_add(struct compare_file *f, json_t *value, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; json_is_array(value) && rc == OK && i < json_array_size(value); i++)
        rc = compare_add(f, json_array_get(value, i), err);
    if (json_is_array(value))
        return rc;
    f->seen++;
    rc = compare_check(f, value, err);
    return rc == OK ? compare_put(f, value, err) : rc;
}

/* Read all JSON values of a file. */
static int compare_read(struct compare_file *f, FILE *from, struct err *err)
{
    int rc = OK, next;
    while (rc == OK && (next = fgetc(from)) != EOF) {
        json_error_t why;
        if (strchr(" \t\r\n", next))
            continue;
        ungetc(next, from);
        json_t *value = json_loadf(from, JSON_DISABLE_EOF_CHECK, &why);
        rc = value ? compare_add(f, value, err)
             : json_error_code(&why) == json_error_out_of_memory
                 ? err_set(err, ERR_NOMEM, "bench: out of memory")
                 : err_set(err, ERR_FORMAT, "%s: expected JSON: %s", f->path, why.text);
        json_decref(value);
    }
    if (rc == OK && ferror(from))
        rc = err_set(err, ERR_IO, "%s: %s", f->path, strerror(errno));
    if (rc == OK && !json_object_size(f->rows))
        rc = err_set(err, ERR_FORMAT, "%s: expected rows of `bench kernels`%s%s, found none",
                     f->path, f->set ? " with the set " : "", f->set ? f->set : "");
    return rc;
}

/* Open FILE or FILE:SET; a file that has this whole name goes first. */
static int compare_open(struct compare_file *f, const char *name, struct err *err)
{
    *f = (struct compare_file){ .name = name, .path = strdup(name), .rows = json_object() };
    if (!f->path || !f->rows)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    FILE *from = fopen(name, "rb");
    char *colon = strrchr(f->path, ':');
    if (!from && errno == ENOENT && colon && colon[1] && !strchr(colon, '/')) {
        *colon = '\0';
        f->set = colon + 1;
        from = fopen(f->path, "rb");
    }
    if (!from)
        return err_set(err, ERR_IO, "%s: %s", f->path, strerror(errno));
    int rc = compare_read(f, from, err);
    fclose(from);
    return rc;
}

static void compare_close(struct compare_file *f)
{
    json_decref(f->rows);
    free(f->path);
}

/* Set ns[n] to the times of the first n rounds, and *busy if another program ran in one. */
static void compare_times(double *ns, bool *busy, const json_t *rounds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(rounds, i), *on_cpu = json_object_get(row, "on_cpu");
        char why[DOUBT_TEXT] = "";
        if (doubt_busy(why, json_is_number(on_cpu) ? json_number_value(on_cpu) : 1,
                       json_number_value(json_object_get(row, "others"))))
            *busy = true;
        ns[i] = json_number_value(json_object_get(row, "ns"));
    }
}

/* What is said below the table. */
struct compare_notes {
    size_t shown, busy, few, rounds, uneven;
    const char *op; /* of the table that is being printed */
};

/* Print a time in us with four digits. */
static void compare_time(double ns)
{
    double us = ns / 1e3;
    printf(" %10.*f", us < 10 ? 3 : us < 100 ? 2 : us < 1000 ? 1 : 0, us);
}

/* Compare the rounds x of a with those of b, y, and print a row. */
static int compare_row(struct compare_notes *notes, const struct compare_file *a,
                       const struct compare_file *b, const json_t *x, const json_t *y,
                       struct err *err)
{
    struct compare_ratio r;
    size_t in_x = json_array_size(x), in_y = json_array_size(y), n = in_x < in_y ? in_x : in_y;
    double *ns = malloc(2 * n * sizeof(*ns));
    bool busy = false;
    if (ns) {
        compare_times(ns, &busy, x, n);
        compare_times(ns + n, &busy, y, n);
    }
    if (!ns || !compare_rounds(&r, ns, ns + n, n)) {
        free(ns);
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    }
    const json_t *row = json_array_get(x, 0);
    const char *op = compare_text(row, "op");
    if (!notes->op || strcmp(notes->op, op) != 0)
        printf("\n%-38s  %10s %10s\n", op, a->set ? a->set : "before", b->set ? b->set : "after");
    printf("  %-26s %-10s", compare_text(row, "shape"), a->set ? "" : compare_text(row, "isa"));
    compare_time(limits_median(ns, n));
    compare_time(limits_median(ns + n, n));
    free(ns);
    double low = 100 * (r.low - 1), high = 100 * (r.high - 1);
    if (!r.known)
        printf("  too few to tell");
    else if (r.low <= 1 && r.high >= 1)
        printf("  no difference seen (%+.1f to %+.1f %%)", low, high);
    else
        printf("  %+.1f %% (%+.1f to %+.1f)", 100 * (r.ratio - 1), low, high);
    puts(busy ? " ?" : "");
    notes->op = op;
    notes->shown++;
    notes->busy += busy;
    notes->few += !r.known;
    notes->uneven += in_x != in_y;
    notes->rounds = n > notes->rounds ? n : notes->rounds;
    return OK;
}

static void compare_foot(const struct compare_notes *n, const struct compare_file *a,
                         const struct compare_file *b)
{
    size_t in_a = json_object_size(a->rows) - n->shown, in_b = json_object_size(b->rows) - n->shown;
    puts("");
    printf("Medians of %zu rounds; 95 %% intervals of the ratio by round (sign test).\n",
           n->rounds);
    if (n->shown - n->few >= 20)
        puts("One row in 20 shows a difference by chance.");
    if (n->few)
        puts("An interval takes six rounds in turn.");
    if (n->uneven)
        printf("Rows with more rounds in one file: %zu; the first ones count.\n", n->uneven);
    if (n->busy)
        printf("Rows with ?, which other programs disturbed: %zu.\n", n->busy);
    if (in_a || in_b)
        printf("Rows that only %s has: %zu; only %s: %zu.\n", a->name, in_a, b->name, in_b);
}

/* Print the table and what is below it. */
static int compare_report(const struct compare_file *a, const struct compare_file *b,
                          struct err *err)
{
    struct compare_notes notes = { .op = NULL };
    const char *key;
    json_t *rounds;
    int rc = OK;
    json_object_foreach(a->rows, key, rounds)
    {
        const json_t *other = json_object_get(b->rows, key);
        if (other && !notes.op)
            printf("%s, one thread, us a call: %s, then %s\n", a->cpu, a->name, b->name);
        rc = other ? compare_row(&notes, a, b, rounds, other, err) : OK;
        if (rc != OK)
            return rc;
    }
    if (!notes.shown)
        return err_set(err, ERR_FORMAT, "%s: expected operations and shapes of %s, found none",
                       b->name, a->name);
    compare_foot(&notes, a, b);
    return OK;
}

int compare_kernels(const char *before, const char *after, struct err *err)
{
    struct compare_file a, b = { .rows = NULL };
    int rc = compare_open(&a, before, err);
    if (rc == OK)
        rc = compare_open(&b, after, err);
    if (rc == OK && !a.set != !b.set)
        rc = err_set(err, ERR_ARG, "--compare: expected FILE:SET twice or never, found %s and %s",
                     before, after);
    if (rc == OK && strcmp(a.cpu, b.cpu) != 0)
        rc = err_set(err, ERR_FORMAT, "%s: expected a measurement on %s, found %s", b.path, a.cpu,
                     b.cpu);
    if (rc == OK)
        rc = compare_report(&a, &b, err);
    compare_close(&a);
    compare_close(&b);
    return rc;
}
