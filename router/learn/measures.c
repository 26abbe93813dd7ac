#include "router/learn/measures.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "router/learn/samples.h"

struct measured {
    uint32_t before[2];
    float score;
    bool label;
};

/* Order by context, then score, for qsort. */
static int measures_order(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;
    for (size_t i = 0; i < 2; i++)
        if (x->before[i] != y->before[i])
            return x->before[i] < y->before[i] ? -1 : 1;
    return (x->score > y->score) - (x->score < y->score);
}

static bool measures_same_context(const struct measured *a, const struct measured *b)
{
    return a->before[0] == b->before[0] && a->before[1] == b->before[1];
}

/* Count the pairs of one context, and those in the right order; equal scores count half. Returns
 * the end of the context. */
static size_t measures_context(double *pairs, double *good, const struct measured *m, size_t first,
                               size_t n)
{
    double rights = 0, wrongs = 0;
    size_t i = first, end;
    for (; i < n && measures_same_context(&m[i], &m[first]); i = end) {
        double r = 0, w = 0;
        for (end = i;
             end < n && measures_same_context(&m[end], &m[first]) && m[end].score == m[i].score;
             end++)
            *(m[end].label ? &r : &w) += 1;
        *good += r * (wrongs + w / 2);
        rights += r;
        wrongs += w;
    }
    *pairs += rights * wrongs;
    return i;
}

/* Compute the AUC among equal contexts. */
static int measures_contexts(struct measures *out, const float *score, const unsigned char *label,
                             const uint32_t (*before)[2], size_t n, struct err *err)
{
    struct measured *m = calloc(n ? n : 1, sizeof(*m));
    if (!m)
        return err_set(err, ERR_NOMEM, "router training: out of memory");
    for (size_t i = 0; i < n; i++)
        m[i] = (struct measured){ { before[i][0], before[i][1] }, score[i], label[i] != 0 };
    qsort(m, n, sizeof(*m), measures_order);
    double good = 0;
    out->context_pairs = 0;
    for (size_t i = 0; i < n;)
        i = measures_context(&out->context_pairs, &good, m, i, n);
    out->context_auc = out->context_pairs > 0 ? good / out->context_pairs : (double)NAN;
    free(m);
    return OK;
}

int measures_of(struct measures *out, const float *score, const unsigned char *label,
                const uint32_t (*before)[2], size_t n, struct err *err)
{
    double sum[MEASURES_BINS] = { 0 };
    *out = (struct measures){ 0 };
    for (size_t i = 0; i < n; i++) {
        size_t bin = (size_t)(score[i] * MEASURES_BINS);
        bin = bin < MEASURES_BINS ? bin : MEASURES_BINS - 1;
        ++*(label[i] ? &out->right[bin] : &out->wrong[bin]);
        sum[bin] += (double)score[i];
    }
    for (size_t b = 0; b < MEASURES_BINS; b++)
        out->ece += n ? fabs(sum[b] - (double)out->right[b]) / (double)n : 0;
    int rc = samples_auc(&out->auc, score, label, n, err);
    return rc == OK ? measures_contexts(out, score, label, before, n, err) : rc;
}
