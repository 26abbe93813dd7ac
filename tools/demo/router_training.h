/* router_training.h - trains a router for a small model on training streams of the demo world. */
#ifndef TOOLS_DEMO_ROUTER_TRAINING_H
#define TOOLS_DEMO_ROUTER_TRAINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/learn/fit.h"
#include "tools/cli/setup.h"

struct router_training_options {
    uint64_t world;     /* seed of the world */
    size_t questions;   /* for training and holding out */
    size_t calibration; /* other questions, to set the threshold */
    enum fit_head head;
    size_t width; /* 0: twice the hidden size */
    enum tap tap;
    double most, cover; /* passed to samples_calibrate */
    uint64_t seed;
    bool quiet; /* print no progress to stderr */
};

struct router_training_report {
    struct fit_report fit;
    size_t tokens, wrong;   /* in the calibration questions */
    double auc;             /* of the router on them */
    struct samples_cut cut; /* the chosen threshold and its results on them */
};

/* The largest share of tokens to route, and the share of errors to catch. The distance to the
 * paper's 7 % is large enough to hold for any small set of questions. */
#define TEACH_MOST  0.05f
#define TEACH_COVER 0.995f

/* Set the defaults: world WORLD_SEED, 3,000 questions, 1,000 for calibration, head mlp, tap
 * final, TEACH_MOST, TEACH_COVER, seed 1. */
void router_training_defaults(struct router_training_options *o);

/* Train a router for the edge model. Reference texts are the world's own answers or, if cloud is
 * not NULL, what that model writes greedily. The router gets tap and threshold, and says which
 * model it is for. Test streams are never read. The caller closes *out. ERR_ARG, ERR_NOMEM,
 * ERR_STOP (after `interrupted` of setup.h). */
int router_training_run(struct router_form *out, struct router_training_report *report,
                        const struct engine *edge, const struct engine *cloud,
                        const struct router_training_options *o, struct err *err);

#endif
