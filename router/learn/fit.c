#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "router/learn/fit_internal.h"

enum { SPLIT = 5, MAX_BATCH = 4096 }; /* SPLIT: one subject in five is held out */

static const char *const heads[] = {
    [FIT_MLP] = "mlp",         [FIT_CITER] = "citer",       [FIT_LINEAR] = "linear",
    [FIT_CONTEXT] = "context", [FIT_COMBINED] = "combined", [FIT_MIX] = "mix",
    [FIT_QUERY] = "query",
};

const char *fit_head_name(enum fit_head h)
{
    return heads[h];
}

bool fit_head_parse(enum fit_head *out, const char *name)
{
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        if (!strcmp(name, heads[i])) {
            *out = (enum fit_head)i;
            return true;
        }
    return false;
}

void fit_defaults(struct fit_options *o)
{
    *o = (struct fit_options){
        .epochs = 40, .patience = 5, .batch = 256, .most = 0.05f, .cover = 0.995f, .seed = 1
    };
}

bool fit_holds_out(uint64_t seed, uint32_t group)
{
    return rand_below(rand_u64(seed, FIT_KEY_SPLIT), group, SPLIT) == 0;
}

/* Lay out all arrays in the arena. Returns the number of floats. */
static size_t fit_carve(struct fit *t)
{
    size_t at = 0, batch = t->o->batch;
    t->mean = fit_take(t, &at, t->dim);
    t->inv = fit_take(t, &at, t->dim);
    t->xb = fit_take(t, &at, batch * t->dim);
    t->xt = fit_take(t, &at, batch * t->dim);
    t->dz = fit_take(t, &at, batch);
    t->loss = fit_take(t, &at, batch);
    t->now = fit_take(t, &at, t->nparams);
    t->best = fit_take(t, &at, t->nparams);
    t->m = fit_take(t, &at, t->nparams);
    t->v = fit_take(t, &at, t->nparams);
    t->ops->carve(t, &at);
    return at;
}

/* Exchange two entries of a random order for each entry, from the last to the second. */
static void fit_shuffle(size_t *index, size_t n, uint64_t key)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)rand_below(key, i, i), other = index[j];
        index[j] = index[i - 1];
        index[i - 1] = other;
    }
}

void fit_order(size_t *index, size_t n, uint64_t seed, size_t epoch)
{
    fit_shuffle(index, n, rand_u64(rand_u64(seed, FIT_KEY_ORDER), epoch));
}

/* Copy the labels; shuffled, if these are asked for. t->train serves as scratch. */
static void fit_labels(struct fit *t)
{
    const struct samples *s = t->s;
    for (size_t i = 0; i < s->n; i++)
        t->train[i] = i;
    if (t->o->shuffle_labels)
        fit_shuffle(t->train, s->n, rand_u64(t->o->seed, FIT_KEY_LABELS));
    for (size_t i = 0; i < s->n; i++)
        t->label[i] = s->rows[t->train[i]].label;
}

static int fit_by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Draw subjects with replacement: set t->times, and *n to the samples that they have. */
static int fit_draw(struct fit *t, size_t *n, struct err *err)
{
    const struct samples *s = t->s;
    const uint64_t key = rand_u64(t->o->seed, FIT_KEY_RESAMPLE);
    size_t groups = 0;
    uint32_t *group = calloc(s->n + 1, sizeof(*group)), *drawn = calloc(s->n + 1, sizeof(*drawn));
    t->times = calloc(s->n + 1, sizeof(*t->times));
    int rc =
        group && drawn && t->times ? OK : err_set(err, ERR_NOMEM, "router training: out of memory");
    for (size_t i = 0; rc == OK && i < s->n; i++)
        group[i] = s->rows[i].subject;
    if (rc == OK)
        qsort(group, s->n, sizeof(*group), fit_by_value);
    for (size_t i = 0; rc == OK && i < s->n; i++)
        if (!groups || group[i] != group[groups - 1])
            group[groups++] = group[i];
    for (size_t i = 0; i < groups; i++)
        drawn[rand_below(key, i, groups)]++;
    *n = 0;
    for (size_t i = 0; rc == OK && i < s->n; i++) {
        const uint32_t *at =
            bsearch(&s->rows[i].subject, group, groups, sizeof(*group), fit_by_value);
        *n += t->times[i] = drawn[at - group];
    }
    free(group);
    free(drawn);
    return rc;
}

