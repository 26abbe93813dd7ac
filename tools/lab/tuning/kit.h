/* kit.h - what `bench kernels` times: operands, and the calls of each operation at the shapes of
 * Qwen2.5-0.5B. */
#ifndef TOOLS_LAB_TUNING_KIT_H
#define TOOLS_LAB_TUNING_KIT_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/kernels.h"

/* Operands of all calls. Every byte is 0x3f, which makes a finite number in every type. */
struct kit {
    unsigned char *weights; /* the output head, the largest matrix, or more than L3 holds */
    float *a, *b, *c, *y;   /* [MANY * FFN], y: [FEW * VOCAB], which is larger */
    struct qact q;
    const struct tune *tune; /* [P_TYPES] how products walk the weights */
    size_t weight_bytes, all_bytes;
};

/* One call of an operation: its shape, the bytes it reads, those that it touches, and the
 * operations it computes. */
struct kit_call {
    char shape[40];
    enum ptype type; /* of the matrix of a product */
    bool cold;       /* timed, too, where each call has the next matrix */
    size_t rows, cols, n;
    double bytes, held, ops;
    const char *what; /* kind of arithmetic as in limits.h, or NULL */
    size_t matrix;    /* bytes of the weights */
    size_t step;      /* bytes to the weights of the next turn: 0, or matrix */
};

/* An operation: run makes a call on the operands of kit. It is a product, or attention over a KV
 * cache of so many bytes a value (unit), or it takes one row of cols values, of each of which it
 * reads and writes so many bytes and computes so many operations. */
struct kit_op {
    const char *name;
    void (*run)(const struct kernels *k, const struct kit *kit, const struct kit_call *c);
    size_t member; /* offset in struct kernels */
    bool product;
    enum ptype type;
    size_t cols;
    double reads, writes, ops, unit;
};
extern const struct kit_op kit_ops[];
extern const size_t kit_nops;

/* Set out to the calls that are timed for an operation; return their number. */
enum { KIT_SHAPES = 11 };
size_t kit_calls(struct kit_call out[KIT_SHAPES], const struct kit_op *op);

/* True if this operation is to be timed. only: the one that was asked for, or NULL. */
bool kit_wants(const char *only, const char *op);

/* Allocate and fill the operands; tune is borrowed. Products have as much memory for weights as a
 * read_probe takes, so that an L3 of so many bytes cannot hold it, where the machine has so much.
 * False: no memory. */
bool kit_open(struct kit *kit, const char *only, size_t l3, const struct tune *tune);
void kit_close(struct kit *kit);

#endif
