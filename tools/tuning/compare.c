#include "kernels/sys/text.h"
#include "tools/tuning/compare.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/bench/bench.h"
#include "tools/bench/doubt.h"

static const double TAIL = 0.025; /* most probable error on each side of an interval */
enum { EXACT = 50 };              /* samples up to which ranks are counted, not approximated */

/* Return how many of the sorted ratios lie outside the interval on each side, where cumulative(u)
 * is the chance that u or fewer do; -1 if even none are too many. */
static long compare_outside(const double *chance, size_t n)
{
    double sum = 0;
    long outside = -1;
    for (size_t u = 0; u < n && (sum += chance[u]) <= TAIL; u++)
        outside = (long)u;
    return outside;
}

/* Sort n ratios and set the interval that leaves `outside` of them on each side. */
static void compare_set(struct compare_ratio *out, double *ratios, size_t n, long outside)
{
    *out = (struct compare_ratio){ .ratio = bench_median(ratios, n), .known = outside >= 0 };
    if (out->known) {
        out->low = ratios[outside];
        out->high = ratios[n - 1 - (size_t)outside];
    }
}

bool compare_rounds(struct compare_ratio *out, const double *before, const double *after, size_t n)
{
    double *ratios = malloc(n * sizeof(*ratios)), *chance = malloc((n + 1) * sizeof(*chance));
    bool fits = ratios && chance;
    for (size_t i = 0; fits && i < n; i++)
        ratios[i] = after[i] / before[i];
    if (fits) {
        chance[0] = ldexp(1, -(int)n); /* of n fair coins, none shows heads */
        for (size_t u = 1; u <= n; u++)
            chance[u] = chance[u - 1] * (double)(n - u + 1) / (double)u;
        compare_set(out, ratios, n, compare_outside(chance, n + 1));
    }
    free(ratios);
    free(chance);
    return fits;
}

/* Set ways[0..m*n] to the number of orders of m and n samples in which so many pairs are the wrong
 * way round: the coefficients of the product of (1 - x^(n+i)) / (1 - x^i) for i = 1 to m. */
static void compare_orders(double *ways, size_t m, size_t n)
{
    size_t most = m * n;
    for (size_t u = 0; u <= most; u++)
        ways[u] = u == 0;
    for (size_t i = 1; i <= m; i++) {
        for (size_t u = most; u >= n + i; u--)
            ways[u] -= ways[u - n - i];
        for (size_t u = i; u <= most; u++)
            ways[u] += ways[u - i];
    }
}

/* Return what compare_outside does for the ratios of all pairs. */
static long compare_pairs_outside(size_t m, size_t n)
{
    static double ways[EXACT * EXACT + 1];
    double pairs = (double)m * (double)n, all = 0;
    if (m > EXACT || n > EXACT)
        return (long)(pairs / 2 - 1.96 * sqrt(pairs * ((double)m + (double)n + 1) / 12)) - 1;
    compare_orders(ways, m, n);
    for (size_t u = 0; u <= m * n; u++)
        all += ways[u];
    for (size_t u = 0; u <= m * n; u++)
        ways[u] /= all;
    return compare_outside(ways, m * n + 1);
}

bool compare_samples(struct compare_ratio *out, const double *before, size_t m, const double *after,
                     size_t n)
{
    double *ratios = malloc(m * n * sizeof(*ratios));
    for (size_t i = 0; ratios && i < m * n; i++)
        ratios[i] = after[i / m] / before[i % m];
    if (ratios)
        compare_set(out, ratios, m * n, compare_pairs_outside(m, n));
    free(ratios);
    return ratios;
}

/* Some twenty times as many as `bench kernels` has with -r 1. */
enum { ROWS_MAX = 8192 };

/* One of the two measurements: the rows of a file. */
struct compare_file {
    const char *path;
    json_t *rows;
};

/* True for a text that can be shown on one line. */
static bool compare_harmless(const json_t *text)
{
    const char *s = json_string_value(text);
    size_t n = s ? json_string_length(text) : 0, shown = 0;
    for (size_t i = 0; i < n && (shown = text_shown(s + i, n - i)); i += shown)
        ;
    return n && shown && strlen(s) == n;
}

/* Check that a row has what is compared. */
static int compare_check(const struct compare_file *f, const json_t *row, struct err *err)
{
    static const char *const texts[] = { "op", "isa", "shape", "cpu_info" };
    const json_t *samples = json_object_get(row, "samples_ns");
    bool fine = json_array_size(samples) > 0 && json_array_size(samples) <= BENCH_REPEAT;
    for (size_t i = 0; fine && i < sizeof(texts) / sizeof(*texts); i++)
        fine = compare_harmless(json_object_get(row, texts[i]));
    for (size_t i = 0; fine && i < json_array_size(samples); i++) {
        double ns = json_number_value(json_array_get(samples, i));
        fine = ns > 0 && ns < 1e18;
    }
    return fine ? OK
                : err_set(err, ERR_FORMAT,
                          "%s: row %zu: expected op, isa, shape, cpu_info and samples_ns as `bench "
                          "kernels -o json` writes them",
                          f->path, json_array_size(f->rows) + 1);
}

