/* bench_ops.h - `bench model --by-op`: where the time of a token, or of a prompt, goes. */
#ifndef TOOLS_LAB_BENCH_BENCH_OPS_H
#define TOOLS_LAB_BENCH_BENCH_OPS_H

#include "tools/lab/bench/bench.h"
#include "tools/lab/machine/op_times.h"

/* Samples in turn: some are not watched, and of some each operation is timed. */
struct bench_ops {
    struct op_times times;                             /* of all timed samples */
    double plain[BENCH_REPEAT], watched[BENCH_REPEAT]; /* ns of each sample */
    double ns[BATCH_OPS][BENCH_REPEAT];                /* of each timed one, by operation */
    size_t samples;                                    /* of each kind */
    size_t tokens;                  /* that a sample generates; 0: a sample evaluates a prompt */
    const struct op_limits *limits; /* set by the caller */
    struct batch_watch timing;
};

/* Prepare *o, which must not move, for samples of this model. */
void bench_ops_open(struct bench_ops *o, const struct model *m, enum kvcache kv);

/* Note that a timed sample took so long. */
void bench_ops_timed(struct bench_ops *o, double ns);

/* What one operation costs, by token or by prompt. ns: the median of the samples; least: ns that
 * the machine takes at least, and limit the name of what takes them. */
struct bench_ops_row {
    const char *op, *limit;
    double calls, ns, bytes, ops, least;
};
/* Set out to a row for each kind of operation; return their sum. */
struct bench_ops_row bench_ops_rows(struct bench_ops_row out[BATCH_OPS], const struct bench_ops *o);

/* Return the median ns of a token, or of a prompt, without (plain) or with the timing. */
double bench_ops_ns(const struct bench_ops *o, bool plain);

/* Print the table. name: of the test, such as "tg128"; doubtful: why its row is, or "". */
void bench_ops_print(const struct bench_ops *o, const char *name, const char *doubtful);

#endif
