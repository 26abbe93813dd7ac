/* train.h - train a dense Qwen2 model: loss, gradient, AdamW.
 *
 * The forward pass is that of the engine (model/session.h, same maths, f32); the backward pass is
 * written by hand. All products go through kernels->matmul_f32, which adds in one fixed order;
 * every other sum has a fixed order too. The same seed and batches therefore give the same bits on
 * every machine, instruction set and thread count.
 *
 * Sources: RMSNorm arXiv 1910.07467, RoPE 2104.09864, SwiGLU 2002.05202, AdamW 1711.05101. */
#ifndef MODEL_TRAIN_TRAIN_H
#define MODEL_TRAIN_TRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

struct err;
struct kernels;
struct pool;
struct train;

/* A token with this target has no loss. */
#define TRAIN_NO_TARGET UINT32_MAX

/* Whole documents, one after the other. Document d is [ends[d - 1], ends[d]); the first begins at
 * 0. Each has its own positions from 0 and attends only to itself. target[i] is the id that should
 * follow ids[i]. */
struct train_batch {
    const uint32_t *ids, *target; /* [ends[docs - 1]] */
    const size_t *ends;           /* [docs], ascending, none empty */
    size_t docs;
};

/* One tensor under its GGUF name; a vector has one row. */
struct train_tensor {
    char name[40];
    size_t rows, cols;
    float *value, *grad; /* [rows][cols] */
};

/* The parameters of one AdamW step. */
struct train_rate {
    float lr, beta1, beta2, eps;
    float decay; /* weight decay of matrices; multiplied by lr */
    float clip;  /* the norm to which the whole gradient is clipped */
};

/* Create a model with random weights from a seed: normal with deviation 1/sqrt(columns), smaller
 * for matrices that add to the residual stream, three times that in the embedding (with less,
 * attention to equal tokens takes much longer to form); biases are 0, norms 1. It needs Qwen2's
 * biases, plain RoPE, a tied head and head_dim, hidden, ffn and vocab that are multiples of 16
 * (ERR_ARG). tokens is the largest batch, doc its longest document. k and pool are borrowed; pool
 * may be NULL. On error *out is NULL. */
int train_open(struct train **out, const struct model_config *c, const struct kernels *k,
               struct pool *pool, size_t tokens, size_t doc, uint64_t seed, struct err *err);
void train_close(struct train *t); /* NULL is fine */

/* What is being trained, as it is now. */
struct train_look {
    const struct model_config *config;
    const struct train_tensor *tensors; /* [ntensors] */
    size_t ntensors, params;
    size_t steps; /* taken */
};
struct train_look train_look(const struct train *t);

/* Compute the mean loss (nats) over the batch's targets, and its gradient in grad. ERR_ARG when the
 * batch is larger than stated at open, an id is not below vocab, or no token has a target. */
int train_gradient(double *loss, struct train *t, const struct train_batch *b, struct err *err);

/* Take one AdamW step with the present gradient, and return the gradient's norm before clipping. */
double train_update(struct train *t, const struct train_rate *rate);

#endif
