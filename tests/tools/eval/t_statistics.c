/* Tests what eval reports about its figures: values worked out by hand, and the bootstrap against a
 * slow version of its own. */
#include <math.h>

#include "kernels/math.h"
#include "tests/support/test.h"
#include "tools/lab/eval/statistics.h"

static bool close_to(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static void check_wilson(void)
{
    struct statistics_interval w = statistics_wilson(50, 100);
    CHECK(fabs(w.low - 0.403832) < 1e-5 && fabs(w.high - 0.596168) < 1e-5);
    w = statistics_wilson(0, 10);
    CHECK(fabs(w.low) < 1e-12 && fabs(w.high - 0.277533) < 1e-5);
    w = statistics_wilson(10, 10);
    CHECK(fabs(w.low - 0.722467) < 1e-5 && fabs(w.high - 1) < 1e-12);
}

static void check_quantiles(void)
{
    double x[] = { 5, 1, 4, 2, 3 }, one[] = { 7 };
    CHECK(statistics_quantile(x, 5, 0.5) == 3 && statistics_quantile(x, 4, 0.5) == 2.5);
    CHECK(statistics_quantile(x, 5, 0) == 1 && statistics_quantile(x, 5, 1) == 5);
    CHECK(close_to(statistics_quantile(x, 5, 0.95), 4.8)); /* 0.95 * 4 = 3.8, from 4 to 5 */
    CHECK(statistics_quantile(one, 1, 0.95) == 7);
}

/* A draw of the bootstrap the slow way: how often it has each question, and then their sum. */
static double slow_difference(const unsigned char *a, const unsigned char *b, size_t n, size_t draw)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (rand_below(rand_u64(1, draw), j, n) == i)
                sum += a[i] - b[i];
    return sum / (double)n;
}

static void check_slowly(const unsigned char *a, const unsigned char *b, size_t n)
{
    static double draws[STATISTICS_DRAWS];
    for (size_t d = 0; d < STATISTICS_DRAWS; d++)
        draws[d] = slow_difference(a, b, n, d);
    struct statistics_interval got = statistics_bootstrap_difference(a, b, n);
    CHECK(close_to(got.low, statistics_quantile(draws, STATISTICS_DRAWS, 0.025)));
    CHECK(close_to(got.high, statistics_quantile(draws, STATISTICS_DRAWS, 0.975)));
}

static void check_bootstrap(void)
{
    unsigned char routed[64], edge[64];
    for (size_t i = 0; i < 64; i++) {
        edge[i] = rand_unit(1, i) < 0.4;
        routed[i] = rand_unit(3, i) < 0.7 ? rand_unit(2, i) < 0.9 : edge[i];
    }
    static const size_t sizes[] = { 2, 3, 5, 64 };
    for (size_t k = 0; k < 4; k++)
        check_slowly(routed, edge, sizes[k]);
    /* A single question says nothing about others. */
    struct statistics_interval d = statistics_bootstrap_difference(routed, edge, 1);
    CHECK(isnan(d.low) && isnan(d.high));
    /* Half of 64 differ, always in the same direction: 0.5 +- 1.96 * sqrt(0.25 / 64). */
    for (size_t i = 0; i < 64; i++) {
        edge[i] = 0;
        routed[i] = i % 2;
    }
    d = statistics_bootstrap_difference(routed, edge, 64);
    CHECK(fabs(d.low - 0.3775) < 0.02 && fabs(d.high - 0.6225) < 0.02);
    /* Paired: the same answers differ by nothing, whatever is drawn. */
    d = statistics_bootstrap_difference(routed, routed, 64);
    CHECK(d.low == 0 && d.high == 0);
}

int main(void)
{
    check_wilson();
    check_quantiles();
    check_bootstrap();
    return 0;
}
