/* binomial.h - exact confidence bounds of a probability that has shown k times in n independent
 * tries (Clopper and Pearson, Biometrika 26, 1934). The same bits on every machine. */
#ifndef ROUTER_BINOMIAL_H
#define ROUTER_BINOMIAL_H

#include <stddef.h>

/* Return the upper bound (one-sided): the p at which k or fewer have the probability 1 -
 * confidence. 1 if k >= n or confidence >= 1, 0 if confidence <= 0. */
double binomial_upper(size_t k, size_t n, double confidence);
/* Set the two-sided interval, whose ends are one-sided bounds that fail with half of 1 - confidence
 * each. 0 to 1 if n is 0. It is wider than need be if the n were drawn without replacement from few
 * more. */
void binomial_interval(double *low, double *high, size_t k, size_t n, double confidence);

#endif
