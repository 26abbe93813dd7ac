/* bench.h - what the subjects of `mizzle bench` share. */
#ifndef TOOLS_BENCH_BENCH_H
#define TOOLS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/sys/os.h"
#include "model/session.h"

struct engine;
struct err;
struct option_group;
struct pool;

/* "md", "csv", "json", "jsonl"; -r. Set from the command line. */
enum { BENCH_REPEAT = 1000 };
struct bench_options {
    const char *format;
    size_t repeat;
    const char *only; /* an operation, or NULL for all */
    const char *plot; /* file for the picture, or NULL */
    /* route: */
    size_t prompt, tokens; /* -p, -n */
    const char *model;     /* what the engine runs, for a person */
    enum kvcache kv;
};

/* One measured kernel: a call's bytes, operations and nanoseconds; peak: GOP/s that its set's
 * instructions reach at most, 0 where there is no such limit; count: what a call takes of each
 * event, -1 where that cannot be counted; on_cpu: share of the time that the thread ran, or -1.
 * Names are borrowed. */
enum { BENCH_POINTS = 256 };
struct bench_point {
    const char *op, *isa, *shape;
    double bytes, ops, ns, peak, count[OS_EVENTS], on_cpu;
};

/* The table of `bench kernels` on stdout: a row for each point, with columns for the events that
 * can be counted here. times: speed in those of scalar. */
struct kernels_report {
    const char *format;     /* as above; borrowed */
    bool counts[OS_EVENTS]; /* which events there are columns for */
    double read;            /* GB/s */
    size_t rows;            /* printed so far */
    bool closed;            /* nobody reads any more */
};
void kernels_report_begin(const struct kernels_report *b);
void kernels_report_row(struct kernels_report *b, const struct bench_point *p, double times);
void kernels_report_end(const struct kernels_report *b);

/* Numbers of an option, "128,512". ERR_ARG names the option. */
enum { BENCH_LIST = 16 };
struct bench_list {
    size_t at[BENCH_LIST], n;
};
int bench_list(struct bench_list *out, const char *option, const char *text, struct err *err);

/* Middle of the n samples, which are sorted by it. */
double bench_median(double *samples, size_t n);

/* GB/s that the threads of the pool read from memory no cache holds; 0 without memory. It takes
 * some 50 ms. The limit of decoding, measured right beside it. */
double bench_probe(struct pool *pool);

/* GOP/s of the fastest instruction for this kind of arithmetic ("f32", "int8", "bf16") among those
 * that these CPU_* bits allow; 0 if there is none. Measured once for each. */
double bench_peak(const char *what, unsigned cpu, struct pool *pool);

/* Write a roofline as SVG: the points below the roof of reading and of each set's peak. ERR_IO. */
int roofline_plot(const char *path, const struct bench_point *points, size_t n, double read,
                  struct err *err);

/* `mizzle bench kernels`. */
int bench_kernels(const struct bench_options *o, struct err *err);

/* `mizzle bench limits`. */
int bench_limits(const struct bench_options *o, size_t threads, struct err *err);

/* `mizzle bench route` on this engine, whose tokenizer is not used; and its options. */
int bench_route(const struct bench_options *o, struct engine *e, struct err *err);
extern const struct option_group bench_route_opts;

#endif
