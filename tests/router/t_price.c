/* t_price - policy price: what a call costs, what it is worth, and where it is asked for. */
#include <math.h>

#include "kernels/math.h"
#include "router/caps.h"
#include "router/price.h"
#include "tests/support/test.h"

/* A call pays exactly below one half: worth x p > cost. */
static void test_rule(void)
{
    for (uint64_t i = 0; i < 5000; i++) {
        const struct price p = { .worth = 100 * rand_unit(1, i) + 1e-3,
                                 .call = rand_unit(2, i),
                                 .up = rand_unit(3, i) / 50,
                                 .cached = rand_unit(4, i) / 100,
                                 .down = rand_unit(5, i) };
        float wrong = (float)rand_unit(7, i);
        size_t n = 1 + (size_t)rand_below(9, i, 500), warm = (size_t)rand_below(10, i, n + 1);
        double cost = p.call + p.up * (double)(n - warm) + p.cached * (double)warm + p.down;
        double gain = p.worth * (double)wrong;
        float score = price_score(&p, wrong, n, warm);
        CHECK(score >= 0 && score <= 1);
        CHECK(fabs(gain - cost) < 1e-6 * cost || (score < 0.5f) == (gain > cost));
        CHECK(fabs((double)score - cost / (cost + gain)) < 1e-6);
    }
}

/* A call of a text that the server has begun to read is asked for sooner. */
static void test_order(void)
{
    struct price p = { .worth = 1, .up = 0.01, .cached = 0.001 };
    CHECK(price_score(&p, 0.5f, 100, 90) < price_score(&p, 0.5f, 100, 0));
    CHECK(price_score(&p, 0, 100, 0) == 1); /* nothing to gain */
    p = (struct price){ .worth = 1 };
    CHECK(price_score(&p, 0.5f, 100, 0) == 0); /* it costs nothing */
    CHECK(price_score(&p, 0, 100, 0) == 1);
}

static void test_set(void)
{
    struct price p;
    const struct caps_price none = { 0 }, some = { 2500000, 250000, 10000000 };
    price_set(&p, 20, &none);
    CHECK(p.worth == 20 && p.call == 1 && p.up == 0 && p.down == 0);
    price_set(&p, 0.01, &some);
    CHECK(p.call == 0 && fabs(p.up - 2.5e-6) < 1e-18 && fabs(p.cached - 2.5e-7) < 1e-18);
    CHECK(fabs(p.down - 1e-5) < 1e-18);
}

int main(void)
{
    test_rule();
    test_order();
    test_set();
    return 0;
}
