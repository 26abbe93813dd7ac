/* fit_citer.c - head citer.
 *
 * Source: CITER (arXiv 2502.01976), its confidence model: Linear(h, w), BatchNorm (momentum 0.1,
 * eps 1e-5), ReLU, Dropout 0.1, Linear(w, h), Dropout 0.1, Linear(h, 1), sigmoid; w = 2h. The first
 * Linear has no bias, since BatchNorm subtracts it again.
 *
 * With v = w6 * mask, the logit of a sample is u . (w4' v) + b4 . v + b6, so q = w4' v is at the
 * same time the gradient of u, and G = sum dz mask u' gives the gradients of w4 (times w6) and of
 * w6 (times w4): one product less each way than layer by layer. */
#include <math.h>

#include "kernels/math.h"
#include "kernels/sys/pool.h"
#include "router/learn/fit_internal.h"

static const float MOMENTUM = 0.1f;
static const double EPS = 1e-5;
enum { DROP = 6554, DROPS = 1 << 16, KEY_WEIGHTS = 100, KEY_DROP = 200 };

float fit_citer_initial(uint64_t seed, enum fit_citer_layer layer, size_t fan, size_t i)
{
    uint64_t key = rand_u64(seed, KEY_WEIGHTS + (uint64_t)layer);
    return (float)((2 * rand_unit(key, i) - 1) / sqrt((double)fan));
}

/* Return the key of a layer's dropout in a step. */
static uint64_t citer_key(uint64_t seed, enum fit_citer_layer layer, size_t step)
{
    return rand_u64(rand_u64(seed, KEY_DROP + (uint64_t)layer), step);
}

/* One draw decides on four units. */
static uint64_t citer_draw(uint64_t key, size_t sample, size_t unit)
{
    return rand_u64(key, (uint64_t)sample << 32 | unit / 4);
}

static float citer_drops(uint64_t draw, size_t unit)
{
    return (draw >> unit % 4 * 16 & (DROPS - 1)) < DROP ? 0 : (float)DROPS / (DROPS - DROP);
}

float fit_citer_dropout(uint64_t seed, enum fit_citer_layer layer, size_t step, size_t sample,
                        size_t unit)
{
    return citer_drops(citer_draw(citer_key(seed, layer, step), sample, unit), unit);
}

/* Fill to[n] with the dropout of n units, n and first multiples of 4. */
static void citer_fill(float *to, uint64_t key, size_t sample, size_t first, size_t n)
{
    for (size_t i = 0; i < n; i += 4) {
        uint64_t draw = citer_draw(key, sample, first + i);
        for (size_t j = 0; j < 4; j++)
            to[i + j] = citer_drops(draw, j);
    }
}

static void citer_size(struct fit *t)
{
    struct fit_citer *c = &t->citer;
    t->width = t->o->width ? t->o->width : 2 * t->dim;
    t->npanels = panels_count(t->width);
    t->room = t->npanels * PANEL;
    t->form_width = t->width;
    c->mid = t->dim;
    c->mid16 = panels_count(c->mid) * PANEL;
    c->w4 = t->room * t->dim;
    c->gamma = c->w4 + t->room * c->mid;
    c->beta = c->gamma + t->room;
    c->mean = c->beta + t->room;
    c->var = c->mean + t->room;
    c->w6 = c->var + t->room;
    c->b4 = c->w6 + c->mid16;
    c->b6 = c->b4 + c->mid16;
    t->nparams = c->b6 + PANEL;
}

static void citer_carve(struct fit *t, size_t *at)
{
    struct fit_citer *c = &t->citer;
    size_t batch = t->o->batch;
    t->h = fit_take(t, at, batch * t->room);
    t->dh = fit_take(t, at, batch * t->room);
    t->g1 = fit_take(t, at, t->dim * t->room);
    c->u = fit_take(t, at, batch * t->room);
    c->q = fit_take(t, at, batch * t->room);
    c->deviation = fit_take(t, at, t->room);
    c->mask = fit_take(t, at, batch * c->mid16);
    c->v = fit_take(t, at, batch * c->mid16);
    c->t = fit_take(t, at, batch * c->mid);
    c->g4 = fit_take(t, at, c->mid * t->room);
    c->g6 = fit_take(t, at, c->mid16);
    c->gb = fit_take(t, at, c->mid16);
    c->scale = fit_take(t, at, t->room);
    c->shift = fit_take(t, at, t->room);
    c->w2 = fit_take(t, at, t->room);
}

