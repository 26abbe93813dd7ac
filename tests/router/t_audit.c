/* Tests the audit: what is asked once a text has ended, what stops it, and how often its intervals
 * hold the truth. t_ahead.c draws audits at random and compares windows. */
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "router/binomial.h"
#include "tests/router/ahead_help.h"

enum { SEEDS = 20, RUNS = 50, ODDS = 20 };

/* Make a case without limits: texts of up to MOST tokens, three in ten of them routed. */
static struct setup plain(uint64_t seed)
{
    struct setup c = { .truth = { .seed = seed, .agree = 80, .tokens = 1, .room = SIM_MEMO },
                       .sample = { .top_p = 1, .repeat_penalty = 1 },
                       .policy = POLICY_RANDOM,
                       .threshold = 0.3f,
                       .seed = seed,
                       .delay = 20,
                       .limits = caps_none,
                       .audit = 1,
                       .max_tokens = MOST };
    for (size_t i = 0; i < TEXTS; i++) {
        c.nprompt[i] = 4;
        for (size_t j = 0; j < 4; j++)
            c.prompt[i][j] = (uint32_t)(33 + rand_below(seed, 4 * i + j, 80));
    }
    return c;
}

/* Return what one case has found, over its texts. */
static struct mizzle_audit audit(const struct setup *c, size_t window)
{
    struct mizzle_audit sum = { 0 };
    struct result *r = &results[0];
    uint64_t cost = 0;
    run_window(r, c, window, c->seed);
    for (size_t i = 0; i < TEXTS; i++) {
        const struct mizzle_audit *a = &r->text[i].stats.audit;
        sum.drawn += a->drawn;
        sum.kept += a->kept;
        sum.missed += a->missed;
        sum.again += a->again;
        sum.flipped += a->flipped;
        sum.calls += a->calls;
        sum.failed += a->failed;
        cost += r->text[i].stats.cost;
    }
    CHECK(cost == r->count.cost);
    return sum;
}

/* Everything is asked: each local token, and each that took a call; not those that were known. */
static void test_all(void)
{
    for (size_t w = 0; w < WINDOWS; w++) {
        struct setup c = plain(5);
        c.limits.price = (struct caps_price){ 3, 1, 10 };
        const struct result *r = &results[0];
        struct mizzle_audit a = audit(&c, windows[w]);
        size_t edge = 0, called = 0;
        for (size_t i = 0; i < TEXTS; i++) {
            const struct decode_stats *s = &r->text[i].stats;
            CHECK(r->text[i].rc == OK && s->audit.cost > 0 && s->audit.cost < s->cost);
            edge += s->tokens - s->cloud;
            called += s->committed;
        }
        CHECK(a.kept == edge && a.again == called && a.drawn == edge + called && !a.failed);
        CHECK(edge > 20 && called > 5 && a.missed > 0 && a.missed < a.kept && !a.flipped);
        c.truth.flip = 100;
        a = audit(&c, windows[w]);
        CHECK(a.again == called && a.flipped == called);
        c.truth.flip = 0;
        c.truth.agree = 100;
        a = audit(&c, windows[w]);
        CHECK(a.kept && !a.missed && !a.flipped);
    }
}

