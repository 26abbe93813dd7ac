/* Tests calibration on simulated closed loops whose every answer can be computed again: shares,
 * accuracies, ties, constant scores, feedback, policies without scores, and every failure of the
 * source and of an allocation. */
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
        CHECK(mine.calls <= 7 * n);
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
    size_t calls = l.calls; /* all answers are known */
    CHECK(calibrate_at(&r, c, r.threshold, NULL) == OK && l.calls == calls);
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
        source.n = 20;
        torture_begin(n);
        rc = calibrate_open(&c, &source, &err);
        rc = rc == OK ? calibrate_find(&r, c, 0.1, &err) : rc;
        calibrate_close(c);
        CHECK(rc == (torture_end() ? ERR_NOMEM : OK) && torture_live() == 0);
    }
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
    return 0;
}
