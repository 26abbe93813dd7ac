#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "router/learn/fit.h"

static const float BETA1 = 0.9f, BETA2 = 0.999f, ADAM_EPS = 1e-8f;

enum { SPLIT = 5, MAX_BATCH = 4096 }; /* SPLIT: one text in five is held out */
enum { KEY_SPLIT = 1, KEY_INIT, KEY_ORDER };

/* All parameters, their moments and gradients share one form: w1 as panels [panels][dim][16], then
 * b1 [room], w2 [room], b2; room is the width rounded up to 16, padding stays zero. */
struct params {
    float *w1, *b1, *w2, *b2;
};

struct fit {
    const struct samples *s;
    const struct fit_options *o;
    const struct kernels *k;
    struct pool *pool;
    size_t dim, width, room, npanels, nparams;
    size_t *train, *held; /* indices of the samples of each part */
    size_t ntrain, nheld;
    float wrong_weight;
    double decay1, decay2; /* beta ^ steps */

    float *arena;
    size_t arena_bytes;
    float *mean, *inv; /* [dim] */
    struct params now, best, m, v;
    float *xb;           /* [batch][dim] standardised */
    float *xt;           /* [dim][batch] the same, transposed */
    float *h;            /* [batch][room] first layer, before ReLU */
    float *dh;           /* [panels][batch][16] its gradient, as panels */
    float *g1;           /* [dim][room] gradient of w1 */
    float *dz, *loss;    /* [batch] */
    size_t n;            /* samples in the current batch */
    const size_t *index; /* [n] their indices */
};

void fit_defaults(struct fit_options *o)
{
    *o =
        (struct fit_options){ .epochs = 40, .patience = 5, .batch = 256, .rate = 1e-3f, .seed = 1 };
}

bool fit_holds_out(uint64_t seed, uint32_t group)
{
    return rand_below(rand_u64(seed, KEY_SPLIT), group, SPLIT) == 0;
}

/* Take count floats, rounded up to a cache line, from the arena; with arena NULL only count. */
static float *fit_take(struct fit *t, size_t *at, size_t count)
{
    float *p = t->arena ? t->arena + *at : NULL;
    *at += (count + 15) / 16 * 16;
    return p;
}

/* Take the arrays of one set of parameters. */
static void take_params(struct fit *t, size_t *at, struct params *p)
{
    p->w1 = fit_take(t, at, t->nparams);
    p->b1 = p->w1 + t->room * t->dim;
    p->w2 = p->b1 + t->room;
    p->b2 = p->w2 + t->room;
}

/* Lay out all arrays in the arena. Returns the number of floats. */
static size_t fit_carve(struct fit *t)
{
    size_t at = 0, batch = t->o->batch;
    t->mean = fit_take(t, &at, t->dim);
    t->inv = fit_take(t, &at, t->dim);
    t->xb = fit_take(t, &at, batch * t->dim);
    t->xt = fit_take(t, &at, batch * t->dim);
    t->h = fit_take(t, &at, batch * t->room);
    t->dh = fit_take(t, &at, batch * t->room);
    t->g1 = fit_take(t, &at, t->dim * t->room);
    t->dz = fit_take(t, &at, batch);
    t->loss = fit_take(t, &at, batch);
    if (!t->arena)
        return at + 4 * ((t->nparams + 15) / 16 * 16);
    take_params(t, &at, &t->now);
    take_params(t, &at, &t->best);
    take_params(t, &at, &t->m);
    take_params(t, &at, &t->v);
    return at;
}

/* Split the samples by text; both parts need right and wrong tokens. */
static int fit_split(struct fit *t, struct err *err)
{
    const struct samples *s = t->s;
    size_t count[2][2] = { { 0 } };
    t->train = calloc(s->n + 1, sizeof(*t->train));
    t->held = calloc(s->n + 1, sizeof(*t->held));
    if (!t->train || !t->held)
        return err_set(err, ERR_NOMEM, "router training: out of memory");
    for (size_t i = 0; i < s->n; i++) {
        bool held = fit_holds_out(t->o->seed, s->group[i]);
        count[held][s->label[i]]++;
        if (held)
            t->held[t->nheld++] = i;
        else
            t->train[t->ntrain++] = i;
    }
    if (!count[0][0] || !count[0][1] || !count[1][0] || !count[1][1])
        return err_set(err, ERR_ARG,
                       "router training: expected right and wrong tokens in both parts, found %zu "
                       "right and %zu wrong to train on, %zu and %zu held out",
                       count[0][1], count[0][0], count[1][1], count[1][0]);
    t->wrong_weight = (float)sqrt((double)count[0][1] / (double)count[0][0]);
    return OK;
}

