/* fit_mlp.c - heads mlp and linear; gain is mlp with two outputs. */
#include <math.h>

#include "kernels/math.h"
#include "kernels/sys/pool.h"
#include "router/learn/fit_internal.h"

/* ---- mlp: w1 as panels [panels][dim][16], b1 [room], w2 [outs][room], b2 in a panel of its own
 * ----
 */

static size_t mlp_b1(const struct fit *t)
{
    return t->room * t->dim;
}

static size_t mlp_w2(const struct fit *t)
{
    return mlp_b1(t) + t->room;
}

static size_t mlp_b2(const struct fit *t)
{
    return mlp_w2(t) + t->outs * t->room;
}

static void mlp_size(struct fit *t)
{
    t->width = t->o->width ? t->o->width : 2 * t->dim;
    t->npanels = panels_count(t->width);
    t->room = t->npanels * PANEL;
    t->nparams = mlp_b2(t) + PANEL;
    t->form_width = t->width;
}

static void mlp_carve(struct fit *t, size_t *at)
{
    t->h = fit_take(t, at, t->o->batch * t->room);
    t->dh = fit_take(t, at, t->o->batch * t->room);
    t->g1 = fit_take(t, at, t->dim * t->room);
}

/* Draw the weights uniformly from +-1 / sqrt(fan-in); biases are 0. */
static void mlp_init(struct fit *t)
{
    uint64_t key = rand_u64(t->seed, FIT_KEY_INIT);
    double a1 = 1 / sqrt((double)t->dim), a2 = 1 / sqrt((double)t->width);
    float *w2 = t->now + mlp_w2(t);
    for (size_t i = 0; i < t->width; i++) {
        for (size_t k = 0; k < t->dim; k++)
            t->now[(i / PANEL * t->dim + k) * PANEL + i % PANEL] =
                (float)(a1 * (2 * rand_unit(key, i * t->dim + k) - 1));
        for (size_t o = 0; o < t->outs; o++)
            w2[o * t->room + i] =
                (float)(a2 * (2 * rand_unit(key, t->width * (t->dim + o) + i) - 1));
    }
}

/* Compute some panels of the first layer for the batch. */
static void mlp_first(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    const float *b1 = t->now + mlp_b1(t);
    (void)thread;
    fit_product(t, t->h, t->now, t->dim, t->xb, t->dim, first, last);
    for (size_t b = 0; b < t->n; b++)
        for (size_t i = first * PANEL; i < last * PANEL; i++)
            t->h[b * t->room + i] += b1[i];
}

/* Compute the second layer for some samples. */
static void mlp_second(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    const float *w2 = t->now + mlp_w2(t);
    (void)thread;
    for (size_t b = first; b < last; b++) {
        const float *h = t->h + b * t->room;
        for (size_t o = 0; o < t->outs; o++) {
            float z = t->now[mlp_b2(t) + o];
            for (size_t i = 0; i < t->room; i++)
                z += w2[o * t->room + i] * (h[i] > 0 ? h[i] : 0);
            fit_judge(t, b, o, z);
        }
    }
}

static void mlp_forward(struct fit *t)
{
    pool_for(t->pool, t->npanels, 1, mlp_first, t);
    pool_for(t->pool, t->n, 16, mlp_second, t);
}

/* Compute the gradients of one panel of units, and make its step. */
static void mlp_backward_panel(struct fit *t, size_t p)
{
    size_t b1 = mlp_b1(t) + p * PANEL, w2 = mlp_w2(t) + p * PANEL;
    float *dh = t->dh + p * t->o->batch * PANEL;
    float g2[2][PANEL] = { { 0 } }, gb[PANEL] = { 0 };
    for (size_t b = 0; b < t->n; b++)
        for (size_t r = 0; r < PANEL; r++) {
            float h = t->h[b * t->room + p * PANEL + r], sum = 0;
            for (size_t o = 0; o < t->outs; o++) {
                float dz = t->dz[o * t->o->batch + b];
                sum += h > 0 ? dz * t->now[w2 + o * t->room + r] : 0;
                g2[o][r] += h > 0 ? dz * h : 0;
            }
            dh[b * PANEL + r] = sum;
            gb[r] += sum;
        }
    fit_adam_step(t, b1, gb, t->adam);
    for (size_t o = 0; o < t->outs; o++)
        fit_adam_step(t, w2 + o * t->room, g2[o], t->adam);
    fit_gradient(t, t->g1, dh, t->xt, t->dim, p);
    fit_adam_panel(t, 0, t->g1, t->dim, p, t->adam);
}

