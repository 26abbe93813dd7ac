/* fit_context.c - head context: how often the local model was right after two ids; and the inputs
 * of heads combined and mix, of which that is one.
 *
 * Counts are smoothed by the next shorter context: after (a, b) the score is (right + S p) / (n +
 * S), where p is the score after b alone, which is smoothed by the mean likewise. */
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "router/learn/fit_internal.h"

enum { FOLDS = 5 };
static const double S = 4; /* a shorter context counts as much as this many tokens */

struct counted { /* one token of the training part */
    uint32_t before, last;
    bool right;
};

/* Order by last, then before, for qsort: the contexts that share a back-off come together. */
static int fit_context_order(const void *a, const void *b)
{
    const struct counted *x = a, *y = b;
    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    return (x->before > y->before) - (x->before < y->before);
}

/* Order as a file does, for qsort; no two rows are equal. */
static int fit_context_rows(const void *a, const void *b)
{
    const struct router_context *x = a, *y = b;
    if (x->before != y->before)
        return x->before < y->before ? -1 : 1;
    return (x->last > y->last) - (x->last < y->last);
}

/* Return the smoothed share of right tokens in c[n]. */
static double fit_context_share(const struct counted *c, size_t n, double shorter)
{
    size_t right = 0;
    for (size_t i = 0; i < n; i++)
        right += c[i].right;
    return ((double)right + S * shorter) / ((double)n + S);
}

/* Write the rows of c[n], which is in order, to `to`, or only count them if it is NULL. */
static size_t fit_context_table(struct router_context *to, const struct counted *c, size_t n)
{
    size_t rows = 0;
    double mean = fit_context_share(c, n, 0.5);
    if (to)
        to[rows] = (struct router_context){ -1, -1, (float)mean };
    rows++;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && c[end].last == c[i].last;)
            end++;
        double share = fit_context_share(c + i, end - i, mean);
        if (to)
            to[rows] = (struct router_context){ -1, (float)c[i].last, (float)share };
        rows++;
        for (size_t j = i, stop; j < end; j = stop) {
            for (stop = j; stop < end && c[stop].before == c[j].before;)
                stop++;
            if (c[j].before == SAMPLES_NONE)
                continue;
            if (to)
                to[rows] =
                    (struct router_context){ (float)c[j].before, (float)c[j].last,
                                             (float)fit_context_share(c + j, stop - j, share) };
            rows++;
        }
    }
    return rows;
}

/* True for ids that a float holds exactly; the first may be missing. */
static bool fit_context_ids(const uint32_t before[2])
{
    return before[1] < 1 << 24 && (before[0] < 1 << 24 || before[0] == SAMPLES_NONE);
}

int fit_contexts(struct router_form *out, const struct fit *t, struct err *err)
{
    size_t n = 0, room = t->ntrain * (t->outs > 1 ? SAMPLE_AGREED_FOR : 1);
    struct counted *c = calloc(room + 1, sizeof(*c));
    int rc = c ? OK : err_set(err, ERR_NOMEM, "router training: out of memory");
    for (size_t i = 0; rc == OK && i < t->ntrain; i++) {
        const uint32_t *before = t->s->rows[t->train[i]].before;
        for (size_t k = fit_stands_for(t, t->train[i]); k > 0; k--)
            c[n++] = (struct counted){ before[0], before[1], t->label[t->train[i]] };
        if (!fit_context_ids(before))
            rc = err_set(err, ERR_ARG,
                         "router training: expected ids below %d before a token, found %u and %u",
                         1 << 24, before[0], before[1]);
    }
    if (rc == OK) {
        qsort(c, n, sizeof(*c), fit_context_order);
        rc = router_form_open_contexts(out, fit_context_table(NULL, c, n), err);
    }
    if (rc == OK) {
        fit_context_table(out->contexts, c, n);
        qsort(out->contexts, out->ncontexts, sizeof(*out->contexts), fit_context_rows);
    }
    free(c);
    return rc;
}

/* Return the fold of a subject; with seed and subject it is always the same. */
static size_t fit_fold(const struct fit *t, size_t i)
{
    return (size_t)rand_below(rand_u64(t->o->seed, FIT_KEY_FOLD), t->s->rows[i].subject, FOLDS);
}

/* Count a table without the training samples of one fold, or with all for FOLDS, and set the
 * feature of the samples that are to be scored by it: those of the fold, or those held out. */
static int fit_score_contexts(struct samples *with, struct router_form *table, const struct fit *t,
                              size_t fold, struct err *err)
{
    struct fit part = *t;
    part.train = calloc(t->ntrain + 1, sizeof(*part.train));
    part.ntrain = 0;
    int rc = part.train ? OK : err_set(err, ERR_NOMEM, "router training: out of memory");
    for (size_t i = 0; rc == OK && i < t->ntrain; i++)
        if (fold == FOLDS || fit_fold(t, t->train[i]) != fold)
            part.train[part.ntrain++] = t->train[i];
    if (rc == OK)
        rc = fit_contexts(table, &part, err);
    const size_t *index = fold == FOLDS ? t->held : t->train;
    for (size_t k = 0, n = fold == FOLDS ? t->nheld : t->ntrain; rc == OK && k < n; k++)
        if (fold == FOLDS || fit_fold(t, index[k]) == fold)
            with->x[(index[k] + 1) * with->dim - 1] =
                features_context(table->contexts, table->ncontexts, t->s->rows[index[k]].before, 2);
    free(part.train);
    return rc;
}

int fit_inputs(struct samples *with, struct router_form *table, const struct fit *t, bool hidden,
               struct err *err)
{
    const struct samples *s = t->s;
    size_t dim = hidden ? s->dim : 0, bytes;
    *with = *s;
    with->dim = dim + FEATURES;
    with->x = size_mul(&bytes, s->n, with->dim * sizeof(float)) ? malloc(bytes + 1) : NULL;
    if (!with->x)
        return err_set(err, ERR_NOMEM, "router training: out of memory");
    for (size_t i = 0; i < s->n; i++) {
        float *x = with->x + i * with->dim;
        if (dim)
            memcpy(x, s->x + i * dim, dim * sizeof(*x));
        memcpy(x + dim, s->rows[i].features, sizeof(s->rows[i].features));
        x[dim + FEATURE_CONTEXT] = 0; /* where the table is not asked */
    }
    int rc = OK;
    for (size_t fold = 0; rc == OK && fold <= FOLDS; fold++) {
        router_form_close(table);
        rc = fit_score_contexts(with, table, t, fold, err);
    }
    return rc;
}

void fit_inputs_close(struct samples *with)
{
    free(with->x);
    with->x = NULL;
}
