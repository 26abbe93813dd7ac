/* Tests of a router that learns: against the same arithmetic in double, in one process or several,
 * with files that are cut, changed, of other routers, written without memory or room, and when the
 * writer is killed. */
#include "router/adapt.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/base.h"
#include "router/router.h"
#include "tests/support/files.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

enum { DIM = 3, WIDTH = 5, MOST = 4096 };
#define THRESHOLD 0.75f
#define AUDIT     0.02

static char base[64], state[64], other[64];
static struct kernels kernels;
static struct router *at_work; /* of the learner that was opened last */

/* Write a router that can learn, with two outputs; `shift` makes another one. */
static void make_base(const char *path, float shift, bool calibrated, bool hurdle)
{
    struct router_form f;
    CHECK(router_form_open(&f, DIM, WIDTH, hurdle, NULL) == OK);
    for (size_t i = 0; i < WIDTH * DIM; i++)
        f.w1[i] = (float)rand_unit(1, i) - 0.4f;
    for (size_t i = 0; i < (size_t)WIDTH << hurdle; i++)
        f.w2[i] = 2 * (float)rand_unit(2, i) - 1;
    f.b2 = shift;
    f.has_threshold = true;
    f.threshold = THRESHOLD;
    f.about.has_share = calibrated;
    f.about.share = 0.25f;
    strcpy(f.about.name, "some model");
    CHECK(router_form_save(path, &f, NULL) == OK);
    router_form_close(&f);
}

static int open_learner(struct adapt **a, const char *path, const char *router, struct err *err)
{
    return adapt_open(a, &at_work, path, router, &kernels, err);
}

static void close_learner(struct adapt *a)
{
    adapt_close(a);
    router_close(at_work);
    at_work = NULL;
}

/* The hidden units of token i of a text. */
static void make_units(float h[WIDTH], uint64_t text, size_t i)
{
    for (size_t j = 0; j < WIDTH; j++) {
        float u = (float)rand_unit(text, i * WIDTH + j) * 3 - 1;
        h[j] = u < 0 ? 0 : u;
    }
}

static double logistic(const float *w, float b, const float *h)
{
    double z = (double)b;
    for (size_t j = 0; j < WIDTH; j++)
        z += (double)w[j] * (double)h[j];
    return 1 / (1 + exp(-z));
}

/* Return the chance that the cloud differs by the router as it is now. */
static double differs_by(const struct adapt *a, const float *h)
{
    const struct router_form *f = adapt_form(a);
    return logistic(f->w2 + WIDTH, f->b2_differs, h);
}

/* Return the score. */
static float score_of(const struct adapt *a, const float *h)
{
    const struct router_form *f = adapt_form(a);
    return (float)(1 - (1 - logistic(f->w2, f->b2, h)) * differs_by(a, h));
}

static enum { BY_CHANCE, BY_FIRST } truth; /* when the cloud's token differs */

static bool differs_of(uint64_t text, size_t i)
{
    float h[WIDTH];
    make_units(h, text, i);
    return truth == BY_CHANCE ? rand_below(text, 9000 + i, 3) == 0 : h[0] > 1;
}

/* True when the audit asks about a token, if its score is not below the threshold. */
static bool drawn(uint64_t text, size_t i)
{
    return rand_unit(text, i) < AUDIT;
}

/* Write a text of n tokens: scored some at a time, decided one by one, some scored again after a
 * roll-back, some asked about in the end. Returns how many scored below the threshold. */
static size_t write_text(struct adapt *a, uint64_t text, size_t n, bool whole)
{
    float h[WIDTH], scores[64];
    size_t below = 0;
    CHECK(n <= 64);
    adapt_begin(a);
    for (size_t i = 0; i < n; i++) {
        make_units(h, text + 1, i); /* of a draft that is dropped */
        CHECK(adapt_keep(a, i + 1, h, NULL) == OK);
    }
    for (size_t i = 0; i < n; i++) {
        make_units(h, text, i);
        scores[i] = score_of(a, h);
        CHECK(adapt_keep(a, i + 1, h, NULL) == OK);
    }
    for (size_t i = 0; i < n; i++) {
        bool is_below = scores[i] < THRESHOLD;
        below += is_below;
        if (!is_below && drawn(text, i))
            adapt_hold(a, i + 1);
        adapt_decide(a, i + 1, is_below, differs_of(text, i));
    }
    for (size_t i = 0; i < n; i++)
        if (scores[i] >= THRESHOLD && drawn(text, i))
            adapt_audited(a, i + 1, AUDIT, differs_of(text, i));
    if (whole)
        adapt_end(a);
    return below;
}

