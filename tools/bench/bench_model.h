/* bench_model.h - `mizzle bench model`. */
#ifndef TOOLS_BENCH_BENCH_MODEL_H
#define TOOLS_BENCH_BENCH_MODEL_H

#include "tools/bench/bench.h"

struct engine;

struct bench_model_options {
    const char *prompt, *gen, *depth; /* lists */
    const char *shape, *type;         /* shape NULL: a file */
    struct bench_list threads;        /* n 0: all processors */
};

/* A test and what was measured. prompt or gen is 0. */
enum { BENCH_PAIRS = 64 };
struct bench_test {
    size_t prompt, gen, depth, threads;
    double ns[BENCH_REPEAT], probe; /* of each sample; GB/s read right before the first one */
    size_t samples;
    /* With the largest gen, `pairs` times in turn: a token with score and head, one with the score
     * alone. ns. */
    double score[2 * BENCH_PAIRS], edge[BENCH_PAIRS], routed[BENCH_PAIRS];
    size_t pairs;
};

/* Rows on stdout. model: how it is called; kv: "f16", ... */
struct model_report {
    const char *format, *model, *kv;
    const struct engine *engine;
    size_t rows; /* printed so far */
    bool closed; /* nobody reads any more */
};
void model_report_begin(const struct model_report *b);
void model_report_row(struct model_report *b, const struct bench_test *t);
void model_report_end(const struct model_report *b);

/* The file or shape, with kernels and threads. After an error, too, engine_close where e->model or
 * e->pool is not NULL. */
int bench_model_open(struct engine *e, const struct bench_model_options *m, struct err *err);

int bench_model(const struct bench_options *o, const struct bench_model_options *m,
                struct err *err);

#endif
