/* Tests router training: it learns what can be learnt and nothing else, and gives the same bits
 * everywhere. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/pool.h"
#include "router/learn/fit.h"
#include "tests/router/router_help.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

enum { DIM = 19, TEXTS = 300, PER_TEXT = 12 };

/* Return a nearly normal number: the sum of 12 uniform ones. */
static double normal(uint64_t seed, uint64_t i)
{
    double sum = 0;
    for (uint64_t j = 0; j < 12; j++)
        sum += rand_unit(seed, 12 * i + j);
    return sum - 6;
}

/* Make features of very different size and offset, one of them constant. noise: labels are
 * independent of them; else a token is wrong when two features are both large, which is not
 * linear. */
static void make(struct samples *s, uint64_t seed, bool noise)
{
    *s = (struct samples){ .dim = DIM };
    for (uint32_t i = 0; i < TEXTS * PER_TEXT; i++) {
        float x[DIM];
        double z[DIM];
        for (size_t k = 0; k < DIM; k++) {
            z[k] = normal(seed, i * DIM + k);
            x[k] = (float)(z[k] * (k % 3 ? 0.01 : 40) + (double)k);
        }
        x[7] = 3;
        bool wrong = noise ? rand_unit(seed + 1, i) < 0.2 : z[0] > 0.2 && z[1] > 0.2;
        const struct sample_row row = { .label = !wrong, .subject = i / PER_TEXT };
        CHECK(samples_add(s, x, &row, NULL) == OK);
    }
}

/* The file scores as the form does; the reported held-out loss is that of the best epoch, not of
 * the last. */
static void check_saved(const struct samples *s, const struct router_form *f,
                        const struct fit_report *report, const struct fit_options *o,
                        const struct kernels *k)
{
    char path[256];
    const char *build = getenv("BUILD");
    snprintf(path, sizeof(path), "%.200s/t_router_train.%ld", build ? build : ".", (long)getpid());
    struct router *made, *opened;
    struct err err = { "" };
    CHECK(router_make(&made, f, "form", k, &err) == OK);
    CHECK(router_form_save(path, f, &err) == OK);
    CHECK(router_open(&opened, path, k, &err) == OK);
    unlink(path);
    float *a = calloc(s->n, sizeof(*a)), *b = calloc(s->n, sizeof(*b));
    CHECK(a && b);
    score_all(a, s, made);
    score_all(b, s, opened);
    CHECK(!memcmp(a, b, s->n * sizeof(*a)));
    double loss = 0, rights = 0, n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!fit_holds_out(o->seed, s->rows[i].subject))
            n++, rights += s->rows[i].label;
    double weight = sqrt(rights / (n - rights));
    for (size_t i = 0; i < s->n; i++)
        if (fit_holds_out(o->seed, s->rows[i].subject))
            loss -= s->rows[i].label ? log((double)a[i]) : weight * log(1 - (double)a[i]);
    CHECK(fabs(loss / (double)report->held - report->held_loss) < 1e-3 * report->held_loss);
    free(a);
    free(b);
    router_close(made);
    router_close(opened);
}

static void check_learns(const struct kernels *k, struct pool *pool)
{
    struct samples s;
    struct fit_options o;
    struct fit_report report, other;
    struct router_form f, again;
    struct err err = { "" };
    struct kernels scalar;
    CHECK(kernels_pick(&scalar, "scalar", cpu_detect(), NULL) == OK);
    fit_defaults(&o);
    o.width = 40;
    o.batch = 100; /* the last batch of a part is shorter */
    o.rate = 3e-3f;
    make(&s, 5, false);
    CHECK(fit_router(&f, &report, &s, &o, k, NULL, &err) == OK);
    CHECK(report.trained + report.held == s.n && report.held % PER_TEXT == 0);
    CHECK(report.held > s.n / 8 && report.held < s.n / 3);
    printf("separable: AUC %.4f after %zu epochs\n", report.measures.auc, report.best);
    CHECK(report.measures.auc > 0.99);
    check_saved(&s, &f, &report, &o, k);

    CHECK(fit_router(&again, &other, &s, &o, &scalar, pool, &err) == OK);
    same_bits(&f, &again);
    router_form_close(&again);
    o.seed = 2;
    CHECK(fit_router(&again, &other, &s, &o, k, NULL, &err) == OK);
    CHECK(memcmp(f.w1, again.w1, f.dim * f.width * sizeof(*f.w1)) != 0);
    router_form_close(&again);
    router_form_close(&f);

    samples_close(&s);
    make(&s, 6, true);
    CHECK(fit_router(&f, &report, &s, &o, k, NULL, &err) == OK);
    printf("noise: AUC %.4f, best of %zu epochs is %zu\n", report.measures.auc, report.epochs,
           report.best);
    CHECK(report.measures.auc > 0.4 && report.measures.auc < 0.6);
    CHECK(report.best < report.epochs && report.epochs < o.epochs); /* stopped early */
    check_saved(&s, &f, &report, &o, k);
    router_form_close(&f);

    for (size_t i = 0; i < s.n; i++)
        s.rows[i].label = 1;
    CHECK(fit_router(&f, &report, &s, &o, k, NULL, &err) == ERR_ARG && !f.w1);
    s.rows[0].label = 0;
    s.x[5] = NAN;
    CHECK(fit_router(&f, &report, &s, &o, k, NULL, &err) == ERR_ARG && !f.w1);
    samples_close(&s);
}