struct reference {
    double first[WIDTH], first_b2, w[WIDTH], b;
    size_t answers, audited;
};

/* A step in double, from the definition in adapt.h. */
static void reference_step(struct reference *r, const float *h, bool differs, double weight)
{
    double z = r->b, square = 0;
    for (size_t j = 0; j < WIDTH; j++) {
        z += r->w[j] * (double)h[j];
        square += (double)h[j] * (double)h[j] / WIDTH;
    }
    double step = 0.75 / (WIDTH + 1) * weight * (1 / (1 + exp(-z)) - differs);
    for (size_t j = 0; j < WIDTH; j++)
        r->w[j] -= step * (double)h[j] / (square + 1e-6);
    r->b -= step;
    r->answers++;
}

/* A text. */
static void reference_text(struct reference *r, uint64_t text, size_t n)
{
    struct reference at = *r; /* scores are those of the beginning of the text */
    bool below[64];
    float h[WIDTH];
    for (size_t i = 0; i < n; i++) {
        double right = at.first_b2, differs = at.b;
        make_units(h, text, i);
        for (size_t j = 0; j < WIDTH; j++) {
            right += r->first[j] * (double)h[j];
            differs += at.w[j] * (double)h[j];
        }
        below[i] = 1 - 1 / (1 + exp(right)) / (1 + exp(-differs)) < (double)THRESHOLD;
        if (below[i])
            reference_step(r, h, differs_of(text, i), 1);
    }
    for (size_t i = 0; i < n; i++) {
        if (below[i] || !drawn(text, i))
            continue;
        make_units(h, text, i);
        reference_step(r, h, differs_of(text, i), 0.1 / AUDIT);
        r->audited++;
    }
}

static void near(float a, double b)
{
    CHECK(fabs((double)a - b) < 1e-4 * (1 + fabs(b)));
}

static void test_reference(void)
{
    struct adapt *a;
    struct reference r = { .first_b2 = 0.25 };
    unlink(state);
    CHECK(open_learner(&a, state, base, NULL) == OK);
    const struct router_form *f = adapt_form(a);
    for (size_t j = 0; j < WIDTH; j++) {
        r.first[j] = (double)f->w2[j];
        r.w[j] = (double)f->w2[WIDTH + j];
    }
    for (uint64_t text = 0; text < 20; text++) {
        write_text(a, 10 * text, 30, true);
        reference_text(&r, 10 * text, 30);
    }
    for (size_t j = 0; j < WIDTH; j++) {
        CHECK((double)f->w2[j] == r.first[j]); /* the first output stays */
        near(f->w2[WIDTH + j], r.w[j]);
    }
    CHECK((double)f->b2 == r.first_b2 && f->threshold == THRESHOLD);
    near(f->b2_differs, r.b);
    CHECK(f->answers == r.answers && r.answers > 100 && r.audited > 2);
    close_learner(a);
}

/* Where no score is below the threshold, the audit alone tells of a change. */
static void test_audit(void)
{
    struct adapt *a;
    size_t below = 0, n[2] = { 0 };
    double sum[2] = { 0 };
    unlink(state);
    make_base(other, 9, true, true);
    CHECK(open_learner(&a, state, other, NULL) == OK);
    truth = BY_FIRST;
    for (uint64_t text = 0; text < 40; text++)
        below += write_text(a, 10 * text, 64, true);
    truth = BY_CHANCE;
    CHECK(below == 0 && adapt_form(a)->answers > 10);
    for (size_t i = 0; i < 1000; i++) {
        float h[WIDTH];
        make_units(h, 3, i);
        n[h[0] > 1]++;
        sum[h[0] > 1] += differs_by(a, h);
    }
    CHECK(sum[1] / (double)n[1] > 2 * sum[0] / (double)n[0]);
    close_learner(a);
}

/* What one process learns, two learn, and the router in use has it. A text that ends with an error
 * teaches nothing. */
static void test_resume(void)
{
    struct adapt *one, *two;
    struct router *r, *fresh;
    const float x[DIM] = { 1, -2, 3 };
    float scratch[2 * PANEL];
    unlink(state);
    CHECK(adapt_open(&one, &r, state, base, &kernels, NULL) == OK);
    for (uint64_t text = 0; text < 6; text++) {
        CHECK(open_learner(&two, state, base, NULL) == OK);
        CHECK(router_form_sum(adapt_form(two)) == router_form_sum(adapt_form(one)));
        write_text(one, 500 + text, 20, false);
        write_text(one, text, 20, true);
        write_text(two, text, 20, true);
        CHECK(router_form_sum(adapt_form(two)) == router_form_sum(adapt_form(one)));
        CHECK(adapt_save(two, NULL) == OK);
        close_learner(two);
        CHECK(router_open(&fresh, state, &kernels, NULL) == OK); /* anybody may use it */
        float score = router_score(fresh, x, scratch), differs = router_differs(fresh, scratch);
        CHECK(router_score(r, x, scratch) == score && router_differs(r, scratch) == differs);
        router_close(fresh);
    }
    adapt_close(one);
    router_close(r);
}

