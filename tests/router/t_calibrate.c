/* Tests calibration on simulated closed loops whose every answer can be computed again: shares,
 * accuracies, ties, constant scores, feedback, policies without scores, the exact binomial bound
 * and its coverage, and every failure of the source and of an allocation. */
#include "router/binomial.h"
#include "router/learn/calibrate.h"
#include "router/policy.h"
#include "tests/support/test.h"

enum { TOKENS = 40 };

/* A loop of two writers. Scores follow from the text so far, so a routed token changes all later
 * ones; the more are routed, the higher the scores (drift > 0) or the lower (drift < 0). */
struct loop {
    uint64_t seed;
    size_t levels; /* scores are tied on this many; 0: they are not */
    double drift;
    float constant; /* every score; NaN: none of it */
    enum { ROUTE_BY_SCORE, ROUTE_ALL, ROUTE_NONE } route;
    size_t left_out; /* every n-th item; 0: none */
    size_t fail_at;  /* the call that fails, from 1; 0: none */
    size_t calls;
    float tie; /* part of the tied tokens that are routed */
    float scores[TOKENS];
};

static int loop_answer(void *arg, size_t i, float threshold, struct calibrate_answer *out,
                       struct err *err)
{
    struct loop *l = arg;
    if (++l->calls == l->fail_at)
        return err_set(err, ERR_NET, "call %zu failed", l->calls);
    uint64_t text = rand_u64(l->seed, i);
    *out = (struct calibrate_answer){ .scores = l->scores, .right = true };
    out->left_out = l->left_out && i % l->left_out == 0;
    size_t length = 10 + rand_below(text, 1, TOKENS - 12);
    for (; out->tokens < length; out->tokens++) {
        double u = rand_unit(text, 2), wrong = rand_unit(text, 3);
        double s = sqrt(u), pull = 1 / (1 + fabs(l->drift) * (double)out->cloud);
        s = l->drift < 0 ? s * pull : 1 - (1 - s) * pull;
        s = l->levels ? floor(s * (double)l->levels) / (double)l->levels : s;
        float score = isnan(l->constant) ? (float)s : l->constant;
        bool tied = fabsf(score - threshold) <= 0 &&
                    policy_draw_tie(rand_u64(l->seed, i), out->tokens) < l->tie;
        bool routed =
            l->route == ROUTE_ALL || (l->route == ROUTE_BY_SCORE && (score < threshold || tied));
        l->scores[out->tokens] = l->route == ROUTE_BY_SCORE ? score : NAN;
        out->cloud += routed;
        out->right &= routed || wrong > 0.1 * (1 - u);
        text = rand_u64(text, routed);
    }
    length = TOKENS - 1; /* the last ones must not be read */
    for (size_t k = out->tokens; k < length; k++)
        l->scores[k] = -7;
    return OK;
}

static const struct loop plain = { .seed = 5, .constant = NAN };

/* Measure a threshold the slow way. */
static struct calibrate_result slowly(struct loop l, size_t n, float threshold)
{
    struct calibrate_result r = { .threshold = threshold };
    for (size_t i = 0; i < n; i++) {
        struct calibrate_answer a;
        l.fail_at = 0;
        CHECK(loop_answer(&l, i, threshold, &a, NULL) == OK);
        if (a.left_out)
            continue;
        r.answers++;
        r.right += a.right;
        r.tokens += a.tokens;
        r.cloud += a.cloud;
    }
    r.share = (double)r.cloud / (double)r.tokens;
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        struct calibrate_answer a;
        CHECK(loop_answer(&l, i, threshold, &a, NULL) == OK);
        double above = a.left_out ? 0 : (double)a.cloud - r.share * (double)a.tokens;
        squares += above * above;
    }
    double answers = (double)r.answers;
    r.share_error = answers > 1 ? sqrt(squares * answers / (answers - 1)) / (double)r.tokens : 0;
    return r;
}

static struct calibration *loop_open(struct loop *l, size_t n)
{
    struct calibration *c;
    const struct calibrate_source source = { .answer = loop_answer, .arg = l, .n = n };
    CHECK(calibrate_open(&c, &source, NULL) == OK);
    return c;
}

/* The figures of a result are those of its threshold. */
static void check_figures(const struct calibrate_result *r, const struct loop *l, size_t n)
{
    struct calibrate_result again = slowly(*l, n, r->threshold);
    CHECK(r->threshold >= 0 && r->threshold <= 1);
    CHECK(r->answers == again.answers && r->right == again.right && r->tokens == again.tokens);
    CHECK(r->cloud == again.cloud && r->share == again.share && r->right == again.right);
    CHECK(fabs(r->share_error - again.share_error) < 1e-12);
}

