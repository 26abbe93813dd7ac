/* Tests measures of scores against numbers worked out by hand; t_fit_gain.c counts pairs. */
#include "router/learn/measures.h"
#include "tests/support/test.h"

enum { N = 9 };

static const float score[N] = { 0.05f, 0.95f, 0.45f, 0.5f, 0.45f, 1, 0, 0.3f, 0.7f };
static const unsigned char label[N] = { 0, 1, 0, 1, 1, 1, 0, 1, 0 };
static const uint32_t before[N][2] = { { 1, 2 }, { 1, 2 }, { 1, 2 }, { 3, 2 }, { 1, 2 },
                                       { 3, 2 }, { 4, 2 }, { 1, 4 }, { 1, 4 } };

/* Of 20 pairs (4 wrong, 5 right): .05 and 0 are below all five; .45 is below .5, .95 and 1, equal
 * to .45; .7 is below .95 and 1. So 5 + 5 + 3.5 + 2 = 15.5.
 *
 * In context (1, 2) are two wrong and two right: .05 < .45, .95; .45 = .45, < .95: 3.5 of 4 pairs.
 * (3, 2) has no wrong one, (4, 2) no right one; in (1, 4), .7 is above .3: 0 of 1. */
static void check_by_hand(void)
{
    struct measures m;
    CHECK(measures_of(&m, score, label, before, N, NULL) == OK);
    CHECK(fabs(m.auc - 15.5 / 20) < 1e-12);
    CHECK(m.context_pairs == 5 && fabs(m.context_auc - 3.5 / 5) < 1e-12);
    static const size_t wrong[MEASURES_BINS] = { 2, 0, 0, 0, 1, 0, 0, 1, 0, 0 };
    static const size_t right[MEASURES_BINS] = { 0, 0, 0, 1, 1, 1, 0, 0, 0, 2 };
    /* .3 and .7 are a little above in floats, so .7 * 10 falls into bin 7 and .3 * 10 into 3. */
    CHECK(!memcmp(m.wrong, wrong, sizeof(wrong)) && !memcmp(m.right, right, sizeof(right)));
    double ece = 0.05 + fabs(0.3 - 1) + fabs(0.9 - 1) + fabs(0.5 - 1) + 0.7 + fabs(1.95 - 2);
    CHECK(fabs(m.ece - ece / N) < 1e-6);
}

static int measure_once(const void *arg)
{
    struct measures m;
    (void)arg;
    return measures_of(&m, score, label, before, N, NULL);
}

static void check_limits(void)
{
    struct measures m;
    CHECK(measures_of(&m, score, label, before, 1, NULL) == OK);
    CHECK(isnan(m.auc) && isnan(m.context_auc) && m.context_pairs == 0);
    CHECK(measures_of(&m, score + 5, label + 5, before + 5, 2, NULL) == OK);
    CHECK(m.auc == 1 && isnan(m.context_auc));
    torture_some(measure_once, NULL);
}

/* Thresholds by hand, and the AUC with equal scores. */
static void check_cuts(void)
{
    static const float scores[] = { 0.1f, 0.9f, 0.4f, 0.4f, 0.2f, 0.8f, 0.7f, 0.6f, 0.5f, 0.95f };
    static const unsigned char right[] = { 0, 1, 0, 1, 1, 1, 1, 1, 1, 1 };
    double auc = 0, pairs;
    /* The wrong .1 is below all 8 right ones; the wrong .4 is below 6 and equal to 1: 14.5 of 16
     * pairs. */
    CHECK(measures_auc(&auc, &pairs, scores, right, NULL, 10, NULL) == OK && auc == 14.5 / 16);
    CHECK(measures_auc(&auc, &pairs, scores, right + 3, NULL, 7, NULL) == OK && isnan(auc));

    struct measures_cut cut;
    CHECK(measures_find_cut(&cut, scores, right, 10, 0.5, 1, NULL) == OK);
    CHECK(cut.threshold > 0.4f && cut.threshold < 0.5f && cut.routed == 0.4 && cut.caught == 1);
    CHECK(measures_find_cut(&cut, scores, right, 10, 0.39, 1, NULL) ==
          OK); /* equal scores stay together */
    CHECK(cut.threshold > 0.2f && cut.threshold <= 0.4f && cut.routed == 0.2 && cut.caught == 0.5);
    CHECK(measures_find_cut(&cut, scores, right, 10, 0.9, 0.5, NULL) == OK && cut.routed == 0.1);
    CHECK(measures_find_cut(&cut, scores, right, 10, 0.05, 1, NULL) == OK);
    CHECK(cut.threshold == 0 && cut.routed == 0 && cut.caught == 0);
}

int main(void)
{
    check_by_hand();
    check_limits();
    check_cuts();
    return 0;
}