/* Compute mean and inverse deviation of each feature over the training part. */
static void standardise(struct fit *t)
{
    for (size_t k = 0; k < t->dim; k++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < t->ntrain; i++)
            sum += (double)t->s->x[t->train[i] * t->dim + k];
        double mean = sum / (double)t->ntrain;
        for (size_t i = 0; i < t->ntrain; i++) {
            double d = (double)t->s->x[t->train[i] * t->dim + k] - mean;
            squares += d * d;
        }
        double deviation = sqrt(squares / (double)t->ntrain);
        t->mean[k] = (float)mean;
        /* A feature that never changes carries no information. */
        t->inv[k] = deviation > 1e-6 * fabs(mean) ? (float)(1 / deviation) : 0;
    }
}

/* Draw the weights uniformly from +-1 / sqrt(fan-in); biases are 0. */
static void fit_init(struct fit *t)
{
    uint64_t key = rand_u64(t->o->seed, KEY_INIT);
    double a1 = 1 / sqrt((double)t->dim), a2 = 1 / sqrt((double)t->width);
    for (size_t i = 0; i < t->width; i++) {
        for (size_t k = 0; k < t->dim; k++)
            t->now.w1[(i / PANEL * t->dim + k) * PANEL + i % PANEL] =
                (float)(a1 * (2 * rand_unit(key, i * t->dim + k) - 1));
        t->now.w2[i] = (float)(a2 * (2 * rand_unit(key, t->width * t->dim + i) - 1));
    }
    t->decay1 = t->decay2 = 1;
}

/* Standardise some samples of the batch. */
static void fit_gather(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    (void)thread;
    for (size_t b = first; b < last; b++) {
        const float *x = t->s->x + t->index[b] * t->dim;
        for (size_t k = 0; k < t->dim; k++) {
            float v = (x[k] - t->mean[k]) * t->inv[k];
            t->xb[b * t->dim + k] = v;
            t->xt[k * t->o->batch + b] = v;
        }
    }
}

/* Compute some panels of the first layer for the batch. */
static void forward(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    (void)thread;
    struct panels w1 = { P_F32, t->width, t->dim, t->dim * PANEL * sizeof(float),
                         (const unsigned char *)t->now.w1 };
    t->k->matmul_f32(t->h, t->room, &w1, t->xb, t->dim, t->n, first, last);
    for (size_t b = 0; b < t->n; b++)
        for (size_t i = first * PANEL; i < last * PANEL; i++)
            t->h[b * t->room + i] += t->now.b1[i];
}

/* Compute second layer, loss and its gradient for some samples. */
static void fit_judge(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    (void)thread;
    for (size_t b = first; b < last; b++) {
        const float *h = t->h + b * t->room;
        float z = *t->now.b2;
        for (size_t i = 0; i < t->room; i++)
            z += t->now.w2[i] * (h[i] > 0 ? h[i] : 0);
        bool right = t->s->label[t->index[b]];
        float weight = right ? 1 : t->wrong_weight;
        double x = (double)z, under = exp_f64(x > 0 ? -x : x);
        t->loss[b] = weight * (float)(log_f64(1 + under) + (x > 0 ? x : 0) - (right ? x : 0));
        t->dz[b] = weight * (sigmoid_f32(z) - (float)right) / (float)t->n;
    }
}

struct adam {
    float rate, scale1, scale2;
};

/* Return w after one step of Adam. */
static inline float fit_adam(float w, float *m, float *v, float g, const struct adam *a)
{
    *m = BETA1 * *m + (1 - BETA1) * g;
    *v = BETA2 * *v + (1 - BETA2) * g * g;
    return w - a->rate * (*m * a->scale1) / (sqrtf(*v * a->scale2) + ADAM_EPS);
}

/* Return Adam's factors for the current step. */
static struct adam adam_now(const struct fit *t)
{
    return (struct adam){ t->o->rate, (float)(1 / (1 - t->decay1)), (float)(1 / (1 - t->decay2)) };
}

