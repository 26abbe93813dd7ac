/* Tests what eval reports about its figures: values worked out by hand, and the bootstrap against a
 * slow version of its own. */
#include <math.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
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

enum { MOST = 64 };

/* Group n items: `size` after each other are about the same. */
static struct statistics_groups groups_of(size_t n, size_t size)
{
    struct statistics_groups g;
    struct err err;
    uint64_t keys[MOST];
    for (size_t i = 0; i < n; i++)
        keys[i] = rand_u64(9, i / size);
    CHECK(statistics_groups_open(&g, keys, n, &err) == OK && g.n == n);
    return g;
}

static void check_groups(void)
{
    struct statistics_groups g;
    struct err err;
    const uint64_t keys[] = { 7, 3, 7, UINT64_MAX, 3, 0 };
    static const uint32_t of[] = { 0, 1, 0, 2, 1, 3 };
    CHECK(statistics_groups_open(&g, keys, 6, &err) == OK);
    CHECK(g.n == 6 && g.count == 4 && !memcmp(g.of, of, sizeof(of)));
    statistics_groups_close(&g);
    CHECK(statistics_groups_open(&g, NULL, 0, &err) == OK && !g.count);
    statistics_groups_close(&g);
}

/* A draw of the bootstrap the slow way: as a copy of the items of its groups, `size` each. */
static double slow_difference(const unsigned char *a, const unsigned char *b, size_t n, size_t size,
                              size_t draw)
{
    double sum = 0, items = 0;
    size_t count = (n + size - 1) / size;
    for (size_t j = 0; j < count; j++) {
        size_t group = (size_t)rand_below(rand_u64(1, draw), j, count);
        for (size_t i = group * size; i < n && i < group * size + size; i++, items++)
            sum += a[i] - b[i];
    }
    return sum / items;
}

static void check_slowly(const unsigned char *a, const unsigned char *b, size_t n, size_t size)
{
    static double draws[STATISTICS_DRAWS];
    struct statistics_groups g = groups_of(n, size);
    for (size_t d = 0; d < STATISTICS_DRAWS; d++)
        draws[d] = slow_difference(a, b, n, size, d);
    struct statistics_interval got = statistics_bootstrap_difference(a, b, &g);
    CHECK(close_to(got.low, statistics_quantile(draws, STATISTICS_DRAWS, 0.025)));
    CHECK(close_to(got.high, statistics_quantile(draws, STATISTICS_DRAWS, 0.975)));
    statistics_groups_close(&g);
}

/* Return how far Wilson's interval of one half goes to either side, for n questions. */
static double half_width(double n)
{
    const double z = 1.959963984540054;
    return z / (2 * sqrt(n + z * z));
}

/* What can be worked out by hand. */
static void check_clusters(void)
{
    unsigned char half[MOST], none[MOST] = { 0 };
    for (size_t i = 0; i < MOST; i++)
        half[i] = i % 2;
    struct statistics_groups one = groups_of(MOST, MOST), pairs = groups_of(MOST, 2);
    /* A single group says nothing about others. */
    struct statistics_interval d = statistics_bootstrap_difference(half, none, &one);
    CHECK(isnan(d.low) && isnan(d.high));
    d = statistics_accuracy(half, &one, true);
    CHECK(d.low == 0 && d.high == 1);
    /* Half of each pair is in every draw: nothing varies. */
    d = statistics_accuracy(half, &pairs, true);
    CHECK(close_to(d.high - d.low, half_width(32) * 2));
    d = statistics_bootstrap_difference(half, none, &pairs);
    CHECK(d.low == 0.5 && d.high == 0.5);
    statistics_groups_close(&pairs);
    /* 16 groups of four of which half are all right: 0.5 +- 1.96 * sqrt(0.25 / 16). */
    for (size_t i = 0; i < MOST; i++)
        half[i] = i / 4 % 2;
    struct statistics_groups four = groups_of(MOST, 4), each = groups_of(MOST, 1);
    d = statistics_bootstrap_difference(half, none, &four);
    CHECK(fabs(d.low - 0.255) < 0.03 && fabs(d.high - 0.745) < 0.03);
    statistics_groups_close(&one);
    /* Wilson's for 15 questions, as the variance of 16 has 15 degrees of freedom, and for 64 where
     * each is about something else. */
    struct statistics_interval got = statistics_accuracy(half, &four, true), want;
    CHECK(close_to(got.low, 0.5 - half_width(15)) && close_to(got.high, 0.5 + half_width(15)));
    want = statistics_wilson(32, 64);
    got = statistics_accuracy(half, &four, false);
    CHECK(got.low == want.low && got.high == want.high);
    got = statistics_accuracy(half, &each, true);
    CHECK(got.low == want.low && got.high == want.high);
    want = statistics_wilson(0, 16);
    got = statistics_accuracy(none, &four, true);
    CHECK(close_to(got.low, want.low) && close_to(got.high, want.high));
    statistics_groups_close(&four);
    statistics_groups_close(&each);
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
        check_slowly(routed, edge, sizes[k], 1);
    check_slowly(routed, edge, 64, 3);
    check_slowly(routed, edge, 62, 4);
    /* Half of 64 differ, always in the same direction: 0.5 +- 1.96 * sqrt(0.25 / 64). */
    for (size_t i = 0; i < 64; i++) {
        edge[i] = 0;
        routed[i] = i % 2;
    }
    struct statistics_groups g = groups_of(64, 1);
    struct statistics_interval d = statistics_bootstrap_difference(routed, edge, &g);
    CHECK(fabs(d.low - 0.3775) < 0.02 && fabs(d.high - 0.6225) < 0.02);
    /* Paired: the same answers differ by nothing, whatever is drawn. */
    d = statistics_bootstrap_difference(routed, routed, &g);
    CHECK(d.low == 0 && d.high == 0);
    statistics_groups_close(&g);
}

int main(void)
{
    check_wilson();
    check_quantiles();
    check_groups();
    check_clusters();
    check_bootstrap();
    return 0;
}
