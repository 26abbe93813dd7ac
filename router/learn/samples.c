#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "router/router.h"
#include "router/learn/samples.h"

static int samples_no_memory(struct err *err)
{
    return err_set(err, ERR_NOMEM, "router training: out of memory");
}

/* Give every array this much room; what was there stays. */
static bool samples_resize(struct samples *s, size_t room)
{
    size_t floats, bytes;
    if (!size_mul(&floats, room, s->dim) || !size_mul(&bytes, floats, sizeof(*s->x)))
        return false;
    float *x = realloc(s->x, bytes);
    s->x = x ? x : s->x;
    unsigned char *label = realloc(s->label, room);
    s->label = label ? label : s->label;
    uint32_t *group = realloc(s->group, room * sizeof(*group));
    s->group = group ? group : s->group;
    uint32_t *text = realloc(s->text, room * sizeof(*text));
    s->text = text ? text : s->text;
    float(*features)[FEATURES] = realloc(s->features, room * sizeof(*features));
    s->features = features ? features : s->features;
    uint32_t(*before)[2] = realloc(s->before, room * sizeof(*before));
    s->before = before ? before : s->before;
    if (!x || !label || !group || !text || !features || !before)
        return false;
    s->room = room;
    return true;
}

int samples_reserve(struct samples *s, size_t n, struct err *err)
{
    size_t room;
    if (n <= s->room - s->n)
        return OK;
    return size_add(&room, s->n, n) && samples_resize(s, room) ? OK : samples_no_memory(err);
}

int samples_add(struct samples *s, const struct sample *one, struct err *err)
{
    if (s->n == s->room && !samples_resize(s, s->room ? 2 * s->room : 1024))
        return samples_no_memory(err);
    memcpy(s->x + s->n * s->dim, one->x, s->dim * sizeof(*one->x));
    s->label[s->n] = one->label;
    s->group[s->n] = one->group;
    s->text[s->n] = one->text;
    memset(s->features[s->n], 0, sizeof(*s->features));
    if (one->features)
        memcpy(s->features[s->n], one->features, FEATURE_CONTEXT * sizeof(*one->features));
    memcpy(s->before[s->n++], one->before, sizeof(one->before));
    return OK;
}

void samples_close(struct samples *s)
{
    free(s->x);
    free(s->label);
    free(s->group);
    free(s->text);
    free(s->features);
    free(s->before);
    *s = (struct samples){ 0 };
}

int samples_of_texts(struct samples *out, const struct samples *s, struct err *err)
{
    bool whole = false; /* the text's first token is there */
    out->dim = s->dim;
    for (size_t i = 0; i < s->n; i++) {
        struct sample one = {
            .x = s->x + i * s->dim, .label = true, .group = s->group[i], .text = s->text[i]
        };
        memcpy(one.before, s->before[i], sizeof(one.before));
        bool first = !i || s->text[i] != s->text[i - 1];
        whole = first ? !(s->features[i][FEATURE_POSITION] > 0) : whole;
        if (first && whole && samples_add(out, &one, err) != OK)
            return ERR_NOMEM;
        if (whole)
            out->label[out->n - 1] &= s->label[i];
    }
    return OK;
}

float samples_score_one(const struct samples *s, size_t i, const struct router *r, float *scratch)
{
    /* An id that the text does not have is in no table. */
    return router_is_table(r) ? router_score_ids(r, s->before[i], 2)
                              : router_score(r, s->x + i * s->dim, scratch);
}

struct scored {
    float score;
    bool label;
};

/* Order by score for qsort. */
static int samples_ascending(const void *a, const void *b)
{
    float x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;
    return (x > y) - (x < y);
}

/* Return scores and labels sorted by score; NULL: out of memory. */
static struct scored *samples_sorted(const float *score, const unsigned char *label, size_t n,
                                     struct err *err)
{
    struct scored *s = calloc(n ? n : 1, sizeof(*s));
    if (!s) {
        samples_no_memory(err);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        s[i] = (struct scored){ score[i], label[i] != 0 };
    qsort(s, n, sizeof(*s), samples_ascending);
    return s;
}

int samples_auc(double *auc, const float *score, const unsigned char *label, size_t n,
                struct err *err)
{
    struct scored *s = samples_sorted(score, label, n, err);
    if (!s)
        return ERR_NOMEM;
    /* Count pairs (wrong, right) in the right order, a group of equal scores at a time. */
    double pairs = 0, rights = 0, wrongs = 0;
    for (size_t i = 0, end; i < n; i = end) {
        double r = 0, w = 0;
        for (end = i; end < n && s[end].score == s[i].score; end++)
            *(s[end].label ? &r : &w) += 1;
        pairs += r * (wrongs + w / 2);
        rights += r;
        wrongs += w;
    }
    *auc = rights > 0 && wrongs > 0 ? pairs / (rights * wrongs) : (double)NAN;
    free(s);
    return OK;
}

void samples_measure(struct samples_cut *out, float threshold, const float *score,
                     const unsigned char *label, size_t n)
{
    size_t routed = 0, caught = 0, wrong = 0;
    for (size_t i = 0; i < n; i++) {
        bool asks = score[i] < threshold;
        routed += asks;
        caught += asks && !label[i];
        wrong += !label[i];
    }
    out->threshold = threshold;
    out->routed = n ? (double)routed / (double)n : 0;
    out->caught = wrong ? (double)caught / (double)wrong : 1;
}

int samples_calibrate(struct samples_cut *out, const float *score, const unsigned char *label,
                      size_t n, double most, double cover, struct err *err)
{
    struct scored *s = samples_sorted(score, label, n, err);
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
    free(s);
    samples_measure(out, threshold, score, label, n);
    return OK;
}
