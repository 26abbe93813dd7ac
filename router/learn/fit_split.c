/* fit_split.c - which samples are trained on, how often, and in which order; their labels. */
#include <math.h>
#include <stdlib.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "router/learn/fit_internal.h"

enum { SPLIT = 5 }; /* one subject in five is held out */

bool fit_holds_out(uint64_t seed, uint32_t group)
{
    return rand_below(rand_u64(seed, FIT_KEY_SPLIT), group, SPLIT) == 0;
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
        t->label[i] = t->outs > 1 ? (unsigned char)(1 - s->rows[t->train[i]].gain)
                                  : s->rows[t->train[i]].label;
}

size_t fit_stands_for(const struct fit *t, size_t i)
{
    return t->outs > 1 && t->s->rows[i].way == SAMPLE_AGREED ? SAMPLE_AGREED_FOR : 1;
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
    const uint64_t key = rand_u64(t->seed, FIT_KEY_RESAMPLE);
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

int fit_split(struct fit *t, struct fit_report *report, bool draws, struct err *err)
{
    const struct samples *s = t->s;
    size_t count[2][3] = { { 0 } }, room = s->n, last = t->outs > 1 ? FIT_SPOILS : 1;
    fit_split_close(t);
    int rc = draws ? fit_draw(t, &room, err) : OK;
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
    report->trained = t->ntrain;
    report->held = t->nheld;
    report->trained_wrong = count[0][0];
    report->held_wrong = count[1][0];
    report->trained_spoils = count[0][FIT_SPOILS];
    report->held_spoils = count[1][FIT_SPOILS];
    const char *low = t->outs > 1 ? "mending" : "wrong", *high = t->outs > 1 ? "spoiling" : "right";
    bool one = t->o->members > 1 && draws; /* all members are judged together */
    if (!count[0][0] || !count[0][last] || !t->nheld || (!one && (!count[1][0] || !count[1][last])))
        return err_set(err, ERR_ARG,
                       "router training: expected %s and %s tokens in both parts, found %zu %s and "
                       "%zu %s to train on, %zu and %zu held out",
                       high, low, count[0][last], high, count[0][0], low, count[1][last],
                       count[1][0]);
    t->wrong_weight = (float)sqrt((double)count[0][1] / (double)count[0][0]);
    return OK;
}

void fit_split_close(struct fit *t)
{
    free(t->times);
    free(t->train);
    free(t->held);
    free(t->label);
    t->times = NULL;
    t->train = t->held = NULL;
    t->label = NULL;
    t->ntrain = t->nheld = 0;
}
