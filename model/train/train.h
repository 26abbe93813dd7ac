/* train.h - train a dense Qwen2 model: loss, gradient, AdamW.
 *
 * The forward pass is the engine's own (model/session.h, same maths, f32), the backward pass is
 * written out by hand. All products go through kernels->matmul_f32, whose chains have one order;
 * every other sum has a fixed order too. So the same seed and batches give the same bits on every
 * machine, instruction set and thread count.
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

/* No loss is taken where a target is this. */
#define TRAIN_NO_TARGET UINT32_MAX

/* Whole documents one after the other. Document d is [ends[d - 1], ends[d]), the first begins at
 * 0; each has its own positions from 0 and sees itself only. target[i] is the id that should
 * follow ids[i]. */
struct train_batch {
    const uint32_t *ids, *target; /* [ends[docs - 1]] */
    const size_t *ends;           /* [docs], ascending, none empty */
    size_t docs;
};

/* One named tensor, as GGUF names it. All four are [rows][cols]; vectors have rows 1. */
struct train_tensor {
    char name[40];
    size_t rows, cols;
    float *value, *grad, *m, *v;
};

struct train_rate {
    float lr, beta1, beta2, eps;
    float decay; /* of matrices, times lr */
    float clip;  /* largest norm of the whole gradient */
};

/* Random weights from a seed: normal, deviation 1/sqrt(columns), smaller where they add to the
 * residual stream, three times that in the embedding (with less, attention to equal tokens takes
 * much longer to form); biases 0, norms 1. Needs a tied head and head_dim, hidden, ffn and vocab
 * that are multiples of 16 (ERR_ARG). tokens: the largest batch; doc: its longest document. k and
 * pool are borrowed; pool may be NULL. On error *out is NULL. */
int train_open(struct train **out, const struct model_config *c, const struct kernels *k,
               struct pool *pool, size_t tokens, size_t doc, uint64_t seed, struct err *err);
void train_close(struct train *t); /* NULL is fine */

const struct model_config *train_config(const struct train *t);
size_t train_params(const struct train *t);
size_t train_ntensors(const struct train *t);
const struct train_tensor *train_tensor(const struct train *t, size_t i);

/* Mean loss (nats) over the batch's targets, and its gradient in grad. ERR_ARG if the batch is
 * larger than stated at open, an id is not below vocab, or no token has a target. */
int train_gradient(double *loss, struct train *t, const struct train_batch *b, struct err *err);

/* The forward pass alone: mean loss; best[i] is the likeliest id after token i where it has a
 * target, else TRAIN_NO_TARGET. logits (may be NULL): [targets of the batch][vocab]. */
int train_predict(double *loss, uint32_t *best, float *logits, struct train *t,
                  const struct train_batch *b, struct err *err);

/* One AdamW step with the gradient at hand; returns its norm before clipping. */
double train_update(struct train *t, const struct train_rate *rate);

/* Steps taken; settable, for who continues from stored values, m and v. */
size_t train_steps(const struct train *t);
void train_set_steps(struct train *t, size_t steps);

#endif
