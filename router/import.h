/* import.h - imports a PyTorch checkpoint of CITER as a router. */
#ifndef ROUTER_IMPORT_H
#define ROUTER_IMPORT_H

#include "router/router.h"

struct weights;

/* Read the tensors mlp.0, mlp.1 (BatchNorm), mlp.4 and linear, and fold them. Everything is
 * computed in double and rounded once. *out is the caller's to close. */
int import_pth(struct router_form *out, const struct weights *w, struct err *err);

#endif
