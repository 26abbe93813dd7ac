/* fit_inputs.c - the inputs of heads combined and mix. */
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "router/learn/fit_internal.h"

enum { FOLDS = 5 };

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
