/* Tests what eval reports about its figures: values worked out by hand, and the bootstrap against a
 * slow version of its own. */
#include <math.h>
#include <string.h>

#include "kernels/math.h"
#include "tests/support/test.h"
#include "tools/eval/statistics.h"

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
    statistics_sort(x, 5);
    for (size_t i = 0; i < 5; i++)
        CHECK(x[i] == (double)i + 1);
    CHECK(statistics_quantile(x, 5, 0.5) == 3 && statistics_quantile(x, 4, 0.5) == 2.5);
    CHECK(statistics_quantile(x, 5, 0) == 1 && statistics_quantile(x, 5, 1) == 5);
    CHECK(close_to(statistics_quantile(x, 5, 0.95), 4.8)); /* 0.95 * 4 = 3.8, from 4 to 5 */
    CHECK(statistics_quantile(one, 1, 0.95) == 7);
}

static void check_apgr(void)
{
    struct statistics_point p[4] = { { 0.07, 1 } };
    CHECK(statistics_apgr7(p, 0) == 0);
    CHECK(close_to(statistics_apgr7(p, 1), 0.5)); /* a triangle */
    /* 0.035 * 0.4 / 2 + 0.035 * (0.4 + 0.8) / 2 = 0.028; not sorted */
    p[1] = (struct statistics_point){ 0.035, 0.4 };
    p[0].pgr = 0.8;
    CHECK(close_to(statistics_apgr7(p, 2), 0.4));
    CHECK(p[0].share == 0.035);
    /* The line from (0, 0) to (0.14, 1) is at 0.5 when it is cut. */
    p[0] = (struct statistics_point){ 0.14, 1 };
    p[1] = (struct statistics_point){ 0.5, 1 };
    CHECK(close_to(statistics_apgr7(p, 2), 0.25));
    /* 0.02 * 0.5 / 2 + 0.05 * 0.5: the last one's PGR goes on */
    p[0] = (struct statistics_point){ 0.02, 0.5 };
    CHECK(close_to(statistics_apgr7(p, 1), 0.03 / 0.07));
    /* Equal shares are a step: the larger PGR goes on. A PGR may be negative. */
    p[0] = (struct statistics_point){ 0, 0.6 };
    p[1] = (struct statistics_point){ 0, -0.2 };
    CHECK(close_to(statistics_apgr7(p, 2), 0.6));
    p[0] = (struct statistics_point){ 0.07, -1 };
    CHECK(close_to(statistics_apgr7(p, 1), -0.5));
}

/* The bootstrap the slow way: each draw as a copy of its items, and quantiles by counting. */
static double slow_statistic(const unsigned char *const *x, size_t arrays, size_t n, size_t draw,
                             bool *ok)
{
    unsigned char copy[3][64];
    double sum[3] = { 0 };
    for (size_t k = 0; k < arrays; k++)
        for (size_t i = 0; i < n; i++) {
            copy[k][i] = x[k][rand_below(rand_u64(1, draw), i, n)];
            sum[k] += copy[k][i];
        }
    *ok = arrays == 2 || sum[2] > sum[1];
    if (arrays == 2)
        return (sum[0] - sum[1]) / (double)n;
    return *ok ? (sum[0] - sum[1]) / (sum[2] - sum[1]) : 0;
}

static double slow_quantile(const double *x, size_t n, double q)
{
    double at = q * (double)(n - 1), low = 0, high = 0;
    for (size_t i = 0; i < n; i++) { /* x[i] has the ranks below .. upto - 1 */
        size_t below = 0, upto = 0;
        for (size_t j = 0; j < n; j++) {
            below += x[j] < x[i];
            upto += x[j] <= x[i];
        }
        if ((double)below <= floor(at) && floor(at) < (double)upto)
            low = x[i];
        if ((double)below <= ceil(at) && ceil(at) < (double)upto)
            high = x[i];
    }
    return low + (at - floor(at)) * (high - low);
}

static void check_slowly(const unsigned char *const *x, size_t arrays, size_t n)
{
    static double draws[STATISTICS_DRAWS];
    struct statistics_interval got = { 0, 0 };
    size_t kept = 0;
    for (size_t d = 0; d < STATISTICS_DRAWS; d++) {
        bool ok;
        draws[kept] = slow_statistic(x, arrays, n, d, &ok);
        kept += ok;
    }
    bool has = true;
    if (arrays == 2)
        got = statistics_bootstrap_difference(x[0], x[1], n);
    else
        has = statistics_bootstrap_pgr(&got, x[0], x[1], x[2], n);
    CHECK(has == (kept * 20 >= STATISTICS_DRAWS * 19));
    CHECK(!has || close_to(got.low, slow_quantile(draws, kept, 0.025)));
    CHECK(!has || close_to(got.high, slow_quantile(draws, kept, 0.975)));
}

static void check_bootstrap(void)
{
    unsigned char routed[64], edge[64], cloud[64];
    for (size_t i = 0; i < 64; i++) {
        edge[i] = rand_unit(1, i) < 0.4;
        cloud[i] = rand_unit(2, i) < 0.9;
        routed[i] = rand_unit(3, i) < 0.7 ? cloud[i] : edge[i];
    }
    const unsigned char *const x[] = { routed, edge, cloud };
    static const size_t sizes[] = { 1, 2, 5, 64 };
    for (size_t k = 0; k < 4; k++) {
        check_slowly(x, 2, sizes[k]);
        check_slowly(x, 3, sizes[k]);
    }
    /* Half of 64 differ, always in the same direction: 0.5 +- 1.96 * sqrt(0.25 / 64). */
    for (size_t i = 0; i < 64; i++) {
        edge[i] = 0;
        routed[i] = i % 2;
    }
    struct statistics_interval d = statistics_bootstrap_difference(routed, edge, 64);
    CHECK(fabs(d.low - 0.3775) < 0.02 && fabs(d.high - 0.6225) < 0.02);
    /* Paired: the same answers differ by nothing, whatever is drawn. */
    d = statistics_bootstrap_difference(routed, routed, 64);
    CHECK(d.low == 0 && d.high == 0);
    memset(cloud, 1, sizeof(cloud));
    CHECK(statistics_bootstrap_pgr(&d, cloud, edge, cloud, 64) && d.low == 1 && d.high == 1);
    CHECK(!statistics_bootstrap_pgr(&d, routed, edge, edge, 64)); /* no gap */

    double pgr = 9;
    CHECK(statistics_pgr(&pgr, 0.7, 0.5, 0.9) && close_to(pgr, 0.5));
    CHECK(statistics_pgr(&pgr, 0.4, 0.5, 0.9) && close_to(pgr, -0.25));
    CHECK(!statistics_pgr(&pgr, 0.4, 0.5, 0.5) && !statistics_pgr(&pgr, 1, 0.5, 0.4));
}

int main(void)
{
    check_wilson();
    check_quantiles();
    check_apgr();
    check_bootstrap();
    return 0;
}