/* Return the least score that is not below a threshold in the texts written at it. */
static float least_above(struct loop l, size_t n, float threshold)
{
    float least = 1;
    for (size_t i = 0; i < n; i++) {
        struct calibrate_answer a;
        CHECK(loop_answer(&l, i, threshold, &a, NULL) == OK);
        for (size_t k = 0; k < a.tokens; k++)
            if (a.scores[k] >= threshold && a.scores[k] < least)
                least = a.scores[k];
    }
    return least;
}

static void check_shares(struct loop l, size_t n)
{
    size_t reached = 0;
    static const double targets[] = { 0, 0.001, 0.01, 0.05, 0.07, 0.2, 0.5, 0.9, 0.99, 1 };
    for (size_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++) {
        struct loop mine = l;
        struct calibration *c = loop_open(&mine, n);
        struct calibrate_result r;
        CHECK(calibrate_find(&r, c, targets[t], NULL) == OK);
        check_figures(&r, &l, n);
        CHECK(r.reached == (fabs(r.share - targets[t]) <= CALIBRATE_TOLERANCE));
        if (!r.reached) { /* the next larger threshold that changes anything routes too much */
            float next = nextafterf(least_above(l, n, r.threshold), 2);
            CHECK(r.share < targets[t] && slowly(l, n, next).share > targets[t]);
        }
        reached += r.reached;
        CHECK(calibrate_written(c) == mine.calls && mine.calls <= 7 * n);
        calibrate_close(c);
    }
    CHECK(reached >= 8);
}

/* With ties, the result is the best of all thresholds below the target, or near enough. Without
 * drift a larger threshold routes more, so this can be checked against each of them. */
static void check_ties(void)
{
    struct loop l = plain;
    for (l.levels = 1; l.levels <= 12; l.levels++)
        for (double target = 0; target <= 1; target += 0.0625) {
            struct loop mine = l;
            struct calibration *c = loop_open(&mine, 50);
            struct calibrate_result r;
            double best = 0;
            bool near = false;
            CHECK(calibrate_find(&r, c, target, NULL) == OK);
            check_figures(&r, &l, 50);
            for (size_t k = 0; k <= l.levels; k++) {
                double share = slowly(l, 50, ((float)k + 0.5f) / (float)l.levels).share;
                near |= fabs(share - target) <= CALIBRATE_TOLERANCE;
                best = share <= target && share > best ? share : best;
            }
            CHECK(r.reached == (near || target < CALIBRATE_TOLERANCE));
            CHECK(r.reached || r.share == best);
            calibrate_close(c);
        }
}

/* A source that can break ties comes to every share, and to none other where it need not. */
static void check_broken_ties(void)
{
    size_t broken = 0;
    for (size_t levels = 2; levels <= 30; levels += 7)
        for (double target = 0.05; target < 0.9; target += 0.12) {
            struct loop l = plain;
            struct calibrate_result with, without;
            struct calibration *c;
            l.levels = levels;
            l.drift = levels % 2 ? 0.2 : -0.1;
            const struct calibrate_source source = {
                .answer = loop_answer, .arg = &l, .n = 200, .tie = &l.tie
            };
            struct calibration *plainly = loop_open(&l, 200);
            CHECK(calibrate_find(&without, plainly, target, NULL) == OK);
            calibrate_close(plainly);
            CHECK(calibrate_open(&c, &source, NULL) == OK);
            CHECK(calibrate_find(&with, c, target, NULL) == OK);
            CHECK(fabs(with.share - target) < 0.0015); /* a token here changes all after it */
            CHECK(with.reached == (fabs(with.share - target) <= CALIBRATE_TOLERANCE));
            l.tie = with.tie;
            check_figures(&with, &l, 200);
            broken += with.tie > 0;
            CHECK((with.tie > 0) == !without.reached);
            CHECK(with.tie > 0 || memcmp(&with, &without, sizeof(with)) == 0);
            /* The next target finds the texts without a tie as they were. */
            CHECK(calibrate_at(&with, c, without.threshold, NULL) == OK);
            CHECK(with.share == without.share && with.right == without.right);
            calibrate_close(c);
        }
    CHECK(broken > 20);
}

