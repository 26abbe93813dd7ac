/* pretrain_plan.h - the demo models: shapes, reading budgets and learning rates. */
#ifndef TOOLS_DEMO_PRETRAIN_PLAN_H
#define TOOLS_DEMO_PRETRAIN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "model/train/train.h"

struct pretrain_plan {
    const char *size; /* "0.1", "0.5", "1", "cloud" */
    const char *name; /* of its files: "edge-0.5" */
    size_t layers, hidden, heads, kv_heads, ffn;
    size_t steps;
    /* Until step `easy`, practice in its easiest form; until step `mixed`, all forms of practice
     * among the world's texts; then these alone. */
    size_t easy, mixed;
    float rate; /* the peak */
};

enum { PRETRAIN_SIZES = 4, PRETRAIN_BATCH = 2048, PRETRAIN_PIECES = 656 };

extern const struct pretrain_plan pretrain_plans[PRETRAIN_SIZES];

/* By size or file name; NULL if there is none. */
const struct pretrain_plan *pretrain_plan_find(const char *name);

void pretrain_plan_config(struct model_config *out, const struct pretrain_plan *p, size_t vocab);

/* Warmup, then a cosine from the peak to a fiftieth of it. step counts from 0. */
void pretrain_plan_rate(struct train_rate *out, const struct pretrain_plan *p, size_t step);

/* Share of practice among the texts of a step, and whether it is easy. */
double pretrain_plan_practice(bool *easy, const struct pretrain_plan *p, size_t step);

#endif
