/* fit_citer.h - head citer: how its initial weights and its dropout are drawn.
 *
 * Source: CITER (arXiv 2502.01976), its confidence model: Linear(h, w), BatchNorm (momentum 0.1,
 * eps 1e-5), ReLU, Dropout 0.1, Linear(w, h), Dropout 0.1, Linear(h, 1), sigmoid; w = 2h. The first
 * Linear has no bias, since BatchNorm subtracts it again. The draws are declared here so that
 * another implementation can make the same ones. */
#ifndef ROUTER_LEARN_FIT_CITER_H
#define ROUTER_LEARN_FIT_CITER_H

#include <stddef.h>
#include <stdint.h>

/* The layers that have something to draw. */
enum fit_citer_layer { FIT_CITER_FIRST, FIT_CITER_SECOND, FIT_CITER_LAST };

/* Return initial weight i of a layer with this many inputs, row-major, uniform in +-1 / sqrt(fan):
 * first w1 [w][h]; second w4 [h][w], then its bias [h]; last w6 [h], then its bias. */
float fit_citer_initial(uint64_t seed, enum fit_citer_layer layer, size_t fan, size_t i);

/* Return what dropout multiplies the output of a unit with: 0, or 1 / (1 - p) with p = 6554 /
 * 65536. step: batches learnt from before this one; sample: place in the batch. */
float fit_citer_dropout(uint64_t seed, enum fit_citer_layer layer, size_t step, size_t sample,
                        size_t unit);

#endif