/* Add a sample to its part, as often as it was drawn. */
static void fit_place(struct fit *t, size_t i, bool held)
{
    for (size_t k = t->times ? t->times[i] : 1; k > 0; k--)
        if (held)
            t->held[t->nheld++] = i;
        else
            t->train[t->ntrain++] = i;
}

/* Split the samples; both parts need right and wrong tokens. */
static int fit_split(struct fit *t, struct fit_report *report, struct err *err)
{
    const struct samples *s = t->s;
    size_t count[2][2] = { { 0 } }, room = s->n;
    int rc = t->o->resample ? fit_draw(t, &room, err) : OK;
    if (rc != OK)
        return rc;
    room = room > s->n ? room : s->n; /* for fit_labels, too */
    t->train = calloc(room + 1, sizeof(*t->train));
    t->held = calloc(room + 1, sizeof(*t->held));
    t->label = calloc(s->n + 1, 1);
    if (!t->train || !t->held || !t->label)
        return err_set(err, ERR_NOMEM, "router training: out of memory");
    fit_labels(t);
    for (size_t i = 0; i < s->n; i++) {
        bool held = fit_holds_out(t->o->seed, s->rows[i].subject);
        count[held][t->label[i]] += t->times ? t->times[i] : 1;
        fit_place(t, i, held);
    }
    *report = (struct fit_report){ .trained = t->ntrain,
                                   .held = t->nheld,
                                   .trained_wrong = count[0][0],
                                   .held_wrong = count[1][0] };
    if (!count[0][0] || !count[0][1] || !count[1][0] || !count[1][1])
        return err_set(err, ERR_ARG,
                       "router training: expected right and wrong tokens in both parts, found %zu "
                       "right and %zu wrong to train on, %zu and %zu held out",
                       count[0][1], count[0][0], count[1][1], count[1][0]);
    t->wrong_weight = (float)sqrt((double)count[0][1] / (double)count[0][0]);
    return OK;
}

