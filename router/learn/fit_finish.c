/* fit_finish.c - what a finished router does on the held-out part. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "kernels/sys/pool.h"
#include "router/learn/fit_internal.h"

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

/* What the measures read: an entry for each token that a held-out sample stands for. */
struct fit_held {
    float *score;
    unsigned char *label;
    uint32_t (*before)[2];
    size_t n;
};

static void fit_held_add(struct fit_held *h, const struct fit *t, size_t i, float score)
{
    h->score[h->n] = score;
    h->label[h->n] = t->label[i];
    memcpy(h->before[h->n++], t->s->rows[i].before, sizeof(*h->before));
}

/* Measure what heads gain are for, with arrays that have room for all. */
static int fit_measure_gain(struct fit_gain *out, const struct fit *t, const float *score,
                            struct fit_held *h, struct err *err)
{
    struct measures_cut cut;
    double pairs;
    int rc = measures_find_cut(&cut, h->score, h->label, h->n, FIT_RECALL_AT, 1, err);
    out->recall = cut.caught;
    for (size_t spoils = 0; rc == OK && spoils < 2; spoils++) {
        h->n = 0;
        for (size_t k = 0; k < t->nheld; k++) {
            size_t i = t->held[k];
            if (spoils ? t->label[i] != FIT_CHANGES_NOTHING : t->s->rows[i].way == SAMPLE_ROLLOUT)
                fit_held_add(h, t, i, score[k]);
        }
        rc = measures_auc(spoils ? &out->spoils : &out->differ, &pairs, h->score, h->label, NULL,
                          h->n, err);
    }
    return rc;
}

/* Measure the held-out part. */
static int fit_measure(struct fit_report *report, const struct fit *t, const float *score,
                       struct err *err)
{
    size_t room = t->nheld * (t->outs > 1 ? SAMPLE_AGREED_FOR : 1);
    struct fit_held h = { calloc(room, sizeof(*h.score)), calloc(room, 1),
                          calloc(room, sizeof(*h.before)), 0 };
    int rc = h.score && h.label && h.before
                 ? OK
                 : err_set(err, ERR_NOMEM, "router training: out of memory");
    for (size_t k = 0; rc == OK && k < t->nheld; k++)
        for (size_t times = fit_stands_for(t, t->held[k]); times > 0; times--)
            fit_held_add(&h, t, t->held[k], score[k]);
    if (rc == OK)
        rc = measures_of(&report->measures, h.score, h.label, (const uint32_t(*)[2])h.before, h.n,
                         err);
    if (rc == OK)
        rc = measures_find_cut(&report->cut, h.score, h.label, h.n, (double)t->o->most,
                               (double)t->o->cover, err);
    if (rc == OK && t->outs > 1)
        rc = fit_measure_gain(&report->gain, t, score, &h, err);
    free(h.score);
    free(h.label);
    free(h.before);
    return rc;
}

int fit_finish(struct fit_report *report, const struct fit *t, const struct router_form *f,
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
