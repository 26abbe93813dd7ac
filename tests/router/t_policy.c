/* Tests policies: names, the four scores against doubles, their limits, the share of random. */
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "router/policy.h"
#include "tests/support/test.h"

/* Compute the score in double. */
static double reference(enum policy p, const float *x, size_t n)
{
    size_t best = 0, second = n;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    for (size_t i = 0; i < n; i++)
        if (i != best && (second == n || x[i] > x[second]))
            second = i;
    double sum = 0, h = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i] - (double)x[best]);
    for (size_t i = 0; i < n; i++) {
        double q = exp((double)x[i] - (double)x[best]) / sum;
        h -= q > 0 ? q * log(q) : 0;
    }
    double p2 = second < n ? exp((double)x[second] - (double)x[best]) / sum : 0;
    return p == POLICY_MAX_PROB ? 1 / sum
           : p == POLICY_MARGIN ? 1 / sum - p2
                                : 1 - h / log((double)n);
}

static void check_scores(const struct kernels *k)
{
    static const size_t sizes[] = { 2, 3, 15, 16, 17, 1000, 1021 };
    static const enum policy policies[] = { POLICY_MAX_PROB, POLICY_MARGIN, POLICY_ENTROPY };
    static float x[1021];
    for (size_t s = 0; s < 7; s++)
        for (size_t round = 0; round < 20; round++) {
            float scale = (float)round * (float)round / 4;
            for (size_t i = 0; i < sizes[s]; i++)
                x[i] = scale * (float)(rand_unit(s * 100 + round, i) - 0.5);
            for (size_t p = 0; p < 3; p++) {
                float got = policy_score_logits(policies[p], x, sizes[s], k);
                CHECK(got >= 0 && got <= 1);
                CHECK(fabs((double)got - reference(policies[p], x, sizes[s])) < 1e-5);
            }
        }
}

/* By hand: logits ln 4, 0, ln 3 have the probabilities 1/2, 1/8, 3/8. */
static void check_confidence(const struct kernels *k)
{
    const float x[] = { 1.3862944f, 0, 1.0986123f }, none[] = { NAN, NAN },
                far[] = { 1, -INFINITY };
    struct policy_confidence c;
    policy_confidence(&c, x, 3, k);
    CHECK(c.best == 0 && fabsf(c.p1 - 0.5f) < 1e-6f && fabsf(c.p2 - 0.375f) < 1e-6f);
    CHECK(fabsf(c.margin - 0.125f) < 1e-6f && fabsf(c.gap - 0.2876821f) < 1e-6f);
    CHECK(fabs(c.entropy - (0.5 * log(2) + 0.125 * log(8) + 0.375 * log(8.0 / 3))) < 1e-6);
    policy_confidence(&c, x, 1, k);
    CHECK(c.p1 == 1 && c.p2 == 0 && c.margin == 1 && c.gap == 0);
    policy_confidence(&c, far, 2, k);
    CHECK(c.p1 == 1 && c.p2 == 0 && isfinite(c.gap));
    policy_confidence(&c, none, 2, k);
    CHECK(c.p1 == 0 && c.p2 == 0 && c.entropy == 0 && c.gap == 0);
}

/* Over as many ids as Qwen2.5 has, spread more and less: the log of the sum is that of a sum in
 * double, and its errors are to both sides. */
static void check_logsum(const struct kernels *k)
{
    enum { IDS = 151665, TIMES = 8 };
    static float x[IDS];
    for (size_t scale = 1; scale <= 5; scale += 2) {
        double mean = 0;
        for (size_t t = 0; t < TIMES; t++) {
            double sum = 0, max = (double)-INFINITY;
            for (size_t i = 0; i < IDS; i++) {
                double four = 0; /* draws, as good as normal */
                for (size_t j = 0; j < 4; j++)
                    four += rand_unit(t, 4 * i + j) - 0.5;
                x[i] = (float)((double)scale * sqrt(3) * four);
                max = (double)x[i] > max ? (double)x[i] : max;
            }
            x[t] = (float)(max += (double)scale);
            for (size_t i = 0; i < IDS; i++)
                sum += exp((double)x[i] - max);
            double off = policy_logsum(x, IDS, k) - (max + log(sum));
            CHECK_MSG(fabs(off) < 1e-6, "%s: scale %zu: off by %g", k->isa, scale, off);
            mean += off / TIMES;
        }
        CHECK_MSG(fabs(mean) < 5e-8, "%s: scale %zu: off by %g on average", k->isa, scale, mean);
    }
    CHECK(isnan(policy_logsum((const float[]){ NAN, NAN }, 2, k)));
    CHECK(policy_logsum((const float[]){ 2, -INFINITY }, 2, k) == 2);
}

