/* bench_model.h - declarations of `mizzle bench model`. */
#ifndef TOOLS_LAB_BENCH_BENCH_MODEL_H
#define TOOLS_LAB_BENCH_BENCH_MODEL_H

#include "kernels/panels.h"
#include "tools/lab/bench/bench.h"
#include "tools/lab/bench/doubt.h"

struct bench_ops;
struct engine;
struct model_config;
struct tuning;

/* One test and its measurements. Either prompt or gen is 0. */
enum { BENCH_TEXTS = 64 };
struct bench_test {
    size_t prompt, gen, depth, threads;
    size_t texts;            /* written at once, gen tokens each: 1 to BENCH_TEXTS; prompt: 1 */
    double ns[BENCH_REPEAT]; /* of each sample */
    size_t samples;
    double before, after; /* GB/s read right before the samples and right after; 0: not measured */
    double on_cpu;        /* share of the samples' time in which its threads ran */
    double others;        /* as doubt_look found */
    double pass;          /* ns of the shortest pass that generated; prompt: 0 */
    double waiting;       /* share of all threads' time in which they waited; one thread: 0 */
    double one;           /* tokens per second of this test on one thread; 0: not measured */
    size_t l3;            /* bytes that L3 holds, or 0: weights in there have no limit here */
    size_t peak; /* memory of the process before the first probe, which takes much itself */
};

/* What the samples of a test say. The median counts, because a disturbance only ever slows down.
 * `read` is the GB/s at which the weights were read, once for all texts; probe is the better of
 * before and after, because the row had no less than it; share is read / probe. read and
 * share are NaN for prompts, where memory is not the limit. */
struct model_figures {
    double ts, ns, deviation_ts, deviation_ns; /* medians, sample standard deviations */
    double each;                               /* tokens per second of each text */
    double best, by_cpu; /* tokens per second of the shortest pass, or sample of a prompt; and by
                          * the time in which the threads ran */
    double times;        /* ts, as a multiple of that of one thread; NaN: not measured */
    double read, probe, share;
    char doubtful[DOUBT_TEXT]; /* why, or "" */
};
void model_figures(struct model_figures *out, const struct bench_test *t, size_t pass_bytes);
/* True when each slot that was timed has its choice, and one was; or nothing is tried. */
bool model_tuned(const struct tuning *t);

/* The table of `bench model` on stdout. model: display name; kv: type of keys and values, "f16",
 * ... */
struct model_report {
    const struct tuning *tuning; /* of the present row, borrowed; NULL: none */
    struct row row;
    const char *model, *kv;
    const struct engine *engine;
    bool texts;   /* a row has several */
    bool threads; /* rows have different numbers of threads */
    size_t peak;  /* as in the tests */
    bool closed;  /* stdout was closed by its reader */
};
/* ops: where the time of the test goes, or NULL. In md, a row that has it ends the table.
 * ERR_NOMEM: a row of CSV or JSON cannot be made. */
int model_report_row(struct model_report *b, const struct bench_test *t,
                     const struct model_figures *f, const struct bench_ops *ops, struct err *err);
void model_report_end(const struct model_report *b);

/* Open the file or shape with kernels and threads. After an error, too, the caller calls
 * engine_close if e->model or e->pool is not NULL. */
int bench_model_open(struct engine *e, const struct bench_options *o, struct err *err);

/* Find the shape and the type of these names. ERR_ARG. */
int bench_model_shape(struct model_config *out, unsigned *type, const char *shape, const char *name,
                      struct err *err);

#endif
