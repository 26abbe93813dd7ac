/* import.h - imports routers of others: a PyTorch checkpoint of CITER, llama-route's files. */
#ifndef ROUTER_IMPORT_H
#define ROUTER_IMPORT_H

#include <stdbool.h>

#include "router/router.h"

struct weights;

/* Read the tensors mlp.0, mlp.1 (BatchNorm), mlp.4 and linear, and fold them. Everything is
 * computed in double and rounded once. *out is the caller's to close. */
int import_pth(struct router_form *out, const struct weights *w, struct err *err);

/* Read rows and columns of a matrix whose shape determines those of others. ERR_FORMAT. */
int import_shape(size_t *rows, size_t *cols, const struct weights *w, const char *name,
                 struct err *err);
/* Read a tensor of [rows][cols], or [rows] with cols 0. *out is the caller's to free. */
int import_values(float **out, const struct weights *w, const char *name, size_t rows, size_t cols,
                  struct err *err);

/* If a regular file is llama-route's, which *is tells, read it. Little-endian: "RMLP", int32
 * version 1, n_embd, n_hidden, then f32 w1[n_hidden][n_embd], b1[n_hidden], w2[n_hidden], b2. A
 * value above the threshold is a critical token. The file does not name its activations: as in all
 * routers of two layers here they are ReLU, and a sigmoid at the end. ERR_FORMAT, ERR_IO,
 * ERR_NOMEM; *out is the caller's to close. */
int import_rmlp(struct router_form *out, bool *is, const char *path, struct err *err);
/* True if a regular file begins as one of these. */
bool import_is_rmlp(const char *path);

#endif
