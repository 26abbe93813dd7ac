/* router.h - decides, token by token, whether the small model's token may stand.
 *
 * Source: CITER (arXiv 2502.01976), conf_model: Linear(h, 2h), BatchNorm, ReLU, Dropout, Linear(2h,
 * h), Dropout, Linear(h, 1), sigmoid. At inference BatchNorm folds into the first Linear and the
 * last two Linears into one, so h -> width -> 1 remains. */
#ifndef ROUTER_ROUTER_H
#define ROUTER_ROUTER_H

#include <stdbool.h>
#include <stddef.h>

#include "model/session.h"

struct err;
struct kernels;
struct router; /* immutable once open: threads may share it */

/* A safetensors file: "router.w1" [width][dim], "router.b1" [width], "router.w2" [1][width],
 * "router.b2" [1], f32; its metadata may hold "tap" (final | post_attn) and "threshold". A .pth
 * file of CITER is imported on the fly. */
int router_open(struct router **out, const char *path, const struct kernels *k, struct err *err);
void router_close(struct router *r);

size_t router_dim(const struct router *r);
enum tap router_tap(const struct router *r);
/* The calibrated threshold; false if the file has none. */
bool router_threshold(const struct router *r, float *threshold);

/* Probability, 0 to 1, that the small model's next token is good enough. hidden: [dim] f32.
 * scratch: [router_scratch] floats. Cannot fail. */
size_t router_scratch(const struct router *r);
float router_score(const struct router *r, const float *hidden, float *scratch);

/* Read CITER's .pth, fold, write safetensors. */
int router_import(const char *pth, const char *out, struct err *err);

#endif
