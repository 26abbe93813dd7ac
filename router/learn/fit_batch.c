#include <math.h>

#include "kernels/math.h"
#include "router/learn/fit_internal.h"

static const float BETA1 = 0.9f, BETA2 = 0.999f, ADAM_EPS = 1e-8f;

float *fit_take(struct fit *t, size_t *at, size_t count)
{
    float *p = t->arena ? t->arena + *at : NULL;
    *at += (count + 15) / 16 * 16;
    return p;
}

void fit_judge(struct fit *t, size_t b, size_t out, float z)
{
    size_t i = t->index[b];
    bool yes = t->outs == 1 ? t->label[i] : t->label[i] == (out ? FIT_SPOILS : FIT_MENDS);
    float weight = t->outs > 1 ? (float)fit_stands_for(t, i) : yes ? 1 : t->wrong_weight;
    double x = (double)z, under = exp_f64(x > 0 ? -x : x);
    t->dz[out * t->o->batch + b] = weight * (sigmoid_f32(z) - (float)yes) / (float)t->n;
    t->loss[b] = (out ? t->loss[b] : 0) +
                 weight * (float)(log_f64(1 + under) + (x > 0 ? x : 0) - (yes ? x : 0));
}

void fit_product(const struct fit *t, float *y, const float *w, size_t cols, const float *x,
                 size_t ldx, size_t first, size_t last)
{
    struct panels p = {
        P_F32, t->room, cols, cols * PANEL * sizeof(float), (const unsigned char *)w, NULL
    };
    t->k->matmul_f32(y, t->room, &p, x, ldx, t->n, first, last);
}

void fit_gradient(const struct fit *t, float *g, const float *d, const float *x, size_t cols,
                  size_t p)
{
    struct panels w = { P_F32, PANEL, t->n, t->n * PANEL * sizeof(float), (const unsigned char *)d,
                        NULL };
    t->k->matmul_f32(g + p * PANEL, t->room, &w, x, t->o->batch, cols, 0, 1);
}

struct fit_adam fit_adam_next(struct fit *t)
{
    t->decay1 *= (double)BETA1;
    t->decay2 *= (double)BETA2;
    return (struct fit_adam){ t->o->rate > 0 ? t->o->rate : t->ops->rate,
                              (float)(1 / (1 - t->decay1)), (float)(1 / (1 - t->decay2)) };
}

void fit_adam_step(struct fit *t, size_t at, const float *g, const struct fit_adam *a)
{
    float *restrict w = t->now + at, *restrict m = t->m + at, *restrict v = t->v + at;
    for (size_t r = 0; r < PANEL; r++) {
        m[r] = BETA1 * m[r] + (1 - BETA1) * g[r];
        v[r] = BETA2 * v[r] + (1 - BETA2) * g[r] * g[r];
        w[r] = w[r] - a->rate * (m[r] * a->scale1) / (sqrtf(v[r] * a->scale2) + ADAM_EPS);
    }
}

void fit_adam_panel(struct fit *t, size_t at, const float *g, size_t cols, size_t p,
                    const struct fit_adam *a)
{
    for (size_t k = 0; k < cols; k++)
        fit_adam_step(t, at + (p * cols + k) * PANEL, g + k * t->room + p * PANEL, a);
}
