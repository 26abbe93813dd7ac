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

enum { EVAL_CALIBRATION = 4000 };

struct eval_items {
    struct task *task;
    size_t *at;        /* [n] numbers of items */
    uint64_t *subject; /* [n] hashes of what they are about */
    size_t n;
    bool closed; /* other items would be about the same subjects, as in the demo world */
};

struct eval_plan {
    struct eval_items asked, calibration; /* the two may share a task; calibration may be empty */
    size_t whole, first;                  /* those asked are a part of this many, from first on */
    double target;                        /* share for every policy; NaN: none given */
    bool paper; /* the paper's thresholds for every policy, in place of one */
};

/* Read --target-routed, and check what concerns shares and thresholds. threshold is --threshold, or
 * NaN. Every policy without one must have a share to aim at, or one before it whose share it takes,
 * which a part (--first) does not know. ERR_ARG names the policy. */
int eval_plan_check(struct eval_plan *p, const struct eval_list *l, const struct eval_options *o,
                    float threshold, struct err *err);
/* True when a policy of the list has to be calibrated. */
bool eval_plan_calibrates(const struct eval_plan *p, const struct eval_list *l, float threshold);
/* Open the tasks and choose the items. A file is split by a hash of the subject, if anything has to
 * be calibrated and --calibration names no other file: one item in five is calibrated on and not
 * asked. ERR_ARG if nothing is left to ask, and the errors of task_open. */
int eval_plan_open(struct eval_plan *p, const struct eval_options *o, bool calibrates,
                   struct err *err);
void eval_plan_close(struct eval_plan *p); /* all zero is fine */

/* Return all settings that the answers and their times depend on, for the journal; `on` of them is
 * where this process runs. NULL: out of memory. */
json_t *eval_settings(const struct eval_plan *p, const struct eval_options *o,
                      const struct eval_list *l, const struct asking *a);

#endif
