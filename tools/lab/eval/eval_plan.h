/* eval_plan.h - what a run of `mizzle eval` asks: items, calibration, shares to aim at. */
#ifndef TOOLS_LAB_EVAL_EVAL_PLAN_H
#define TOOLS_LAB_EVAL_EVAL_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "tools/lab/eval/asking.h"
#include "tools/lab/eval/eval.h"
#include "tools/lab/eval/eval_list.h"
#include "tools/lab/tasks/task.h"

struct err;

enum { EVAL_CALIBRATION = 4000, EVAL_POINTS = 8 };

struct eval_items {
    struct task *task;
    size_t *at; /* [n] numbers of items */
    size_t n;
};

struct eval_plan {
    struct eval_items asked, calibration; /* the two may share a task; calibration may be empty */
    size_t whole, first;                  /* those asked are a part of this many, from first on */
    double target;                        /* share for every policy; NaN: none given */
    float thresholds[EVAL_POINTS]; /* [points] of every policy: --threshold, or the paper's */
    size_t points;                 /* 0: none given */
    bool calibrates;               /* a policy of the list has to be calibrated */
};

/* Read --target-routed, and check what concerns shares and thresholds. threshold is --threshold, or
 * NaN. Every policy without one must have a share to aim at, or one before it whose share it takes,
 * which a part (--first) does not know. ERR_ARG names the policy. */
int eval_plan_check(struct eval_plan *p, const struct eval_list *l, const struct eval_options *o,
                    float threshold, struct err *err);
/* Return the threshold of a policy at its point i: one that is given, or that of its router.
 * NaN: it must be found. */
float eval_plan_threshold(const struct eval_plan *p, const struct eval_entry *e, size_t i);
/* Open the tasks and choose the items. A file is split by a hash of the subject, if anything has to
 * be calibrated and --calibration names no other file: one item in five is calibrated on and not
 * asked. ERR_ARG if nothing is left to ask, and the errors of task_open. */
int eval_plan_open(struct eval_plan *p, const struct eval_options *o, struct err *err);
void eval_plan_close(struct eval_plan *p); /* all zero is fine */

/* Return all settings that the answers and their times depend on, for the journal; `on` of them is
 * where this process runs. NULL: out of memory. */
json_t *eval_settings(const struct eval_plan *p, const struct eval_options *o,
                      const struct eval_list *l, const struct asking *a);

#endif
