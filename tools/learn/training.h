/* training.h - trains a router on collected samples: what `mizzle router train --samples` does. */
#ifndef TOOLS_LEARN_TRAINING_H
#define TOOLS_LEARN_TRAINING_H

#include <stdbool.h>

#include "router/learn/fit.h"

struct err;
struct sample_meta;

struct training_options {
    const char *const *samples; /* folders, NULL-terminated, at least one */
    const char *tap;            /* what --tap says, or NULL: as the samples have it */
    const char *out;            /* the router's file */
    struct fit_options fit;
    bool json, quiet;
};

/* Read the samples, train, save the router and print a report on stdout. The router names the
 * samples' model and task, and has a threshold from the held-out part. ERR_ARG if the options
 * contradict the samples, or nothing can be learnt from them; the errors of sample_files_read,
 * fit_router (stopped by `interrupted`) and router_form_save. */
int training_run(const struct training_options *o, struct err *err);

/* Say in a router what it was made from, and set the threshold that the report names. */
void training_sign(struct router_form *f, const struct fit_report *r, const struct sample_meta *m);
/* Print the losses of an epoch to stderr: a callback of fit_router. */
void training_epoch(void *arg, const struct fit_epoch *e);

#endif
