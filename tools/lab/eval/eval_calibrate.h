/* eval_calibrate.h - asks items of a task for router/learn/calibrate.h, and shows how far it is. */
#ifndef TOOLS_LAB_EVAL_EVAL_CALIBRATE_H
#define TOOLS_LAB_EVAL_EVAL_CALIBRATE_H

#include <stddef.h>
#include <stdint.h>

#include "router/learn/calibrate.h"
#include "tools/lab/eval/asking.h"
#include "tools/lab/eval/eval_plan.h"

struct progress;

/* All parts are the caller's. */
struct eval_calibration {
    struct asking *asking; /* prepared for the items */
    const struct eval_items *items;
    struct progress *progress; /* or NULL */
    size_t number, all;        /* of the result that is calibrated, counted from 1; of results */
    struct asking_how how;     /* of the answers */
    size_t passes, answered;   /* passes so far; answers of the current one */
    uint64_t since;            /* when it began */
};

/* Return what asks the items under the policy of an entry; both are borrowed. Its answers read the
 * tie of c->how. */
struct calibrate_source eval_calibration_source(struct eval_calibration *c,
                                                const struct eval_entry *e);

#endif
