/* training.h - trains a router on collected samples: what `mizzle router train` does. */
#ifndef TOOLS_LAB_LEARN_TRAINING_H
#define TOOLS_LAB_LEARN_TRAINING_H

#include <stdbool.h>

#include "router/learn/fit.h"

struct err;

struct training_options {
    const char *const *samples; /* folders, NULL-terminated */
    const char *out;            /* the router's file; with repeats FILE.1, FILE.2, ... */
    size_t repeats; /* trainings; several have a seed and a resample of the subjects each */
    struct fit_options fit;
    bool json, quiet;
};

/* Read the samples, train, save the router and print a report on stdout. The router
 * names the samples' model and task, and has a threshold from the held-out part. ERR_ARG if the
 * options contradict the samples, or nothing can be learnt from them; the errors of
 * sample_files_read, fit_router (stopped by `interrupted`) and
 * form_save. */
int training_run(const struct training_options *o, struct err *err);

#endif
