/* statistics.h - what can be said about a share measured on few questions.
 *
 * Everything is computed in double in a fixed order, and random draws come from a fixed seed, so
 * that the same answers give the same numbers on every machine. Each question counts as one that
 * is independent of the others; tools/lab/study draws those of one subject together. */
#ifndef TOOLS_LAB_EVAL_STATISTICS_H
#define TOOLS_LAB_EVAL_STATISTICS_H

#include <stddef.h>

enum { STATISTICS_DRAWS = 2000 }; /* of the bootstrap */
struct statistics_interval {
    double low, high;
};

/* Return the 95 % confidence interval of the share hits/n (Wilson 1927); n >= 1. */
struct statistics_interval statistics_wilson(size_t hits, size_t n);

/* Sort x[n], which holds no NaN, and return its quantile q (0 to 1); n >= 1. Between two values it
 * is linear: it lies at q * (n - 1), counted from 0, so that 0.5 is the median. */
double statistics_quantile(double *x, size_t n, double q);

/* Return the 95 % interval of the accuracy of a minus that of b, both [n], 1: right: between the
 * quantiles 0.025 and 0.975 of STATISTICS_DRAWS paired draws. A draw takes n questions with
 * replacement, the same for both. NaN: with fewer than two questions there is none. */
struct statistics_interval statistics_bootstrap_difference(const unsigned char *a,
                                                           const unsigned char *b, size_t n);

#endif
