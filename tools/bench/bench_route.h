/* bench_route.h - declarations that the files of `mizzle bench route` share. */
#ifndef TOOLS_BENCH_BENCH_ROUTE_H
#define TOOLS_BENCH_BENCH_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/bench/bench.h"

struct paper_row;

/* What is the same for all rows. */
struct bench_route_setting {
    const char *model; /* display name */
    size_t prompt, tokens, repeat;
    double agree, agree_next, loss;
    size_t cloud_ms, bandwidth, trips; /* of the server; bandwidth: bytes per second, 0: no limit */
    bool no_drafts; /* the rest of a reply is not verified in one pass: its steps have a given time
                     */
};

/* Results for one --routed, --latency, --ahead and --cloud-tokens. Times are ms per token. */
struct bench_route_row {
    double share, latency;
    size_t ahead, cloud_tokens;
    double edge_ms;                  /* t in the formulas */
    double ms, formula, model, here; /* measured, then three expectations (ahead_model.h), which
                                      * are NaN where cloud_tokens > 1 */
    double hidden;                   /* share of the latency, at least 0; NaN: there was none to
                                      * hide, ahead is 0, or cloud_tokens > 1 */
    double *samples;                 /* [repeat] of ms, sorted */
    size_t cloud, fallback, agreed;  /* tokens */
    size_t calls, wasted;
    size_t passes, drafted, accepted;        /* of the edge; ids of drafts, and those that stood */
    double up, down, header_up, header_down; /* bytes per cloud token */
    uint64_t text;
};

/* Results for one way of writing an answer. */
struct bench_route_way {
    const char *name;
    double s, edge_s, cloud_s; /* cloud_s: spent waiting */
    double ttft_s;             /* to the first token */
    double more_s;             /* extra time over the way it is compared with */
    double parts_s;            /* of the way with all habits: the sum of the others' extra times */
    size_t calls;
    double up, down; /* bytes per call, headers included */
    uint64_t text;
};

/* Return the sample whose s is the median, the slower of two in the middle, so that its parts are
 * those of one answer. Sorts the n >= 1 samples. */
struct bench_route_way route_ways_median(struct bench_route_way *samples, size_t n);
/* Set more_s and parts_s. ways[0] is the default, ways[1] the same in step, ways[n - 1] has all
 * habits of the paper's demo. The first two and the last are compared with the default, the others,
 * which have one habit each, with ways[1]. */
void route_ways_extra(struct bench_route_way *ways, size_t n);

/* Print the table of the rows to stdout; format as in struct bench_options. ERR_NOMEM: a row of
 * JSON cannot be made. */
int route_report(const char *format, const struct bench_route_setting *s,
                 const struct bench_route_row *rows, size_t n, struct err *err);
/* Print the table of the ways, in the order of route_ways_extra, and by how much the parts miss the
 * whole. ERR_NOMEM. */
int route_report_ways(const char *format, const struct bench_route_setting *s,
                      const struct bench_route_way *ways, size_t n, struct err *err);
/* Print rows[PAPER_ROWS] beside those of the paper's Table 1 (paper_table.h). ERR_NOMEM. */
int route_report_paper(const char *format, const struct bench_route_setting *s,
                       const struct paper_row *rows, struct err *err);

/* Draw an SVG picture: ms per token over the parameter with most values; for the ways, seconds per
 * answer. ERR_IO. */
int route_plot(const char *path, const struct bench_route_row *rows, size_t n, struct err *err);
int route_plot_ways(const char *path, const struct bench_route_way *ways, size_t n,
                    struct err *err);

#endif
