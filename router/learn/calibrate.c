#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "router/learn/calibrate.h"

/* One answer as it is at every threshold in (low, high]; with a tie, only at `high`. */
struct calibrate_text {
    float low, high, tie;
    struct calibrate_answer a; /* without its scores */
    float *scores;             /* [scored], without NaN */
    size_t scored;
};

/* All that is known about one item. */
struct calibrate_item {
    struct calibrate_text *texts;
    size_t n, now; /* now is the text at the latest threshold */
};

struct calibration {
    struct calibrate_source source;
    struct calibrate_item *items; /* [source.n] */
    float tie;                    /* at the thresholds that are measured now */
};

enum { UNTIE_STEPS = 8 };

/* A result, and the thresholds (low, high] that have the same one. */
struct calibrate_state {
    struct calibrate_result r;
    float low, high;
};

int calibrate_open(struct calibration **out, const struct calibrate_source *source, struct err *err)
{
    *out = NULL;
    if (!source->n)
        return err_set(err, ERR_ARG, "calibration: expected at least one answer, found none");
    struct calibration *c = calloc(1, sizeof(*c));
    struct calibrate_item *items = calloc(source->n, sizeof(*items));
    if (!c || !items) {
        free(c);
        free(items);
        return err_set(err, ERR_NOMEM, "calibration: out of memory");
    }
    c->source = *source;
    c->items = items;
    *out = c;
    return OK;
}

void calibrate_close(struct calibration *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->source.n; i++) {
        for (size_t k = 0; k < c->items[i].n; k++)
            free(c->items[i].texts[k].scores);
        free(c->items[i].texts);
    }
    free(c->items);
    free(c);
}

/* Return item i's text at the latest threshold. */
static const struct calibrate_text *calibrate_now(const struct calibration *c, size_t i)
{
    return &c->items[i].texts[c->items[i].now];
}

/* True when a text is the one at this threshold. Where no token scores the threshold, there is no
 * tie to break. */
static bool calibrate_fits(const struct calibration *c, const struct calibrate_text *t,
                           float threshold)
{
    if (t->tie > 0 || (c->tie > 0 && !(threshold < t->high)))
        return !(threshold < t->high) && threshold <= t->high && !(t->tie < c->tie) &&
               t->tie <= c->tie;
    return threshold > t->low && threshold <= t->high;
}

/* Fill a new text from an answer of the source: copy its scores and find its interval. */
static int calibrate_keep(struct calibrate_text *t, const struct calibrate_answer *a,
                          float threshold, float tie, struct err *err)
{
    *t = (struct calibrate_text){ .low = -INFINITY, .high = INFINITY, .a = *a };
    size_t n = a->scores ? a->tokens : 0;
    if (a->left_out) {
        n = 0;
        t->a = (struct calibrate_answer){ .left_out = true };
    }
    if (n && !(t->scores = calloc(n, sizeof(*t->scores))))
        return err_set(err, ERR_NOMEM, "calibration: out of memory");
    for (size_t i = 0; i < n; i++) {
        float s = a->scores[i];
        if (isnan(s))
            continue;
        t->scores[t->scored++] = s;
        if (s < threshold && s > t->low)
            t->low = s;
        else if (s >= threshold && s < t->high)
            t->high = s;
    }
    t->tie = t->high > threshold ? 0 : tie;
    return OK;
}

/* Make item i's text at this threshold the current one. False: it is not known. */
static bool calibrate_knows(struct calibration *c, size_t i, float threshold)
{
    struct calibrate_item *item = &c->items[i];
    for (size_t k = 0; k < item->n; k++)
        if (calibrate_fits(c, &item->texts[k], threshold)) {
            item->now = k;
            return true;
        }
    return false;
}

/* Begin the texts from *next on, as many as there is room for. */
static int calibrate_begin(struct calibration *c, size_t *next, float threshold, struct err *err)
{
    const struct calibrate_source *s = &c->source;
    int rc = OK;
    for (; s->begin && *next < s->n; ++*next)
        if (!calibrate_knows(c, *next, threshold) && !s->begin(s->arg, *next, threshold, &rc, err))
            break;
    return rc;
}

