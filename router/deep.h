/* deep.h - a router of several layers, as R2R trains them: LayerNorm, blocks with residuals, GELU.
 *
 * Source: R2R (arXiv 2505.21600) and the classifiers of its code. It reads the hidden state after
 * the final norm, the embedding of the local model's own next token, and its K largest logits in
 * descending order, or some of these; its tensors tell which. A projection takes them, one after
 * the other; the logits, beside others, have one of their own before. Then follow
 * backbone.input_projection, a matrix and a bias; blocks, backbone.blocks.N, each of which gives
 * residual + W3 gelu(W0 LayerNorm(x) + b0) + b3, where residual is x, or a projection of it if the
 * block changes its size (dim_change), and gelu(x) is x / 2 (1 + erf(x / sqrt 2)); and
 * backbone.output_layer, the value sigmoid(w . LayerNorm(x) + b). A high value is a critical token,
 * so Mizzle's score is 1 - value. */
#ifndef ROUTER_DEEP_H
#define ROUTER_DEEP_H

#include <stdbool.h>
#include <stddef.h>

struct deep; /* immutable, so threads may share it */
struct err;
struct kernels;
struct pool;
struct tensor;
struct weights;

/* What it reads: numbers of each; 0: not at all. */
struct deep_inputs {
    size_t hidden, logits, token; /* token: of its embedding, as many as hidden */
};

/* True if the tensors are those of such a router. */
bool deep_is(const struct weights *w);
/* True for the name of a tensor that is a part of one, or may be. */
bool deep_reads(const char *tensor);
/* Read them. softmax: the logits pass through one first. k is borrowed, w is not needed later.
 * ERR_FORMAT, also for such a tensor that is left over, names file, tensor, expected and found;
 * ERR_NOMEM. */
int deep_open(struct deep **out, const struct weights *w, bool softmax, const struct kernels *k,
              struct err *err);
void deep_close(struct deep *d); /* NULL is fine */

/* Write these tensors as a safetensors file with this metadata (safetensors.h): the matrices of F32
 * as `type`, W_F32, W_BF16, or W_Q8_0 where there are rows of a multiple of 32. safetensors has no
 * Q8_0, so this one is I8 [rows][cols] and NAME_scale, F16 [rows][cols / 32], of which it is the
 * product. */
int deep_save(const char *path, const struct weights *w, int type, const char *const *meta,
              struct err *err);
/* Turn such a matrix of I8 and its scales, of a file, into blocks of Q8_0. t->data becomes the
 * caller's to free. ERR_FORMAT, ERR_NOMEM. */
int deep_blocks(struct tensor *t, const struct tensor *scale, const char *path, struct err *err);

struct deep_inputs deep_inputs(const struct deep *d);
size_t deep_width(const struct deep *d);   /* of the last block's output */
size_t deep_scratch(const struct deep *d); /* floats */
/* Return the weights w of the last layer [deep_width] and set *bias. */
const float *deep_output(const struct deep *d, float *bias);

/* Compute LayerNorm(x) of the last layer to out[deep_width]. in: hidden state, logits, embedding,
 * those that it reads. pool may be NULL, and changes no bit. */
void deep_run(const struct deep *d, struct pool *pool, float *out, const float *in, float *scratch);

/* Write the n largest of logits[size], size >= n, in descending order; NaN is none of them. */
void deep_largest(float *out, size_t n, const float *logits, size_t size);

#endif