/* However small the share of an audit, its answer weighs 10. What was kept in one text is not there
 * in the next. */
static void test_weight(void)
{
    struct adapt *a;
    float h[WIDTH];
    unlink(state);
    CHECK(open_learner(&a, state, base, NULL) == OK);
    make_units(h, 7, 7);
    double before = differs_by(a, h), z = log(before / (1 - before));
    adapt_begin(a);
    CHECK(adapt_keep(a, 1, h, NULL) == OK && adapt_keep(a, 2, h, NULL) == OK);
    adapt_hold(a, 1);
    adapt_decide(a, 1, false, false);
    adapt_audited(a, 1, 1e-9, false);
    adapt_end(a);
    double after = differs_by(a, h);
    CHECK(fabs(log(after / (1 - after)) - (z - 7.5 * before)) < 1e-3);
    adapt_begin(a);
    adapt_decide(a, 2, true, true);
    adapt_audited(a, 1, 1, true);
    adapt_end(a);
    CHECK(adapt_form(a)->answers == 1);
    close_learner(a);
}

/* Whatever the hidden units are, what is learnt stays finite, and its file is read again. */
static void test_extremes(void)
{
    static const float units[] = { 0, 1e-30f, 1e-3f, 1e15f, 3e38f, INFINITY, NAN };
    struct adapt *a;
    float h[WIDTH] = { 0 };
    unlink(state);
    CHECK(open_learner(&a, state, base, NULL) == OK);
    for (size_t k = 0; k < sizeof(units) / sizeof(units[0]); k++) {
        adapt_begin(a);
        for (size_t at = 1; at <= 3000; at++) {
            h[at % WIDTH] = units[k];
            CHECK(adapt_keep(a, at, h, NULL) == OK);
            adapt_hold(a, at);
            adapt_decide(a, at, true, at % 2);
            if (at % 100 == 0)
                adapt_audited(a, at, 1e-9, at % 3 == 0);
        }
        uint64_t answers = adapt_form(a)->answers;
        adapt_end(a);
        CHECK((adapt_form(a)->answers > answers) == isfinite(units[k]));
        CHECK(adapt_save(a, NULL) == OK);
        close_learner(a);
        CHECK(open_learner(&a, state, base, NULL) == OK);
    }
    close_learner(a);
}

static void refuse(const char *path, const char *router, const char *says)
{
    struct adapt *a;
    struct err err = { "" };
    CHECK(open_learner(&a, path, router, &err) == ERR_FORMAT && !a);
    CHECK(strstr(err.msg, path) || strstr(err.msg, router));
    if (!strstr(err.msg, says))
        fprintf(stderr, "%s\n", err.msg);
    CHECK(strstr(err.msg, says));
}

/* Cut or with a changed bit (one of seven each), the file is refused or says the same. */
static void test_damage(void)
{
    static unsigned char file[MOST];
    struct adapt *a;
    struct err err;
    unlink(state);
    CHECK(open_learner(&a, state, base, NULL) == OK);
    write_text(a, 1, 20, true);
    CHECK(adapt_save(a, NULL) == OK);
    uint64_t sum = router_form_sum(adapt_form(a));
    close_learner(a);
    size_t n = slurp(state, file, sizeof(file)), same = 0;
    CHECK(n < sizeof(file));
    for (size_t i = 0; i < n; i += 7) {
        spill(state, file, i);
        CHECK(open_learner(&a, state, base, &err) == ERR_FORMAT && !a && strstr(err.msg, state));
    }
    for (size_t bit = 0; bit < 8 * n; bit += 7) {
        file[bit / 8] ^= (unsigned char)(1 << bit % 8);
        spill(state, file, n);
        file[bit / 8] ^= (unsigned char)(1 << bit % 8);
        int rc = open_learner(&a, state, base, &err);
        CHECK(rc == ERR_FORMAT ? !a && strstr(err.msg, state) && !strchr(err.msg, '\n')
                               : rc == OK && router_form_sum(adapt_form(a)) == sum);
        same += rc == OK;
        close_learner(a);
    }
    CHECK(same < 16); /* such as a blank of the header, or the last digit of a number */
    spill(state, file, n);
    make_base(other, 1, true, true);
    refuse(state, other, "metadata began: expected ");
    make_base(other, 0.25f, false, true); /* but calibrated otherwise */
    CHECK(open_learner(&a, state, other, &err) == OK && router_form_sum(adapt_form(a)) == sum);
    close_learner(a);
    refuse(base, base, "expected another file than the router");
    make_base(other, 0.25f, true, true);
    refuse(other, base, "found a router that has not learnt");
    refuse(state, state, "expected another file than the router");
    CHECK(open_learner(&a, "", base, &err) == ERR_ARG && !a);
}

