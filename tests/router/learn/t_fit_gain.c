/* Tests heads gain and gain-none, and several members: what they see and what they do not, that the
 * outputs are chances, the measures against brute force, the same bits everywhere.
 * tests/tools/t_router_train.sh has what the command says of them. */
#include "kernels/kernels.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "tests/router/router_help.h"

enum { DIM = 11, PER_TEXT = 10 };

static struct kernels kernels, scalar;
static struct pool *pool;

/* What says that a token mends or spoils: the hidden state, a feature, the last id, nothing. */
enum rule { RULE_HIDDEN, RULE_FEATURE, RULE_CONTEXT, RULE_NOISE };

/* Where the models differ, something high mends and something else spoils. Of the tokens where they
 * agree, three in four, one in ten is there; nothing tells them from the others, so the AUC among
 * all tokens and the recall have a limit. */
static void make(struct samples *s, size_t n, enum rule rule)
{
    *s = (struct samples){ .dim = DIM };
    for (uint32_t i = 0; i < n; i++) {
        float x[DIM];
        bool agreed = rand_unit(1, i) < 0.3 / 1.3;
        struct sample_row row = { .subject = i / PER_TEXT, .label = 1 };
        row.before[0] = (uint32_t)rand_below(3, i, 6);
        row.before[1] = (uint32_t)rand_below(4, i, 5);
        for (size_t k = 0; k < DIM; k++)
            x[k] = (float)(rand_unit(2, i * DIM + k) * 2 - 1);
        for (size_t k = 0; k < FEATURE_CONTEXT; k++)
            row.features[k] = (float)rand_unit(5, i * FEATURE_CONTEXT + k);
        float mends = rule == RULE_HIDDEN    ? x[3]
                      : rule == RULE_FEATURE ? 2 * row.features[FEATURE_GAP] - 1
                      : rule == RULE_CONTEXT ? (row.before[1] == 4 ? 1 : -1)
                                             : (float)rand_unit(6, i) * 2 - 0.5f;
        float spoils = rule == RULE_HIDDEN    ? x[4]
                       : rule == RULE_FEATURE ? 2 * row.features[FEATURE_P2] - 1
                       : rule == RULE_CONTEXT ? (row.before[1] == 1 ? 1 : -1)
                                              : (float)rand_unit(7, i) * 2 - 1.3f;
        row.way = agreed ? SAMPLE_AGREED : SAMPLE_ROLLOUT;
        row.gain = agreed ? 0 : mends > 0.6f && mends > spoils ? 1 : spoils > 0.6f ? -1 : 0;
        row.label = row.gain <= 0;
        CHECK(samples_add(s, x, &row, NULL) == OK);
    }
}

static struct fit_options options(enum fit_head head, size_t members)
{
    struct fit_options o;
    fit_defaults(&o);
    o.head = head;
    o.members = members;
    o.width = 12;
    o.batch = 64;
    o.epochs = 20;
    return o;
}

static struct fit_report train(struct router_form *f, const struct samples *s,
                               const struct fit_options *o)
{
    struct fit_report r;
    struct err err = { "" };
    CHECK_MSG(fit_router(f, &r, s, o, &kernels, pool, &err) == OK, "%s", err.msg);
    CHECK(r.trained + r.held == s->n && f->members == o->members);
    return r;
}

static struct fit_report report_of(const struct samples *s, const struct fit_options *o)
{
    struct router_form f;
    struct fit_report r = train(&f, s, o);
    printf("%s: mends %.3f, given that they differ %.3f, or spoils %.3f, recall %.3f\n",
           fit_head_name(o->head), r.measures.auc, r.differ_auc, r.spoils_auc, r.recall);
    router_form_close(&f);
    return r;
}

static bool chance(double auc)
{
    return fabs(auc - 0.5) < 0.1;
}

/* Each head ranks by what it can see. */
static void check_learns(void)
{
    for (int rule = RULE_HIDDEN; rule <= RULE_CONTEXT; rule++) {
        struct samples s;
        make(&s, 6000, (enum rule)rule);
        for (int h = FIT_GAIN; h <= FIT_GAIN_NONE; h++) {
            struct fit_options o = options((enum fit_head)h, h == FIT_GAIN ? 1 : 3);
            struct fit_report r = report_of(&s, &o);
            if (h == FIT_GAIN || rule != RULE_HIDDEN)
                CHECK(r.differ_auc > 0.9 && r.spoils_auc > 0.95 && r.measures.auc > 0.8 &&
                      r.recall > 0.15);
            else
                CHECK(chance(r.differ_auc) && chance(r.spoils_auc) && chance(r.measures.auc));
            CHECK(r.cut.routed <= (double)o.most);
        }
        samples_close(&s);
    }
}

