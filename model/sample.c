/* sample.c - the sampler: logits in, one id out. Begin at sampler_pick at the end, which calls the
 * rest in this order: biases and repetition penalty, top-k, sorting, top-p and min-p, and a draw
 * that depends only on seed and position. At temperature 0 the largest logit is taken. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/kernels.h"
#include "kernels/math.h"
#include "model/sample.h"

struct candidate {
    float logit;
    uint32_t id;
};

struct sampler {
    struct sample_params p;
    size_t size;
    const struct kernels *k;
    float *logits;         /* [size] copy with the penalty applied */
    struct candidate *all; /* [size] */
    double *prob;          /* [size] */
    unsigned char *seen;   /* [size] 1: the prefix has this id */
};

/* Messages name the fields of mizzle_options. */
int sample_check(const struct sample_params *p, struct err *err)
{
    if (!(p->temp >= 0 && p->temp <= 100))
        return err_set(err, ERR_ARG, "temp: expected 0 to 100, found %g", (double)p->temp);
    if (!(p->top_p >= 0 && p->top_p <= 1))
        return err_set(err, ERR_ARG, "top_p: expected 0 to 1, found %g", (double)p->top_p);
    if (!(p->min_p >= 0 && p->min_p <= 1))
        return err_set(err, ERR_ARG, "min_p: expected 0 to 1, found %g", (double)p->min_p);
    if (!(p->repeat_penalty > 0 && p->repeat_penalty <= 100))
        return err_set(err, ERR_ARG, "repeat_penalty: expected above 0 to 100, found %g",
                       (double)p->repeat_penalty);
    return OK;
}

int sampler_open(struct sampler **out, const struct sample_params *params, size_t size,
                 const struct kernels *k, struct err *err)
{
    *out = NULL;
    int rc = sample_check(params, err);
    if (rc == OK && !size)
        rc = err_set(err, ERR_ARG, "sampler: no ids to pick from");
    if (rc)
        return rc;
    struct sampler *s = calloc(1, sizeof(*s));
    if (s) {
        s->p = *params;
        s->size = size;
        s->k = k;
        s->logits = calloc(size, sizeof(*s->logits));
        s->all = calloc(size, sizeof(*s->all));
        s->prob = calloc(size, sizeof(*s->prob));
        s->seen = calloc(size, 1);
    }
    if (!s || !s->logits || !s->all || !s->prob || !s->seen) {
        sampler_close(s);
        return err_set(err, ERR_NOMEM, "sampler: out of memory");
    }
    *out = s;
    return OK;
}

void sampler_seed(struct sampler *s, uint64_t seed)
{
    s->p.seed = seed;
}

void sampler_set(struct sampler *s, const struct sample_params *params)
{
    s->p = *params;
}

void sampler_close(struct sampler *s)
{
    if (!s)
        return;
    free(s->logits);
    free(s->all);
    free(s->prob);
    free(s->seen);
    free(s);
}

/* Return the logits with the biases and the repetition penalty applied, the latter once per token,
 * however often the prefix repeats it. */
static const float *penalised(struct sampler *s, const float *logits, const uint32_t *prefix,
                              size_t n)
{
    if (s->p.repeat_penalty == 1.0f && !s->p.nbias)
        return logits;
    memcpy(s->logits, logits, s->size * sizeof(*logits));
    for (size_t i = 0; i < s->p.nbias; i++)
        if (s->p.bias[i].id < s->size)
            s->logits[s->p.bias[i].id] += s->p.bias[i].add;
    if (s->p.repeat_penalty == 1.0f)
        return s->logits;
    memset(s->seen, 0, s->size);
    for (size_t i = 0; i < n; i++) {
        uint32_t id = prefix[i];
        if (id >= s->size || s->seen[id])
            continue;
        s->seen[id] = 1;
        if (s->logits[id] > 0)
            s->logits[id] /= s->p.repeat_penalty;
        else
            s->logits[id] *= s->p.repeat_penalty;
    }
    return s->logits;
}

/* A total order: the larger logit first, then the lower id. */
static bool sample_better(const struct candidate *a, const struct candidate *b)
{
    return a->logit != b->logit ? a->logit > b->logit : a->id < b->id;
}

static int by_rank(const void *a, const void *b)
{
    return sample_better(a, b) ? -1 : sample_better(b, a);
}

/* Move the k best of c[n] to the front, in any order (Lomuto's selection). No two are equal. */
static void select_best(struct candidate *c, size_t n, size_t k)
{
    size_t low = 0, high = n; /* the k-th place lies in [low, high) */
    while (high - low > 1) {
        struct candidate pivot = c[low + (high - low) / 2];
        size_t cut = low;
        c[low + (high - low) / 2] = c[high - 1];
        for (size_t i = low; i + 1 < high; i++)
            if (sample_better(&c[i], &pivot)) {
                struct candidate t = c[cut];
                c[cut++] = c[i];
                c[i] = t;
            }
        c[high - 1] = c[cut];
        c[cut] = pivot;
        if (cut == k)
            return;
        if (cut > k)
            high = cut;
        else
            low = cut + 1;
    }
}

/* Return the weight of candidate i relative to the best one, at temperature temp. */
static double sample_weight(const struct sampler *s, size_t i, double temp)
{
    return exp_f64((double)(s->all[i].logit - s->all[0].logit) / temp);
}

/* Return how many of the n sorted candidates remain after top-p and min-p, which are applied at
 * temperature 1. */
static size_t sample_cut_tail(struct sampler *s, size_t n)
{
    double total = 0, kept = 0;
    size_t keep = 0;
    for (size_t i = 0; i < n; i++)
        total += s->prob[i] = sample_weight(s, i, 1);
    while (keep < n && (keep == 0 || kept < (double)s->p.top_p * total) &&
           s->prob[keep] >= (double)s->p.min_p)
        kept += s->prob[keep++];
    return keep;
}

/* Draw one of the first n candidates at the sampler's temperature; unit is in [0, 1). */
static uint32_t sample_draw(struct sampler *s, size_t n, double unit)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += s->prob[i] = sample_weight(s, i, (double)s->p.temp);
    double at = unit * sum;
    for (size_t i = 0; i < n; i++) {
        if (at < s->prob[i])
            return s->all[i].id;
        at -= s->prob[i];
    }
    return s->all[n - 1].id;
}

uint32_t sampler_pick(struct sampler *s, const float *logits, const uint32_t *prefix, size_t n)
{
    const float *x = penalised(s, logits, prefix, n);
    uint32_t greedy = (uint32_t)s->k->argmax_f32(x, s->size);
    if (s->p.temp == 0.0f || !(x[greedy] < INFINITY))
        return greedy;
    size_t count = 0;
    for (size_t i = 0; i < s->size; i++)
        if (x[i] > -INFINITY) /* NaN is never picked */
            s->all[count++] = (struct candidate){ x[i], (uint32_t)i };
    if (!count)
        return greedy;
    if (s->p.top_k && s->p.top_k < count) {
        select_best(s->all, count, s->p.top_k);
        count = s->p.top_k;
    }
    qsort(s->all, count, sizeof(*s->all), by_rank);
    return sample_draw(s, sample_cut_tail(s, count), rand_unit(s->p.seed, n));
}