/* Add the rows of a JSON value, which is one of them or an array. */
static int compare_add(struct compare_file *f, json_t *value, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; json_is_array(value) && rc == OK && i < json_array_size(value); i++)
        rc = compare_add(f, json_array_get(value, i), err);
    if (json_is_array(value))
        return rc;
    rc = compare_check(f, value, err);
    if (rc == OK && json_array_size(f->rows) == ROWS_MAX)
        rc =
            err_set(err, ERR_FORMAT, "%s: expected at most %d rows, found more", f->path, ROWS_MAX);
    if (rc == OK && json_array_append(f->rows, value))
        rc = err_set(err, ERR_NOMEM, "bench: out of memory");
    return rc;
}

static int compare_open(struct compare_file *f, const char *path, struct err *err)
{
    FILE *from = fopen(path, "rb");
    *f = (struct compare_file){ .path = path, .rows = json_array() };
    if (!from)
        return err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    int rc = f->rows ? OK : err_set(err, ERR_NOMEM, "bench: out of memory"), next;
    while (rc == OK && (next = fgetc(from)) != EOF) {
        json_error_t why;
        if (strchr(" \t\r\n", next))
            continue;
        ungetc(next, from);
        json_t *value = json_loadf(from, JSON_DISABLE_EOF_CHECK, &why);
        rc = value ? compare_add(f, value, err)
                   : err_set(err, ERR_FORMAT, "%s: expected JSON: %s", path, why.text);
        json_decref(value);
    }
    if (rc == OK && ferror(from))
        rc = err_set(err, ERR_IO, "%s: cannot be read", path);
    if (rc == OK && !json_array_size(f->rows))
        rc = err_set(err, ERR_FORMAT, "%s: expected rows of `bench kernels`, found none", path);
    fclose(from);
    return rc;
}

