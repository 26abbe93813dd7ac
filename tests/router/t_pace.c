/* t_pace - the factor of the pace by hand, with the texts of a gate, and over many answers. */
#include "router/price.h"

#include <math.h>

#include "kernels/math.h"
#include "router/gate.h"
#include "tests/support/test.h"

enum { MANY = 400 };

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12 * (1 + fabs(b));
}

/* Four answers share eight tokens. */
static void test_hand(void)
{
    struct caps_limits limits = caps_none;
    struct caps_count count = { 0 };
    struct price_pace p = { .answers = 4 };
    limits.tokens = 8;
    CHECK(price_pace_factor(&p) == 1);
    count.tokens = 4; /* the target was 2: twice as much */
    price_pace_ended(&p, &limits, &count);
    CHECK(near(p.level, 1) && near(price_pace_factor(&p), exp(1)));
    count.tokens += 2; /* the target was 4 / 3: half as much again, and the step is 1 / 2 */
    price_pace_ended(&p, &limits, &count);
    CHECK(near(p.level, 1.25));
    price_pace_ended(&p, &limits, &count); /* nothing: the factor falls by a third */
    CHECK(near(p.level, 1.25 - 1.0 / 3) && near(price_pace_factor(&p), exp(1.25 - 1.0 / 3)));
    count.tokens += 2; /* all that is left for the last one */
    price_pace_ended(&p, &limits, &count);
    CHECK(near(p.level, 1.25 - 1.0 / 3) && p.ended == 4);
    limits.tokens = 10; /* beyond the last answer, each may have what is left */
    count.tokens += 1;
    price_pace_ended(&p, &limits, &count);
    CHECK(near(p.level, 1.25 - 1.0 / 3 - 0.5 / 5));
}

static void test_bounds(void)
{
    struct caps_limits limits = caps_none;
    struct caps_count count = { 0 };
    struct price_pace p = { 0 };
    limits.tokens = 1000;
    count.tokens = 900;
    price_pace_ended(&p, &limits, &count); /* there is no pace */
    CHECK(!p.ended && price_pace_factor(&p) == 1);
    p.answers = 1000000;
    for (size_t i = 0; i < 100; i++) { /* all spend too much */
        count.tokens = 9 * (i + 1);
        double before = p.level;
        price_pace_ended(&p, &limits, &count);
        CHECK(p.level <= before + 1 && p.level <= 64 && isfinite(price_pace_factor(&p)));
    }
    CHECK(p.level == 64);
    p = (struct price_pace){ .answers = 4 };
    price_pace_ended(&p, &limits,
                     &(struct caps_count){ 0 }); /* one that spends less than its target */
    CHECK(p.ended == 1 && price_pace_factor(&p) == 1);
}

/* Of several caps the scarcest counts. */
static void test_scarcest(void)
{
    const struct caps_limits limits = { 100, 1000, 500, { 1, 1, 1 } };
    const struct caps_count counts[] = { { 15, 100, 50, 0 },
                                         { 10, 150, 50, 0 },
                                         { 10, 100, 75, 0 } };
    for (size_t i = 0; i < 3; i++) {
        struct price_pace p = { .answers = 10 };
        price_pace_ended(&p, &limits, &counts[i]);
        CHECK(near(p.level, 0.5));
    }
}

/* A text has the factor of its beginning, and changes it at its end, if it is one of the answers
 * of the pace and was begun at all. */
static void test_gate(void)
{
    const uint32_t ids[] = { 1, 2, 3 };
    const struct caps_call call = { .n = 3, .tokens = 4 }, ways[2] = { call, call };
    struct caps caps;
    struct caps_limits limits = caps_none;
    struct gate gate = { .caps = &caps, .pace = { .answers = 4 } };
    struct gate_text a, b, other, never = { 0 };
    struct err why;
    size_t way;
    limits.tokens = 8;
    caps_begin(&caps, &limits);
    gate_begin(&gate, &a, ids, 3, true);
    gate_begin(&gate, &other, ids, 3, false);
    CHECK(gate_decide(&gate, &a, ways, false, &way, &why) == GATE_OPEN);
    gate_done(&gate, &a, GATE_OPEN, ids, &call, &why);
    gate_begin(&gate, &b, ids, 3, true);
    gate_end(&gate, &other);
    gate_end(&gate, &never);
    CHECK(a.factor == 1 && b.factor == 1 && !gate.pace.ended);
    gate_end(&gate, &a);
    CHECK(near(gate.pace.level, 1) && gate.pace.ended == 1);
    gate_end(&gate, &b);
    CHECK(near(gate.pace.level, 0.5));
    gate_begin(&gate, &a, ids, 3, true);
    CHECK(near(a.factor, exp(0.5)));
    gate_end(&gate, &a);
    caps_end(&caps);
}

/* Answers whose wishes differ widely, and which want `times` as much as there is: the cap is spent,
 * and the last hundred of them have as much as the first. */
static void spread(double times, uint64_t seed)
{
    struct caps_limits limits = caps_none;
    struct caps_count count = { 0 };
    struct price_pace p = { .answers = MANY };
    double first = 0, last = 0;
    limits.tokens = (uint64_t)(MANY * 10 / times);
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t wants = (uint64_t)(20 * rand_unit(seed, i) / price_pace_factor(&p) + 0.5);
        uint64_t left = limits.tokens - count.tokens;
        count.tokens += wants < left ? wants : left;
        first += i < 100 ? (double)wants : 0;
        last += i >= MANY - 100 ? (double)wants : 0;
        price_pace_ended(&p, &limits, &count);
    }
    double spent = (double)count.tokens / (double)limits.tokens;
    CHECK(times < 1 || spent > 0.97);
    CHECK(fabs(first - last) < 0.25 * (first + last) / 2);
}

int main(void)
{
    test_hand();
    test_bounds();
    test_scarcest();
    test_gate();
    for (uint64_t seed = 1; seed < 20; seed++) {
        spread(0.5, seed);
        spread(1.5, seed);
        spread(2, seed);
        spread(5, seed);
    }
    return 0;
}