static void citer_init(struct fit *t)
{
    struct fit_citer *c = &t->citer;
    uint64_t seed = t->seed;
    for (size_t i = 0; i < t->width; i++) {
        float *w1 = t->now + i / PANEL * t->dim * PANEL + i % PANEL;
        float *w4 = t->now + c->w4 + i / PANEL * c->mid * PANEL + i % PANEL;
        for (size_t k = 0; k < t->dim; k++)
            w1[k * PANEL] = fit_citer_initial(seed, FIT_CITER_FIRST, t->dim, i * t->dim + k);
        for (size_t k = 0; k < c->mid; k++)
            w4[k * PANEL] = fit_citer_initial(seed, FIT_CITER_SECOND, t->width, k * t->width + i);
        t->now[c->gamma + i] = t->now[c->var + i] = 1;
    }
    for (size_t i = 0; i < c->mid; i++) {
        t->now[c->b4 + i] =
            fit_citer_initial(seed, FIT_CITER_SECOND, t->width, c->mid * t->width + i);
        t->now[c->w6 + i] = fit_citer_initial(seed, FIT_CITER_LAST, c->mid, i);
    }
    t->now[c->b6] = fit_citer_initial(seed, FIT_CITER_LAST, c->mid, c->mid);
}

/* ---- forward, to learn ---- */

/* Normalise the first layer's output for one panel of units: h becomes (h - mean) / deviation, and
 * the running statistics follow. */
static void citer_normalise(struct fit *t, size_t p)
{
    struct fit_citer *c = &t->citer;
    size_t at = p * PANEL;
    double sum[PANEL] = { 0 }, squares[PANEL] = { 0 }, n = (double)t->n;
    for (size_t b = 0; b < t->n; b++)
        for (size_t r = 0; r < PANEL; r++)
            sum[r] += (double)t->h[b * t->room + at + r];
    for (size_t b = 0; b < t->n; b++)
        for (size_t r = 0; r < PANEL; r++) {
            double d = (double)t->h[b * t->room + at + r] - sum[r] / n;
            squares[r] += d * d;
        }
    for (size_t r = 0; r < PANEL; r++) {
        float *mean = t->now + c->mean + at + r, *var = t->now + c->var + at + r;
        *mean += MOMENTUM * ((float)(sum[r] / n) - *mean);
        *var += MOMENTUM * ((float)(squares[r] / (n - 1)) - *var);
        c->deviation[at + r] = (float)(1 / sqrt(squares[r] / n + EPS));
    }
    for (size_t b = 0; b < t->n; b++)
        for (size_t r = 0; r < PANEL; r++) {
            float *h = t->h + b * t->room + at + r;
            *h = (*h - (float)(sum[r] / n)) * c->deviation[at + r];
        }
}

/* Compute some panels of the first layer, up to its dropout. */
static void citer_first(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    struct fit_citer *c = &t->citer;
    uint64_t key = citer_key(t->seed, FIT_CITER_FIRST, c->step);
    (void)thread;
    fit_product(t, t->h, t->now, t->dim, t->xb, t->dim, first, last);
    for (size_t p = first; p < last; p++) {
        const float *gamma = t->now + c->gamma + p * PANEL, *beta = t->now + c->beta + p * PANEL;
        citer_normalise(t, p);
        for (size_t b = 0; b < t->n; b++) {
            const float *h = t->h + b * t->room + p * PANEL;
            float *u = c->u + (p * t->o->batch + b) * PANEL, drop[PANEL];
            citer_fill(drop, key, b, p * PANEL, PANEL);
            for (size_t r = 0; r < PANEL; r++) {
                float y = gamma[r] * h[r] + beta[r];
                u[r] = (y > 0 ? y : 0) * drop[r];
            }
        }
    }
}

/* Draw the second layer's dropout for some samples. */
static void citer_mask(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    struct fit_citer *c = &t->citer;
    uint64_t key = citer_key(t->seed, FIT_CITER_SECOND, c->step);
    (void)thread;
    for (size_t b = first; b < last; b++) {
        float *mask = c->mask + b * c->mid16, *v = c->v + b * c->mid16;
        citer_fill(mask, key, b, 0, c->mid16);
        for (size_t i = 0; i < c->mid16; i++)
            v[i] = mask[i] * t->now[c->w6 + i];
    }
}

