/* deep.h - a router of several layers, as R2R trains them: LayerNorm, blocks with residuals, GELU.
 *
 * Source: R2R (arXiv 2505.21600) and the classifiers of its code. It reads one or more of: the
 * hidden state after the final norm, the embedding of the local model's next token, and the K
 * largest logits in descending order. The tensors tell which. Beside other inputs, the logits pass
 * a projection of their own. backbone.input_projection, a matrix and a bias, takes all inputs,
 * concatenated. Each block, backbone.blocks.N, gives residual + W3 gelu(W0 LayerNorm(x) + b0) + b3.
 * residual is x, or, if the block changes the size, a projection of x (dim_change); gelu(x) is x /
 * 2 (1 + erf(x / sqrt 2)). backbone.output_layer gives the value sigmoid(w . LayerNorm(x) + b). A
 * high value means a critical token, so Mizzle's score is 1 - value. */
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
    size_t hidden, logits, token; /* inputs of each kind, 0: none; token: the embedding's size, that
                                     of hidden */
    size_t width;                 /* of the last block's output */
    size_t scratch;               /* floats */
};

/* True if w has the tensors of a deep router. */
bool deep_is(const struct weights *w);
/* Read the tensors. A matrix may be BF16 or Q8_0; since safetensors has no Q8_0, it is I8
 * [rows][cols] times NAME_scale, F16 [rows][cols / 32]. Matrices keep their type. softmax: the
 * logits pass through a softmax first. k is borrowed, w is not needed later. ERR_FORMAT names file,
 * tensor, expected and found, also for an unused tensor; ERR_NOMEM. */
int deep_open(struct deep **out, const struct weights *w, bool softmax, const struct kernels *k,
              struct err *err);
void deep_close(struct deep *d); /* NULL is fine */

struct deep_sizes deep_sizes(const struct deep *d);
/* Return the weights w of the last layer [width] and set *bias. */
const float *deep_output(const struct deep *d, float *bias);

/* Compute LayerNorm(x) of the last layer to out[width]. in: hidden state, logits, embedding, as far
 * as the router reads them. pool may be NULL, and changes no bit. */
void deep_run(const struct deep *d, struct pool *pool, float *out, const float *in, float *scratch);

/* Write the n largest of logits[size], size >= n, in descending order, without NaN. */
void deep_largest(float *out, size_t n, const float *logits, size_t size);

#endif