static void mlp_backward(void *arg, size_t thread, size_t first, size_t last)
{
    (void)thread;
    for (size_t p = first; p < last; p++)
        mlp_backward_panel(arg, p);
}

static void mlp_learn(struct fit *t, const float *sum)
{
    float gb[PANEL] = { sum[0], sum[1] };
    pool_for(t->pool, t->npanels, 1, mlp_backward, t);
    fit_adam_step(t, mlp_b2(t), gb, t->adam);
}

/* Fold the standardisation into the weights: w x' = w (x - mean) inv, so inv goes into the weights
 * and the mean into the bias. */
static void mlp_fold(struct router_form *f, const struct fit *t, const float *params)
{
    const float *b1 = params + mlp_b1(t), *w2 = b1 + t->room;
    for (size_t i = 0; i < t->width; i++) {
        double bias = (double)b1[i];
        for (size_t k = 0; k < t->dim; k++) {
            double w =
                (double)params[(i / PANEL * t->dim + k) * PANEL + i % PANEL] * (double)t->inv[k];
            f->w1[i * t->dim + k] = (float)w;
            bias -= w * (double)t->mean[k];
        }
        f->b1[i] = (float)bias;
        for (size_t o = 0; o < t->outs; o++)
            f->w2[o * t->width + i] = w2[o * t->room + i];
    }
    for (size_t o = 0; o < t->outs; o++)
        f->b2[o] = params[mlp_b2(t) + o];
}

const struct fit_ops fit_ops_mlp = {
    .standardises = true,
    .least = 1,
    .rate = 1e-3f,
    .size = mlp_size,
    .carve = mlp_carve,
    .init = mlp_init,
    .forward = mlp_forward,
    .learn = mlp_learn,
    .fold = mlp_fold,
};

/* ---- linear: one row, in a panel whose other rows are zero, then the bias ---- */

static void linear_size(struct fit *t)
{
    t->width = 1;
    t->npanels = 1;
    t->room = PANEL;
    t->nparams = PANEL * (t->dim + 1);
    t->form_width = 2;
}

/* The weights begin at zero, as the arena does: the loss has one minimum. */
static void linear_init(struct fit *t)
{
    (void)t;
}

static void linear_forward(struct fit *t)
{
    fit_product(t, t->h, t->now, t->dim, t->xb, t->dim, 0, 1);
    for (size_t b = 0; b < t->n; b++)
        fit_judge(t, b, 0, t->h[b * PANEL] + t->now[t->dim * PANEL]);
}

static void linear_learn(struct fit *t, const float *sum)
{
    float gb[PANEL] = { *sum };
    for (size_t b = 0; b < t->n; b++)
        t->dh[b * PANEL] = t->dz[b]; /* the other rows stay zero */
    fit_gradient(t, t->g1, t->dh, t->xt, t->dim, 0);
    fit_adam_panel(t, 0, t->g1, t->dim, 0, t->adam);
    fit_adam_step(t, t->dim * PANEL, gb, t->adam);
}

/* A linear score a is saved as a network of two units: relu(a) - relu(-a). */
static void linear_fold(struct router_form *f, const struct fit *t, const float *params)
{
    double bias = (double)params[t->dim * PANEL];
    for (size_t k = 0; k < t->dim; k++) {
        double w = (double)params[k * PANEL] * (double)t->inv[k];
        f->w1[k] = (float)w;
        f->w1[t->dim + k] = -f->w1[k];
        bias -= w * (double)t->mean[k];
    }
    f->b1[0] = (float)bias;
    f->b1[1] = -f->b1[0];
    f->w2[0] = 1;
    f->w2[1] = -1;
}

const struct fit_ops fit_ops_linear = {
    .standardises = true,
    .least = 1,
    .rate = 1e-2f,
    .size = linear_size,
    .carve = mlp_carve,
    .init = linear_init,
    .forward = linear_forward,
    .learn = linear_learn,
    .fold = linear_fold,
};
