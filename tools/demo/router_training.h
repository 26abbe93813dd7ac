/* router_training.h - trains routers for a small model on questions of the demo world: samples of
 * the pair, collected in this process, then the same training as on samples in a folder. */
#ifndef TOOLS_DEMO_ROUTER_TRAINING_H
#define TOOLS_DEMO_ROUTER_TRAINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/learn/fit.h"
#include "router/learn/sample_files.h"

struct err;

struct router_training_options {
    const char *cloud;  /* path of the large model; NULL: the demo pair's */
    uint64_t world;     /* seed of the world */
    size_t questions;   /* for training and holding out */
    size_t calibration; /* other questions, to set the threshold */
    enum tap tap;
    bool quiet; /* print no progress to stderr */
};

/* What routers are trained on. */
struct router_training {
    struct samples train, calibration;
    struct sample_meta meta;
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

/* Set the defaults: the demo's large model, world WORLD_SEED, 3,000 questions, 1,000 for
 * calibration, tap final. */
void router_training_defaults(struct router_training_options *o);
/* Set the fit's defaults for routers of the demo: those of fit_defaults, with TEACH_MOST and
 * TEACH_COVER. */
void router_training_fit_defaults(struct fit_options *o);

/* Collect samples with labels divergent from the small model of the shared options (setup.h) and
 * the large one, which is served from this process. Test streams are never read. The caller closes
 * *t, after an error, too. ERR_ARG, and the errors of collecting_samples. */
int router_training_open(struct router_training *t, const struct router_training_options *o,
                         struct err *err);
void router_training_close(struct router_training *t);

/* Train one router on them. It gets tap and threshold, and says which model it is for. The caller
 * closes *out. The errors of fit_router. pool may be NULL. */
int router_training_run(struct router_form *out, struct router_training_report *report,
                        const struct router_training *t, const struct fit_options *o,
                        const struct kernels *k, struct pool *pool, struct err *err);

#endif
