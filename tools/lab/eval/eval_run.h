/* eval_run.h - runs one policy over all items, and finds its threshold for a share. */
#ifndef TOOLS_LAB_EVAL_EVAL_RUN_H
#define TOOLS_LAB_EVAL_EVAL_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/learn/calibrate.h"
#include "tools/lab/eval/asking.h"
#include "tools/lab/eval/eval_journal.h"
#include "tools/lab/eval/eval_plan.h"
#include "tools/lab/eval/eval_result.h"

struct progress;
struct err;

/* All parts are the caller's. */
struct eval_run {
    const struct eval_plan *plan;
    struct asking *asking;        /* prepared for all items of the plan */
    struct eval_journal *journal; /* or NULL */
    struct progress *progress;    /* or NULL */
    size_t number, all;           /* results so far, the current one included; of the whole run */
    uint64_t since;               /* when the current result, or pass of calibration, began */
    size_t done, before;          /* answers of it; of these, read from the journal */
    size_t passes, answered;      /* of the current calibration; answers of its current pass */
    struct calibration *calibration; /* or NULL */
    struct asking_how how;           /* that calibration asks */
};

/* Ask all items under the policy of *r at its threshold; answers that are in the journal are read
 * from it. The cloud's memo is emptied first, so that calls and bytes are those of this policy
 * alone; without a journal the models forget what they have read, too, so that times are. */
int eval_run_policy(struct eval_run *run, struct eval_result *r, struct err *err);
/* Set r->threshold to the given one or, if that is NaN, to the one at which the policy routes this
 * share of the tokens, on the items for calibration; for policy random that is the share itself.
 * One that is in the journal is read from it. */
int eval_run_threshold(struct eval_run *run, struct eval_result *r, float given, double share,
                       struct err *err);
/* Return what asks the items for calibration under the policy of an entry; both are borrowed. */
struct calibrate_source eval_run_source(struct eval_run *run, const struct eval_entry *e);
/* Free what calibration has kept. */
void eval_run_end(struct eval_run *run);

#endif
