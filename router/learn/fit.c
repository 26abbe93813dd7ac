#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "router/learn/fit_internal.h"

/* A head: what its network reads, or neither if it is a table; its outputs. */
static const struct fit_kind {
    const char *name;
    bool hidden, features;
    size_t outs;
} heads[] = {
    [FIT_MLP] = { "mlp", true, false, 1 },
    [FIT_CONTEXT] = { "context", false, false, 1 },
    [FIT_COMBINED] = { "combined", false, true, 1 },
    [FIT_MIX] = { "mix", true, true, 1 },
    [FIT_QUERY] = { "query", true, false, 1 },
    [FIT_GAIN] = { "gain", true, true, 2 },
    [FIT_GAIN_NONE] = { "gain-none", false, true, 2 },
};

const char *fit_head_name(enum fit_head h)
{
    return heads[h].name;
}

bool fit_head_parse(enum fit_head *out, const char *name)
{
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        if (!strcmp(name, heads[i].name)) {
            *out = (enum fit_head)i;
            return true;
        }
    return false;
}

bool fit_head_gains(enum fit_head h)
{
    return heads[h].outs > 1;
}

void fit_defaults(struct fit_options *o)
{
    *o = (struct fit_options){ .members = 1,
                               .epochs = 40,
                               .patience = 5,
                               .batch = 256,
                               .most = 0.05f,
                               .cover = 0.995f,
                               .seed = 1 };
}

/* Take count floats, rounded up to a cache line, from the arena; with arena NULL only count. */
static float *fit_take(struct fit *t, size_t *at, size_t count)
{
    float *p = t->arena ? t->arena + *at : NULL;
    *at += (count + 15) / 16 * 16;
    return p;
}

/* Lay out all arrays in the arena. Returns the number of floats. */
static size_t fit_carve(struct fit *t)
{
    size_t at = 0, batch = t->o->batch;
    t->mean = fit_take(t, &at, t->dim);
    t->inv = fit_take(t, &at, t->dim);
    t->xb = fit_take(t, &at, batch * t->dim);
    t->xt = fit_take(t, &at, batch * t->dim);
    t->dz = fit_take(t, &at, t->outs * batch);
    t->loss = fit_take(t, &at, batch);
    t->now = fit_take(t, &at, t->nparams);
    t->best = fit_take(t, &at, t->nparams);
    t->m = fit_take(t, &at, t->nparams);
    t->v = fit_take(t, &at, t->nparams);
    t->h = fit_take(t, &at, batch * t->room);
    t->dh = fit_take(t, &at, batch * t->room);
    t->g1 = fit_take(t, &at, t->dim * t->room);
    return at;
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
            t->xb[b * t->dim + k] = (x[k] - t->mean[k]) * t->inv[k];
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
    fit_mlp_forward(t);
    for (size_t b = 0; b < n; b++)
        loss += (double)t->loss[b];
    return loss;
}

/* Make one pass over a part, and learn from it or not. Returns ERR_STOP or OK. */
static int fit_pass(double *loss, struct fit *t, bool learns)
{
    size_t n = learns ? t->ntrain : t->nheld;
    const size_t *index = learns ? t->train : t->held;
    *loss = 0;
    t->learns = learns;
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < t->o->batch ? n - at : t->o->batch;
        if (t->o->stop && *t->o->stop)
            return ERR_STOP;
        *loss += fit_batch(t, index + at, some);
        if (learns)
            fit_mlp_learn(t);
    }
    *loss /= (double)n;
    return OK;
}