static void check_fails(const struct kernels *k)
{
    struct samples s;
    struct fit_options o;
    struct fit_report report;
    struct router_form f;
    struct err err = { "" };
    _Atomic int stop = 1;
    make(&s, 5, false);
    fit_defaults(&o);
    o.stop = &stop;
    CHECK(fit_router(&f, &report, &s, &o, k, NULL, &err) == ERR_STOP && !f.w1);
    o.stop = NULL;
    o.epochs = 1;
    o.width = 8;
    for (long n = 1;; n++) {
        torture_begin(n);
        int rc = fit_router(&f, &report, &s, &o, k, NULL, &err);
        CHECK(rc == OK || (rc == ERR_NOMEM && !f.w1));
        router_form_close(&f);
        int reached = torture_end();
        CHECK(torture_live() == 0);
        if (!reached) {
            CHECK(rc == OK);
            break;
        }
    }
    o.batch = 0;
    CHECK(fit_router(&f, &report, &s, &o, k, NULL, &err) == ERR_ARG);
    o.batch = 16;
    o.width = ROUTER_MAX + 1;
    CHECK(fit_router(&f, &report, &s, &o, k, NULL, &err) == ERR_ARG);
    samples_close(&s);
}

static void check_measures(void)
{
    static const float score[] = { 0.1f, 0.9f, 0.4f, 0.4f, 0.2f, 0.8f, 0.7f, 0.6f, 0.5f, 0.95f };
    static const unsigned char right[] = { 0, 1, 0, 1, 1, 1, 1, 1, 1, 1 };
    double auc = 0, pairs;
    /* The wrong .1 is below all 8 right ones; the wrong .4 is below 6 and equal to 1: 14.5 of 16
     * pairs. */
    CHECK(measures_auc(&auc, &pairs, score, right, NULL, 10, NULL) == OK && auc == 14.5 / 16);
    CHECK(measures_auc(&auc, &pairs, score, right + 3, NULL, 7, NULL) == OK && isnan(auc));

    struct measures_cut cut;
    CHECK(measures_find_cut(&cut, score, right, 10, 0.5, 1, NULL) == OK);
    CHECK(cut.threshold > 0.4f && cut.threshold < 0.5f && cut.routed == 0.4 && cut.caught == 1);
    CHECK(measures_find_cut(&cut, score, right, 10, 0.39, 1, NULL) ==
          OK); /* equal scores stay together */
    CHECK(cut.threshold > 0.2f && cut.threshold <= 0.4f && cut.routed == 0.2 && cut.caught == 0.5);
    CHECK(measures_find_cut(&cut, score, right, 10, 0.9, 0.5, NULL) == OK && cut.routed == 0.1);
    CHECK(measures_find_cut(&cut, score, right, 10, 0.05, 1, NULL) == OK);
    CHECK(cut.threshold == 0 && cut.routed == 0 && cut.caught == 0);
}

int main(void)
{
    struct kernels k;
    struct pool *pool;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    CHECK(pool_open(&pool, 3, NULL) == OK);
    check_measures();
    check_learns(&k, pool);
    check_fails(&k);
    pool_close(pool);
    return 0;
}
