#include "router/learn/measures.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"

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

/* Return scores and labels in this order; before may be NULL. NULL: out of memory. */
static struct measured *measures_sorted(const float *score, const unsigned char *label,
                                        const uint32_t (*before)[2], size_t n, struct err *err)
{
    struct measured *m = calloc(n + 1, sizeof(*m));
    if (!m) {
        err_set(err, ERR_NOMEM, "router training: out of memory");
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        m[i] = (struct measured){ .score = score[i], .label = label[i] != 0 };
        if (before)
            memcpy(m[i].before, before[i], sizeof(m[i].before));
    }
    qsort(m, n, sizeof(*m), measures_order);
    return m;
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

int measures_auc(double *auc, double *pairs, const float *score, const unsigned char *label,
                 const uint32_t (*before)[2], size_t n, struct err *err)
{
    struct measured *m = measures_sorted(score, label, before, n, err);
    if (!m)
        return ERR_NOMEM;
    double good = 0;
    *pairs = 0;
    for (size_t i = 0; i < n;)
        i = measures_context(pairs, &good, m, i, n);
    *auc = *pairs > 0 ? good / *pairs : (double)NAN;
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
    double pairs;
    int rc = measures_auc(&out->auc, &pairs, score, label, NULL, n, err);
    return rc == OK
               ? measures_auc(&out->context_auc, &out->context_pairs, score, label, before, n, err)
               : rc;
}

int measures_find_cut(struct measures_cut *out, const float *score, const unsigned char *label,
                      size_t n, double most, double cover, struct err *err)
{
    struct measured *s = measures_sorted(score, label, NULL, n, err);
    if (!s)
        return ERR_NOMEM;
    size_t wrong = 0, caught = 0, cut = 0, end;
    for (size_t i = 0; i < n; i++)
        wrong += !s[i].label;
    /* Add groups of equal scores while more must be caught and there is room. */
    for (size_t i = 0; i < n && (double)caught < cover * (double)wrong; i = end) {
        for (end = i; end < n && s[end].score == s[i].score; end++)
            caught += !s[end].label;
        if ((double)end > most * (double)n)
            break;
        cut = end;
    }
    /* Stay half-way to the next score, so that the last bits of another machine do not matter. */
    float below = cut ? s[cut - 1].score : 0, above = cut < n ? s[cut].score : 1;
    float threshold = cut ? below + (above - below) / 2 : 0;
    if (cut && !(threshold > below))
        threshold = above;
    size_t routed = 0;
    for (caught = 0; routed < n && s[routed].score < threshold; routed++)
        caught += !s[routed].label;
    *out = (struct measures_cut){ threshold, n ? (double)routed / (double)n : 0,
                                  wrong ? (double)caught / (double)wrong : 1 };
    free(s);
    return OK;
}
