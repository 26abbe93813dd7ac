/* pretrain_plan.h - the demo models: shapes, numbers of steps and learning rates. */
#ifndef TOOLS_DEMO_PRETRAIN_PLAN_H
#define TOOLS_DEMO_PRETRAIN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "model/train/train.h"
#include "tools/demo/world.h"

struct pretrain_plan {
    const char *size; /* "0.1", "0.5", "1", "cloud" */
    const char *name; /* base name of its files: "edge-0.5" */
    size_t layers, hidden, heads, kv_heads, ffn;
    size_t steps;
    /* Up to step `easy` all texts are practice in its easiest form; up to step `mixed` most are
     * practice in any form; after that, few are. */
    size_t easy, mixed;
    size_t lists; /* of world_practice, after `easy` */
    float rate;   /* peak learning rate */
    struct world_reader reader;
};

enum { PRETRAIN_SIZES = 4, PRETRAIN_BATCH = 2048, PRETRAIN_PIECES = 1008 };

extern const struct pretrain_plan pretrain_plans[PRETRAIN_SIZES];

/* Return the plan with this size or file name, or NULL. */
const struct pretrain_plan *pretrain_plan_find(const char *name);

/* Set the model configuration of a plan. */
void pretrain_plan_config(struct model_config *out, const struct pretrain_plan *p, size_t vocab);

/* Set the learning rate of a step, counted from 0: linear warmup, then a cosine from the peak to a
 * fiftieth of it. */
void pretrain_plan_rate(struct train_rate *out, const struct pretrain_plan *p, size_t step);

/* Return the share of practice among the texts of a step, and set *lists of world_practice. */
double pretrain_plan_practice(size_t *lists, const struct pretrain_plan *p, size_t step);

#endif
