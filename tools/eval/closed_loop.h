/* closed_loop.h - answers a task's items at any threshold: a source for router/learn/calibrate.h.
 */
#ifndef TOOLS_EVAL_CLOSED_LOOP_H
#define TOOLS_EVAL_CLOSED_LOOP_H

#include <stdbool.h>
#include <stddef.h>

#include "router/learn/calibrate.h"
#include "tools/cli/progress.h"
#include "tools/eval/asking.h"

/* One policy on some items; everything is borrowed. */
struct closed_loop {
    struct asking *asking; /* prepared for the items */
    struct task *task;     /* its calibration stream */
    const size_t *items;   /* [n] */
    size_t n;
    struct asking_how how;          /* whose threshold is not read */
    struct progress_count progress; /* shown on a terminal if `what` is set */
};

/* Choose n >= 1 of `size` items, spread evenly, in ascending order; *items is malloc'ed. Of a task
 * without an end (size SIZE_MAX) they are the first n. ERR_ARG if n > size, ERR_NOMEM. */
int closed_loop_items(size_t **items, size_t n, size_t size, struct err *err);

/* Open a calibration whose answers come from this loop, which must not move. Its routing has no
 * limits, for they would make an answer depend on those before it, and requires the cloud. */
int closed_loop_calibrate(struct calibration **out, struct closed_loop *loop, struct err *err);

/* Let the cloud alone answer: right[n] is set to 1 where it is right, *answers to the number of
 * items that are not left out. Returns the errors of asking_ask. */
int closed_loop_cloud(unsigned char *right, size_t *answers, struct closed_loop *loop,
                      struct err *err);

#endif
