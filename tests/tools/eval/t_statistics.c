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

enum { ITEMS = 40, SHARES = 3 };

/* Answers of one policy at SHARES thresholds, from random numbers. */
struct sweep {
    unsigned char right[SHARES][ITEMS];
    uint32_t tokens[SHARES][ITEMS], cloud[SHARES][ITEMS];
    struct statistics_answers at[SHARES];
};

static void make_sweep(struct sweep *s, uint64_t seed, double skill)
{
    for (size_t k = 0; k < SHARES; k++) {
        for (size_t i = 0; i < ITEMS; i++) {
            uint64_t n = k * ITEMS + i;
            s->right[k][i] = rand_unit(seed, n) < 0.3 + skill * (double)(k + 1);
            s->tokens[k][i] = 10 + (uint32_t)rand_below(seed + 1, n, 20);
            s->cloud[k][i] = (uint32_t)rand_below(seed + 2, n, k + 2);
        }
        s->at[k] = (struct statistics_answers){ s->right[k], s->tokens[k], s->cloud[k] };
    }
}

/* APGR7 of one draw the slow way: the curve is looked up at many shares. */
static double slow_apgr7(const struct sweep *s, const unsigned char *edge,
                         const unsigned char *cloud, size_t draw)
{
    enum { STEPS = 7000 };
    double share[SHARES + 1] = { 0 }, pgr[SHARES + 1] = { 0 }, sum = 0;
    for (size_t k = 0; k < SHARES; k++) {
        double right = 0, low = 0, high = 0, tokens = 0, routed = 0;
        for (size_t i = 0; i < ITEMS; i++) {
            size_t item = (size_t)rand_below(rand_u64(1, draw), i, ITEMS);
            right += s->right[k][item];
            low += edge[item];
            high += cloud[item];
            tokens += s->tokens[k][item];
            routed += s->cloud[k][item];
        }
        size_t at = k + 1; /* insert by share */
        for (; at > 1 && share[at - 1] > routed / tokens; at--) {
            share[at] = share[at - 1];
            pgr[at] = pgr[at - 1];
        }
        share[at] = routed / tokens;
        pgr[at] = (right - low) / (high - low);
    }
    for (size_t j = 0; j < STEPS; j++) {
        double x = 0.07 * ((double)j + 0.5) / STEPS, y = pgr[SHARES];
        for (size_t k = SHARES; k > 0; k--)
            if (x < share[k])
                y = pgr[k - 1] +
                    (pgr[k] - pgr[k - 1]) * (x - share[k - 1]) / (share[k] - share[k - 1]);
        sum += y;
    }
    return sum / STEPS;
}

static void check_apgr_draws(void)
{
    static struct sweep a, b;
    static double x[STATISTICS_DRAWS], y[STATISTICS_DRAWS], ratio[STATISTICS_DRAWS];
    static double kept[STATISTICS_DRAWS];
    unsigned char edge[ITEMS], cloud[ITEMS];
    struct statistics_interval i;
    size_t n = 0;
    make_sweep(&a, 20, 0.2);
    make_sweep(&b, 30, 0.12);
    for (size_t k = 0; k < ITEMS; k++) {
        edge[k] = k % 4 == 0;
        cloud[k] = k % 10 != 0;
    }
    statistics_draw_apgr7(x, a.at, SHARES, edge, cloud, ITEMS);
    statistics_draw_apgr7(y, b.at, SHARES, edge, cloud, ITEMS);
    for (size_t d = 0; d < STATISTICS_DRAWS; d += 97) {
        CHECK(fabs(x[d] - slow_apgr7(&a, edge, cloud, d)) < 1e-3);
        CHECK(fabs(y[d] - slow_apgr7(&b, edge, cloud, d)) < 1e-3);
    }
    statistics_draws_ratio(ratio, x, y);
    for (size_t d = 0; d < STATISTICS_DRAWS; d++) {
        CHECK(isnan(ratio[d]) == !(y[d] > 0));
        if (y[d] > 0)
            CHECK(close_to(kept[n++] = x[d] / y[d], ratio[d]));
    }
    CHECK(n > STATISTICS_DRAWS / 20 * 19 && statistics_draws_interval(&i, ratio));
    CHECK(close_to(i.low, slow_quantile(kept, n, 0.025)));
    CHECK(close_to(i.high, slow_quantile(kept, n, 0.975)));
    statistics_draws_ratio(ratio, x, x);
    CHECK(statistics_draws_interval(&i, ratio) && i.low == 1 && i.high == 1);
    statistics_draw_apgr7(x, a.at, SHARES, edge, edge, ITEMS); /* no gap */
    CHECK(isnan(x[0]) && !statistics_draws_interval(&i, x));
    memset(x, 0, sizeof(x));
    statistics_draws_ratio(ratio, y, x); /* of nothing */
    CHECK(isnan(ratio[5]));
}

int main(void)
{
    check_wilson();
    check_quantiles();
    check_apgr();
    check_bootstrap();
    check_apgr_draws();
    return 0;
}
