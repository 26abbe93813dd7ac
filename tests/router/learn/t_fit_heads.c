/* Tests router training: each head learns what it can see and nothing else, and keeps its best
 * weights. t_fit_gain.c shows that it gives the same bits everywhere. */
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/sys/pool.h"
#include "tests/router/router_help.h"
#include "router/learn/form_save.h"

enum { DIM = 19, PER_TEXT = 10 };

static struct kernels kernels, scalar;
static struct pool *pool;

/* What a token's label depends on. */
enum rule {
    RULE_LINE,
    RULE_BAND,
    RULE_CONTEXT,
    RULE_FEATURE,
    RULES,
    RULE_CORNER = RULES, /* of features of very different size and offset, one of them constant */
    RULE_NOISE           /* of such features nothing */
};

static void make(struct samples *s, size_t n, enum rule rule)
{
    *s = (struct samples){ .dim = DIM };
    for (uint32_t i = 0; i < n; i++) {
        float x[DIM];
        struct sample_row row = { .subject = i / PER_TEXT };
        uint32_t a = (uint32_t)rand_below(3, i, 6), b = (uint32_t)rand_below(4, i, 5);
        for (size_t k = 0; k < DIM; k++)
            x[k] = (float)(rand_unit(1, i * DIM + k) * 2 - 1) * (k % 4 ? 1 : 2);
        for (size_t k = 0; k < FEATURE_CONTEXT; k++)
            row.features[k] = (float)rand_unit(5, i * FEATURE_CONTEXT + k);
        row.features[FEATURE_POSITION] = (float)(i % PER_TEXT);
        bool wrong = rule == RULE_LINE      ? x[1] + x[2] - x[3] > 0.8f
                     : rule == RULE_BAND    ? x[1] * x[1] > 0.5f
                     : rule == RULE_CONTEXT ? (a == 2 && b == 3) || b == 4
                     : rule == RULE_FEATURE
                         ? row.features[FEATURE_MARGIN] + row.features[FEATURE_GAP] > 1.4f
                     : rule == RULE_CORNER ? x[0] > 0.4f && x[1] > 0.2f
                                           : rand_unit(6, i) < 0.2;
        for (size_t k = 0; rule >= RULES && k < DIM; k++)
            x[k] = k == 7 ? 3 : x[k] * (k % 3 ? 0.01f : 40) + (float)k;
        row.label = !wrong;
        row.before[0] = a;
        row.before[1] = b;
        CHECK(samples_add(s, x, &row, NULL) == OK);
    }
}

static double auc(const struct samples *s, const struct fit_options *o)
{
    struct router_form f;
    struct fit_report r;
    CHECK(fit_router(&f, &r, s, o, &kernels, pool, NULL) == OK);
    CHECK(r.trained + r.held == s->n && r.cut.routed <= (double)o->most);
    router_form_close(&f);
    return r.measures.auc;
}

/* A line and a band are seen by the networks, a pair of ids by the table and by the heads that have
 * it among their features, and a feature by these alone. */
static void check_learns(void)
{
    static const char *const sees[RULES] = { [RULE_LINE] = "mlp mix",
                                             [RULE_BAND] = "mlp mix",
                                             [RULE_CONTEXT] = "context combined mix",
                                             [RULE_FEATURE] = "combined mix" };
    struct fit_options o;
    fit_defaults(&o);
    o.batch = 64;
    o.epochs = 20;
    for (int rule = 0; rule < RULES; rule++) {
        struct samples s;
        make(&s, 4000, (enum rule)rule);
        for (int h = FIT_MLP; h <= FIT_MIX; h++) {
            o.head = (enum fit_head)h;
            double found = auc(&s, &o);
            printf("rule %d, %s: AUC %.4f\n", rule, fit_head_name(o.head), found);
            if (strstr(sees[rule], fit_head_name(o.head)))
                CHECK(found > 0.97);
            else
                CHECK(fabs(found - 0.5) < 0.1);
        }
        samples_close(&s);
    }
}

/* The file scores as the form does; the reported held-out loss is that of the best epoch, not of
 * the last. */