/* Compute some panels of q. */
static void citer_q(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    struct fit_citer *c = &t->citer;
    (void)thread;
    fit_product(t, c->q, t->now + c->w4, c->mid, c->v, c->mid16, first, last);
}

/* Compute the logits of some samples, and the mask times dz. */
static void citer_last(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    struct fit_citer *c = &t->citer;
    (void)thread;
    for (size_t b = first; b < last; b++) {
        float z = t->now[c->b6], lane[PANEL] = { 0 };
        for (size_t p = 0; p < t->npanels; p++)
            for (size_t r = 0; r < PANEL; r++)
                lane[r] +=
                    c->u[(p * t->o->batch + b) * PANEL + r] * c->q[b * t->room + p * PANEL + r];
        for (size_t i = 0; i < c->mid16; i += PANEL)
            for (size_t r = 0; r < PANEL; r++)
                lane[r] += t->now[c->b4 + i + r] * c->v[b * c->mid16 + i + r];
        for (size_t r = 0; r < PANEL; r++)
            z += lane[r];
        fit_judge(t, b, 0, z);
        for (size_t i = 0; i < c->mid; i++)
            c->t[i * t->o->batch + b] = c->mask[b * c->mid16 + i] * t->dz[b];
    }
}

/* ---- forward, folded ---- */

/* Fold BatchNorm into a factor and a summand of each unit, and the last two layers into one. */
static void citer_prepare(struct fit *t, const float *params)
{
    struct fit_citer *c = &t->citer;
    double sum = (double)params[c->b6];
    for (size_t i = 0; i < t->width; i++) {
        double s = (double)params[c->gamma + i] / sqrt((double)params[c->var + i] + EPS), w = 0;
        const float *w4 = params + c->w4 + i / PANEL * c->mid * PANEL + i % PANEL;
        for (size_t k = 0; k < c->mid; k++)
            w += (double)params[c->w6 + k] * (double)w4[k * PANEL];
        c->scale[i] = (float)s;
        c->shift[i] = (float)((double)params[c->beta + i] - s * (double)params[c->mean + i]);
        c->w2[i] = (float)w;
    }
    for (size_t k = 0; k < c->mid; k++)
        sum += (double)params[c->w6 + k] * (double)params[c->b4 + k];
    c->b2 = (float)sum;
}

/* Compute some panels of the first layer. */
static void citer_folded_first(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    (void)thread;
    fit_product(t, t->h, t->now, t->dim, t->xb, t->dim, first, last);
}

/* Compute the rest for some samples. */
static void citer_folded_last(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    const struct fit_citer *c = &t->citer;
    (void)thread;
    for (size_t b = first; b < last; b++) {
        float z = c->b2, lane[PANEL] = { 0 };
        for (size_t i = 0; i < t->room; i += PANEL)
            for (size_t r = 0; r < PANEL; r++) {
                float y = c->scale[i + r] * t->h[b * t->room + i + r] + c->shift[i + r];
                lane[r] += c->w2[i + r] * (y > 0 ? y : 0);
            }
        for (size_t r = 0; r < PANEL; r++)
            z += lane[r];
        fit_judge(t, b, 0, z);
    }
}

static void citer_forward(struct fit *t)
{
    if (!t->learns) {
        pool_for(t->pool, t->npanels, 1, citer_folded_first, t);
        pool_for(t->pool, t->n, 16, citer_folded_last, t);
        return;
    }
    pool_for(t->pool, t->npanels, 1, citer_first, t);
    pool_for(t->pool, t->n, 16, citer_mask, t);
    pool_for(t->pool, t->npanels, 1, citer_q, t);
    pool_for(t->pool, t->n, 16, citer_last, t);
}

/* ---- backward ---- */