/* Compute the gradients of one panel of rows, and make its step. */
static void backward_panel(struct fit *t, size_t p, const struct adam *a)
{
    float *dh = t->dh + p * t->o->batch * PANEL;
    for (size_t r = 0; r < PANEL; r++) {
        size_t i = p * PANEL + r;
        float g2 = 0, gb = 0;
        for (size_t b = 0; b < t->n; b++) {
            float h = t->h[b * t->room + i];
            float d = h > 0 ? t->dz[b] * t->now.w2[i] : 0;
            dh[b * PANEL + r] = d;
            gb += d;
            g2 += h > 0 ? t->dz[b] * h : 0;
        }
        t->now.b1[i] = fit_adam(t->now.b1[i], &t->m.b1[i], &t->v.b1[i], gb, a);
        t->now.w2[i] = fit_adam(t->now.w2[i], &t->m.w2[i], &t->v.w2[i], g2, a);
    }
    /* g1[k][row] = sum over the batch of dh[b][row] x[b][k]. */
    struct panels w = { P_F32, PANEL, t->n, t->n * PANEL * sizeof(float),
                        (const unsigned char *)dh };
    t->k->matmul_f32(t->g1 + p * PANEL, t->room, &w, t->xt, t->o->batch, t->dim, 0, 1);
    for (size_t k = 0; k < t->dim; k++)
        for (size_t r = 0; r < PANEL; r++) {
            size_t at = (p * t->dim + k) * PANEL + r;
            float g = t->g1[k * t->room + p * PANEL + r];
            t->now.w1[at] = fit_adam(t->now.w1[at], &t->m.w1[at], &t->v.w1[at], g, a);
        }
}

/* Do backward_panel for some panels. */
static void backward(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    (void)thread;
    struct adam a = adam_now(t);
    for (size_t p = first; p < last; p++)
        backward_panel(t, p, &a);
}

/* Run index[n] forward; returns the batch's loss. */
static double run_batch(struct fit *t, const size_t *index, size_t n)
{
    double loss = 0;
    t->index = index;
    t->n = n;
    pool_for(t->pool, n, 16, fit_gather, t);
    pool_for(t->pool, t->npanels, 1, forward, t);
    pool_for(t->pool, n, 16, fit_judge, t);
    for (size_t b = 0; b < n; b++)
        loss += (double)t->loss[b];
    return loss;
}

/* Make one step of learning from the current batch. */
static void fit_learn(struct fit *t)
{
    float gb = 0;
    for (size_t b = 0; b < t->n; b++)
        gb += t->dz[b];
    t->decay1 *= (double)BETA1;
    t->decay2 *= (double)BETA2;
    struct adam a = adam_now(t);
    pool_for(t->pool, t->npanels, 1, backward, t);
    *t->now.b2 = fit_adam(*t->now.b2, t->m.b2, t->v.b2, gb, &a);
}

/* Make one pass over a part; learning uses a new order in each epoch. Returns ERR_STOP or OK. */
static int fit_pass(double *loss, struct fit *t, size_t *index, size_t n, bool learns, size_t epoch)
{
    uint64_t key = rand_u64(rand_u64(t->o->seed, KEY_ORDER), epoch);
    for (size_t i = n; learns && i > 1; i--) {
        size_t j = (size_t)rand_below(key, i, i), other = index[j];
        index[j] = index[i - 1];
        index[i - 1] = other;
    }
    *loss = 0;
    for (size_t at = 0; at < n; at += t->o->batch) {
        if (t->o->stop && *t->o->stop)
            return ERR_STOP;
        *loss += run_batch(t, index + at, n - at < t->o->batch ? n - at : t->o->batch);
        if (learns)
            fit_learn(t);
    }
    *loss /= (double)n;
    return OK;
}

/* Train until the held-out loss stops improving; keep the best weights. */
static int run_epochs(struct fit *t, struct fit_report *report, struct err *err)
{
    for (size_t epoch = 1; epoch <= t->o->epochs && epoch <= report->best + t->o->patience;
         epoch++) {
        struct fit_epoch e = { .epoch = epoch };
        if (fit_pass(&e.loss, t, t->train, t->ntrain, true, epoch) != OK ||
            fit_pass(&e.held_loss, t, t->held, t->nheld, false, epoch) != OK)
            return err_set(err, ERR_STOP, "router training: interrupted");
        e.best = epoch == 1 || e.held_loss < report->held_loss;
        if (e.best) {
            report->held_loss = e.held_loss;
            report->best = epoch;
            memcpy(t->best.w1, t->now.w1, t->nparams * sizeof(float));
        }
        report->epochs = epoch;
        if (t->o->progress)
            t->o->progress(t->o->arg, &e);
    }
    return OK;
}

