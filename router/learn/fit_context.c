/* fit_context.c - head context: how often the local model was right after two ids.
 *
 * Counts are smoothed by the next shorter context: after (a, b) the score is (right + S p) / (n +
 * S), where p is the score after b alone, which is smoothed by the mean likewise. */
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "router/learn/fit_internal.h"

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
    struct counted *c = calloc(t->ntrain + 1, sizeof(*c));
    int rc = c ? OK : err_set(err, ERR_NOMEM, "router training: out of memory");
    for (size_t i = 0; rc == OK && i < t->ntrain; i++) {
        const uint32_t *before = t->s->rows[t->train[i]].before;
        c[i] = (struct counted){ before[0], before[1], t->label[t->train[i]] };
        if (!fit_context_ids(before))
            rc = err_set(err, ERR_ARG,
                         "router training: expected ids below %d before a token, found %u and %u",
                         1 << 24, before[0], before[1]);
    }
    if (rc == OK) {
        qsort(c, t->ntrain, sizeof(*c), fit_context_order);
        rc = router_form_open_contexts(out, fit_context_table(NULL, c, t->ntrain), err);
    }
    if (rc == OK) {
        fit_context_table(out->contexts, c, t->ntrain);
        qsort(out->contexts, out->ncontexts, sizeof(*out->contexts), fit_context_rows);
    }
    free(c);
    return rc;
}
