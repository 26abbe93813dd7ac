/* bench.h - declarations that the subjects of `mizzle bench` share. */
#ifndef TOOLS_LAB_BENCH_BENCH_H
#define TOOLS_LAB_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "model/session.h"
#include "tools/lab/bench/doubt.h"
#include "tools/lab/bench/row.h"

struct err;
struct read_level;

/* Options from the command line. format is "md", "csv", "json" or "jsonl"; repeat is -r. */
enum { BENCH_REPEAT = 1000 };
struct bench_options {
    const char *format;
    size_t repeat;
    const char *only; /* kernels: one operation; NULL: all */
    size_t threads;   /* limits; 0: all processors */
    const char *prompt, *gen, *depth, *context, *texts, *each_threads; /* lists of numbers */
    const char *shape, *type; /* shape NULL: measure a file */
    bool by_op;               /* show where the time goes */
};

/* One measured kernel. bytes, ops and ns are those of a call; bytes: what it has to read at least;
 * level: where its data lie, those that it writes included; peak: GOP/s that the set's instructions
 * reach at most, 0 if unknown; best: ns in the shortest window, cpu: ns that the thread ran,
 * on_cpu: the share of the time that it ran; others: as doubt_look found, beside_limits: while the
 * levels were measured. Names are borrowed. */
struct bench_point {
    const char *op, *isa, *shape;
    const struct read_level *level;
    double bytes, ops, ns, peak, best, cpu, on_cpu, others, beside_limits;
};

/* The tables of `bench kernels` on stdout, one for each operation: a row for each point. `times` is
 * the speed relative to scalar. A row is doubtful if it reads faster than its level can be read,
 * computes faster than the peak, or was disturbed by other programs. */
struct kernels_report {
    struct row row;
    const char *op; /* operation whose table is being printed; NULL: none yet */
    bool closed;    /* stdout was closed by its reader */
};
/* ERR_NOMEM: a row of JSON cannot be made. */
int kernels_report_row(struct kernels_report *b, const struct bench_point *p, double times,
                       struct err *err);

/* Parse the numbers of an option such as "128,512". ERR_ARG names the option. */
enum { BENCH_LIST = 16 };
struct bench_list {
    size_t at[BENCH_LIST], n;
};
int bench_list(struct bench_list *out, const char *option, const char *text, struct err *err);
size_t bench_list_most(const struct bench_list *l);

/* Run a subject of `mizzle bench`. bench_memory computes all rows, then prints them; nothing large
 * is allocated. ERR_ARG: an option that cannot be; ERR_STOP; ERR_NOMEM. Of bench_memory,
 * ERR_FORMAT: type and shape do not fit together; ERR_NOMEM: more bytes than a size_t holds; on
 * these errors nothing is printed. */
int bench_kernels(const struct bench_options *o, struct err *err);
int bench_limits(const struct bench_options *o, struct err *err);
int bench_memory(const struct bench_options *o, struct err *err);
int bench_model(const struct bench_options *o, struct err *err);

#endif
