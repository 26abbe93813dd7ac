/* Tests head citer against a plain implementation in double, layer by layer, with the same initial
 * weights, order and dropout: the held-out loss of every epoch must agree to five digits (2 %
 * is the goal). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "kernels/math.h"
#include "router/learn/fit_internal.h"
#include "tests/router/router_help.h"
#include "tests/support/test.h"

enum { DIM = 21, WIDTH = 37, TOKENS = 2000, PER_TEXT = 10, EPOCHS = 8, BATCH = 64 };

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

static double par[PARAMS], grad[PARAMS], m1[PARAMS], m2[PARAMS], decay1, decay2;
static double run_mean[WIDTH], run_var[WIDTH];

/* One batch, layer by layer. */
static double xhat[BATCH][WIDTH], inv[WIDTH], u[BATCH][WIDTH], v[BATCH][DIM], dz[BATCH];
static double d1[BATCH][WIDTH], d2[BATCH][DIM], dy[BATCH][WIDTH], da[BATCH][WIDTH];

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

/* Linear, BatchNorm, ReLU and dropout of one unit for a batch. */
static void unit_forward(size_t j, const size_t *index, size_t n, size_t step)
{
    double a[BATCH], mean = 0, var = 0;
    for (size_t b = 0; b < n; b++)
        mean += (a[b] = first_layer(j, samples.x + index[b] * DIM)) / (double)n;
    for (size_t b = 0; b < n; b++)
        var += (a[b] - mean) * (a[b] - mean) / (double)n;
    run_mean[j] = 0.9 * run_mean[j] + 0.1 * mean;
    run_var[j] = 0.9 * run_var[j] + 0.1 * var * (double)n / (double)(n - 1);
    inv[j] = 1 / sqrt(var + 1e-5);
    for (size_t b = 0; b < n; b++) {
        xhat[b][j] = (a[b] - mean) * inv[j];
        double y = par[GAMMA + j] * xhat[b][j] + par[BETA + j];
        d1[b][j] = (double)fit_citer_dropout(options.seed, FIT_CITER_FIRST, step, b, j);
        u[b][j] = y > 0 ? y * d1[b][j] : 0;
        d1[b][j] = y > 0 ? d1[b][j] : 0; /* the derivative of both */
    }
}

/* The last two layers and dz of one sample. */
static void sample_forward(size_t b, size_t at, size_t n, size_t step)
{
    double z = par[B6];
    for (size_t i = 0; i < DIM; i++) {
        double sum = par[B4 + i];
        for (size_t j = 0; j < WIDTH; j++)
            sum += par[W4 + i * WIDTH + j] * u[b][j];
        d2[b][i] = (double)fit_citer_dropout(options.seed, FIT_CITER_SECOND, step, b, i);
        v[b][i] = sum * d2[b][i];
        z += par[W6 + i] * v[b][i];
    }
    double right = samples.rows[at].label, p = 1 / (1 + exp(-z));
    dz[b] = (right > 0 ? 1 : wrong_weight) * (p - right) / (double)n;
}

/* Add the gradients of one sample in the last two layers, and set dy. */
static void sample_backward(size_t b)
{
    memset(dy[b], 0, sizeof(dy[b]));
    grad[B6] += dz[b];
    for (size_t i = 0; i < DIM; i++) {
        double g = dz[b] * par[W6 + i] * d2[b][i];
        grad[W6 + i] += dz[b] * v[b][i];
        grad[B4 + i] += g;
        for (size_t j = 0; j < WIDTH; j++) {
            grad[W4 + i * WIDTH + j] += g * u[b][j];
            dy[b][j] += g * par[W4 + i * WIDTH + j] * d1[b][j];
        }
    }
}

/* BatchNorm and the first layer, backward, by the chain rule through mean and variance. */
static void unit_backward(size_t j, const size_t *index, size_t n)
{
    double dvar = 0, dmean = 0, gamma = par[GAMMA + j];
    for (size_t b = 0; b < n; b++) {
        grad[GAMMA + j] += dy[b][j] * xhat[b][j];
        grad[BETA + j] += dy[b][j];
        /* a - mean = xhat / inv */
        dvar += dy[b][j] * gamma * (xhat[b][j] / inv[j]) * -0.5 * inv[j] * inv[j] * inv[j];
        dmean -= dy[b][j] * gamma * inv[j];
    }
    for (size_t b = 0; b < n; b++) {
        da[b][j] =
            dy[b][j] * gamma * inv[j] + (dvar * 2 * (xhat[b][j] / inv[j]) + dmean) / (double)n;
        for (size_t k = 0; k < DIM; k++)
            grad[W1 + j * DIM + k] += da[b][j] * (double)samples.x[index[b] * DIM + k];
    }
}

static void reference_step(const size_t *index, size_t n, size_t step)
{
    memset(grad, 0, sizeof(grad));
    for (size_t j = 0; j < WIDTH; j++)
        unit_forward(j, index, n, step);
    for (size_t b = 0; b < n; b++) {
        sample_forward(b, index[b], n, step);
        sample_backward(b);
    }
    for (size_t j = 0; j < WIDTH; j++)
        unit_backward(j, index, n);
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
        double h[WIDTH], z = par[B6];
        for (size_t j = 0; j < WIDTH; j++) {
            double y = (first_layer(j, samples.x + index[b] * DIM) - run_mean[j]) /
                           sqrt(run_var[j] + 1e-5) * par[GAMMA + j] +
                       par[BETA + j];
            h[j] = y > 0 ? y : 0;
        }
        for (size_t i = 0; i < DIM; i++) {
            double sum = par[B4 + i];
            for (size_t j = 0; j < WIDTH; j++)
                sum += par[W4 + i * WIDTH + j] * h[j];
            z += par[W6 + i] * sum;
        }
        loss += samples.rows[index[b]].label ? log(1 + exp(-z)) : wrong_weight * log(1 + exp(z));
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
    struct err err = { "" };
    CHECK(kernels_pick(&k, NULL, cpu_detect(), NULL) == OK);
    make_samples();
    fit_defaults(&options);
    options.head = FIT_CITER;
    options.width = WIDTH;
    options.batch = BATCH;
    options.epochs = options.patience = EPOCHS;
    options.rate = 2e-3f;
    options.progress = keep_loss;
    CHECK(fit_router(&f, &report, &samples, &options, &k, NULL, &err) == OK);
    CHECK(report.epochs == EPOCHS && f.width == WIDTH && f.dim == DIM);
    reference_compare();
    compare_folded(&f, &report, &k);
    router_form_close(&f);
    samples_close(&samples);
    return 0;
}