static const char *compare_text(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

/* True if both rows are of the same operation, set and shape. */
static bool compare_same(const json_t *a, const json_t *b)
{
    return !strcmp(compare_text(a, "op"), compare_text(b, "op")) &&
           !strcmp(compare_text(a, "isa"), compare_text(b, "isa")) &&
           !strcmp(compare_text(a, "shape"), compare_text(b, "shape"));
}

/* Check that all rows come from one kind of processor. */
static int compare_machine(const struct compare_file *a, const struct compare_file *b,
                           struct err *err)
{
    const char *cpu = compare_text(json_array_get(a->rows, 0), "cpu_info");
    for (int second = 0; second < 2; second++) {
        const struct compare_file *f = second ? b : a;
        for (size_t i = 0; i < json_array_size(f->rows); i++) {
            const char *other = compare_text(json_array_get(f->rows, i), "cpu_info");
            if (strcmp(cpu, other) != 0)
                return err_set(err, ERR_FORMAT, "%s: expected a measurement on %s, found %s",
                               f->path, cpu, other);
        }
    }
    return OK;
}

/* Copy the samples of a row; return their number. */
static size_t compare_copy(double out[BENCH_REPEAT], const json_t *row)
{
    const json_t *samples = json_object_get(row, "samples_ns");
    size_t n = json_array_size(samples);
    for (size_t i = 0; i < n; i++)
        out[i] = json_number_value(json_array_get(samples, i));
    return n;
}

enum { ROUNDS = 256 };

/* The rounds of one row in a file. */
struct compare_rounds {
    const json_t *rows[ROUNDS];
    double ns[ROUNDS]; /* medians */
    size_t n;
    bool busy; /* another program ran in one of them */
};

static void compare_find(struct compare_rounds *out, const struct compare_file *f,
                         const json_t *like)
{
    static double samples[BENCH_REPEAT];
    out->n = 0;
    out->busy = false;
    for (size_t i = 0; i < json_array_size(f->rows) && out->n < ROUNDS; i++) {
        const json_t *row = json_array_get(f->rows, i), *on_cpu = json_object_get(row, "on_cpu");
        if (!compare_same(row, like))
            continue;
        char why[DOUBT_TEXT] = "";
        doubt_busy(why, json_is_number(on_cpu) ? json_number_value(on_cpu) : 1);
        out->busy = out->busy || *why;
        out->rows[out->n] = row;
        out->ns[out->n++] = bench_median(samples, compare_copy(samples, row));
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
    printf(" %9.*f", us < 10 ? 3 : us < 100 ? 2 : us < 1000 ? 1 : 0, us);
}

static void compare_print(struct compare_notes *notes, const json_t *row, double before,
                          double after, const struct compare_ratio *r)
{
    const char *op = compare_text(row, "op");
    if (!notes->op || strcmp(notes->op, op) != 0)
        printf("\n%-38s    before     after\n", op);
    notes->op = op;
    printf("  %-26s %-10s", compare_text(row, "shape"), compare_text(row, "isa"));
    compare_time(before);
    compare_time(after);
    double low = 100 * (r->low - 1), high = 100 * (r->high - 1);
    if (!r->known)
        puts("  too few to tell");
    else if (r->low <= 1 && r->high >= 1)
        printf("  no difference seen (%+.1f to %+.1f %%)\n", low, high);
    else
        printf("  %+.1f %% (%+.1f to %+.1f)\n", 100 * (r->ratio - 1), low, high);
}

/* Compare one row and print it. */
static int compare_row(struct compare_notes *notes, const struct compare_file *a,
                       const struct compare_file *b, const json_t *row, struct err *err)
{
    static double before[BENCH_REPEAT], after[BENCH_REPEAT];
    static struct compare_rounds x, y;
    struct compare_ratio r;
    compare_find(&x, a, row);
    compare_find(&y, b, row);
    if (!y.n)
        return OK;
    size_t n = x.n < y.n ? x.n : y.n;
    bool fits = n > 1 ? compare_rounds(&r, x.ns, y.ns, n)
                      : compare_samples(&r, before, compare_copy(before, x.rows[0]), after,
                                        compare_copy(after, y.rows[0]));
    if (!fits)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    notes->shown++;
    notes->busy += x.busy || y.busy;
    notes->few += !r.known;
    notes->uneven += x.n != y.n;
    notes->rounds = n > notes->rounds ? n : notes->rounds;
    compare_print(notes, row, bench_median(x.ns, n), bench_median(y.ns, n), &r);
    return OK;
}

/* Return the number of rows of f that `other` has not, each counted once. */
static size_t compare_alone(const struct compare_file *f, const struct compare_file *other)
{
    size_t alone = 0;
    for (size_t i = 0; i < json_array_size(f->rows); i++) {
        const json_t *row = json_array_get(f->rows, i);
        bool known = false;
        for (size_t k = 0; !known && k < i; k++)
            known = compare_same(json_array_get(f->rows, k), row);
        for (size_t k = 0; !known && k < json_array_size(other->rows); k++)
            known = compare_same(json_array_get(other->rows, k), row);
        alone += !known;
    }
    return alone;
}

static void compare_foot(const struct compare_notes *n, const struct compare_file *a,
                         const struct compare_file *b)
{
    size_t in_a = compare_alone(a, b), in_b = compare_alone(b, a);
    puts("");
    if (n->rounds > 1)
        printf("Medians of %zu rounds; 95 %% intervals of the ratio by round (sign test).\n",
               n->rounds);
    else
        puts("One round: 95 % intervals of the ratio of its samples (Mann-Whitney), which do not\n"
             "know how the machine changed between the runs. Six rounds in turn would.");
    if (n->shown - n->few >= 20)
        puts("One row in 20 shows a difference by chance.");
    if (n->few)
        printf("An interval takes six rounds in turn, or four samples of one round.\n");
    if (n->uneven)
        printf("Rows with more rounds in one file: %zu; the first ones count.\n", n->uneven);
    if (n->busy)
        printf("Rows that ran less than 90 %% of the time, so other programs were busy: %zu.\n",
               n->busy);
    if (in_a || in_b)
        printf("Rows that only %s has: %zu; only %s: %zu.\n", a->path, in_a, b->path, in_b);
}

/* Print the table and what is below it. */
static int compare_report(const struct compare_file *a, const struct compare_file *b,
                          struct err *err)
{
    struct compare_notes notes = { .op = NULL };
    const json_t *first = json_array_get(a->rows, 0);
    int rc = compare_machine(a, b, err);
    if (rc == OK && compare_alone(a, b) == compare_alone(a, &(struct compare_file){ .path = "" }))
        rc = err_set(err, ERR_FORMAT, "%s: expected operations and shapes of %s, found none",
                     b->path, a->path);
    if (rc != OK)
        return rc;
    printf("%s, one thread, us a call: %s, then %s\n", compare_text(first, "cpu_info"), a->path,
           b->path);
    for (size_t i = 0; rc == OK && i < json_array_size(a->rows); i++) {
        const json_t *row = json_array_get(a->rows, i);
        bool known = false;
        for (size_t k = 0; !known && k < i; k++)
            known = compare_same(json_array_get(a->rows, k), row);
        rc = known ? OK : compare_row(&notes, a, b, row, err);
    }
    if (rc == OK)
        compare_foot(&notes, a, b);
    return rc;
}

int compare_kernels(const char *before, const char *after, struct err *err)
{
    struct compare_file a = { .rows = NULL }, b = { .rows = NULL };
    int rc = compare_open(&a, before, err);
    if (rc == OK)
        rc = compare_open(&b, after, err);
    if (rc == OK)
        rc = compare_report(&a, &b, err);
    json_decref(a.rows);
    json_decref(b.rows);
    return rc;
}
