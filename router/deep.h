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
struct weights;

struct deep_sizes {
    size_t hidden, logits, token; /* it reads; 0: not at all; token: of its embedding, as hidden */
    size_t width;                 /* of the last block's output */
    size_t scratch;               /* floats */
};

/* True if the tensors are those of such a router. */
bool deep_is(const struct weights *w);
/* Read them. A matrix may be BF16, or, as safetensors has no Q8_0, I8 [rows][cols] and NAME_scale,
 * F16 [rows][cols / 32], of which it is the product; it is computed with as it is stored. softmax:
 * the logits pass through one first. k is borrowed, w is not needed later.
 * ERR_FORMAT, also for such a tensor that is left over, names file, tensor, expected and found;
 * ERR_NOMEM. */
int deep_open(struct deep **out, const struct weights *w, bool softmax, const struct kernels *k,
              struct err *err);
void deep_close(struct deep *d); /* NULL is fine */

struct deep_sizes deep_sizes(const struct deep *d);
/* Return the weights w of the last layer [width] and set *bias. */
const float *deep_output(const struct deep *d, float *bias);

/* Compute LayerNorm(x) of the last layer to out[width]. in: hidden state, logits, embedding,
 * those that it reads. pool may be NULL, and changes no bit. */
void deep_run(const struct deep *d, struct pool *pool, float *out, const float *in, float *scratch);

/* Write the n largest of logits[size], size >= n, in descending order; NaN is none of them. */
void deep_largest(float *out, size_t n, const float *logits, size_t size);

#endif
