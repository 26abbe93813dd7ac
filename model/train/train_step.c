/* train_step.c - a whole batch: packing, shards, gradients of the matrices, AdamW. */
#include <math.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "model/train/train_internal.h"

enum { CHUNK = 4096 }; /* parameters per partial norm */

/* Pack the matrices and their transposes. */
static void pack_job(void *arg, size_t thread, size_t first, size_t last)
{
    struct train *t = arg;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        const struct train_matrix *m = &t->matrices[i];
        train_pack(t->packed + m->at, t->value + m->at, m->cols, m->rows, m->cols);
        train_strips(t->packed_t + m->at, t->value + m->at, m->cols, m->rows, m->cols);
    }
}

static void shard_job(void *arg, size_t thread, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++)
        train_shard_run(arg, thread, i);
}

/* Job i computes 16 columns of one matrix's gradient. */
static void matrix_job(void *arg, size_t thread, size_t first, size_t last)
{
    struct train *t = arg;
    for (size_t i = first; i < last; i++) {
        const struct train_matrix *m = t->matrices;
        size_t strip = i;
        for (; strip >= m->cols / PANEL; m++)
            strip -= m->cols / PANEL;
        size_t n = m->head ? t->targets : t->used;
        float *strips = t->scratch[thread].att;
        train_strips(strips, m->x + strip * PANEL, m->cols, n, PANEL);
        struct panels w = train_panels(strips, PANEL, n);
        t->k->matmul_f32(t->grad + m->at + strip * PANEL, m->cols, &w, m->d, t->tokens, m->rows, 0,
                         1);
    }
}

/* Add up the shards' partial sums in order. */
static void sum_shards(float *out, const float *parts, size_t n, size_t shards)
{
    memcpy(out, parts, n * sizeof(float));
    for (size_t s = 1; s < shards; s++)
        for (size_t i = 0; i < n; i++)
            out[i] += parts[s * n + i];
}

/* Add what the matrix jobs leave out: norms, biases, and the embedding as input, tokens in
 * order. */
static void finish_gradient(struct train *t)
{
    size_t h = t->c.hidden;
    for (size_t i = 0; i < t->c.layers; i++) {
        const struct train_layer *l = &t->layers[i];
        sum_shards(t->grad + l->norm1, l->g_norm1, h, t->nshards);
        sum_shards(t->grad + l->bias, l->g_bias, t->qkv, t->nshards);
        sum_shards(t->grad + l->norm2, l->g_norm2, h, t->nshards);
    }
    sum_shards(t->grad + t->final_norm, t->g_final, h, t->nshards);
    for (size_t i = 0; i < t->used; i++)
        t->k->add_f32(t->grad + t->batch->ids[i] * h, t->d_emb + i * h, h);
}

/* Check a batch against the limits given at open. */
static int check_batch(const struct train *t, const struct train_batch *b, struct err *err)
{
    size_t at = 0, targets = 0;
    for (size_t d = 0; d < b->docs; d++) {
        size_t end = b->ends[d];
        if (end <= at || end - at > t->doc || end > t->tokens)
            return err_set(err, ERR_ARG, "train: document %zu ends at %zu: expected %zu to %zu", d,
                           end, at + 1, at + t->doc < t->tokens ? at + t->doc : t->tokens);
        for (; at < end; at++) {
            bool has = b->target[at] != TRAIN_NO_TARGET;
            if (b->ids[at] >= t->c.vocab || (has && b->target[at] >= t->c.vocab))
                return err_set(err, ERR_ARG, "train: token %zu: id not below %zu", at, t->c.vocab);
            targets += has;
        }
    }
    return targets ? OK : err_set(err, ERR_ARG, "train: no token of the batch has a target");
}

/* Cut the batch into shards of whole documents, at least TRAIN_SHARD tokens each except the
 * last. */
static void cut_shards(struct train *t, const struct train_batch *b)
{
    struct train_shard *s = t->shards;
    size_t at = 0, targets = 0, p = 0;
    *s = (struct train_shard){ 0 };
    for (size_t d = 0; d < b->docs; d++) {
        p += train_attn_size(t, b->ends[d] - at);
        for (; at < b->ends[d]; at++)
            targets += b->target[at] != TRAIN_NO_TARGET;
        s->doc1 = d + 1;
        s->t1 = at;
        if (at - s->t0 < TRAIN_SHARD || d + 1 == b->docs)
            continue;
        *++s = (struct train_shard){ d + 1, d + 1, at, at, targets, p, 0 };
    }
    t->nshards = (size_t)(s - t->shards) + 1;
    t->targets = targets;
    t->used = at;
}