/* Train until the held-out loss stops improving; keep the best weights. */
static int fit_epochs(struct fit *t, struct fit_report *report, struct err *err)
{
    for (size_t epoch = 1; epoch <= t->o->epochs && epoch <= report->best + t->o->patience;
         epoch++) {
        struct fit_epoch e = { .epoch = epoch };
        fit_order(t->train, t->ntrain, t->seed, epoch);
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

/* Train member m in batches. */
static int fit_member(struct router_form *out, struct fit_report *report, struct fit *t, size_t m,
                      struct err *err)
{
    struct router_form f = *out;
    memset(t->arena, 0, t->arena_bytes);
    pool_for(t->pool, t->dim, 16, fit_standardise, t);
    t->decay1 = t->decay2 = 1;
    report->best = 0;
    fit_mlp_init(t);
    int rc = fit_epochs(t, report, err);
    if (rc != OK)
        return rc;
    f.w1 += m * t->width * t->dim;
    f.b1 += m * t->width;
    f.w2 += m * t->width * t->outs;
    fit_mlp_fold(&f, t);
    memcpy(out->b2 + m * t->outs, f.b2, t->outs * sizeof(*f.b2));
    return OK;
}

/* Train all members, which then are measured on all samples. */
static int fit_network(struct router_form *out, struct fit_report *report, struct fit *t,
                       struct err *err)
{
    size_t n = t->o->members;
    int rc = OK;
    out->members = n;
    out->gain = t->outs > 1;
    if (router_form_check(out, "router training", err) != OK) /* it must fit into a file */
        return ERR_ARG;
    t->arena_bytes = fit_carve(t) * sizeof(float);
    t->arena = os_alloc(t->arena_bytes);
    if (!t->arena)
        return err_set(err, ERR_NOMEM, "router training: out of memory");
    fit_carve(t);
    for (size_t m = 0; rc == OK && m < n; m++) {
        t->seed = t->o->seed + m;
        if (n > 1)
            rc = fit_split(t, report, true, err);
        if (rc == OK)
            rc = fit_member(out, report, t, m, err);
    }
    os_free(t->arena, t->arena_bytes);
    return rc == OK && n > 1 ? fit_split(t, report, false, err) : rc;
}

/* The held-out part, being scored. */
struct fit_scoring {
    const struct fit *t;
    const struct router *r;
    float *score, *scratch; /* [nheld], [threads][room] */
    size_t room;
};

/* Score some samples with the finished router. */
static void fit_score_some(void *arg, size_t thread, size_t first, size_t last)
{
    const struct fit_scoring *c = arg;
    const struct samples *s = c->t->s;
    for (size_t k = first; k < last; k++) {
        size_t i = c->t->held[k];
        /* An id that the text does not have is in no table. */
        c->score[k] = router_is_table(c->r)
                          ? router_score_ids(c->r, s->rows[i].before, 2)
                          : router_score(c->r, s->x + i * s->dim, c->scratch + thread * c->room);
    }
}

/* Measure the held-out part, where a sample counts as often as tokens that it stands for; then, of
 * heads gain, what mends among those where the models differ, and against what spoils. */
static int fit_measure(struct fit_report *report, const struct fit *t, const float *score,
                       struct err *err)
{
    const size_t kinds = t->outs > 1 ? 3 : 1;
    const size_t room = t->nheld * (t->outs > 1 ? SAMPLE_AGREED_FOR : 1);
    double pairs, *const auc[] = { NULL, &report->differ_auc, &report->spoils_auc };
    struct measures_cut cut = { .caught = (double)NAN };
    unsigned char *label = calloc(room, 1);
    uint32_t(*before)[2] = calloc(room, sizeof(*before));
    float *each = calloc(room, sizeof(*each));
    int rc =
        label && before && each ? OK : err_set(err, ERR_NOMEM, "router training: out of memory");
    for (size_t kind = 0, n = 0; rc == OK && kind < kinds; kind++, n = 0) {
        for (size_t k = 0, i; k < t->nheld; k++) {
            i = t->held[k];
            size_t times = kind ? 1 : fit_stands_for(t, i);
            if ((kind == 1 && t->s->rows[i].way != SAMPLE_ROLLOUT) ||
                (kind == 2 && t->label[i] == FIT_CHANGES_NOTHING))
                continue;
            for (; times > 0; times--, n++) {
                each[n] = score[k];
                label[n] = t->label[i];
                memcpy(before[n], t->s->rows[i].before, sizeof(*before));
            }
        }
        rc = kind ? measures_auc(auc[kind], &pairs, each, label, NULL, n, err)
                  : measures_of(&report->measures, each, label, (const uint32_t(*)[2])before, n,
                                err);
        if (rc == OK && !kind)
            rc = measures_find_cut(&report->cut, each, label, n, (double)t->o->most,
                                   (double)t->o->cover, err);
        if (rc == OK && !kind && t->outs > 1)
            rc = measures_find_cut(&cut, each, label, n, FIT_RECALL_AT, 1, err);
    }
    report->recall = cut.caught;
    free(each);
    free(label);
    free(before);
    return rc;
}

/* Measure the finished router on the held-out part. */
static int fit_finish(struct fit_report *report, const struct fit *t, const struct router_form *f,
                      struct err *err)
{
    struct router *r;
    int rc = router_make(&r, f, "trained router", t->k, err);
    if (rc != OK)
        return rc;
    size_t room = router_scratch(r);
    struct fit_scoring c = { t, r, calloc(t->nheld, sizeof(*c.score)),
                             calloc(room * pool_threads(t->pool), sizeof(*c.scratch)), room };
    rc = c.score && c.scratch ? OK : err_set(err, ERR_NOMEM, "router training: out of memory");
    if (rc == OK) {
        pool_for(t->pool, t->nheld, 64, fit_score_some, &c);
        rc = fit_measure(report, t, c.score, err);
    }
    free(c.score);
    free(c.scratch);
    router_close(r);
    return rc;
}

int fit_router(struct router_form *out, struct fit_report *report, const struct samples *s,
               const struct fit_options *o, const struct kernels *k, struct pool *pool,
               struct err *err)
{
    const struct fit_kind *kind = &heads[o->head];
    struct samples texts = { 0 }, with = { 0 };
    struct router_form table = { 0 };
    struct fit t = { .s = o->head == FIT_QUERY ? &texts : s,
                     .o = o,
                     .k = k,
                     .pool = pool,
                     .dim = s->dim,
                     .seed = o->seed,
                     .outs = kind->outs };
    const bool network = kind->hidden || kind->features;
    *out = (struct router_form){ 0 };
    *report = (struct fit_report){ .loss = (double)NAN,
                                   .held_loss = (double)NAN,
                                   .differ_auc = (double)NAN,
                                   .spoils_auc = (double)NAN };
    if (network && o->members && o->width > ROUTER_MAX / o->members)
        return err_set(err, ERR_ARG, "router training: width: expected at most %zu, found %zu",
                       ROUTER_MAX / o->members, o->width);
    int rc = o->head == FIT_QUERY ? samples_of_texts(&texts, s, err) : OK;
    if (rc == OK)
        rc = fit_split(&t, report, o->resample && o->members == 1, err);
    if (rc == OK && kind->features)
        rc = fit_inputs(&with, &table, &t, kind->hidden, err);
    if (rc == OK && kind->features) {
        t.s = &with;
        t.dim = with.dim;
    }
    fit_mlp_size(&t);
    if (rc == OK)
        rc = network ? router_form_open(out, t.dim, o->members * t.width, err)
                     : fit_contexts(out, &t, err);
    if (rc == OK && kind->features) {
        out->contexts = table.contexts;
        out->ncontexts = table.ncontexts;
        table = (struct router_form){ 0 };
    }
    if (rc == OK && network)
        rc = fit_network(out, report, &t, err);
    if (rc == OK)
        rc = fit_finish(report, &t, out, err);
    if (rc != OK)
        router_form_close(out);
    router_form_close(&table);
    fit_inputs_close(&with);
    fit_split_close(&t);
    samples_close(&texts);
    return rc;
}
