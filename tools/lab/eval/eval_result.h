/* eval_result.h - what one policy achieved at one threshold. */
#ifndef TOOLS_LAB_EVAL_EVAL_RESULT_H
#define TOOLS_LAB_EVAL_EVAL_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/buf.h"
#include "tools/lab/eval/asking.h"
#include "tools/lab/eval/eval_list.h"
#include "tools/run/signs.h"
#include "tools/lab/eval/statistics.h"

struct err;

struct eval_result {
    const struct eval_entry *entry;
    size_t point;    /* number of its share or threshold among those of its policy */
    double target;   /* share of tokens aimed at, or cost of an answer's calls; NaN: none */
    float threshold; /* NaN: the policy has none */
    float tie;       /* part of the tokens that score the threshold itself which are routed */
    size_t questions, left_out;
    size_t trainings;      /* of its router that have answered them, or 1 */
    size_t answers, right; /* of all trainings, as are the next ones */
    size_t citer;          /* right by CITER's own rule */
    size_t no_answer;      /* that the task's rule finds */
    size_t truncated;      /* at the limit of tokens */
    size_t missing;        /* as in asked */
    struct decode_stats sum;
    struct asked_work work;
    struct signs signs;
    /* Of each answer, one training after the other: right or not, tokens, those from the cloud. */
    struct buf rights;               /* unsigned char [answers], 1: right */
    struct buf tokens_of, cloud_of;  /* uint32_t [answers] */
    struct buf subjects;             /* uint64_t [questions], hash of what each is about */
    struct statistics_groups groups; /* of the questions, by subject */
    bool closed;                     /* other questions would have the same subjects */
    /* In ms, double, sorted by eval_result_finish: to the first token of an answer; between
     * tokens. */
    struct buf ttft, tbt;

    /* Set by eval_result_compare; without both baselines, NaN and 0. */
    double pgr;
    bool has_pgr_interval, has_gain, has_relative_interval;
    struct statistics_interval pgr_interval;
    double relative_gain; /* more right answers than the small model's, as a part of those; NaN */
    struct statistics_interval relative_interval;
    struct statistics_interval gain; /* of the accuracy above that of the small model alone */
    double apgr7;                    /* NaN: not measured over shares from 0 to 7 % */
    bool has_apgr7_interval;
    struct statistics_interval apgr7_interval;
    double *apgr7_draws; /* [STATISTICS_DRAWS], or NULL */

    /* Set by eval_result_against; NULL: not compared. */
    const struct eval_entry *against;
    double against_share; /* that the other one routed */
    double difference;    /* of the accuracies */
    struct statistics_interval difference_interval;
    /* The same at an equal share, that of this one, by eval_result_equal. */
    bool has_equal;
    double equal, equal_from, equal_to; /* between which shares of the other one */
    struct statistics_interval equal_interval;
    double apgr7_ratio; /* NaN: one of them is missing, or the other one's is not above 0 */
    bool has_ratio_interval;
    struct statistics_interval ratio_interval;
};

/* Make *r, whose old content is ignored, the empty result of an entry, which is borrowed, at a
 * share that is aimed at, or NaN. What is computed from all answers is NaN so far. */
void eval_result_begin(struct eval_result *r, const struct eval_entry *e, double target);
void eval_result_close(struct eval_result *r); /* all zero is fine */
/* Add one answer to a question about this subject; without its trace, no times between tokens and
 * no signs. ERR_NOMEM. */
int eval_result_add(struct eval_result *r, const struct asked *one, uint64_t subject,
                    struct err *err);
/* Sort the times and group the questions, once all are answered; with another training of the
 * router the same are answered again. ERR_NOMEM. */
int eval_result_finish(struct eval_result *r, struct err *err);

/* Compare with the small model alone and the large one alone, on the same questions; either may be
 * NULL. */
void eval_result_compare(struct eval_result *r, const struct eval_result *edge,
                         const struct eval_result *cloud);
/* Set apgr7 of r[n - 1], its draws and its interval: of the n results of one policy at shares from
 * 0 to at least 7 %, 1 <= n <= STATISTICS_POINTS, each compared before. If one of them has no PGR,
 * nothing is set; otherwise all are about the same questions as edge and cloud, neither of which is
 * NULL. ERR_NOMEM. */
int eval_result_average(struct eval_result *r, size_t n, const struct eval_result *edge,
                        const struct eval_result *cloud, struct err *err);
/* Compare with another policy on the same questions: r minus other, r over other. */
void eval_result_against(struct eval_result *r, const struct eval_result *other);
/* Compare with it at the share of r, on the straight line between two of its results: one whose
 * share is not above that of r, and one whose share is not below: at the fraction of their answers
 * whose tokens have this share, which each draw of the interval has anew. */
void eval_result_equal(struct eval_result *r, const struct eval_result *below,
                       const struct eval_result *above);

/* Compare every one of results[n], but those of each model alone at 0 and 1, which have no answers
 * if they were not asked, with that of the policy with this label at the same point, of `points`
 * that each has. */
void eval_results_compare(struct eval_result *results, size_t n, const char *against,
                          size_t points);

/* Return the share of tokens that came from the cloud, and of answers that are right; 0 of none. */
double eval_result_share(const struct eval_result *r);
double eval_result_accuracy(const struct eval_result *r);
/* Return the 95 % interval of the accuracy; 0 to 1 of no answers. */
struct statistics_interval eval_result_interval(const struct eval_result *r);
/* Return how many ids passed through the cloud's model, as a share of those of prompts and answers:
 * about 1 if it writes everything, less if prompts share a beginning. */
double eval_result_work(const struct eval_result *r);
/* Return quantile q of the times, or 0 if there is none. */
double eval_times_quantile(const struct buf *times, double q);

#endif