/* Return the score of each sample, with inputs that are put together here. */
static float *scores(const struct samples *s, const struct router_form *f, const struct kernels *k)
{
    struct router *r;
    float x[DIM + FEATURES], *score = calloc(s->n, sizeof(*score));
    CHECK(router_make(&r, f, "form", k, NULL) == OK && score);
    float *scratch = calloc(router_scratch(r), sizeof(*scratch));
    CHECK(scratch);
    for (size_t i = 0; i < s->n; i++) {
        size_t hidden = router_dim(r) - FEATURES;
        memcpy(x, s->x + i * DIM, hidden * sizeof(*x));
        memcpy(x + hidden, s->rows[i].features, sizeof(s->rows[i].features));
        x[hidden + FEATURE_CONTEXT] =
            features_context(f->contexts, f->ncontexts, s->rows[i].before, 2);
        score[i] = router_score(r, x, scratch);
    }
    router_close(r);
    free(scratch);
    return score;
}

static double weight(const struct sample_row *r)
{
    return r->way == SAMPLE_AGREED ? SAMPLE_AGREED_FOR : 1;
}

/* The chance that a held-out token that mends scores below another of a kind, pair by pair: all
 * (0), where the models differ (1), those that spoil (2). */
static double pairs_auc(const struct samples *s, const float *score, const struct fit_options *o,
                        int kind)
{
    double good = 0, all = 0;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; s->rows[i].gain == 1 && k < s->n; k++) {
            const struct sample_row *y = &s->rows[k];
            if (y->gain == 1 || (kind == 1 && y->way != SAMPLE_ROLLOUT) ||
                (kind == 2 && y->gain != -1) || !fit_holds_out(o->seed, s->rows[i].subject) ||
                !fit_holds_out(o->seed, y->subject))
                continue;
            all += weight(y);
            good += weight(y) * (score[i] < score[k] ? 1 : score[i] == score[k] ? 0.5 : 0);
        }
    return good / all;
}

/* The report is what pairs of held-out tokens say, of one member and of several. */
static void check_measures(void)
{
    struct samples s;
    make(&s, 3000, RULE_FEATURE);
    for (size_t members = 1; members <= 4; members += 3) {
        struct fit_options o = options(FIT_GAIN, members);
        struct router_form f;
        o.epochs = 2; /* so that it is not right everywhere */
        struct fit_report r = train(&f, &s, &o);
        float *score = scores(&s, &f, &scalar);
        CHECK(fabs(r.measures.auc - pairs_auc(&s, score, &o, 0)) < 1e-9);
        CHECK(fabs(r.differ_auc - pairs_auc(&s, score, &o, 1)) < 1e-9);
        CHECK(fabs(r.spoils_auc - pairs_auc(&s, score, &o, 2)) < 1e-9);
        size_t count[2][3] = { { 0 } };
        for (size_t i = 0; i < s.n; i++)
            count[fit_holds_out(o.seed, s.rows[i].subject)][1 - s.rows[i].gain]++;
        CHECK(r.trained_wrong == count[0][0] && r.trained_spoils == count[0][2]);
        CHECK(r.held_wrong == count[1][0] && r.held_spoils == count[1][2]);
        free(score);
        router_form_close(&f);
    }
    samples_close(&s);
}

/* Where nothing can be known the outputs are the shares of all tokens, those where the models agree
 * counted for what they stand for; so is the table's mean. */
static void check_prior(void)
{
    struct samples s;
    struct router_form f;
    struct fit_options o = options(FIT_GAIN_NONE, 1);
    make(&s, 20000, RULE_NOISE);
    train(&f, &s, &o);
    float *score = scores(&s, &f, &kernels);
    double sum = 0, n = 0, gain = 0, mends = 0;
    for (size_t i = 0; i < s.n; i++) {
        double w = weight(&s.rows[i]);
        n += w;
        sum += w * (double)score[i];
        gain += s.rows[i].gain;
        mends += s.rows[i].gain == 1;
    }
    printf("prior: mean score %.4f, expected %.4f\n", sum / n, (1 - gain / n) / 2);
    CHECK(fabs(sum / n - (1 - gain / n) / 2) < 0.01);
    CHECK(fabs((double)f.contexts[0].score - (1 - mends / n)) < 0.01);
    free(score);
    router_form_close(&f);
    samples_close(&s);
}

