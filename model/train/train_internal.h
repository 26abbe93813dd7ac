/* train_internal.h - shared by the files of the training engine only.
 *
 * One step packs the weights; runs each shard (a run of whole documents, about TRAIN_SHARD tokens)
 * forward, and backward to the activations, with shards spread over the threads; then computes the
 * gradient of each matrix from the stored inputs and output gradients of all tokens. */
#ifndef MODEL_TRAIN_TRAIN_INTERNAL_H
#define MODEL_TRAIN_TRAIN_INTERNAL_H

#include "kernels/kernels.h"
#include "kernels/sys/pool.h"
#include "model/train/train.h"

enum { TRAIN_SHARD = 128 };

/* Where a layer's tensors begin, in floats. q, k and v lie one after the other and are used as one
 * matrix; so do their biases, and gate and up. */
struct train_layer {
    size_t norm1, qkv, bias, o, norm2, gu, down;
    /* Kept by the forward pass, [tokens][...]. p holds the attention probabilities of each
     * document, see train_attn.c. */
    float *x0, *n1, *qkv_out, *att, *x1, *n2, *gu_out, *act, *p;
    /* Kept by the backward pass, transposed: [...][tokens]. */
    float *d_qkv, *d_o, *d_gu, *d_down;
    /* Partial sums, one row per shard: [shards][...]. */
    float *g_norm1, *g_bias, *g_norm2;
};

/* A matrix in the gradient phase: grad = d^T x over n tokens. */
struct train_matrix {
    size_t at, rows, cols;
    const float *x, *d;
    bool head; /* the head: over the tokens with targets only */
};

/* A run of whole documents that one thread processes. */
struct train_shard {
    size_t doc0, doc1;  /* documents */
    size_t t0, t1;      /* tokens */
    size_t target0, p0; /* targets, and floats of probabilities, in earlier shards */
    double loss;        /* sum over its targets */
};

struct train_scratch { /* one thread's buffers */
    float *dx, *dn, *wide, *att, *small;
};

struct train {
    struct model_config c;
    const struct kernels *k;
    struct pool *pool;
    size_t tokens, doc, shards_max;
    size_t q, kv, qkv; /* columns of q; of k or v; of all three */
    size_t params, steps;
    struct train_tensor *tensors;
    size_t ntensors;
    struct train_layer *layers;
    struct train_matrix *matrices; /* 4 per layer, and the embedding */
    size_t nmatrices, final_norm;
    float *arena;
    size_t arena_floats;
    float *value, *grad, *m, *v;
    float *packed, *packed_t; /* panels of each matrix and of its transpose, at the same offsets */
    float *cos, *sin, *nsin;  /* [doc][head_dim / 2] */
    float *x_last, *xh, *d_logits, *d_emb, *g_final;
    struct train_shard *shards;
    size_t nshards, targets, used;
    struct train_scratch *scratch;
    double *norms; /* partial sums of squares of the gradient */
    /* State of the call in progress. */
    const struct train_batch *batch;
    const struct train_rate *rate;
    float scale, fix1, fix2;
};

/* Return a view of packed floats as panels of rows x cols. */
struct panels train_panels(const float *data, size_t rows, size_t cols);
/* Pack the transpose of x[n][ldx]: its rows are the first `rows` columns of x, k is n. */
void train_strips(float *out, const float *x, size_t ldx, size_t n, size_t rows);
/* Pack x[n][ldx] itself: rows are n, rounded up with zeros, k is cols. */
void train_pack(float *out, const float *x, size_t ldx, size_t n, size_t cols);
/* Transpose: out[c * ldo + i] = x[i * ldx + c]. */
void train_transpose(float *out, size_t ldo, const float *x, size_t ldx, size_t n, size_t cols);
/* Replace x by e^x for x <= 88, without a function call, so that the loop vectorises; about 3e-7
 * relative. */
void train_exp(float *x, size_t n);

/* Return the floats of probabilities that a document of n tokens takes, and the floats of scratch
 * that one thread needs. */
size_t train_attn_size(const struct train *t, size_t n);
size_t train_attn_scratch(const struct train *t);
/* Attend one document of n tokens at token t0; q and k are already rotated. Writes att and p. */
void train_attn_forward(const struct train *t, struct train_layer *l, size_t t0, size_t n, float *p,
                        float *scratch);
/* Compute d_qkv [n][qkv] from d_att [n][q], before the rotation is undone. */
void train_attn_backward(const struct train *t, const struct train_layer *l, size_t t0, size_t n,
                         const float *p, const float *d_att, float *d_qkv, float *scratch);

/* Run shards[i] forward and backward. */
void train_shard_run(struct train *t, size_t thread, size_t i);

#endif