int train_gradient(double *loss, struct train *t, const struct train_batch *b, struct err *err)
{
    int rc = check_batch(t, b, err);
    if (rc)
        return rc;
    t->batch = b;
    cut_shards(t, b);
    pool_for(t->pool, t->nmatrices, 1, pack_job, t);
    pool_for(t->pool, t->nshards, 1, shard_job, t);
    *loss = 0;
    for (size_t i = 0; i < t->nshards; i++)
        *loss += t->shards[i].loss;
    *loss /= (double)t->targets;
    size_t strips = 0;
    for (size_t i = 0; i < t->nmatrices; i++)
        strips += t->matrices[i].cols / PANEL;
    pool_for(t->pool, strips, 1, matrix_job, t);
    finish_gradient(t);
    return OK;
}

/* Sum the squares of one chunk of the gradient in fixed lanes. */
static void norm_job(void *arg, size_t thread, size_t first, size_t last)
{
    struct train *t = arg;
    (void)thread;
    for (size_t c = first; c < last; c++) {
        size_t end = (c + 1) * CHUNK < t->params ? (c + 1) * CHUNK : t->params;
        double lane[PANEL] = { 0 }, sum = 0;
        for (size_t i = c * CHUNK; i < end; i += PANEL) /* tensors have multiples of 16 values */
            for (size_t j = 0; j < PANEL; j++)
                lane[j] += (double)t->grad[i + j] * (double)t->grad[i + j];
        for (size_t j = 0; j < PANEL; j++)
            sum += lane[j];
        t->norms[c] = sum;
    }
}

/* Update the values [first, last). fix1 and fix2 correct the bias of the moments. */
static void train_step_adam(const struct train *t, size_t first, size_t last, float scale,
                            float decay)
{
    const struct train_rate *r = t->rate;
    float *restrict value = t->value, *restrict m = t->m, *restrict v = t->v;
    const float *restrict grad = t->grad;
    float b1 = r->beta1, b2 = r->beta2, fix1 = t->fix1, fix2 = t->fix2, lr = r->lr, eps = r->eps;
    for (size_t i = first; i < last; i++) {
        float g = grad[i] * scale;
        m[i] = b1 * m[i] + (1.0f - b1) * g;
        v[i] = b2 * v[i] + (1.0f - b2) * (g * g);
        float step = m[i] * fix1 / (sqrtf(v[i] * fix2) + eps);
        value[i] -= lr * (step + decay * value[i]);
    }
}

/* Update some tensors. norms[0] holds the norm of the whole gradient; vectors do not decay. */
static void adam_job(void *arg, size_t thread, size_t first, size_t last)
{
    struct train *t = arg;
    (void)thread;
    double norm = t->norms[0];
    float scale = norm > (double)t->rate->clip ? (float)((double)t->rate->clip / norm) : 1.0f;
    for (size_t i = first; i < last; i++) {
        const struct train_tensor *x = &t->tensors[i];
        size_t at = (size_t)(x->value - t->value);
        train_step_adam(t, at, at + x->rows * x->cols, scale, x->rows > 1 ? t->rate->decay : 0.0f);
    }
}

double train_update(struct train *t, const struct train_rate *rate)
{
    size_t chunks = (t->params + CHUNK - 1) / CHUNK;
    pool_for(t->pool, chunks, 1, norm_job, t);
    double sum = 0;
    for (size_t i = 0; i < chunks; i++)
        sum += t->norms[i];
    t->norms[0] = sqrt(sum);
    t->steps++;
    t->rate = rate;
    t->fix1 = (float)(1 / (1 - pow_f64((double)rate->beta1, (double)t->steps)));
    t->fix2 = (float)(1 / (1 - pow_f64((double)rate->beta2, (double)t->steps)));
    pool_for(t->pool, t->ntensors, 1, adam_job, t);
    return t->norms[0];
}
