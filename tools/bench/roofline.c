/* roofline.c - draws a roofline: operations per second against operations per byte, both
 * logarithmic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/bench/bench.h"
#include "tools/plot/chart.h"

enum { SETS = 16, ROOFS = 16, CORNERS = 3, NOTE = 160 };

/* The axes show 1/4 to 4096 operations per byte and 1/8 to 8192 GOP/s. */
static const double X_LOW = 0.25, X_HIGH = 4096, Y_LOW = 0.125, Y_HIGH = 8192;

/* A roofline while it is made. Points of one set are a series; so is each roof. */
struct roofline {
    struct chart_series series[SETS + ROOFS];
    struct chart_point roofs[ROOFS][CORNERS];
    char labels[ROOFS][48];
    double peaks[ROOFS];
    const char *sets[SETS];
    size_t nroofs, nsets;
};

/* Return the number of an instruction set, new ones included. */
static size_t roofline_set(struct roofline *r, const char *isa)
{
    size_t set = 0;
    while (set < r->nsets && strcmp(r->sets[set], isa) != 0)
        set++;
    if (set == r->nsets && set < SETS)
        r->sets[r->nsets++] = isa;
    return set < SETS ? set : SETS - 1;
}

/* Add the roof of a peak: it rises with the read bandwidth until it meets the peak. */
static void roofline_roof(struct roofline *r, const struct bench_point *p, double read, size_t set)
{
    size_t i = 0;
    while (i < r->nroofs && !(r->peaks[i] >= p->peak && r->peaks[i] <= p->peak))
        i++;
    if (!(p->peak > 0) || i < r->nroofs || i == ROOFS)
        return;
    r->peaks[r->nroofs++] = p->peak;
    r->roofs[i][0] = (struct chart_point){ .x = X_LOW, .y = X_LOW * read };
    r->roofs[i][1] = (struct chart_point){ .x = p->peak / read, .y = p->peak };
    r->roofs[i][2] = (struct chart_point){ .x = X_HIGH, .y = p->peak };
    snprintf(r->labels[i], sizeof(r->labels[i]), "%s %.0f", p->isa, p->peak);
    r->series[SETS + i] = (struct chart_series){
        .label = r->labels[i], .points = r->roofs[i], .n = CORNERS, .style = set, .line = true
    };
}

/* Write the title: the fastest kernel. */
static void roofline_title(char out[NOTE], const struct bench_point *points, size_t n)
{
    const struct bench_point *best = points;
    for (size_t i = 1; i < n; i++)
        best = points[i].ops / points[i].ns > best->ops / best->ns ? &points[i] : best;
    int used = snprintf(out, NOTE, "%s is fastest with %s: %.3g GOP/s", best->op, best->isa,
                        best->ops / best->ns);
    if (best->peak > 0 && used > 0 && used < NOTE)
        snprintf(out + used, NOTE - (size_t)used, ", %.0f %% of the peak of its instructions",
                 100 * best->ops / best->ns / best->peak);
}

/* Draw the series that have points. */
static int roofline_draw(const char *path, const struct roofline *r, const char *title, double read,
                         struct err *err)
{
    struct chart_series shown[SETS + ROOFS];
    char note[NOTE];
    size_t n = 0;
    for (size_t i = 0; i < SETS + ROOFS; i++)
        if (r->series[i].n)
            shown[n++] = r->series[i];
    snprintf(note, sizeof(note),
             "Marks: kernels on one thread. Lines: %.3g GB/s of memory, then the peak of the set, "
             "GOP/s.",
             read);
    const struct chart c = { .title = title,
                             .note = note,
                             .x = { "operations per byte", true, X_LOW, X_HIGH },
                             .y = { "speed, GOP/s", true, Y_LOW, Y_HIGH },
                             .series = shown,
                             .n = n };
    return chart_write(path, &c, err);
}

int roofline_plot(const char *path, const struct bench_point *points, size_t n, double read,
                  struct err *err)
{
    char title[NOTE];
    struct roofline *r = calloc(1, sizeof(*r));
    struct chart_point *at = calloc(n, sizeof(*at));
    char(*notes)[NOTE] = calloc(n, sizeof(*notes));
    int rc = r && at && notes ? OK : err_set(err, ERR_NOMEM, "bench: out of memory");
    for (size_t i = 0; rc == OK && i < n; i++) {
        const struct bench_point *p = &points[i];
        roofline_roof(r, p, read, roofline_set(r, p->isa));
    }
    for (size_t set = 0, k = 0; rc == OK && set < r->nsets; set++) {
        struct chart_series *s = &r->series[set];
        *s = (struct chart_series){
            .label = r->sets[set], .points = &at[k], .style = set, .points_shown = true
        };
        for (size_t i = 0; i < n; i++) {
            const struct bench_point *p = &points[i];
            if (roofline_set(r, p->isa) != set)
                continue;
            snprintf(notes[k], NOTE, "%s %s, %s: %.1f GOP/s", p->op, p->isa, p->shape,
                     p->ops / p->ns);
            s->n++;
            at[k] = (struct chart_point){ .x = p->ops / p->bytes,
                                          .y = p->ops / p->ns,
                                          .note = notes[k] };
            k++;
        }
    }
    if (rc == OK) {
        roofline_title(title, points, n);
        rc = roofline_draw(path, r, title, read, err);
    }
    free(notes);
    free(at);
    free(r);
    return rc;
}
