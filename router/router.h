/* router.h - a small network that judges, token by token, whether the local model is right.
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
struct pool;
struct kernels;
struct router; /* immutable once open, so threads may share it */

enum { ROUTER_MAX = 65536 }; /* the most that dim and width may be */

/* The numbers of a router, row-major, as a file holds them and training makes them. */
struct router_form {
    size_t dim, width;
    float *w1; /* [width][dim] */
    float *b1; /* [width] */
    float *w2; /* [width] */
    float b2;
    enum tap tap;
    bool has_threshold;
    float threshold; /* calibrated, 0..1 */
};

/* Allocate zeroed arrays of these sizes (1 to ROUTER_MAX). After an error everything is NULL. */
int router_form_open(struct router_form *out, size_t dim, size_t width, struct err *err);
void router_form_close(struct router_form *f);
/* Write a form as the safetensors file that router_open reads; all values must be finite. */
int router_form_save(const char *path, const struct router_form *f, struct err *err);

/* Open a safetensors file: "router.w1" [width][dim], "router.b1" [width], "router.w2" [1][width],
 * "router.b2" [1], f32; its metadata may hold "tap" (final | post_attn) and "threshold". A .pth
 * file of CITER is imported on the fly. Values that are not finite are refused. ERR_FORMAT names
 * file, tensor, expected and found. k is borrowed. */
int router_open(struct router **out, const char *path, const struct kernels *k, struct err *err);
/* Make a router from a form, which is copied; name stands for the file in errors. */
int router_make(struct router **out, const struct router_form *f, const char *name,
                const struct kernels *k, struct err *err);
void router_close(struct router *r); /* NULL is fine */

size_t router_dim(const struct router *r);
enum tap router_tap(const struct router *r);
/* Return "final" or "post_attn". */
const char *router_tap_name(enum tap tap); /* "final", "post_attn" */
/* Return the calibrated threshold. False: the file has none. */
bool router_threshold(const struct router *r, float *threshold);

/* Return the probability, 0 to 1, that the local model's next token is good enough: sigmoid(w2 .
 * relu(w1 . x + b1) + b2). hidden: [dim] f32. scratch: [router_scratch] floats. It cannot fail:
 * when a hidden state overflows so that the sum is NaN, the score is 0, and the cloud is asked. */
size_t router_scratch(const struct router *r);
float router_score(const struct router *r, const float *hidden, float *scratch);

/* Share the work of each score among the threads of this pool from now on; the score stays the
 * same. The pool is borrowed and must not be in use elsewhere during router_score. */
void router_threads(struct router *r, struct pool *pool);

/* Read CITER's .pth file, fold it, and write safetensors. */
int router_import(const char *pth, const char *out, struct err *err);

#endif
