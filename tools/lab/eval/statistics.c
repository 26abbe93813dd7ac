#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernels/math.h"
#include "tools/lab/eval/statistics.h"

enum { BOOTSTRAP_SEED = 1 };

struct statistics_interval statistics_wilson(size_t hits, size_t n)
{
    const double z = 1.959963984540054; /* 97.5 % of the normal distribution */
    double m = (double)n, p = (double)hits / m, z2 = z * z;
    double middle = (p + z2 / (2 * m)) / (1 + z2 / m);
    double half = z * sqrt(p * (1 - p) / m + z2 / (4 * m * m)) / (1 + z2 / m);
    return (struct statistics_interval){ .low = middle > half ? middle - half : 0,
                                         .high = middle + half < 1 ? middle + half : 1 };
}

static int statistics_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double statistics_quantile(double *x, size_t n, double q)
{
    qsort(x, n, sizeof(*x), statistics_by_value);
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? x[i] + (at - (double)i) * (x[i + 1] - x[i]) : x[n - 1];
}

struct statistics_interval statistics_bootstrap_difference(const unsigned char *a,
                                                           const unsigned char *b, size_t n)
{
    double draws[STATISTICS_DRAWS];
    if (n < 2)
        return (struct statistics_interval){ (double)NAN, (double)NAN };
    for (size_t d = 0; d < STATISTICS_DRAWS; d++) {
        const uint64_t key = rand_u64(BOOTSTRAP_SEED, d);
        int64_t more = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t k = rand_below(key, i, n);
            more += a[k] - b[k];
        }
        draws[d] = (double)more / (double)n;
    }
    double low = statistics_quantile(draws, STATISTICS_DRAWS, 0.025);
    return (struct statistics_interval){ low, statistics_quantile(draws, STATISTICS_DRAWS, 0.975) };
}
