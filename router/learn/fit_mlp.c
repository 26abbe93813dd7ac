/* fit_mlp.c - the network of all heads but context, and Adam. Its parameters: w1 as panels
 * [panels][dim][16], b1 [room], w2 [outs][room], b2 in a panel of its own. */
#include <math.h>

#include "kernels/math.h"
#include "kernels/sys/pool.h"
#include "router/learn/fit_internal.h"

static const float RATE = 1e-3f, BETA1 = 0.9f, BETA2 = 0.999f, ADAM_EPS = 1e-8f;

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

void fit_mlp_size(struct fit *t)
{
    t->width = t->o->width ? t->o->width : 2 * t->dim;
    t->npanels = panels_count(t->width);
    t->room = t->npanels * PANEL;
    t->nparams = mlp_b2(t) + PANEL;
}

/* Draw the weights uniformly from +-1 / sqrt(fan-in); biases are 0. */
void fit_mlp_init(struct fit *t)
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

/* Set dz of an output for sample b of the batch, the weighted cross-entropy, from its logit; and
 * the loss, to which the second output adds. */
static void mlp_judge(struct fit *t, size_t b, size_t out, float z)
{
    size_t i = t->index[b];
    bool yes = t->outs == 1 ? t->label[i] : t->label[i] == (out ? FIT_SPOILS : FIT_MENDS);
    float weight = t->outs > 1 ? (float)fit_stands_for(t, i) : yes ? 1 : t->wrong_weight;
    double x = (double)z, under = exp_f64(x > 0 ? -x : x);
    t->dz[out * t->o->batch + b] = weight * (sigmoid_f32(z) - (float)yes) / (float)t->n;
    t->loss[b] = (out ? t->loss[b] : 0) +
                 weight * (float)(log_f64(1 + under) + (x > 0 ? x : 0) - (yes ? x : 0));
}

/* Compute some panels of the first layer for the batch. */
static void mlp_first(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    const float *b1 = t->now + mlp_b1(t);
    const struct panels w1 = {
        P_F32, t->room, t->dim, t->dim * PANEL * sizeof(float), (const unsigned char *)t->now, NULL
    };
    (void)thread;
    t->k->matmul_f32(t->h, t->room, &w1, t->xb, t->dim, t->n, first, last);
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
            mlp_judge(t, b, o, z);
        }
    }
}

void fit_mlp_forward(struct fit *t)
{
    pool_for(t->pool, t->npanels, 1, mlp_first, t);
    pool_for(t->pool, t->n, 16, mlp_second, t);
}

/* Make the step of Adam for the 16 parameters from offset `at` on, with gradients g[16]. */
static void mlp_step(struct fit *t, size_t at, const float *g)
{
    float *restrict w = t->now + at, *restrict m = t->m + at, *restrict v = t->v + at;
    for (size_t r = 0; r < PANEL; r++) {
        m[r] = BETA1 * m[r] + (1 - BETA1) * g[r];
        v[r] = BETA2 * v[r] + (1 - BETA2) * g[r] * g[r];
        w[r] = w[r] - RATE * (m[r] * t->scale1) / (sqrtf(v[r] * t->scale2) + ADAM_EPS);
    }
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
    const struct panels d = {
        P_F32, PANEL, t->n, t->n * PANEL * sizeof(float), (const unsigned char *)dh, NULL
    };
    mlp_step(t, b1, gb);
    for (size_t o = 0; o < t->outs; o++)
        mlp_step(t, w2 + o * t->room, g2[o]);
    t->k->matmul_f32(t->g1 + p * PANEL, t->room, &d, t->xt, t->o->batch, t->dim, 0, 1);
    for (size_t k = 0; k < t->dim; k++)
        mlp_step(t, (p * t->dim + k) * PANEL, t->g1 + k * t->room + p * PANEL);
}

static void mlp_backward(void *arg, size_t thread, size_t first, size_t last)
{
    (void)thread;
    for (size_t p = first; p < last; p++)
        mlp_backward_panel(arg, p);
}

void fit_mlp_learn(struct fit *t)
{
    float gb[PANEL] = { 0 };
    for (size_t o = 0; o < t->outs; o++)
        for (size_t b = 0; b < t->n; b++)
            gb[o] += t->dz[o * t->o->batch + b];
    t->decay1 *= (double)BETA1;
    t->decay2 *= (double)BETA2;
    t->scale1 = (float)(1 / (1 - t->decay1));
    t->scale2 = (float)(1 / (1 - t->decay2));
    pool_for(t->pool, t->npanels, 1, mlp_backward, t);
    mlp_step(t, mlp_b2(t), gb);
}

/* Fold the standardisation into the weights: w x' = w (x - mean) inv, so inv goes into the weights
 * and the mean into the bias. */
void fit_mlp_fold(struct router_form *f, const struct fit *t)
{
    const float *params = t->best;
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