static void check_saved(const struct samples *s, const struct router_form *f,
                        const struct fit_report *report, const struct fit_options *o)
{
    const char *path = in_scratch("router");
    struct router *made, *opened;
    CHECK(router_make(&made, f, "form", &kernels, NULL) == OK);
    CHECK(form_save(path, f, NULL) == OK);
    CHECK(router_open(&opened, path, &kernels, NULL) == OK);
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

/* The weights of the best epoch are kept, and training ends some epochs after it. */
static void check_best(void)
{
    struct samples s;
    struct fit_options o;
    struct fit_report report;
    struct router_form f;
    fit_defaults(&o);
    o.width = 40;
    o.epochs = 80;
    o.batch = 100; /* the last batch of a part is shorter */
    make(&s, 3600, RULE_CORNER);
    CHECK(fit_router(&f, &report, &s, &o, &kernels, NULL, NULL) == OK);
    CHECK(report.trained + report.held == s.n && report.held % PER_TEXT == 0);
    CHECK(report.held > s.n / 8 && report.held < s.n / 3);
    printf("separable: AUC %.4f after %zu epochs\n", report.measures.auc, report.best);
    CHECK(report.measures.auc > 0.99);
    check_saved(&s, &f, &report, &o);
    router_form_close(&f);
    samples_close(&s);
    make(&s, 3600, RULE_NOISE);
    CHECK(fit_router(&f, &report, &s, &o, &kernels, NULL, NULL) == OK);
    printf("noise: AUC %.4f, best of %zu epochs is %zu\n", report.measures.auc, report.epochs,
           report.best);
    CHECK(report.measures.auc > 0.4 && report.measures.auc < 0.6);
    CHECK(report.best < report.epochs && report.epochs < o.epochs); /* stopped early */
    check_saved(&s, &f, &report, &o);
    router_form_close(&f);
    samples_close(&s);
}

/* Head query is head mlp on the first token of each text, which is wrong if any of the text is;
 * every allocation fails once. */
static void check_query(void)
{
    struct samples s, texts = { .dim = DIM };
    struct router_form a, b;
    struct fit_report ra, rb;
    struct fit_options o;
    make(&s, 2000, RULE_LINE);
    for (size_t i = 0; i < s.n; i++) {
        struct sample_row one = s.rows[i];
        s.rows[i].text = (uint32_t)(i / 4);
        bool cut = i / 4 == 7; /* its first token was not drawn */
        s.rows[i].features[FEATURE_POSITION] = (float)(i % 4 + cut);
        for (size_t k = i; k < i + 4 && k < s.n; k++)
            one.label &= s.rows[k].label;
        CHECK(i % 4 || cut || samples_add(&texts, s.x + i * DIM, &one, NULL) == OK);
    }
    fit_defaults(&o);
    o.epochs = 3;
    CHECK(fit_router(&a, &ra, &texts, &o, &kernels, NULL, NULL) == OK);
    o.head = FIT_QUERY;
    torture_some(fit_once, &(struct fit_call){ &s, &o, &kernels });
    CHECK(fit_router(&b, &rb, &s, &o, &kernels, NULL, NULL) == OK);
    same_bits(&a, &b);
    router_form_close(&b);
    CHECK(rb.trained + rb.held == 499 && rb.trained_wrong > 100 && rb.held_wrong > 10);
    CHECK(!memcmp(&ra.measures, &rb.measures, sizeof(ra.measures)));
    router_form_close(&a);
    samples_close(&texts);
    samples_close(&s);
}

/* With shuffled labels nothing can be learnt. */
static void check_shuffled(void)
{
    struct samples s;
    struct fit_options o;
    make(&s, 16000, RULE_BAND);
    fit_defaults(&o);
    o.epochs = 2;
    o.shuffle_labels = true;
    for (int h = FIT_MLP; h <= FIT_MIX; h++) {
        o.head = (enum fit_head)h;
        double a = auc(&s, &o);
        printf("shuffled labels, %s: AUC %.4f\n", fit_head_name(o.head), a);
        CHECK(fabs(a - 0.5) < 0.03);
    }
    samples_close(&s);
}

/* By hand: of 8 tokens, 6 are right, so the mean is (6 + 4 * .5) / 12 = 2/3. After 1: 3 of 5 are,
 * (3 + 4 * 2/3) / 9; after (0, 1): 1 of 3. An id before the first token is no context. */
static void check_table(void)
{
    static const struct {
        uint32_t before[2];
        bool right;
    } rows[] = {
        { { 0, 1 }, true },
        { { 0, 1 }, false },
        { { 0, 1 }, false },
        { { 2, 1 }, true },
        { { SAMPLES_NONE, 1 }, true },
        { { 1, 0 }, true },
        { { 1, 0 }, true },
        { { 9, 9 }, true },
    };
    struct samples s = { .dim = 1 };
    struct fit_options o;
    struct fit_report report;
    struct router_form f;
    struct err err = { "" };
    uint32_t in = 0, out = 0;
    fit_defaults(&o);
    o.head = FIT_CONTEXT;
    while (fit_holds_out(o.seed, in))
        in++;
    while (!fit_holds_out(o.seed, out))
        out++;
    for (size_t i = 0; i < 10; i++) { /* two tokens are held out */
        const float x = 0;
        struct sample_row one = { .label = i == 8, .subject = out };
        if (i < 8)
            one = (struct sample_row){ .label = rows[i].right,
                                       .subject = in,
                                       .before = { rows[i].before[0], rows[i].before[1] } };
        CHECK(samples_add(&s, &x, &one, &err) == OK);
    }
    CHECK(fit_router(&f, &report, &s, &o, &kernels, NULL, &err) == OK);
    double mean = 8.0 / 12, one = (3 + 4 * mean) / 9, nil = (2 + 4 * mean) / 6;
    double nine = (1 + 4 * mean) / 5;
    const struct router_context want[] = {
        { -1, -1, (float)mean },
        { -1, 0, (float)nil },
        { -1, 1, (float)one },
        { -1, 9, (float)nine },
        { 0, 1, (float)((1 + 4 * one) / 7) },
        { 1, 0, (float)((2 + 4 * nil) / 6) },
        { 2, 1, (float)((1 + 4 * one) / 5) },
        { 9, 9, (float)((1 + 4 * nine) / 5) },
    };
    CHECK(f.ncontexts == sizeof(want) / sizeof(want[0]));
    CHECK(!memcmp(f.contexts, want, sizeof(want)) && report.epochs == 0);
    router_form_close(&f);
    s.rows[0].before[1] = 1 << 24;
    CHECK(fit_router(&f, &report, &s, &o, &kernels, NULL, &err) == ERR_ARG && !f.contexts);
    CHECK(strstr(err.msg, "16777216"));
    samples_close(&s);
}

/* What cannot be trained is refused, whatever the head; every allocation fails once. */
static void check_fails(void)
{
    struct samples s;
    struct fit_options o;
    struct fit_report report;
    struct router_form f;
    struct err err = { "" };
    make(&s, 300, RULE_LINE);
    for (int h = FIT_MLP; h <= FIT_MIX; h++) {
        fit_defaults(&o);
        o.head = (enum fit_head)h;
        o.epochs = 1;
        torture_some(fit_once, &(struct fit_call){ &s, &o, &kernels });
        struct sample_row *rows = s.rows, all[300] = { { 0 } };
        for (size_t i = 0; i < s.n; i++)
            all[i].label = 1;
        s.rows = all;
        CHECK(fit_router(&f, &report, &s, &o, &kernels, NULL, &err) == ERR_ARG);
        CHECK(strstr(err.msg, "0 wrong to train on"));
        s.rows = rows;
        size_t n = s.n;
        s.n = 0;
        CHECK(fit_router(&f, &report, &s, &o, &kernels, NULL, &err) == ERR_ARG);
        s.n = n;
    }
    _Atomic int stop = 1;
    fit_defaults(&o);
    o.stop = &stop;
    CHECK(fit_router(&f, &report, &s, &o, &kernels, NULL, &err) == ERR_STOP && !f.w1);
    o.width = ROUTER_MAX + 1;
    CHECK(fit_router(&f, &report, &s, &o, &kernels, NULL, &err) == ERR_ARG);
    CHECK(!f.w1);
    samples_close(&s);
}

int main(void)
{
    enum fit_head h;
    CHECK(kernels_pick(&kernels, NULL, cpu_detect(), NULL) == OK);
    CHECK(kernels_pick(&scalar, "scalar", cpu_detect(), NULL) == OK);
    CHECK(pool_open(&pool, 3, NULL) == OK);
    CHECK(fit_head_parse(&h, "mix") && h == FIT_MIX && !fit_head_parse(&h, "MIX"));
    check_learns();
    check_best();
    check_query();
    check_shuffled();
    check_table();
    check_fails();
    pool_close(pool);
    return 0;
}