/* Compute the gradient of one panel of units before BatchNorm, and step gamma and beta. */
static void citer_backward_norm(struct fit *t, size_t p)
{
    struct fit_citer *c = &t->citer;
    size_t at = p * PANEL;
    float *dh = t->dh + p * t->o->batch * PANEL, dgamma[PANEL] = { 0 }, dbeta[PANEL] = { 0 };
    const float kept = (float)DROPS / (DROPS - DROP), n = (float)t->n;
    for (size_t b = 0; b < t->n; b++)
        for (size_t r = 0; r < PANEL; r++) {
            /* Dropped units and those below zero have u = 0. */
            float u = c->u[(p * t->o->batch + b) * PANEL + r];
            float dy = u > 0 ? t->dz[b] * c->q[b * t->room + at + r] * kept : 0;
            dh[b * PANEL + r] = dy;
            dbeta[r] += dy;
            dgamma[r] += dy * t->h[b * t->room + at + r];
        }
    for (size_t b = 0; b < t->n; b++)
        for (size_t r = 0; r < PANEL; r++) {
            float x = t->h[b * t->room + at + r], *d = &dh[b * PANEL + r];
            *d = t->now[c->gamma + at + r] * c->deviation[at + r] *
                 (*d - dbeta[r] / n - x * (dgamma[r] / n));
        }
    fit_adam_step(t, c->gamma + at, dgamma, t->adam);
    fit_adam_step(t, c->beta + at, dbeta, t->adam);
}

/* Compute the gradients of some panels of units, and step the first layer. */
static void citer_backward(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    struct fit_citer *c = &t->citer;
    (void)thread;
    for (size_t p = first; p < last; p++) {
        size_t panel = p * t->o->batch * PANEL;
        fit_gradient(t, c->g4, c->u + panel, c->t, c->mid, p);
        citer_backward_norm(t, p);
        fit_gradient(t, t->g1, t->dh + panel, t->xt, t->dim, p);
        fit_adam_panel(t, 0, t->g1, t->dim, p, t->adam);
    }
}

/* Compute the gradients of w6 and b4 for some outputs of the second layer; G becomes w4's. */
static void citer_backward_mid(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    struct fit_citer *c = &t->citer;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        float w6 = t->now[c->w6 + i], sum = 0, g6, lane[PANEL] = { 0 };
        for (size_t b = 0; b < t->n; b++)
            sum += c->t[i * t->o->batch + b];
        for (size_t p = 0; p < t->npanels; p++)
            for (size_t r = 0; r < PANEL; r++) {
                float *g = &c->g4[i * t->room + p * PANEL + r];
                lane[r] += *g * t->now[c->w4 + (p * c->mid + i) * PANEL + r];
                *g *= w6;
            }
        g6 = t->now[c->b4 + i] * sum;
        for (size_t r = 0; r < PANEL; r++)
            g6 += lane[r];
        c->g6[i] = g6;
        c->gb[i] = w6 * sum;
    }
}

/* Step some panels of w4. */
static void citer_step_w4(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    struct fit_citer *c = &t->citer;
    (void)thread;
    for (size_t p = first; p < last; p++)
        fit_adam_panel(t, c->w4, c->g4, c->mid, p, t->adam);
}

static void citer_learn(struct fit *t, const float *sum)
{
    struct fit_citer *c = &t->citer;
    float gb[PANEL] = { *sum };
    pool_for(t->pool, t->npanels, 1, citer_backward, t);
    pool_for(t->pool, c->mid, 16, citer_backward_mid, t);
    pool_for(t->pool, t->npanels, 1, citer_step_w4, t);
    for (size_t i = 0; i < c->mid16; i += PANEL) {
        fit_adam_step(t, c->w6 + i, c->g6 + i, t->adam);
        fit_adam_step(t, c->b4 + i, c->gb + i, t->adam);
    }
    fit_adam_step(t, c->b6, gb, t->adam);
    c->step++;
}

/* Scale the first layer by BatchNorm's factors; the rest is folded already. */
static void citer_fold(struct router_form *f, const struct fit *t, const float *params)
{
    const struct fit_citer *c = &t->citer;
    for (size_t i = 0; i < t->width; i++) {
        double s = (double)params[c->gamma + i] / sqrt((double)params[c->var + i] + EPS);
        for (size_t k = 0; k < t->dim; k++)
            f->w1[i * t->dim + k] =
                (float)(s * (double)params[(i / PANEL * t->dim + k) * PANEL + i % PANEL]);
        f->b1[i] = c->shift[i];
        f->w2[i] = c->w2[i];
    }
    f->b2[0] = c->b2;
}

const struct fit_ops fit_ops_citer = {
    .least = 2, /* a variance needs two samples */
    .rate = 1e-3f,
    .size = citer_size,
    .carve = citer_carve,
    .init = citer_init,
    .prepare = citer_prepare,
    .forward = citer_forward,
    .learn = citer_learn,
    .fold = citer_fold,
};
