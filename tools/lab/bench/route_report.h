/* route_report.h - prints the tables of `mizzle bench route`. */
#ifndef TOOLS_LAB_BENCH_ROUTE_REPORT_H
#define TOOLS_LAB_BENCH_ROUTE_REPORT_H

#include <stddef.h>
#include <stdint.h>

struct err;

/* What is the same for all rows. */
struct route_setting {
    const char *model; /* display name */
    size_t prompt, tokens, repeat;
    double agree;
};

/* Results for one --routed, --latency and --ahead. Times are ms per token. */
struct route_row {
    double share, latency;
    size_t ahead;
    double edge_ms;                 /* t in the formula */
    double ms, formula, model;      /* measured, then two expectations (ahead_model.h) */
    size_t cloud, fallback, agreed; /* tokens */
    size_t calls, wasted;
    double up, down; /* bytes per cloud token, headers included */
    uint64_t text;
};

/* Results for one way of writing an answer. */
struct route_way {
    const char *name;
    double s, edge_s, cloud_s; /* cloud_s: spent waiting */
    double more_s;             /* extra time over the way it is compared with */
    double parts_s;            /* of the way with all habits: the sum of the others' extra times */
    size_t calls;
    double up, down; /* bytes per call, headers included */
    uint64_t text;
};

/* Return the sample whose s is the median, the slower of two in the middle, so that its parts are
 * those of one answer. Sorts the n >= 1 samples. */
struct route_way route_report_median(struct route_way *samples, size_t n);
/* Set more_s and parts_s. ways[0] is the default, ways[1] the same in step, ways[n - 1] has all
 * habits of the paper's demo. The first two and the last are compared with the default, the others,
 * which have one habit each, with ways[1]. */
void route_report_extra(struct route_way *ways, size_t n);

/* Print the table of the rows to stdout; format as in struct bench_options. ERR_NOMEM: a row of
 * JSON cannot be made. */
int route_report_rows(const char *format, const struct route_setting *s,
                      const struct route_row *rows, size_t n, struct err *err);
/* Print the table of the ways, in the order of route_report_extra, and by how much the parts miss
 * the whole. ERR_NOMEM. */
int route_report_ways(const char *format, const struct route_setting *s,
                      const struct route_way *ways, size_t n, struct err *err);

#endif