/* Policies whose share no threshold changes, and constant scores. */
static void check_constant(void)
{
    static const float constants[] = { 0, 0.25f, 1 };
    struct calibrate_result r;
    struct loop l = plain;
    for (l.route = ROUTE_ALL; l.route <= ROUTE_NONE; l.route++) {
        double only = l.route == ROUTE_ALL;
        for (double target = 0; target <= 1; target += 0.25) {
            struct calibration *c = loop_open(&l, 20);
            l.calls = 0;
            CHECK(calibrate_find(&r, c, target, NULL) == OK && l.calls == 20);
            CHECK(r.share == only && r.reached == (target == only) && r.threshold == 0);
            calibrate_close(c);
        }
    }
    l.route = ROUTE_BY_SCORE;
    for (size_t k = 0; k < 3; k++)
        for (double target = 0; target <= 1; target += 0.5) {
            struct calibration *c = loop_open(&l, 20);
            l.constant = constants[k];
            CHECK(calibrate_find(&r, c, target, NULL) == OK);
            check_figures(&r, &l, 20);
            CHECK(r.share == (target == 1 && k < 2) && r.reached == (r.share == target));
            calibrate_close(c);
        }
}

static void check_source(void)
{
    struct loop l = plain;
    struct calibration *c;
    struct calibrate_result r;
    struct err err = { "" };
    struct calibrate_source source = { .answer = loop_answer, .arg = &l, .n = 0 };
    CHECK(calibrate_open(&c, &source, &err) == ERR_ARG && !c && err.msg[0]);
    calibrate_close(NULL);

    l.left_out = 3; /* counts nowhere */
    c = loop_open(&l, 30);
    CHECK(calibrate_find(&r, c, 0.1, NULL) == OK && r.reached && r.answers == 20);
    check_figures(&r, &l, 30);
    size_t written = calibrate_written(c);
    CHECK(calibrate_at(&r, c, r.threshold, NULL) == OK && calibrate_written(c) == written);
    calibrate_close(c);
    l.left_out = 1; /* nothing is left */
    c = loop_open(&l, 30);
    CHECK(calibrate_find(&r, c, 0.1, NULL) == OK && !r.reached && r.share == 0 && !r.answers);
    calibrate_close(c);

    l = plain;
    for (l.fail_at = 1; l.fail_at < 200; l.fail_at += 7) { /* its error is passed on */
        l.calls = 0;
        c = loop_open(&l, 20);
        int rc = calibrate_find(&r, c, 0.1, &err);
        CHECK(rc == (l.calls < l.fail_at ? OK : ERR_NET));
        CHECK(rc == OK || strstr(err.msg, "failed"));
        CHECK(calibrate_find(&r, c, 0.1, &err) == OK && r.reached); /* and may be repeated */
        calibrate_close(c);
    }
    l.fail_at = 0;
    int rc = ERR_NOMEM;
    for (long n = 1; rc != OK; n++) { /* the n-th allocation fails */
        static const unsigned char right[20] = { 1 };
        source.n = 20;
        torture_begin(n);
        rc = calibrate_open(&c, &source, &err);
        rc = rc == OK ? calibrate_find(&r, c, 0.1, &err) : rc;
        rc = rc == OK ? calibrate_risk(&r, c, right, 0.1, 0.9, &err) : rc;
        calibrate_close(c);
        CHECK(rc == (torture_end() ? ERR_NOMEM : OK) && torture_live() == 0);
    }
}

/* Bounds computed in fractions of integers, by bisection to 2^-56. */
static void check_bound(void)
{
    static const struct {
        size_t k, n;
        double confidence, bound;
    } known[] = { { 0, 149, 0.95, 0.019904816220685 },  { 0, 1, 0.95, 0.95 },
                  { 0, 10, 0.95, 0.258865550893052 },   { 1, 10, 0.95, 0.394163302436505 },
                  { 5, 10, 0.95, 0.777558898991871 },   { 9, 10, 0.95, 0.994883803108176 },
                  { 3, 100, 0.95, 0.075710793749830 },  { 12, 300, 0.9, 0.058699365622835 },
                  { 2, 313, 0.95, 0.019976770050001 },  { 7, 50, 0.5, 0.152362690456149 },
                  { 40, 50, 0.99, 0.912996034960491 },  { 1, 20, 0.025, 0.012348527170295 },
                  { 20, 400, 0.999, 0.092966042854262 } };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        double b = binomial_upper(known[i].k, known[i].n, known[i].confidence);
        CHECK(fabs(b - known[i].bound) < 1e-13);
    }
    CHECK(binomial_upper(10, 10, 0.95) == 1 && binomial_upper(0, 0, 0.95) == 1);
    CHECK(binomial_upper(3, 10, 1) == 1 && binomial_upper(3, 10, (double)NAN) == 1);
    CHECK(binomial_upper(3, 10, 0) == 0);
    double low, high; /* two-sided, of 22 in 88; of nothing; all of ten */
    binomial_interval(&low, &high, 22, 88, 0.95);
    CHECK(fabs(low - 0.16378009388236953) < 1e-12 && fabs(high - 0.3536837117756232) < 1e-12);
    binomial_interval(&low, &high, 0, 0, 0.95);
    CHECK(low == 0 && high == 1);
    binomial_interval(&low, &high, 10, 10, 0.95);
    CHECK(fabs(low - 0.6915028921812392) < 1e-12 && high == 1);
    double p = binomial_upper(0, 100000000, 0.95), q = binomial_upper(500000, 1000000, 0.95);
    CHECK(p > 2.99e-8 && p < 3.0e-8 && q > 0.5008 && q < 0.5009);
    CHECK(calibrate_needed(0.02, 0.95) == 171); /* 149 of them are tested */
    CHECK(calibrate_needed(1e-300, 0.95) > 1000000000 && calibrate_needed(0.999, 0.001) <= 2);
}

