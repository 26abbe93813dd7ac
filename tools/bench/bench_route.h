/* bench_route.h - `mizzle bench route`: what its files share. */
#ifndef TOOLS_BENCH_BENCH_ROUTE_H
#define TOOLS_BENCH_BENCH_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/bench/bench.h"

struct bench_route_setting {
    const char *model; /* for a person */
    size_t prompt, tokens, repeat;
    double agree, loss;
    size_t cloud_ms, bandwidth, trips; /* of the server; bandwidth: bytes a second, 0: no limit */
};

struct bench_route_row { /* one --routed, --latency and --ahead */
    double share, latency;
    size_t ahead;
    double edge_ms;                  /* t */
    double ms, formula, model, here; /* a token; measured, and what it should be */
    double hidden;                   /* NaN: nothing to hide */
    double *samples;                 /* [repeat] of ms, sorted */
    size_t cloud, fallback, agreed;  /* tokens */
    size_t calls, wasted;
    double up, down, header_up, header_down; /* bytes a cloud token */
    uint64_t text;
};

struct bench_route_way {       /* of writing an answer */
    const char *name, *cause;  /* cause: of the time more, or NULL */
    double s, edge_s, cloud_s; /* cloud_s: spent waiting */
    double more_s;             /* than the way it is compared with */
    size_t calls;
    double up, down; /* bytes a call, headers included */
    uint64_t text;
};

/* format: as in struct bench_options. */
void bench_route_print(const char *format, const struct bench_route_setting *s,
                       const struct bench_route_row *rows, size_t n);
/* ways[0] is the default, ways[1] the same in step, ways[n - 1] all of the paper's. */
void bench_route_print_ways(const char *format, const struct bench_route_setting *s,
                            const struct bench_route_way *ways, size_t n);

/* Pictures as SVG: time a token over the parameter with most values; seconds an answer. ERR_IO. */
int bench_route_plot(const char *path, const struct bench_route_row *rows, size_t n,
                     struct err *err);
int bench_route_plot_ways(const char *path, const struct bench_route_way *ways, size_t n,
                          struct err *err);

#endif
