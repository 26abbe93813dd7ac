/* router_training.h - make a router for a small model from the demo world's training streams. */
#ifndef TOOLS_DEMO_ROUTER_TRAINING_H
#define TOOLS_DEMO_ROUTER_TRAINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/learn/fit.h"
#include "tools/cli/setup.h"

struct router_training_options {
    uint64_t world;     /* seed of the world */
    size_t questions;   /* to train on and to hold out */
    size_t calibration; /* other questions, to set the threshold with */
    size_t width;       /* 0: twice the hidden size */
    enum tap tap;
    double most, cover; /* of samples_calibrate */
    uint64_t seed;
    bool quiet; /* no progress on stderr */
};

struct router_training_report {
    struct fit_report fit;
    size_t tokens, wrong;   /* of the calibration questions */
    double auc;             /* on them */
    struct samples_cut cut; /* of the chosen threshold on them */
};

/* Of the tokens at most, of the errors at least: a gap to the paper's 7 % that holds for any few
 * questions. */
#define TEACH_MOST  0.05f
#define TEACH_COVER 0.995f

/* world WORLD_SEED, 3,000 questions, 1,000 for calibration, tap final, TEACH_MOST, TEACH_COVER. */
void router_training_defaults(struct router_training_options *o);

/* Reference texts are the world's own answers, or, where cloud is not NULL, what that model writes
 * greedily. The router has tap and threshold. Test streams are never read. *out is the caller's
 * to close. ERR_ARG, ERR_NOMEM, ERR_STOP (setup.h's `interrupted`). */
int router_training_run(struct router_form *out, struct router_training_report *report,
                        const struct engine *edge, const struct engine *cloud,
                        const struct router_training_options *o, struct err *err);

#endif
