/* fit.h - trains the router's MLP on collected samples.
 *
 * Source: CITER's recipe (arXiv 2502.01976): binary cross-entropy, Adam, 80/20 split, patience 5;
 * without its traps: the split is by text, not by token, and the best weights are copied at the
 * time when they are the best. Instead of BatchNorm the features are standardised once, with the
 * mean and deviation of the training part, which are folded into the first layer at the end. Wrong
 * tokens are rare: they weigh sqrt(rights / wrongs) times as much as right ones.
 *
 * The same samples, options and seed give the same bits on every machine, with any number of
 * threads and any exact kernel set. */
#ifndef ROUTER_LEARN_FIT_H
#define ROUTER_LEARN_FIT_H

#include "router/router.h"
#include "router/learn/samples.h"

struct pool;

struct fit_epoch {
    size_t epoch; /* counted from 1 */
    double loss, held_loss;
    bool best; /* true if it is the best so far */
};

struct fit_options {
    size_t width; /* 0: twice the dim */
    size_t epochs, patience, batch;
    float rate; /* Adam's step size */
    uint64_t seed;
    const _Atomic int *stop; /* nonzero: give up with ERR_STOP; may be NULL */
    /* Called after each epoch; may be NULL. */
    void (*progress)(void *arg, const struct fit_epoch *e);
    void *arg;
};

struct fit_report {
    size_t trained, held; /* tokens of the training part and of the held-out part */
    size_t epochs, best;  /* epochs run, and the one whose weights are kept */
    double held_loss;     /* loss of these weights on the held-out part */
    double held_auc;
};

/* Set epochs 40, patience 5, batch 256, rate 1e-3, seed 1. */
void fit_defaults(struct fit_options *o);

/* Train a router. *out is the caller's to close; its tap is final and it has no threshold yet.
 * ERR_ARG when the samples do not have right and wrong tokens in both parts; ERR_NOMEM, ERR_STOP.
 * pool may be NULL. */
int fit_router(struct router_form *out, struct fit_report *report, const struct samples *s,
               const struct fit_options *o, const struct kernels *k, struct pool *pool,
               struct err *err);

/* True for samples of a text that is kept out of training. */
bool fit_holds_out(uint64_t seed, uint32_t group);

#endif
