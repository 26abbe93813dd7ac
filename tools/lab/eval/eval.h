/* eval.h - the tasks of `mizzle eval`. */
#ifndef TOOLS_LAB_EVAL_EVAL_H
#define TOOLS_LAB_EVAL_EVAL_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/lab/tasks/task.h"

struct err;

struct eval_options {
    struct task_options task; /* its seed is that of policy random, too */
    const char *policies;     /* as eval_list_parse reads them */
    size_t questions;         /* 0: the task's default */
    size_t first, count;      /* answers: which of these are asked; count 0: all that are left */
    size_t max_tokens;        /* limit of one answer; 0: the task's default */
    size_t context;           /* ppl: window; 0: the task's default */
    const char *target;       /* share for every policy; NULL: their thresholds */
    const char *against;      /* label of the policy that others are compared with; NULL: none */
    const char *calibrate;    /* items to calibrate on; NULL: those of the task */
    const char *jsonl;        /* path of the journal; NULL: none */
    bool as_paper;            /* print the columns of the paper's Table 1 */
    bool json, quiet;
};

/* The functions below run a task and print its results to stdout: a table, or one line of JSON for
 * each result. The last line of JSON is an object that has accuracy, routed, questions, tokens,
 * threshold and pgr, null where a task has no such thing. They return OK or an error code. */

/* Ask the items of a task under each policy, and judge the answers. */
int eval_answers(const struct eval_options *o, struct err *err);
/* Measure how well the small model predicts a text; accuracy is the share of tokens it foresees. */
int eval_ppl(const struct eval_options *o, struct err *err);

#endif