/* What must not be asked, and what ends it. */
static void test_held(void)
{
    const struct result *r = &results[0];
    struct setup c = plain(6);
    struct mizzle_audit all = audit(&c, 0), a;
    size_t text = results[0].text[0].stats.committed;
    c.limits.tokens = text + 7; /* what the first text leaves goes to its audit */
    a = audit(&c, 4);
    CHECK(r->text[0].stats.committed == text && r->text[0].stats.audit.calls == 7);
    CHECK(r->count.tokens == text + 7 && r->text[1].stats.fallback && !r->text[1].stats.cloud);
    CHECK(a.drawn > 20 && a.kept + a.again == 7);
    c = plain(6);
    c.private = true;
    c.prompt[0][1] = 'Q';
    a = audit(&c, 4);
    CHECK(r->text[0].stats.audit.drawn > 10 && !r->text[0].stats.audit.calls);
    CHECK(r->text[1].stats.audit.calls > 10);
    c = plain(6);
    c.truth.fault = 100; /* nothing but faults: three, and none in the second text */
    c.required = true;   /* for the text */
    c.policy = POLICY_NEVER;
    a = audit(&c, 0);
    CHECK(r->text[0].rc == OK && r->text[0].stats.audit.failed == BREAKER_FAULTS);
    CHECK(a.failed == BREAKER_FAULTS && !a.kept && a.calls == a.failed && !r->gate.breaker.pause);
    c = plain(6);
    c.truth.refused = 100;
    c.policy = POLICY_NEVER;
    a = audit(&c, 4);
    CHECK(a.failed == 1 && !r->gate.refused && r->text[1].stats.audit.drawn);
    c = plain(6);
    c.most = 9; /* emit ends the text */
    a = audit(&c, 4);
    CHECK(r->text[0].stats.finish == FINISH_STOP && r->text[0].n == 9 && !a.drawn && !a.calls);
    c = plain(6);
    c.interrupt_after = 9;
    a = audit(&c, 4);
    CHECK(r->text[0].rc == ERR_STOP && !a.drawn && !a.calls);
    CHECK(all.kept > 20 && all.again > 5);
}

/* Another prompt or seed draws other tokens, and about the share that is asked for. */
static void test_share(void)
{
    size_t kinds = 0, last = 0, drawn = 0, all = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct setup c = plain(seed);
        c.policy = POLICY_NEVER;
        c.seed = 1; /* the prompts differ */
        all += audit(&c, 0).drawn;
        c.audit = 0.25;
        struct mizzle_audit a = audit(&c, 0);
        kinds += a.drawn != last;
        last = a.drawn;
        drawn += a.drawn;
    }
    CHECK(kinds > 50);
    CHECK(4 * drawn > all - all / 10 && 4 * drawn < all + all / 10);
}

/* A share of 1 % finds both rates, within its interval, in 19 of 20 seeds: that of the errors
 * missed, which asking about all tokens tells, and the odds with which this cloud flips. */
static void test_intervals(void)
{
    size_t missed = 0, flipped = 0, asked = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct mizzle_audit sum[2] = { { 0 }, { 0 } };
        for (uint64_t i = 0; i < RUNS; i++) {
            struct setup c = plain(100 * seed + i);
            c.truth.flip = ODDS;
            c.truth.seed = seed;
            for (size_t k = 0; k < 2; k++) {
                c.audit = k ? 0.01 : 1;
                struct mizzle_audit a = audit(&c, 0);
                sum[k].kept += a.kept;
                sum[k].missed += a.missed;
                sum[k].again += a.again;
                sum[k].flipped += a.flipped;
            }
        }
        double low, high, truth = (double)sum[0].missed / (double)sum[0].kept;
        binomial_interval(&low, &high, sum[1].missed, sum[1].kept, 0.95);
        missed += low <= truth && truth <= high;
        binomial_interval(&low, &high, sum[1].flipped, sum[1].again, 0.95);
        flipped += low <= ODDS / 100.0 && ODDS / 100.0 <= high;
        asked += sum[1].kept + sum[1].again;
        CHECK(truth > 0.05 && truth < 0.5);
    }
    fprintf(stderr, "errors missed in %zu of 20 intervals, flips in %zu; %zu tokens a seed\n",
            missed, flipped, asked / SEEDS);
    CHECK(missed >= 19 && flipped >= 19);
}

int main(void)
{
    open_all();
    test_all();
    test_held();
    test_share();
    const char *run = getenv("RUN");
    if (!SANITIZED && !(run && *run)) /* 4,000 texts, which do nothing that the others do not */
        test_intervals();
    close_all();
    return 0;
}
