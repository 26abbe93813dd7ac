/* eval_result.h - what one policy achieved at one threshold, and how it is shown. */
#ifndef TOOLS_LAB_EVAL_EVAL_RESULT_H
#define TOOLS_LAB_EVAL_EVAL_RESULT_H

#include <stddef.h>

#include "kernels/sys/buf.h"
#include "tools/lab/eval/asking.h"
#include "tools/lab/eval/eval.h"
#include "tools/lab/eval/eval_list.h"
#include "tools/lab/eval/statistics.h"

struct err;

struct eval_result {
    const struct eval_entry *entry;
    size_t point;    /* number of its threshold among those of its policy */
    double target;   /* share of tokens aimed at; NaN: none */
    float threshold; /* NaN: the policy has none */
    float tie;       /* part of the tokens that score the threshold itself which are routed */
    size_t questions, left_out, right;
    size_t citer;     /* right by CITER's own rule */
    size_t no_answer; /* that the task's rule finds */
    size_t truncated; /* at the limit of tokens */
    struct decode_stats sum;
    struct asked_work work;
    struct buf rights; /* unsigned char [questions], 1: right */
    struct buf ttft;   /* double [questions], ms to the first token */

    /* Set by eval_results_compare. */
    double pgr;                       /* (r - never) / (always - never), of accuracies; NaN: one of
                                       * them is not there, or always is no better */
    const struct eval_entry *against; /* NULL: not compared */
    double difference;                /* of the accuracies; NaN without `against` */
    struct statistics_interval difference_interval;
};

/* Make *r, whose old content is ignored, the empty result of an entry, which is borrowed, at a
 * share that is aimed at, or NaN. */
void eval_result_begin(struct eval_result *r, const struct eval_entry *e, double target);
void eval_result_close(struct eval_result *r); /* all zero is fine */
/* Add one answer. ERR_NOMEM. */
int eval_result_add(struct eval_result *r, const struct asked *one, struct err *err);

/* Set the gap recovered of each of results[n], between never and always, if they are among them,
 * and its difference to the policy with the label `against`, if that is not NULL: at the same
 * point, or at its only one. */
void eval_results_compare(struct eval_result *results, size_t n, const char *against);

/* Return the share of tokens that came from the cloud, and of answers that are right; 0 of none. */
double eval_result_share(const struct eval_result *r);
double eval_result_accuracy(const struct eval_result *r);

/* Print results that have answers to stdout, as lines of JSON or as a table. With --as-paper it has
 * the columns of Table 1 of She et al. (arXiv 2504.07878): seconds are for 100 tokens, TBT is the
 * small model's time by token that it wrote, and the overall time is the sum of the small model's
 * and the rest. In the paper's row of threshold 0.60 the rest is not in the sum. ERR_NOMEM. */
int eval_print(const struct eval_options *o, const struct eval_result *r, size_t n,
               struct err *err);

#endif