/* Items of one bad token each, lost unless it is routed; its score is uniform below 1/2. So the
 * rate of lost answers at threshold t is bad * (1 - 2 t). */
struct coin {
    uint64_t seed;
    double bad;
    float scores[8];
    float low, high; /* unless both are 0: an answer is lost if the token that scores low is routed,
                      * and the one that scores high is not */
};

static int coin_answer(void *arg, size_t i, float threshold, struct calibrate_answer *out,
                       struct err *err)
{
    struct coin *l = arg;
    uint64_t item = rand_u64(l->seed, i);
    (void)err;
    *out = (struct calibrate_answer){ .tokens = 8, .scores = l->scores, .right = true };
    for (size_t k = 0; k < 8; k++) {
        l->scores[k] = (float)rand_unit(item, k) / (k ? 1 : 2);
        l->scores[k] = l->high > 0 && k == 1 ? l->low : l->scores[k];
        l->scores[k] = l->high > 0 && k == 2 ? l->high : l->scores[k];
        out->cloud += l->scores[k] < threshold;
    }
    if (rand_unit(item, 8) < l->bad)
        out->right = l->scores[0] < threshold;
    if (threshold > l->low && threshold <= l->high)
        out->right = false;
    return OK;
}

static int coin_risk(struct calibrate_result *r, struct coin *l, size_t n, double risk,
                     double confidence)
{
    static unsigned char right[2000];
    struct calibration *c;
    const struct calibrate_source source = { .answer = coin_answer, .arg = l, .n = n };
    memset(right, 1, sizeof(right));
    CHECK(n <= sizeof(right) && calibrate_open(&c, &source, NULL) == OK);
    int rc = calibrate_risk(r, c, right, risk, confidence, NULL);
    calibrate_close(c);
    return rc;
}

static void check_risk(void)
{
    struct coin l = { .seed = 1, .bad = 0 };
    struct calibrate_result r;
    CHECK(coin_risk(&r, &l, 171, 0.02, 0.95) == OK && r.reached && r.threshold == 0);
    CHECK(r.answers == 149 && r.tokens == 8 * 149 && r.share == 0);
    CHECK(r.cloud_right == 149 && r.lost == 0 && fabs(r.bound - 0.0199048) < 1e-6);
    CHECK(coin_risk(&r, &l, 170, 0.02, 0.95) == OK && !r.reached && r.cloud_right == 148);
    CHECK(r.bound > 0.02 && r.share == 1);
    CHECK(coin_risk(&r, &l, 1, 0.02, 0.95) == OK && !r.reached && r.bound == 1);
    /* Nothing is taken below a threshold that fails, however safe it is. */
    l.low = 0.2f;
    l.high = 0.33f;
    CHECK(coin_risk(&r, &l, 400, 0.02, 0.95) == OK && r.reached && r.threshold > 0.33f);
}

/* At most 1 - confidence of the calibrations may be wrong, and many must be useful. */
static void check_coverage(void)
{
    enum { ROUNDS = 400 };
    const double risk = 0.083, confidence = 0.9;
    size_t broken = 0, useful = 0;
    for (size_t k = 0; k < ROUNDS; k++) {
        struct coin l = { .seed = rand_u64(77, k), .bad = 0.3 };
        struct calibrate_result r;
        CHECK(coin_risk(&r, &l, 300, risk, confidence) == OK && r.reached);
        double rate = l.bad * (1 - 2 * (double)r.threshold);
        broken += rate > risk;
        useful += rate > risk / 3;
    }
    printf("coverage: broken %zu, useful %zu of %d\n", broken, useful, ROUNDS);
    CHECK(broken <= 40 + 18); /* three deviations */
    CHECK(useful >= ROUNDS / 2);
}

int main(void)
{
    struct loop l = plain;
    check_shares(l, 200);
    l.drift = 0.2;
    check_shares(l, 200);
    l.drift = -0.2;
    check_shares(l, 200);
    check_ties();
    check_broken_ties();
    check_constant();
    check_source();
    check_bound();
    check_risk();
    check_coverage();
    return 0;
}