/* Compute mean and inverse deviation of some features over the training part. */
static void fit_standardise(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    (void)thread;
    for (size_t k = first; k < last; k++) {
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

/* Copy some samples of the batch, standardised. */
static void fit_gather(void *arg, size_t thread, size_t first, size_t last)
{
    struct fit *t = arg;
    (void)thread;
    for (size_t b = first; b < last; b++) {
        const float *x = t->s->x + t->index[b] * t->dim;
        for (size_t k = 0; k < t->dim; k++)
            t->xb[b * t->dim + k] = t->ops->standardises ? (x[k] - t->mean[k]) * t->inv[k] : x[k];
        for (size_t k = 0; t->learns && k < t->dim; k++)
            t->xt[k * t->o->batch + b] = t->xb[b * t->dim + k];
    }
}

/* Run index[n] forward; returns the batch's loss. */
static double fit_batch(struct fit *t, const size_t *index, size_t n)
{
    double loss = 0;
    t->index = index;
    t->n = n;
    pool_for(t->pool, n, 16, fit_gather, t);
    t->ops->forward(t);
    for (size_t b = 0; b < n; b++)
        loss += (double)t->loss[b];
    return loss;
}

/* Make one step of learning from the current batch. */
static void fit_learn(struct fit *t)
{
    float sum = 0;
    for (size_t b = 0; b < t->n; b++)
        sum += t->dz[b];
    struct fit_adam a = fit_adam_next(t);
    t->adam = &a;
    t->ops->learn(t, sum);
}

/* Make one pass over a part, and learn from it or not. Returns ERR_STOP or OK. */
static int fit_pass(double *loss, struct fit *t, bool learns)
{
    size_t n = learns ? t->ntrain : t->nheld, seen = 0;
    const size_t *index = learns ? t->train : t->held;
    *loss = 0;
    t->learns = learns;
    if (!learns && t->ops->prepare)
        t->ops->prepare(t, t->now);
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < t->o->batch ? n - at : t->o->batch;
        if (t->o->stop && *t->o->stop)
            return ERR_STOP;
        if (learns && some < t->ops->least)
            break;
        *loss += fit_batch(t, index + at, some);
        seen += some;
        if (learns)
            fit_learn(t);
    }
    *loss /= (double)seen;
    return OK;
}

/* Train until the held-out loss stops improving; keep the best weights. */
static int fit_epochs(struct fit *t, struct fit_report *report, struct err *err)
{
    for (size_t epoch = 1; epoch <= t->o->epochs && epoch <= report->best + t->o->patience;
         epoch++) {
        struct fit_epoch e = { .epoch = epoch };
        fit_order(t->train, t->ntrain, t->o->seed, epoch);
        if (fit_pass(&e.loss, t, true) != OK || fit_pass(&e.held_loss, t, false) != OK)
            return err_set(err, ERR_STOP, "router training: interrupted");
        e.best = epoch == 1 || e.held_loss < report->held_loss;
        if (e.best) {
            report->loss = e.loss;
            report->held_loss = e.held_loss;
            report->best = epoch;
            memcpy(t->best, t->now, t->nparams * sizeof(float));
        }
        report->epochs = epoch;
        if (t->o->progress)
            t->o->progress(&e);
    }
    return OK;
}

/* Train a network in batches. */
static int fit_network(struct router_form *out, struct fit_report *report, struct fit *t,
                       struct err *err)
{
    if (t->ntrain < t->ops->least)
        return err_set(err, ERR_ARG, "router training: expected at least %zu tokens, found %zu",
                       t->ops->least, t->ntrain);
    t->arena_bytes = fit_carve(t) * sizeof(float);
    t->arena = os_alloc(t->arena_bytes);
    int rc = t->arena ? router_form_open(out, t->dim, t->form_width, err)
                      : err_set(err, ERR_NOMEM, "router training: out of memory");
    if (rc != OK)
        return rc;
    fit_carve(t);
    if (t->ops->standardises)
        pool_for(t->pool, t->dim, 16, fit_standardise, t);
    t->decay1 = t->decay2 = 1;
    t->ops->init(t);
    rc = fit_epochs(t, report, err);
    if (rc == OK && t->ops->prepare)
        t->ops->prepare(t, t->best);
    if (rc == OK)
        t->ops->fold(out, t, t->best);
    return rc;
}

/* What is computed from the scores of one part. */
struct fit_scoring {
    const struct fit *t;
    const struct router *r;
    const size_t *index;
    float *score, *scratch;
    size_t room; /* floats of one thread's scratch */
};

/* Score some samples with the finished router. */
static void fit_score_some(void *arg, size_t thread, size_t first, size_t last)
{
    const struct fit_scoring *c = arg;
    const struct samples *s = c->t->s;
    for (size_t i = first; i < last; i++)
        c->score[i] = samples_score_one(s, c->index[i], c->r, c->scratch + thread * c->room);
}

/* Return the loss of some scores, weighted as in training. */
static double fit_loss(const struct fit *t, const float *score, const size_t *index, size_t n)
{
    double loss = 0;
    for (size_t i = 0; i < n; i++) {
        double p = (double)score[i], least = 1e-7;
        p = t->label[index[i]] ? p : 1 - p;
        loss -= log_f64(p > least ? p : least) * (t->label[index[i]] ? 1 : (double)t->wrong_weight);
    }
    return loss / (double)n;
}

/* Measure the held-out part. */
static int fit_measure(struct fit_report *report, const struct fit *t, const float *score,
                       struct err *err)
{
    unsigned char *label = calloc(t->nheld, 1);
    uint32_t(*before)[2] = calloc(t->nheld, sizeof(*before));
    int rc = label && before ? OK : err_set(err, ERR_NOMEM, "router training: out of memory");
    for (size_t i = 0; rc == OK && i < t->nheld; i++) {
        label[i] = t->label[t->held[i]];
        memcpy(before[i], t->s->rows[t->held[i]].before, sizeof(*before));
    }
    if (rc == OK)
        rc = measures_of(&report->measures, score, label, (const uint32_t(*)[2])before, t->nheld,
                         err);
    if (rc == OK)
        rc = measures_find_cut(&report->cut, score, label, t->nheld, (double)t->o->most,
                               (double)t->o->cover, err);
    free(label);
    free(before);
    return rc;
}

/* Score both parts with the finished router: measures of the held-out part, and the losses of a
 * table, which has no epochs. */
static int fit_finish(struct fit_report *report, const struct fit *t, const struct router_form *f,
                      struct err *err)
{
    struct fit_scoring c = { .t = t };
    struct router *r;
    int rc = router_make(&r, f, "trained router", t->k, err);
    if (rc != OK)
        return rc;
    c.r = r;
    c.room = router_scratch(r);
    c.score = calloc(t->ntrain + t->nheld, sizeof(*c.score));
    c.scratch = calloc(c.room * pool_threads(t->pool), sizeof(*c.scratch));
    rc = c.score && c.scratch ? OK : err_set(err, ERR_NOMEM, "router training: out of memory");
    if (rc == OK && router_is_table(r)) {
        c.index = t->train;
        pool_for(t->pool, t->ntrain, 64, fit_score_some, &c);
        report->loss = fit_loss(t, c.score, t->train, t->ntrain);
    }
    if (rc == OK) {
        c.index = t->held;
        pool_for(t->pool, t->nheld, 64, fit_score_some, &c);
        if (router_is_table(r))
            report->held_loss = fit_loss(t, c.score, t->held, t->nheld);
        rc = fit_measure(report, t, c.score, err);
    }
    free(c.score);
    free(c.scratch);
    router_close(r);
    return rc;
}

/* Check options and samples. */
static int fit_check(const struct fit *t, struct err *err)
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
    static const struct fit_ops *const ops[] = {
        [FIT_MLP] = &fit_ops_mlp,  [FIT_CITER] = &fit_ops_citer,  [FIT_LINEAR] = &fit_ops_linear,
        [FIT_CONTEXT] = NULL,      [FIT_COMBINED] = &fit_ops_mlp, [FIT_MIX] = &fit_ops_mlp,
        [FIT_QUERY] = &fit_ops_mlp
    };
    struct samples texts = { 0 };
    struct fit t = { .s = o->head == FIT_QUERY ? &texts : s,
                     .o = o,
                     .k = k,
                     .pool = pool,
                     .dim = s->dim,
                     .ops = ops[o->head] };
    struct samples with = { 0 };
    struct router_form table = { 0 };
    bool features = o->head == FIT_COMBINED || o->head == FIT_MIX;
    *out = (struct router_form){ 0 };
    *report = (struct fit_report){ 0 };
    if (t.ops)
        t.ops->size(&t);
    int rc = o->head == FIT_QUERY ? samples_of_texts(&texts, s, err) : OK;
    if (rc == OK)
        rc = fit_check(&t, err);
    if (rc == OK)
        rc = fit_split(&t, report, err);
    if (rc == OK && features)
        rc = fit_inputs(&with, &table, &t, o->head == FIT_MIX, err);
    if (rc == OK && features) {
        t.s = &with;
        t.dim = with.dim;
        t.ops->size(&t);
    }
    if (rc == OK)
        rc = t.ops ? fit_network(out, report, &t, err) : fit_contexts(out, &t, err);
    if (rc == OK && features) {
        out->contexts = table.contexts;
        out->ncontexts = table.ncontexts;
        table = (struct router_form){ 0 };
    }
    if (rc == OK)
        rc = fit_finish(report, &t, out, err);
    if (rc != OK)
        router_form_close(out);
    router_form_close(&table);
    fit_inputs_close(&with);
    os_free(t.arena, t.arena_bytes);
    free(t.times);
    free(t.train);
    free(t.held);
    free(t.label);
    samples_close(&texts);
    return rc;
}