/* Whatever the head, kernel sets and threads do not matter, the seed does; the last batch is short.
 * The first of several members has the draw, the weights and the order of a single one with
 * resample. */
static void check_bits(void)
{
    struct samples s;
    make(&s, 1201, RULE_HIDDEN);
    for (uint32_t i = 0; i < s.n; i++)
        s.rows[i].features[FEATURE_POSITION] = 0, s.rows[i].text = i / 2;
    for (int h = FIT_MLP; h <= FIT_GAIN_NONE; h++)
        for (size_t members = 1; members <= (h == FIT_CONTEXT ? 1 : 3); members += 2) {
            struct router_form a, b;
            struct fit_report ra, rb;
            struct fit_options o = options((enum fit_head)h, members);
            o.epochs = 3;
            o.width = 20; /* padded to 32 */
            CHECK(fit_router(&a, &ra, &s, &o, &kernels, NULL, NULL) == OK);
            CHECK(fit_router(&b, &rb, &s, &o, &scalar, pool, NULL) == OK);
            same_bits(&a, &b);
            CHECK(!memcmp(&ra, &rb, sizeof(ra)) || isnan(ra.recall));
            CHECK(ra.held_loss == rb.held_loss || isnan(ra.held_loss));
            router_form_close(&b);
            if (members > 1) {
                size_t second = a.width / a.members * a.dim; /* it differs from the first */
                CHECK(ra.epochs == 3 && ra.best >= 1);
                CHECK(memcmp(a.w1, a.w1 + second, second * sizeof(*a.w1)) != 0);
            }
            o.members = 1;
            o.resample = true;
            if (members > 1 && h == FIT_MLP) { /* whose inputs are the same then */
                CHECK(fit_router(&b, &rb, &s, &o, &kernels, NULL, NULL) == OK);
                CHECK(!memcmp(a.w1, b.w1, b.width * b.dim * sizeof(*b.w1)) && a.b2[0] == b.b2[0]);
                router_form_close(&b);
            }
            o.members = members;
            o.resample = false;
            o.seed = 2;
            CHECK(fit_router(&b, &rb, &s, &o, &kernels, NULL, NULL) == OK);
            CHECK(!b.dim || memcmp(a.w1, b.w1, b.width * b.dim * sizeof(*b.w1)) != 0);
            CHECK(ra.held_loss != rb.held_loss);
            router_form_close(&a);
            router_form_close(&b);
        }
    samples_close(&s);
}

static void refused(const struct samples *s, const struct fit_options *o, const char *why)
{
    struct router_form f;
    struct fit_report r;
    struct err err = { "" };
    CHECK(fit_router(&f, &r, s, o, &kernels, NULL, &err) == ERR_ARG && !f.w1 && !f.contexts);
    CHECK_MSG(strstr(err.msg, why), "said: %s", err.msg);
}

/* What cannot be trained is refused; every allocation fails once. */
static void check_fails(void)
{
    struct samples s;
    make(&s, 400, RULE_HIDDEN);
    struct fit_options o = options(FIT_GAIN, 2);
    o.epochs = 1;
    torture_some(fit_once, &(struct fit_call){ &s, &o, &kernels });
    _Atomic int stop = 1;
    o.stop = &stop;
    struct router_form f;
    struct fit_report r;
    CHECK(fit_router(&f, &r, &s, &o, &kernels, NULL, NULL) == ERR_STOP && !f.w1);
    o.stop = NULL;
    o.width = 30000;
    refused(&s, &o, "expected at most 4000000 bytes in a file of several members");
    o.width = 12;
    o.members = 0;
    refused(&s, &o, "expected sizes of 1 to 65536, found [0,20]");
    o.members = ROUTER_MEMBERS + 1;
    refused(&s, &o, "members");
    o.members = 2;
    for (size_t i = 0; i < s.n; i++)
        s.rows[i].gain = s.rows[i].gain > 0 ? 1 : 0;
    refused(&s, &o, "expected spoiling and mending tokens in both parts, found 0 spoiling");
    samples_close(&s);
}

int main(void)
{
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), NULL) == OK);
    CHECK(kernels_pick(&scalar, "scalar", cpu_detect(), NULL) == OK);
    CHECK(pool_open(&pool, 3, NULL) == OK);
    check_learns();
    check_measures();
    check_prior();
    check_bits();
    check_fails();
    pool_close(pool);
    return 0;
}