/* Fold the standardisation into the weights: w x' = w (x - mean) inv, so inv goes into the weights
 * and the mean into the bias. */
static void fit_fold(struct router_form *f, const struct fit *t)
{
    for (size_t i = 0; i < t->width; i++) {
        double bias = (double)t->best.b1[i];
        for (size_t k = 0; k < t->dim; k++) {
            double w = (double)t->best.w1[(i / PANEL * t->dim + k) * PANEL + i % PANEL] *
                       (double)t->inv[k];
            f->w1[i * t->dim + k] = (float)w;
            bias -= w * (double)t->mean[k];
        }
        f->b1[i] = (float)bias;
        f->w2[i] = t->best.w2[i];
    }
    f->b2 = *t->best.b2;
}

/* Compute the AUC of the finished router on the held-out part. */
static int held_auc(double *auc, const struct fit *t, const struct router_form *f, struct err *err)
{
    struct router *r;
    int rc = router_make(&r, f, "trained router", t->k, err);
    if (rc != OK)
        return rc;
    float *score = calloc(t->nheld, sizeof(*score));
    float *scratch = calloc(router_scratch(r), sizeof(*scratch));
    unsigned char *right = calloc(t->nheld, 1);
    rc = score && scratch && right ? OK : err_set(err, ERR_NOMEM, "router training: out of memory");
    for (size_t i = 0; rc == OK && i < t->nheld; i++) {
        score[i] = router_score(r, t->s->x + t->held[i] * t->dim, scratch);
        right[i] = t->s->label[t->held[i]];
    }
    if (rc == OK)
        rc = samples_auc(auc, score, right, t->nheld, err);
    free(score);
    free(scratch);
    free(right);
    router_close(r);
    return rc;
}

/* Check options and samples. */
static int check_options(const struct fit *t, struct err *err)
{
    if (t->o->batch < 1 || t->o->batch > MAX_BATCH || t->o->epochs < 1 || t->o->patience < 1)
        return err_set(err, ERR_ARG,
                       "router training: expected a batch of 1 to %d and at least 1 epoch of "
                       "training and of patience, found %zu, %zu and %zu",
                       MAX_BATCH, t->o->batch, t->o->epochs, t->o->patience);
    if (t->dim < 1 || t->dim > ROUTER_MAX || t->width > ROUTER_MAX)
        return err_set(err, ERR_ARG, "router training: expected sizes of 1 to %d, found [%zu,%zu]",
                       ROUTER_MAX, t->width, t->dim);
    for (size_t i = 0; i < t->s->n * t->dim; i++)
        if (!isfinite(t->s->x[i]))
            return err_set(err, ERR_ARG,
                           "router training: expected finite hidden states, found %g in sample %zu",
                           (double)t->s->x[i], i / t->dim);
    return OK;
}

int fit_router(struct router_form *out, struct fit_report *report, const struct samples *s,
               const struct fit_options *o, const struct kernels *k, struct pool *pool,
               struct err *err)
{
    struct fit t = { .s = s, .o = o, .k = k, .pool = pool, .dim = s->dim };
    t.width = o->width ? o->width : 2 * s->dim;
    t.npanels = panels_count(t.width);
    t.room = t.npanels * PANEL;
    t.nparams = t.room * t.dim + 2 * t.room + 1;
    *out = (struct router_form){ 0 };
    *report = (struct fit_report){ 0 };
    int rc = check_options(&t, err);
    if (rc == OK)
        rc = fit_split(&t, err);
    if (rc == OK) {
        t.arena_bytes = fit_carve(&t) * sizeof(float);
        t.arena = os_alloc(t.arena_bytes);
        rc = t.arena ? router_form_open(out, t.dim, t.width, err)
                     : err_set(err, ERR_NOMEM, "router training: out of memory");
    }
    if (rc == OK) {
        fit_carve(&t);
        standardise(&t);
        fit_init(&t);
        report->trained = t.ntrain;
        report->held = t.nheld;
        rc = run_epochs(&t, report, err);
    }
    if (rc == OK) {
        fit_fold(out, &t);
        rc = held_auc(&report->held_auc, &t, out, err);
    }
    if (rc != OK)
        router_form_close(out);
    os_free(t.arena, t.arena_bytes);
    free(t.train);
    free(t.held);
    return rc;
}