/* Make item i's text at this threshold the current one; write it unless it is known. */
static int calibrate_write(struct calibration *c, size_t i, float threshold, struct err *err)
{
    struct calibrate_item *item = &c->items[i];
    if (calibrate_knows(c, i, threshold))
        return OK;
    struct calibrate_answer a = { .tokens = 0 };
    struct calibrate_text *more = realloc(item->texts, (item->n + 1) * sizeof(*more));
    if (!more)
        return err_set(err, ERR_NOMEM, "calibration: out of memory");
    item->texts = more;
    int rc = c->source.answer(c->source.arg, i, threshold, &a, err);
    if (rc == OK)
        rc = calibrate_keep(&more[item->n], &a, threshold, c->tie, err);
    if (rc == OK)
        item->now = item->n++;
    return rc;
}

/* Return the standard error of the share over the items. */
static double calibrate_error(const struct calibration *c, const struct calibrate_result *r)
{
    double squares = 0, n = (double)r->answers;
    for (size_t i = 0; i < c->source.n; i++) {
        const struct calibrate_answer *a = &calibrate_now(c, i)->a;
        double above = (double)a->cloud - r->share * (double)a->tokens;
        squares += above * above;
    }
    return n > 1 && r->tokens ? sqrt(squares * n / (n - 1)) / (double)r->tokens : 0;
}

/* Measure a threshold. */
static int calibrate_measure(struct calibrate_state *out, struct calibration *c, float threshold,
                             struct err *err)
{
    struct calibrate_result r = { .threshold = threshold, .tie = c->tie, .reached = true };
    out->low = -INFINITY;
    out->high = INFINITY;
    if (c->source.tie)
        *c->source.tie = c->tie;
    for (size_t i = 0, next = 0; i < c->source.n; i++) {
        int rc = calibrate_begin(c, &next, threshold, err);
        if (rc == OK)
            rc = calibrate_write(c, i, threshold, err);
        if (rc != OK)
            return rc;
        const struct calibrate_text *t = calibrate_now(c, i);
        r.answers += !t->a.left_out;
        r.right += t->a.right;
        r.tokens += t->a.tokens;
        r.cloud += t->a.cloud;
        out->low = t->low > out->low ? t->low : out->low;
        out->high = t->high < out->high ? t->high : out->high;
    }
    r.share = r.tokens ? (double)r.cloud / (double)r.tokens : 0;
    r.share_error = calibrate_error(c, &r);
    out->r = r;
    return OK;
}

int calibrate_at(struct calibrate_result *out, struct calibration *c, float threshold,
                 struct err *err)
{
    struct calibrate_state s;
    int rc = calibrate_measure(&s, c, threshold, err);
    if (rc == OK)
        *out = s.r;
    return rc;
}

static int calibrate_by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Set *out to the threshold below which this share of the current scores lies. */
static int calibrate_guess(float *out, struct calibration *c, double share, struct err *err)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < c->source.n; i++)
        n += calibrate_now(c, i)->scored;
    float *sorted = malloc((n + 1) * sizeof(*sorted));
    if (!sorted)
        return err_set(err, ERR_NOMEM, "calibration: out of memory");
    for (size_t i = 0; i < c->source.n; i++)
        for (size_t k = 0; k < calibrate_now(c, i)->scored; k++)
            sorted[at++] = calibrate_now(c, i)->scores[k];
    qsort(sorted, n, sizeof(*sorted), calibrate_by_value);
    size_t k = (size_t)(share * (double)n + 0.5);
    *out = k < n ? sorted[k] : 1;
    free(sorted);
    return OK;
}

/* Return the float that lies this part of the way, counted in floats, from one to a larger one:
 * part 2 is halfway, rounded up; part 0 is the next one. Both are at least 0. */
static float calibrate_step(float from, float to, uint32_t part)
{
    uint32_t a, b;
    memcpy(&a, &from, sizeof(a));
    memcpy(&b, &to, sizeof(b));
    a += part ? (b - a + part - 1) / part : 1;
    memcpy(&from, &a, sizeof(from));
    return from;
}

/* A search: lo misses the target, hi does not. */
struct calibrate_search {
    double target;
    struct calibrate_state lo, hi;
    bool has_lo, has_hi;
};

static bool calibrate_misses(const struct calibrate_search *s, const struct calibrate_state *at)
{
    /* A millionth less is not less, as the target may have been a float. */
    return at->r.share < s->target - 1e-6;
}

static bool calibrate_near(const struct calibrate_search *s, const struct calibrate_state *at)
{
    return fabs(at->r.share - s->target) <= CALIBRATE_TOLERANCE;
}

static bool calibrate_done(const struct calibrate_search *s)
{
    if (!s->has_lo || (s->has_hi ? s->hi.low : 1) <= s->lo.high)
        return true; /* no threshold is left between them */
    return calibrate_near(s, &s->lo) || (s->has_hi && calibrate_near(s, &s->hi));
}

