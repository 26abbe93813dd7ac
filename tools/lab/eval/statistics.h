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
struct statistics_interval {
    double low, high;
};

/* Return the 95 % confidence interval of the share hits/n (Wilson 1927); n >= 1. */
struct statistics_interval statistics_wilson(size_t hits, size_t n);

/* Sort x[n], which holds no NaN, and return its quantile q (0 to 1); n >= 1. Between two values it
 * is linear: it lies at q * (n - 1), counted from 0, so that 0.5 is the median. */
double statistics_quantile(double *x, size_t n, double q);

/* Which of n items are about the same. Their answers are right and wrong together more often than
 * by chance, so a bootstrap draws all items of a group or none. */
struct statistics_groups {
    uint32_t *of; /* [n] number of the item's group, counted by the first appearance */
    size_t n, count;
    uint32_t *times; /* [count] how often the current draw has each group */
    double *above;   /* [n] scratch */
};

/* Group items of equal keys, hashes of what they are about. ERR_NOMEM; then *out is all zero. */
int statistics_groups_open(struct statistics_groups *out, const uint64_t *keys, size_t n,
                           struct err *err);
void statistics_groups_close(struct statistics_groups *g); /* all zero is fine */

/* Return the 95 % interval of the accuracy of right[n], 1: right. It is Wilson's, for as many
 * independent questions as have the variance of these groups, or of single items (not grouped); at
 * most n. Of one group of several items nothing is known: 0 to 1. */
struct statistics_interval statistics_accuracy(const unsigned char *right,
                                               const struct statistics_groups *g, bool grouped);

/* Return the 95 % interval of the accuracy of a minus that of b, both [n], 1: right: between the
 * quantiles 0.025 and 0.975 of STATISTICS_DRAWS paired draws. A draw takes as many groups as there
 * are with replacement, the same for both. NaN: with fewer than two groups there is none. */
struct statistics_interval statistics_bootstrap_difference(const unsigned char *a,
                                                           const unsigned char *b,
                                                           const struct statistics_groups *g);

#endif
