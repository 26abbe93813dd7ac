/* Tests head citer against a plain implementation in double, forward alone, whose gradients are
 * differences of its losses; initial weights, order and dropout are the same. The held-out loss of
 * every epoch must agree to five digits (2 % is the goal). */
#include "kernels/sys/cpu.h"
#include "router/learn/fit_internal.h"
#include "tests/router/router_help.h"

enum { DIM = 18, WIDTH = 19, TOKENS = 600, PER_TEXT = 10, EPOCHS = 3, BATCH = 48 };

/* All parameters in one array, so that Adam is one loop. */
enum {
    W1 = 0,
    GAMMA = W1 + WIDTH * DIM,
    BETA = GAMMA + WIDTH,
    W4 = BETA + WIDTH,
    B4 = W4 + DIM * WIDTH,
    W6 = B4 + DIM,
    B6 = W6 + DIM,
    PARAMS = B6 + 1
};

static double par[PARAMS], m1[PARAMS], m2[PARAMS], decay1, decay2;
static double run_mean[WIDTH], run_var[WIDTH];
static double drop1[BATCH][WIDTH], drop2[BATCH][DIM]; /* dropout of a batch */

static struct samples samples;
static struct fit_options options;
static double wrong_weight;
static double losses[EPOCHS];

/* Features of different size; a token is wrong when two of them are large, or by chance. */
static void make_samples(void)
{
    samples = (struct samples){ .dim = DIM };
    for (uint32_t i = 0; i < TOKENS; i++) {
        float x[DIM];
        for (size_t k = 0; k < DIM; k++)
            x[k] = (float)((rand_unit(1, i * DIM + k) * 2 - 1) * (k % 5 ? 1 : 6) + (k == 3));
        bool wrong = (x[1] > 0.2f && x[2] > 0.1f) || rand_unit(2, i) < 0.05;
        const struct sample_row row = { .label = !wrong, .subject = i / PER_TEXT };
        CHECK(samples_add(&samples, x, &row, NULL) == OK);
    }
}

static void reference_init(void)
{
    const enum fit_citer_layer a = FIT_CITER_FIRST, b = FIT_CITER_SECOND, c = FIT_CITER_LAST;
    for (size_t i = 0; i < WIDTH * DIM; i++) {
        par[W1 + i] = (double)fit_citer_initial(options.seed, a, DIM, i);
        par[W4 + i] = (double)fit_citer_initial(options.seed, b, WIDTH, i);
    }
    for (size_t i = 0; i < DIM; i++) {
        par[B4 + i] = (double)fit_citer_initial(options.seed, b, WIDTH, DIM * WIDTH + i);
        par[W6 + i] = (double)fit_citer_initial(options.seed, c, DIM, i);
    }
    par[B6] = (double)fit_citer_initial(options.seed, c, DIM, DIM);
    for (size_t i = 0; i < WIDTH; i++)
        par[GAMMA + i] = run_var[i] = 1;
    decay1 = decay2 = 1;
}

/* Return w . x for one row. */
static double first_layer(size_t unit, const float *x)
{
    double sum = 0;
    for (size_t k = 0; k < DIM; k++)
        sum += par[W1 + unit * DIM + k] * (double)x[k];
    return sum;
}

/* Compute Linear, BatchNorm, ReLU and dropout of one unit for a batch; keeps: running statistics
 * follow. */
static void unit_forward(double u[][WIDTH], size_t j, const size_t *index, size_t n, bool keeps)
{
    double a[BATCH], mean = 0, var = 0;
    for (size_t b = 0; b < n; b++)
        mean += (a[b] = first_layer(j, samples.x + index[b] * DIM)) / (double)n;
    for (size_t b = 0; b < n; b++)
        var += (a[b] - mean) * (a[b] - mean) / (double)n;
    for (size_t b = 0; b < n; b++) {
        double y = par[GAMMA + j] * (a[b] - mean) / sqrt(var + 1e-5) + par[BETA + j];
        u[b][j] = y > 0 ? y * drop1[b][j] : 0;
    }
    if (keeps) {
        run_mean[j] = 0.9 * run_mean[j] + 0.1 * mean;
        run_var[j] = 0.9 * run_var[j] + 0.1 * var * (double)n / (double)(n - 1);
    }
}

/* Return the loss of a sample from what the first layer gives; drop NULL: without dropout. */
static double sample_loss(const double *u, const double *drop, size_t at)
{
    double z = par[B6];
    for (size_t i = 0; i < DIM; i++) {
        double sum = par[B4 + i];
        for (size_t j = 0; j < WIDTH; j++)
            sum += par[W4 + i * WIDTH + j] * u[j];
        z += par[W6 + i] * sum * (drop ? drop[i] : 1);
    }
    return samples.rows[at].label ? log(1 + exp(-z)) : wrong_weight * log(1 + exp(z));
}

static double batch_loss(const size_t *index, size_t n, bool keeps)
{
    double u[BATCH][WIDTH], loss = 0;
    for (size_t j = 0; j < WIDTH; j++)
        unit_forward(u, j, index, n, keeps);
    for (size_t b = 0; b < n; b++)
        loss += sample_loss(u[b], drop2[b], index[b]);
    return loss / (double)n;
}

