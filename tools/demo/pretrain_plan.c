#include <string.h>

#include "kernels/math.h"
#include "tools/demo/pretrain_plan.h"

enum { WARMUP = 100, CONTEXT = 1024 };

const struct pretrain_plan pretrain_plans[PRETRAIN_SIZES] = {
    { "0.1", "edge-0.1", 3, 64, 4, 2, 128, 6000, 400, 2000, 2, 3e-3f, { .30, false, true } },
    { "0.5", "edge-0.5", 3, 128, 8, 4, 256, 6000, 400, 2000, 5, 2.5e-3f, { .36, false, true } },
    { "1", "edge-1", 4, 160, 10, 5, 320, 6000, 400, 2000, 5, 2.5e-3f, { .60, false, true } },
    { "cloud", "cloud", 4, 256, 16, 8, 256, 4000, 250, 800, 2, 1.2e-3f, { 1, true, false } },
};

const struct pretrain_plan *pretrain_plan_find(const char *name)
{
    for (size_t i = 0; i < PRETRAIN_SIZES; i++)
        if (!strcmp(name, pretrain_plans[i].size) || !strcmp(name, pretrain_plans[i].name))
            return &pretrain_plans[i];
    return NULL;
}

void pretrain_plan_config(struct model_config *out, const struct pretrain_plan *p, size_t vocab)
{
    *out = (struct model_config){ .layers = p->layers,
                                  .hidden = p->hidden,
                                  .heads = p->heads,
                                  .kv_heads = p->kv_heads,
                                  .head_dim = p->hidden / p->heads,
                                  .ffn = p->ffn,
                                  .vocab = vocab,
                                  .context = CONTEXT,
                                  .eps = 1e-6f,
                                  .rope_theta = 10000,
                                  .tied = true };
}

void pretrain_plan_rate(struct train_rate *out, const struct pretrain_plan *p, size_t step)
{
    *out = (struct train_rate){ p->rate, 0.9f, 0.99f, 1e-8f, 0, 1 };
    if (step < WARMUP) {
        out->lr = p->rate * (float)(step + 1) / WARMUP;
    } else {
        double sin, cos, done = (double)(step - WARMUP) / (double)(p->steps - WARMUP);
        sincos_f64(&sin, &cos, 3.141592653589793 * done);
        out->lr = p->rate * (float)(0.02 + 0.49 * (1 + cos));
    }
}

double pretrain_plan_practice(size_t *lists, const struct pretrain_plan *p, size_t step)
{
    *lists = step < p->easy ? 0 : p->lists;
    return step < p->easy ? 1 : step < p->mixed ? 0.5 : 0.1;
}
