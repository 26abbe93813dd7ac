/* binomial.h - exact confidence bounds of a probability, from k successes in n independent trials
 * (Clopper and Pearson, Biometrika 26, 1934). The same bits on every machine. */
#ifndef ROUTER_BINOMIAL_H
#define ROUTER_BINOMIAL_H

#include <stddef.h>

/* Return the one-sided upper bound: the p for which k or fewer successes have probability 1 -
 * confidence. 1 if k >= n or confidence >= 1, 0 if confidence <= 0. */
double binomial_upper(size_t k, size_t n, double confidence);
/* Set the two-sided interval; each end fails with probability (1 - confidence) / 2. 0 to 1 if n is
 * 0. For draws without replacement from a small population it is wider than necessary. */
void binomial_interval(double *low, double *high, size_t k, size_t n, double confidence);

#endif