static void reference_step(const size_t *index, size_t n, size_t step)
{
    static double grad[PARAMS];
    const double e = 1e-6;
    const enum fit_citer_layer first = FIT_CITER_FIRST, second = FIT_CITER_SECOND;
    for (size_t b = 0; b < n; b++) {
        for (size_t j = 0; j < WIDTH; j++)
            drop1[b][j] = (double)fit_citer_dropout(options.seed, first, step, b, j);
        for (size_t i = 0; i < DIM; i++)
            drop2[b][i] = (double)fit_citer_dropout(options.seed, second, step, b, i);
    }
    batch_loss(index, n, true);
    for (size_t i = 0; i < PARAMS; i++) {
        double kept = par[i], above;
        par[i] = kept + e;
        above = batch_loss(index, n, false);
        par[i] = kept - e;
        grad[i] = (above - batch_loss(index, n, false)) / (2 * e);
        par[i] = kept;
    }
    decay1 *= 0.9;
    decay2 *= 0.999;
    for (size_t i = 0; i < PARAMS; i++) {
        m1[i] = 0.9 * m1[i] + 0.1 * grad[i];
        m2[i] = 0.999 * m2[i] + 0.001 * grad[i] * grad[i];
        par[i] -=
            (double)options.rate * (m1[i] / (1 - decay1)) / (sqrt(m2[i] / (1 - decay2)) + 1e-8);
    }
}

/* Return the loss of the held-out part, with running statistics and without dropout. */
static double reference_loss(const size_t *index, size_t n)
{
    double loss = 0;
    for (size_t b = 0; b < n; b++) {
        double u[WIDTH];
        for (size_t j = 0; j < WIDTH; j++) {
            double a = first_layer(j, samples.x + index[b] * DIM) - run_mean[j];
            u[j] = fmax(a / sqrt(run_var[j] + 1e-5) * par[GAMMA + j] + par[BETA + j], 0);
        }
        loss += sample_loss(u, NULL, index[b]);
    }
    return loss / (double)n;
}

/* Train in double and compare the losses of all epochs. */
static void reference_compare(void)
{
    static size_t train[TOKENS], held[TOKENS];
    size_t ntrain = 0, nheld = 0, step = 0, rights = 0;
    double worst = 0;
    for (size_t i = 0; i < TOKENS; i++)
        if (fit_holds_out(options.seed, samples.rows[i].subject))
            held[nheld++] = i;
        else
            rights += samples.rows[train[ntrain++] = i].label;
    wrong_weight = sqrt((double)rights / (double)(ntrain - rights));
    reference_init();
    for (size_t e = 0; e < EPOCHS; e++) {
        fit_order(train, ntrain, options.seed, e + 1);
        for (size_t at = 0; at < ntrain; at += BATCH)
            reference_step(train + at, ntrain - at < BATCH ? ntrain - at : BATCH, step++);
        double loss = reference_loss(held, nheld), off = fabs(losses[e] - loss) / loss;
        worst = off > worst ? off : worst;
        printf("epoch %zu: held-out loss %.6f, in double %.6f\n", e + 1, losses[e], loss);
    }
    printf("largest difference: %.2g\n", worst);
    CHECK(worst < 1e-5);
    CHECK(losses[EPOCHS - 1] < 0.9 * losses[0]); /* something was learnt */
}

/* Callback of fit_router. */
static void keep_loss(const struct fit_epoch *e)
{
    losses[e->epoch - 1] = e->held_loss;
}

/* The saved form is folded: its own loss must be that of the best epoch. */
static void compare_folded(const struct router_form *f, const struct fit_report *report,
                           const struct kernels *k)
{
    static float score[TOKENS];
    struct router *r;
    double loss = 0, n = 0;
    CHECK(router_make(&r, f, "citer", k, NULL) == OK);
    score_all(score, &samples, r);
    for (size_t i = 0; i < TOKENS; i++)
        if (fit_holds_out(options.seed, samples.rows[i].subject)) {
            double p = (double)score[i];
            loss -= samples.rows[i].label ? log(p) : wrong_weight * log(1 - p);
            n++;
        }
    CHECK((size_t)n == report->held && report->held_loss == losses[report->best - 1]);
    CHECK(fabs(loss / n - report->held_loss) < 1e-5);
    router_close(r);
}

int main(void)
{
    struct kernels k;
    struct router_form f;
    struct fit_report report;
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    make_samples();
    fit_defaults(&options);
    options.head = FIT_CITER;
    options.width = WIDTH;
    options.batch = BATCH;
    options.epochs = options.patience = EPOCHS;
    options.rate = 5e-3f;
    options.progress = keep_loss;
    CHECK(fit_router(&f, &report, &samples, &options, &k, NULL, NULL) == OK);
    CHECK(report.epochs == EPOCHS && f.width == WIDTH && f.dim == DIM);
    reference_compare();
    compare_folded(&f, &report, &k);
    router_form_close(&f);
    samples_close(&samples);
    return 0;
}