static void check_limits(const struct kernels *k)
{
    float x[4] = { 1, 1, 1, 1 };
    CHECK(policy_score_logits(POLICY_MAX_PROB, x, 4, k) == 0.25f);
    CHECK(policy_score_logits(POLICY_MARGIN, x, 4, k) == 0);
    CHECK(policy_score_logits(POLICY_ENTROPY, x, 4, k) < 1e-6f);
    CHECK(policy_score_logits(POLICY_ENTROPY, x, 1, k) == 1);
    x[2] = 1000;
    for (enum policy p = POLICY_ENTROPY; p <= POLICY_MARGIN; p++)
        CHECK(policy_score_logits(p, x, 4, k) > 0.9999f);
    x[0] = NAN; /* a number above -inf is still the largest */
    CHECK(policy_score_logits(POLICY_MARGIN, x, 4, k) > 0.9999f);
    for (enum policy p = POLICY_ENTROPY; p <= POLICY_MARGIN; p++) {
        float bad[2] = { NAN, -INFINITY };
        CHECK(policy_score_logits(p, bad, 2, k) == 0);
        bad[1] = INFINITY;
        CHECK(policy_score_logits(p, bad, 2, k) == 0);
    }
}

/* A place by numbers; a text is none. */
static void check_places(void)
{
    static const char *const texts[] = { "", "-", "1-", "-4", "1-4 ", "1--4", "a", "1,4" };
    size_t range[2];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CHECK_MSG(!policy_place(range, texts[i]), "%s", texts[i]);
    CHECK(policy_place(range, "7") && range[0] == 7 && range[1] == 7);
    CHECK(policy_place(range, "10-25") && range[0] == 10 && range[1] == 25);
    for (size_t i = 0; i < 9; i++)
        CHECK((policy_score_position("0-3", NULL, NULL, i) < 1) == (i < 4));
    CHECK(policy_score_position("2", NULL, NULL, 2) < 1);
}

int main(void)
{
    check_places();
    for (enum policy p = POLICY_MLP; p < POLICY_COUNT; p++) {
        enum policy back;
        CHECK(policy_parse(&back, policy_name(p)) && back == p);
        CHECK(policy_reads_network(p) == (p == POLICY_MLP || p == POLICY_COMBINED));
        CHECK(policy_reads_router(p) == (policy_reads_network(p) || p == POLICY_CONTEXT));
        bool logits = p == POLICY_ENTROPY || p == POLICY_MAX_PROB || p == POLICY_MARGIN;
        CHECK(policy_reads_logits(p) == logits);
        CHECK(policy_judges(p) == (logits || policy_reads_router(p)));
    }
    enum policy none;
    CHECK(!policy_parse(&none, "MLP") && !policy_parse(&none, "") && !policy_parse(&none, "ml"));

    for (size_t i = 0; i < kernels_nsets; i++) {
        struct kernels k;
        if (!kernels_ready(kernels_sets[i], cpu_detect()))
            continue;
        CHECK(kernels_pick(&k, kernels_sets[i]->isa, cpu_detect(), NULL) == OK);
        check_scores(&k);
        check_confidence(&k);
        check_limits(&k);
    }
    struct kernels k;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    check_logsum(&k);

    size_t below = 0, same = 0, n = 100000;
    for (size_t i = 0; i < n; i++) {
        float u = policy_score_random(3, i);
        CHECK(u >= 0 && u <= 1 && u == policy_score_random(3, i));
        below += u < 0.07f;
        same += u == policy_score_random(4, i) || u == (float)rand_unit(3, i);
    }
    CHECK(below > 6700 && below < 7300 && same < 10);
    return 0;
}
