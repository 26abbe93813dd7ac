#include "router/binomial.h"

/* Return the probability of at most k in n. Terms follow from the most likely one by their ratios,
 * and the sum over all of them normalises, so no factorial is needed and nothing overflows. */
static double binomial_tail(size_t k, size_t n, double p)
{
    const double least = 1e-290, odds = p / (1 - p);
    size_t mode = (size_t)((double)(n + 1) * p);
    mode = mode > n ? n : mode;
    double low = 0, high = 0, term = 1; /* sums of the terms up to k, and of those above */
    for (size_t j = mode;; j++) {
        *(j <= k ? &low : &high) += term;
        if (j == n || term < least)
            break;
        term *= (double)(n - j) / (double)(j + 1) * odds;
    }
    term = 1;
    for (size_t j = mode; j > 0 && term >= least; j--) {
        term *= (double)j / ((double)(n - j + 1) * odds);
        *(j - 1 <= k ? &low : &high) += term;
    }
    return low / (low + high);
}

double binomial_upper(size_t k, size_t n, double confidence)
{
    if (k >= n || !(confidence < 1))
        return 1;
    if (confidence <= 0)
        return 0;
    double low = 0, high = 1;
    for (size_t i = 0; i < 200; i++) {
        double p = low + (high - low) / 2;
        if (p <= low || p >= high)
            break;
        if (binomial_tail(k, n, p) > 1 - confidence)
            low = p;
        else
            high = p;
    }
    return high;
}

void binomial_interval(double *low, double *high, size_t k, size_t n, double confidence)
{
    const double each = 1 - (1 - confidence) / 2;
    *low = 1 - binomial_upper(n - k, n, each);
    *high = binomial_upper(k, n, each);
}