/* Choose a threshold above lo.high, and at most hi.low: by the scores of the latest texts, else,
 * and every third time, halfway, so that the bracket shrinks to nothing. Without a bracket the
 * first eight go by the scores alone, for halfway to 1 would route far too much. */
static int calibrate_next(float *t, struct calibrate_search *s, struct calibration *c, size_t step,
                          struct err *err)
{
    float from = s->lo.high, to = s->has_hi ? s->hi.low : 1;
    bool halve = s->has_hi ? step % 3 == 2 : step >= 8;
    int rc = OK;
    if (!halve) {
        rc = calibrate_guess(t, c, s->target, err);
        if (!s->has_hi && *t <= from)
            *t = calibrate_step(from, to, 0);
        halve = !(*t > from && *t <= to);
    }
    if (halve)
        *t = calibrate_step(from, to, 2);
    return rc;
}

static int calibrate_search_run(struct calibrate_search *s, struct calibration *c, struct err *err)
{
    struct calibrate_state at;
    int rc = calibrate_measure(&at, c, 0, err);
    for (size_t step = 0; rc == OK; step++) {
        float t = 0;
        if (calibrate_misses(s, &at)) {
            s->lo = at;
            s->has_lo = true;
        } else {
            s->hi = at;
            s->has_hi = true;
        }
        if (calibrate_done(s) || step == CALIBRATE_STEPS)
            break;
        rc = calibrate_next(&t, s, c, step, err);
        if (rc == OK)
            rc = calibrate_measure(&at, c, t, err);
    }
    return rc;
}

/* Return the figures of a state, with the threshold in the middle of those that have them. */
static struct calibrate_result calibrate_settle(const struct calibrate_state *s, bool reached)
{
    struct calibrate_result r = s->r;
    float middle = s->low + (s->high - s->low) / 2;
    if (s->low < 0)
        r.threshold = 0;
    else if (s->high > 1)
        r.threshold = 1;
    else
        r.threshold = middle > s->low && middle <= s->high ? middle : s->high;
    r.reached = reached;
    return r;
}

/* Count the tokens of the current texts that score exactly this. */
static size_t calibrate_count_tied(const struct calibration *c, float score)
{
    size_t tied = 0;
    for (size_t i = 0; i < c->source.n; i++) {
        const struct calibrate_text *t = calibrate_now(c, i);
        for (size_t k = 0; k < t->scored; k++)
            tied += fabsf(t->scores[k] - score) <= 0;
    }
    return tied;
}

/* Route a part of the tokens with the score at which the share jumps over the target, if there are
 * several. Keeps *out, the share below the jump, unless that comes nearer. */
static int calibrate_untie(struct calibrate_result *out, struct calibration *c,
                           const struct calibrate_search *s, struct err *err)
{
    double low = s->lo.r.share, high = s->has_hi ? s->hi.r.share : 1, from = 0, to = 1;
    float score = s->lo.high;
    struct calibrate_state at;
    int rc = score <= 1 ? calibrate_measure(&at, c, score, err) : OK; /* known */
    if (rc != OK || !(score <= 1) || calibrate_count_tied(c, score) < 2)
        return rc;
    for (size_t step = 0; rc == OK && !out->reached && step < UNTIE_STEPS; step++) {
        double part = from + (to - from) * (s->target - low) / (high - low);
        c->tie = (float)part;
        if ((rc = calibrate_measure(&at, c, score, err)) != OK)
            break;
        at.r.reached = calibrate_near(s, &at);
        bool below = calibrate_misses(s, &at);
        *(below ? &from : &to) = part;
        *(below ? &low : &high) = at.r.share;
        if (fabs(at.r.share - s->target) < fabs(out->share - s->target))
            *out = at.r;
    }
    c->tie = 0;
    return rc;
}

int calibrate_find(struct calibrate_result *out, struct calibration *c, double target,
                   struct err *err)
{
    struct calibrate_search s = { .target = target };
    int rc = calibrate_search_run(&s, c, err);
    if (rc != OK)
        return rc;
    bool lo = s.has_lo && calibrate_near(&s, &s.lo), hi = s.has_hi && calibrate_near(&s, &s.hi);
    if (lo && hi) /* take the nearer one */
        hi = s.hi.r.share - target < target - s.lo.r.share;
    bool below = s.has_lo && !hi;
    *out = calibrate_settle(below ? &s.lo : &s.hi, lo || hi);
    return c->source.tie && below && !lo ? calibrate_untie(out, c, &s, err) : OK;
}
