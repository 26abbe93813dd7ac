/* bench_route_internal.h - the state of `mizzle bench route`, for bench_route.c and
 * bench_route_ways.c. */
#ifndef TOOLS_BENCH_BENCH_ROUTE_INTERNAL_H
#define TOOLS_BENCH_BENCH_ROUTE_INTERNAL_H

#include "router/decode/decode.h"
#include "tools/bench/bench_route.h"
#include "tools/bench/scripted_cloud.h"

enum { LIST = 16, PAPER_TOKENS = 16 };

/* Parsed numbers of an option. */
struct list {
    double at[LIST];
    size_t n;
};

/* State of the benchmark. */
struct bench_run {
    const struct bench_options *o;
    struct bench_route_setting setting;
    struct list shares, latencies, aheads, at_once;
    struct tokenizer *vocab;
    struct session *session;
    struct sampler *sampler;
    uint32_t *prompt;
    struct scripted_cloud truth;
    uint64_t seed; /* for the policy, for the present share */
    bool as_paper;
    struct stand_in *server;
    struct answers
        *answers; /* where the further tokens of a reply are kept; NULL: there are none */
    struct cloud *cloud;
    struct progress *progress; /* to be ended before a table is printed */
};

/* Write the text in step, to learn what the edge guesses and how fast it is; while caches and
 * clocks are cold, write it twice. */
int bench_route_rehearse(struct bench_run *r, double share, bool cold, struct err *err);

/* Start a server with this latency, and a client that asks for so many tokens at once. */
int bench_route_open_server(struct bench_run *r, double ms, size_t tokens, struct err *err);
void bench_route_close_server(struct bench_run *r);

/* Write one answer through loop, client and server; *text becomes its hash. */
int bench_route_decode(struct bench_run *r, struct decode_stats *stats, uint64_t *text,
                       double share, size_t window, struct err *err);

/* Wipe the line that shows progress. */
void bench_route_quiet(struct bench_run *r);

/* Measure and print --as-paper, and --table paper. */
int bench_route_ways(struct bench_run *r, struct err *err);
int bench_route_paper(struct bench_run *r, struct err *err);

#endif
