/* router_training.h - the samples that the routers of the demo pair are trained on. */
#ifndef TOOLS_DEMO_ROUTER_TRAINING_H
#define TOOLS_DEMO_ROUTER_TRAINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/session.h"

struct err;
struct sample_meta;
struct samples;

struct router_training_options {
    const char *cloud; /* path of the large model; NULL: the demo pair's */
    uint64_t world;    /* seed of the world */
    size_t questions;
    enum tap tap;
    bool quiet; /* print no progress to stderr */
};

/* Set the defaults: the demo's large model, world WORLD_SEED, 1,000 questions, tap final. */
void router_training_defaults(struct router_training_options *o);

/* Collect samples with labels divergent from training questions, in this process: from the small
 * model of the shared options (setup.h) and the large one, which a stand-in serves. The same bits
 * on every machine. *out is empty at first and the caller's to close. ERR_ARG: no questions; the
 * errors of collecting_samples. */
int router_training_collect(struct samples *out, struct sample_meta *meta,
                            const struct router_training_options *o, struct err *err);

#endif
