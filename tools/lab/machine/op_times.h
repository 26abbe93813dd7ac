/* op_times.h - where the time of passes goes, by kind of operation, and what the machine allows.
 *
 * The times are those between beginning and end as the evaluating thread sees them: waking threads
 * and waiting for the last one count. */
#ifndef TOOLS_LAB_MACHINE_OP_TIMES_H
#define TOOLS_LAB_MACHINE_OP_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kv.h"
#include "model/batch.h"
#include "tools/lab/machine/read_probe.h"

struct engine;
struct err;
struct model;

/* The calls of one kind of operation. bytes are what they have to read at least: weights once a
 * call, embeddings once a row, keys and values once a call for its last row, the stream once a row.
 * ops are multiplications plus additions; what RoPE, softmax and SwiGLU compute is left out. */
struct op_sum {
    size_t calls, rows;
    uint64_t ns;
    double bytes, ops;
};

struct op_times {
    const struct model *model;
    enum kvcache kv;
    size_t at; /* position of the first row of the next pass; op_times_see moves it on */
    struct op_sum of[BATCH_OPS];
    uint64_t since; /* when the operation began */
};

/* Return "embed", "norm", "qkv", "attention", "o", "ffn", "down" or "head". */
const char *op_name(enum batch_op op);

/* Count an operation of passes over one text. Has the type of `op` in struct batch_watch; arg is a
 * struct op_times. */
void op_times_see(void *arg, enum batch_op op, size_t layer, size_t n, bool ends);

/* Return the bytes of weights that a pass reads: all, but of an embedding that is not the output
 * head, too, only a row for each token. */
size_t op_pass_bytes(const struct model *m);

/* What these threads can do at most. */
struct op_limits {
    struct read_level levels[READ_LEVELS];
    const struct read_level *level; /* where the model's weights lie between two passes */
    double int8, f32;               /* GOP/s of the instructions of the kernel set; 0: not known */
};

/* Measure them; takes about half a second, and for that time the memory of a read_probe: a small
 * one if a cache holds the weights, so that memory is no limit. *out must not move. ERR_NOMEM. */
int op_limits_measure(struct op_limits *out, const struct engine *e, struct err *err);
/* How fast an operation was, and how fast it could have been. What is divided by a time of 0 is not
 * finite. */
struct op_speed {
    double gb_s, gop_s;
    double least;      /* ns that its bytes and operations take at least */
    double reached;    /* the share of its time that this is: 1 is a perfect kernel */
    const char *limit; /* what takes that long: a level ("L2", "memory"), "int8" or "f32" */
};
/* Return the speed of an operation of m that read `bytes` and computed `ops` in ns. */
struct op_speed op_speed(const struct op_limits *l, const struct model *m, enum batch_op op,
                         double ns, double bytes, double ops);

#endif
