/* bench.h - what the subjects of `mizzle bench` share. */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct pool;

/* "md", "csv", "json", "jsonl"; -r. Set from the command line. */
struct bench_options {
    const char *format;
    size_t repeat;
};

/* Middle of the n samples, which are sorted by it. */
double bench_median(double *samples, size_t n);

/* GB/s that the threads of the pool read from memory no cache holds; 0 without memory. It takes
 * some 50 ms. The limit of decoding, measured right beside it. */
double bench_probe(struct pool *pool);

/* `mizzle bench limits`. */
int bench_limits(const struct bench_options *o, size_t threads, struct err *err);

#endif