/* Routers that cannot learn. */
static void test_unfit(void)
{
    struct router_form f;
    unlink(state);
    make_base(other, 0, true, false);
    refuse(state, other, "expected a network with two outputs, which can learn");
    refuse(state, other, "found one output");
    CHECK(router_form_open_contexts(&f, 1, NULL) == OK);
    f.contexts[0] = (struct router_context){ -1, -1, 0.5f };
    CHECK(router_form_save(other, &f, NULL) == OK);
    router_form_close(&f);
    refuse(state, other, "found a table");
    CHECK(access(state, F_OK) != 0);
}

/* Learn one text and save it, with at most `room` bytes in a file. */
static int save_with(struct adapt *a, rlim_t room)
{
    const struct rlimit limit = { room, RLIM_INFINITY };
    setrlimit(RLIMIT_FSIZE, &limit);
    int rc = adapt_save(a, NULL);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
    return rc;
}

/* When the disk is full, or the program is killed, the file is the old one or the new one. */
static void test_room(void)
{
    static unsigned char old[MOST], new[MOST], now[MOST];
    char part[96];
    struct adapt *a;
    unlink(state);
    CHECK(open_learner(&a, state, base, NULL) == OK && access(state, F_OK) != 0);
    write_text(a, 2, 20, true);
    CHECK(adapt_save(a, NULL) == OK);
    size_t n = slurp(state, old, sizeof(old));
    write_text(a, 1, 20, true);
    for (size_t room = 0; room < n; room += 193) {
        pid_t pid = fork();
        int status;
        if (pid == 0) { /* SIGXFSZ ends it in the middle of a write */
            save_with(a, room);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        snprintf(part, sizeof(part), "%s.%ld.0.part", state, (long)pid);
        CHECK(unlink(part) == 0);
        CHECK(slurp(state, now, sizeof(now)) == n && !memcmp(now, old, n));
    }
    signal(SIGXFSZ, SIG_IGN);
    for (size_t room = 0; room < n; room += 193) {
        CHECK(save_with(a, room) == ERR_IO);
        CHECK(slurp(state, now, sizeof(now)) == n && !memcmp(now, old, n));
    }
    uint64_t sum = router_form_sum(adapt_form(a));
    CHECK(adapt_save(a, NULL) == OK); /* a later one succeeds */
    close_learner(a);
    CHECK(slurp(state, new, sizeof(new)) >= n && memcmp(new, old, n) != 0);
    CHECK(open_learner(&a, state, base, NULL) == OK);
    CHECK(router_form_sum(adapt_form(a)) == sum);
    close_learner(a);
}

/* Without memory nothing is left over, and the file stays. */
static void test_memory(void)
{
    static const char *const files[] = { "", "resumed" };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int reached;
        long n = 0;
        do {
            struct adapt *a;
            float h[WIDTH] = { 1 };
            if (!files[i][0])
                unlink(state);
            torture_begin(++n);
            int rc = open_learner(&a, state, base, NULL);
            if (rc == OK)
                adapt_begin(a);
            if (rc == OK)
                rc = adapt_keep(a, 1, h, NULL);
            if (rc == OK) {
                adapt_decide(a, 1, true, true);
                adapt_end(a);
                rc = adapt_save(a, NULL);
            }
            CHECK(rc == OK || rc == ERR_NOMEM);
            close_learner(a);
            reached = torture_end();
            CHECK(torture_live() == 0 && (reached || rc == OK));
        } while (reached);
        CHECK(n > 10);
    }
}

int main(void)
{
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), NULL) == OK);
    snprintf(base, sizeof(base), "/tmp/mizzle-adapt-%ld-base", (long)getpid());
    snprintf(state, sizeof(state), "/tmp/mizzle-adapt-%ld-state", (long)getpid());
    snprintf(other, sizeof(other), "/tmp/mizzle-adapt-%ld-other", (long)getpid());
    make_base(base, 0.25f, true, true);
    test_reference();
    test_audit();
    test_resume();
    test_weight();
    test_extremes();
    test_damage();
    test_unfit();
    test_room();
    test_memory();
    unlink(base);
    unlink(state);
    unlink(other);
    return 0;
}
