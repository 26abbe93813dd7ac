/* statistics.h - what can be said about a share measured on few questions.
 *
 * Everything is computed in double in a fixed order, and random draws come from a fixed seed, so
 * that the same answers give the same numbers on every machine. */
#ifndef TOOLS_LAB_EVAL_STATISTICS_H
#define TOOLS_LAB_EVAL_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum { STATISTICS_DRAWS = 2000 }; /* of the bootstrap */
enum { STATISTICS_POINTS = 64 };  /* most points of an APGR7 */
enum { STATISTICS_TRAININGS = 64 };

struct statistics_interval {
    double low, high;
};

/* Return the 95 % confidence interval of the share hits/n (Wilson 1927); n >= 1. */
struct statistics_interval statistics_wilson(size_t hits, size_t n);

/* Sort x[n], which holds no NaN. */
void statistics_sort(double *x, size_t n);
/* Return quantile q (0 to 1) of x[n], which is sorted; n >= 1. Between two values it is linear: it
 * lies at q * (n - 1), counted from 0, so that 0.5 is the median. */
double statistics_quantile(const double *x, size_t n, double q);

/* Which of n items are about the same. Their answers are right and wrong together more often than
 * by chance, so a bootstrap draws all items of a group or none. */
struct statistics_groups {
    uint32_t *of; /* [n] number of the item's group, counted by the first appearance */
    size_t n, count;
    uint32_t *times; /* [count] how often the current draw has each group */
    uint32_t *each;  /* [n] and each item */
    double *above;   /* [n] scratch */
};

/* Group items of equal keys, hashes of what they are about. ERR_NOMEM; then *out is all zero. */
int statistics_groups_open(struct statistics_groups *out, const uint64_t *keys, size_t n,
                           struct err *err);
void statistics_groups_close(struct statistics_groups *g); /* all zero is fine */

/* What one policy answered at one threshold, item by item, and again for each training of its
 * router. */
struct statistics_answers {
    const unsigned char *right;     /* [trainings][n], 1: right */
    const uint32_t *tokens, *cloud; /* [trainings][n] of an answer; of these, the cloud's */
    size_t trainings;               /* 1 to STATISTICS_TRAININGS; 1 if nothing is trained */
};

/* Return the 95 % interval of the accuracy: Wilson's, for as many independent questions as have the
 * variance of these groups (or single items, if they are not grouped) and trainings; at most n. Of
 * one group of several items nothing is known: 0 to 1. */
struct statistics_interval statistics_accuracy(const struct statistics_answers *a,
                                               const struct statistics_groups *g, bool grouped);

/* All bootstraps are paired: one draw takes as many groups as there are with replacement, and every
 * accuracy of the draw is computed on these same groups. Of several trainings it takes one less
 * than there are, with replacement, so that the variance is right for a few (Rao and Wu 1988).
 * Policies with as many trainings as each other have theirs drawn together, and one with a single
 * one keeps it. The interval lies between the quantiles 0.025 and 0.975 of STATISTICS_DRAWS
 * draws. With fewer than two groups there is none. n >= 1. */

/* Return the 95 % interval of the accuracy of a minus that of b. NaN: there is none. */
struct statistics_interval statistics_bootstrap_difference(const struct statistics_answers *a,
                                                           const struct statistics_answers *b,
                                                           const struct statistics_groups *g);
/* Set *equal to the accuracy of a minus that of a mixture of answers of low and high, which route
 * no more and no less than a: the one whose tokens have the share of a. Return its interval. */
struct statistics_interval statistics_bootstrap_equal(double *equal,
                                                      const struct statistics_answers *a,
                                                      const struct statistics_answers *low,
                                                      const struct statistics_answers *high,
                                                      const struct statistics_groups *g);

/* Performance gap recovered: (routed - edge) / (cloud - edge), of accuracies or of counts. False:
 * the cloud is not better than the edge, and nothing can be recovered. */
bool statistics_pgr(double *pgr, double routed, double edge, double cloud);

/* Set the 95 % interval of the PGR. Draws in which the cloud is not better than the edge have no
 * PGR and are left out; if they are more than one in twenty, there is no interval: false. Without a
 * cloud it is that of the gain relative to the edge, routed / edge - 1; each draw has its own
 * edge. */
bool statistics_bootstrap_pgr(struct statistics_interval *out,
                              const struct statistics_answers *routed,
                              const struct statistics_answers *edge,
                              const struct statistics_answers *cloud,
                              const struct statistics_groups *g);

struct statistics_point {
    double share, pgr; /* share of tokens routed, 0 to 1 */
};

/* Return APGR7, the mean PGR over the shares from 0 to 7 %: the area under the straight lines
 * between the measured points and (0, 0), by the trapezoid rule, divided by 0.07. The line that
 * crosses 7 % is cut there. If no point lies at 7 % or more, the last one's PGR is taken from there
 * on: a larger share is allowed, and need not be used. Sorts points[n] by share, then by PGR; n may
 * be 0, which is 0. */
double statistics_apgr7(struct statistics_point *points, size_t n);

/* Set draws[STATISTICS_DRAWS] to the APGR7 that each draw of items gives, of answers at
 * count thresholds, count <= STATISTICS_POINTS; NaN where the cloud is not better than the edge, or
 * there is one group.
 * Shares are those of the draw, too. Draw d of two policies has the same items, so what is computed
 * from both is paired. */
void statistics_draw_apgr7(double *draws, const struct statistics_answers *at, size_t count,
                           const struct statistics_answers *edge,
                           const struct statistics_answers *cloud,
                           const struct statistics_groups *g);
/* Set the 95 % interval of draws[STATISTICS_DRAWS], which are left in another order. NaN is left
 * out; false if more than one in twenty is. */
bool statistics_draws_interval(struct statistics_interval *out, double *draws);
/* Set ratio[STATISTICS_DRAWS] to a / b of each draw; NaN where b is not above 0. */
void statistics_draws_ratio(double *ratio, const double *a, const double *b);

#endif
