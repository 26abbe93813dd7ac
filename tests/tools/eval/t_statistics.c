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

enum { MOST = 64 };

static const uint32_t nothing[4 * MOST];

/* Answers of one training, or of several. */
static struct statistics_answers answers(const unsigned char *right, size_t trainings)
{
    return (struct statistics_answers){ right, nothing, nothing, trainings };
}

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

/* The bootstrap the slow way: each draw as a copy of the items of its groups, `size` each, and
 * quantiles by counting. */
static double slow_statistic(const unsigned char *const *x, size_t arrays, size_t n, size_t size,
                             size_t draw, bool *ok)
{
    double sum[3] = { 0 }, items = 0;
    size_t count = (n + size - 1) / size;
    for (size_t j = 0; j < count; j++) {
        size_t group = (size_t)rand_below(rand_u64(1, draw), j, count);
        for (size_t i = group * size; i < n && i < group * size + size; i++, items++)
            for (size_t k = 0; k < arrays; k++)
                sum[k] += x[k][i];
    }
    *ok = arrays == 2 || sum[2] > sum[1];
    if (arrays == 2)
        return (sum[0] - sum[1]) / items;
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

static void check_slowly(const unsigned char *const *x, size_t arrays, size_t n, size_t size)
{
    static double draws[STATISTICS_DRAWS];
    struct statistics_groups g = groups_of(n, size);
    struct statistics_answers a[3];
    struct statistics_interval got = { 0, 0 };
    size_t kept = 0;
    for (size_t d = 0; d < STATISTICS_DRAWS; d++) {
        bool ok;
        draws[kept] = slow_statistic(x, arrays, n, size, d, &ok);
        kept += ok;
    }
    for (size_t k = 0; k < arrays; k++)
        a[k] = answers(x[k], 1);
    bool has = true;
    if (arrays == 2)
        got = statistics_bootstrap_difference(&a[0], &a[1], &g);
    else
        has = statistics_bootstrap_pgr(&got, &a[0], &a[1], &a[2], &g);
    CHECK(has == (kept * 20 >= STATISTICS_DRAWS * 19));
    CHECK(!has || close_to(got.low, slow_quantile(draws, kept, 0.025)));
    CHECK(!has || close_to(got.high, slow_quantile(draws, kept, 0.975)));
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
    const struct statistics_answers a = answers(half, 1), b = answers(none, 1);
    struct statistics_groups one = groups_of(MOST, MOST), pairs = groups_of(MOST, 2);
    /* A single group says nothing about others. */
    struct statistics_interval d = statistics_bootstrap_difference(&a, &b, &one);
    CHECK(isnan(d.low) && isnan(d.high) && !statistics_bootstrap_pgr(&d, &a, &b, &a, &one));
    d = statistics_accuracy(&a, &one, true);
    CHECK(d.low == 0 && d.high == 1);
    /* Half of each pair is in every draw: nothing varies. */
    d = statistics_accuracy(&a, &pairs, true);
    CHECK(close_to(d.high - d.low, half_width(32) * 2));
    d = statistics_bootstrap_difference(&a, &b, &pairs);
    CHECK(d.low == 0.5 && d.high == 0.5);
    statistics_groups_close(&pairs);
    /* 16 groups of four of which half are all right: 0.5 +- 1.96 * sqrt(0.25 / 16). */
    for (size_t i = 0; i < MOST; i++)
        half[i] = i / 4 % 2;
    struct statistics_groups four = groups_of(MOST, 4), each = groups_of(MOST, 1);
    d = statistics_bootstrap_difference(&a, &b, &four);
    CHECK(fabs(d.low - 0.255) < 0.03 && fabs(d.high - 0.745) < 0.03);
    statistics_groups_close(&one);
    /* Wilson's for 15 questions, as the variance of 16 has 15 degrees of freedom, and for 64 where
     * each is about something else. */
    struct statistics_interval got = statistics_accuracy(&a, &four, true), want;
    CHECK(close_to(got.low, 0.5 - half_width(15)) && close_to(got.high, 0.5 + half_width(15)));
    want = statistics_wilson(32, 64);
    got = statistics_accuracy(&a, &four, false);
    CHECK(got.low == want.low && got.high == want.high);
    got = statistics_accuracy(&a, &each, true);
    CHECK(got.low == want.low && got.high == want.high);
    want = statistics_wilson(0, 16);
    got = statistics_accuracy(&b, &four, true);
    CHECK(close_to(got.low, want.low) && close_to(got.high, want.high));
    statistics_groups_close(&four);
    statistics_groups_close(&each);
}

/* Of two trainings one has all right and the other none: each draw has one of them. Three equal
 * ones are like a single one. */
static void check_trainings(void)
{
    unsigned char two[2 * MOST] = { 0 }, three[3 * MOST], none[MOST] = { 0 };
    memset(two, 1, MOST);
    for (size_t i = 0; i < sizeof(three); i++)
        three[i] = rand_unit(4, i % MOST) < 0.6;
    struct statistics_groups g = groups_of(MOST, 4);
    const struct statistics_answers b = answers(none, 1), single = answers(three, 1);
    const struct statistics_answers a = answers(two, 2), same = answers(three, 3);
    struct statistics_interval d = statistics_bootstrap_difference(&a, &b, &g), e;
    CHECK(d.low == 0 && d.high == 1);
    d = statistics_bootstrap_difference(&a, &a, &g); /* drawn together */
    CHECK(d.low == 0 && d.high == 0);
    d = statistics_bootstrap_difference(&same, &b, &g);
    e = statistics_bootstrap_difference(&single, &b, &g);
    CHECK(close_to(d.low, e.low) && close_to(d.high, e.high));
    /* The variance of the mean of 0 and 1 is 0.5 / 2, as of one question. */
    d = statistics_accuracy(&a, &g, true);
    e = statistics_wilson(1, 2);
    CHECK(d.low < e.low && d.high > e.high); /* half of one question */
    d = statistics_accuracy(&same, &g, true);
    e = statistics_accuracy(&single, &g, true);
    CHECK(close_to(d.low, e.low) && close_to(d.high, e.high));
    statistics_groups_close(&g);
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
    static const size_t sizes[] = { 2, 3, 5, 64 };
    for (size_t k = 0; k < 4; k++) {
        check_slowly(x, 2, sizes[k], 1);
        check_slowly(x, 3, sizes[k], 1);
    }
    check_slowly(x, 2, 64, 3);
    check_slowly(x, 3, 62, 4);
    /* Half of 64 differ, always in the same direction: 0.5 +- 1.96 * sqrt(0.25 / 64). */
    for (size_t i = 0; i < 64; i++) {
        edge[i] = 0;
        routed[i] = i % 2;
    }
    struct statistics_groups g = groups_of(64, 1);
    const struct statistics_answers a = answers(routed, 1), b = answers(edge, 1);
    const struct statistics_answers c = answers(cloud, 1);
    struct statistics_interval d = statistics_bootstrap_difference(&a, &b, &g);
    CHECK(fabs(d.low - 0.3775) < 0.02 && fabs(d.high - 0.6225) < 0.02);
    /* Paired: the same answers differ by nothing, whatever is drawn. */
    d = statistics_bootstrap_difference(&a, &a, &g);
    CHECK(d.low == 0 && d.high == 0);
    memset(cloud, 1, sizeof(cloud));
    CHECK(statistics_bootstrap_pgr(&d, &c, &b, &c, &g) && d.low == 1 && d.high == 1);
    CHECK(!statistics_bootstrap_pgr(&d, &a, &b, &b, &g)); /* no gap */
    /* All right is 1 / p - 1 more than half, and nothing is more than none. */
    CHECK(statistics_bootstrap_pgr(&d, &c, &a, NULL, &g));
    CHECK(fabs(d.low - (1 / 0.6225 - 1)) < 0.05 && fabs(d.high - (1 / 0.3775 - 1)) < 0.1);
    CHECK(statistics_bootstrap_pgr(&d, &a, &a, NULL, &g) && d.low == 0 && d.high == 0);
    CHECK(!statistics_bootstrap_pgr(&d, &a, &b, NULL, &g));
    statistics_groups_close(&g);

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
        s->at[k] = (struct statistics_answers){ s->right[k], s->tokens[k], s->cloud[k], 1 };
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
    struct statistics_groups g = groups_of(ITEMS, 1);
    const struct statistics_answers low = answers(edge, 1), high = answers(cloud, 1);
    make_sweep(&a, 20, 0.2);
    make_sweep(&b, 30, 0.12);
    for (size_t k = 0; k < ITEMS; k++) {
        edge[k] = k % 4 == 0;
        cloud[k] = k % 10 != 0;
    }
    statistics_draw_apgr7(x, a.at, SHARES, &low, &high, &g);
    statistics_draw_apgr7(y, b.at, SHARES, &low, &high, &g);
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
    statistics_draw_apgr7(x, a.at, SHARES, &low, &low, &g); /* no gap */
    CHECK(isnan(x[0]) && !statistics_draws_interval(&i, x));
    memset(x, 0, sizeof(x));
    statistics_draws_ratio(ratio, y, x); /* of nothing */
    CHECK(isnan(ratio[5]));
    statistics_groups_close(&g);
}

int main(void)
{
    check_wilson();
    check_quantiles();
    check_apgr();
    check_groups();
    check_clusters();
    check_trainings();
    check_bootstrap();
    check_apgr_draws();
    return 0;
}
