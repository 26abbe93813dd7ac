#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "tools/lab/eval/statistics.h"

enum { BOOTSTRAP_SEED = 1, TRAININGS_KEY = 1, STATISTICS_WHOLE = STATISTICS_DRAWS };

static const double ROUNDING = 1e-20; /* the variance of answers is 0, or far above */

struct group_key { /* what an item is about */
    uint64_t key;
    uint32_t at;
};

/* Return Wilson's interval of a share p of m. */
static struct statistics_interval statistics_wilson_of(double p, double m)
{
    const double z = 1.959963984540054; /* 97.5 % of the normal distribution */
    double z2 = z * z;
    double middle = (p + z2 / (2 * m)) / (1 + z2 / m);
    double half = z * sqrt(p * (1 - p) / m + z2 / (4 * m * m)) / (1 + z2 / m);
    return (struct statistics_interval){ .low = middle > half ? middle - half : 0,
                                         .high = middle + half < 1 ? middle + half : 1 };
}

struct statistics_interval statistics_wilson(size_t hits, size_t n)
{
    return statistics_wilson_of((double)hits / (double)n, (double)n);
}

static int statistics_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void statistics_sort(double *x, size_t n)
{
    if (n) /* x may be NULL */
        qsort(x, n, sizeof(*x), statistics_by_value);
}

double statistics_quantile(const double *x, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? x[i] + (at - (double)i) * (x[i + 1] - x[i]) : x[n - 1];
}

/* Return the interval of draws[n]; n >= 1. */
static struct statistics_interval statistics_percentiles(double *draws, size_t n)
{
    statistics_sort(draws, n);
    return (struct statistics_interval){ .low = statistics_quantile(draws, n, 0.025),
                                         .high = statistics_quantile(draws, n, 0.975) };
}

bool statistics_draws_interval(struct statistics_interval *out, double *draws)
{
    size_t kept = 0;
    for (size_t d = 0; d < STATISTICS_DRAWS; d++)
        if (!isnan(draws[d]))
            draws[kept++] = draws[d];
    bool enough = kept >= STATISTICS_DRAWS - STATISTICS_DRAWS / 20;
    if (enough)
        *out = statistics_percentiles(draws, kept);
    return enough;
}

static int statistics_by_key(const void *a, const void *b)
{
    const struct group_key *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

int statistics_groups_open(struct statistics_groups *out, const uint64_t *keys, size_t n,
                           struct err *err)
{
    struct group_key *sorted = calloc(n + 1, sizeof(*sorted));
    *out = (struct statistics_groups){ .n = n,
                                       .of = calloc(n + 1, sizeof(*out->of)),
                                       .times = calloc(n + 1, sizeof(*out->times)),
                                       .each = calloc(n + 1, sizeof(*out->each)),
                                       .above = calloc(n + 1, sizeof(*out->above)) };
    if (!sorted || !out->of || !out->times || !out->each || !out->above) {
        free(sorted);
        statistics_groups_close(out);
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    }
    for (size_t i = 0; i < n; i++)
        sorted[i] = (struct group_key){ keys[i], (uint32_t)i };
    qsort(sorted, n, sizeof(*sorted), statistics_by_key);
    for (size_t i = 0, first = 0; i < n; i++) { /* of[]: the first item of the same key */
        first = sorted[i].key == sorted[first].key ? first : i;
        out->of[sorted[i].at] = sorted[first].at;
    }
    for (size_t i = 0; i < n; i++)
        out->of[i] = out->of[i] == i ? (uint32_t)out->count++ : out->of[out->of[i]];
    free(sorted);
    return OK;
}

void statistics_groups_close(struct statistics_groups *g)
{
    free(g->of);
    free(g->times);
    free(g->each);
    free(g->above);
    *g = (struct statistics_groups){ 0 };
}

/* Return the variance of the accuracy p: of the trainings, and of at least two groups, or of single
 * items. */
static double statistics_variance(const struct statistics_answers *a,
                                  const struct statistics_groups *g, bool grouped, double p)
{
    double n = (double)g->n, t = (double)a->trainings, square = 0, between = 0;
    memset(g->above, 0, g->n * sizeof(*g->above));
    for (size_t k = 0; k < a->trainings; k++) {
        double above = 0;
        for (size_t i = 0; i < g->n; i++) {
            double one = (a->right[k * g->n + i] - p) / n;
            above += one;
            g->above[grouped ? g->of[i] : i] += one / t;
        }
        square += a->trainings > 1 ? above * above / (t * (t - 1)) : 0;
    }
    for (size_t i = 0; i < g->n; i++)
        between += g->above[i] * g->above[i];
    return square + (grouped ? between * (double)g->count / (double)(g->count - 1) : between);
}

struct statistics_interval statistics_accuracy(const struct statistics_answers *a,
                                               const struct statistics_groups *g, bool grouped)
{
    double n = (double)g->n, p = 0;
    for (size_t i = 0; i < g->n * a->trainings; i++)
        p += a->right[i];
    p /= n * (double)a->trainings;
    if (a->trainings == 1 && (!grouped || g->count == g->n))
        return statistics_wilson_of(p, n);
    if (grouped && g->count < 2) /* nothing is known of another one */
        return (struct statistics_interval){ 0, 1 };
    double variance = statistics_variance(a, g, grouped, p);
    /* All groups are alike, but for rounding. */
    double most = grouped && variance < ROUNDING ? (double)g->count : n;
    return statistics_wilson_of(p, variance > p * (1 - p) / most ? p * (1 - p) / variance : most);
}

/* Draw groups into g->times and g->each, and return how many items they have; STATISTICS_WHOLE has
 * each once. */
static double statistics_draw(const struct statistics_groups *g, size_t draw)
{
    const uint64_t key = rand_u64(BOOTSTRAP_SEED, draw);
    double items = 0;
    memset(g->times, 0, g->count * sizeof(*g->times));
    for (size_t i = 0; i < g->count; i++)
        g->times[draw == STATISTICS_WHOLE ? i : rand_below(key, i, g->count)]++;
    for (size_t i = 0; i < g->n; i++)
        items += g->each[i] = g->times[g->of[i]];
    return items;
}

/* Return how many of a policy's answers in this draw are right or, if x is not NULL, the sum of
 * what x has for each of its answers; a mean over its trainings. Sums are whole numbers. */
static double statistics_sum(const struct statistics_answers *a, const uint32_t *x,
                             const struct statistics_groups *g, size_t draw)
{
    const uint64_t key = rand_u64(rand_u64(BOOTSTRAP_SEED, draw), TRAININGS_KEY);
    bool whole = draw == STATISTICS_WHOLE;
    size_t all = a->trainings ? a->trainings : 1; /* one that is interrupted has not ended */
    size_t drawn = whole || all == 1 ? all : all - 1;
    uint64_t sum = 0;
    for (size_t k = 0; k < drawn; k++) {
        size_t from = (whole ? k : (size_t)rand_below(key, k, all)) * g->n;
        for (size_t i = 0; i < g->n; i++)
            sum += (uint64_t)g->each[i] * (x ? x[from + i] : a->right[from + i]);
    }
    return (double)sum / (double)drawn;
}

static double statistics_right(const struct statistics_answers *a,
                               const struct statistics_groups *g, size_t draw)
{
    return statistics_sum(a, NULL, g, draw);
}

struct statistics_interval statistics_bootstrap_difference(const struct statistics_answers *a,
                                                           const struct statistics_answers *b,
                                                           const struct statistics_groups *g)
{
    double draws[STATISTICS_DRAWS];
    if (g->count < 2)
        return (struct statistics_interval){ (double)NAN, (double)NAN };
    for (size_t d = 0; d < STATISTICS_DRAWS; d++) {
        double items = statistics_draw(g, d);
        draws[d] = (statistics_right(a, g, d) - statistics_right(b, g, d)) / items;
    }
    return statistics_percentiles(draws, STATISTICS_DRAWS);
}

/* Return how many tokens of the cloud a policy has above this share, in a draw. */
static double statistics_beyond(const struct statistics_answers *a, double share,
                                const struct statistics_groups *g, size_t draw)
{
    return statistics_sum(a, a->cloud, g, draw) - share * statistics_sum(a, a->tokens, g, draw);
}

/* Return right answers of a less those of the mixture of low and high, in a draw. */
static double statistics_equal(const struct statistics_answers *a,
                               const struct statistics_answers *low,
                               const struct statistics_answers *high,
                               const struct statistics_groups *g, size_t draw)
{
    double tokens = statistics_sum(a, a->tokens, g, draw);
    double share = tokens > 0 ? statistics_sum(a, a->cloud, g, draw) / tokens : 0;
    double below = -statistics_beyond(low, share, g, draw);
    double above = statistics_beyond(high, share, g, draw);
    double part = below > 0 ? 1 : 0; /* another draw may have both on one side */
    if (below > 0 && above > 0)
        part = below / (below + above);
    double other = statistics_right(low, g, draw);
    other += part * (statistics_right(high, g, draw) - other);
    return statistics_right(a, g, draw) - other;
}

struct statistics_interval statistics_bootstrap_equal(double *equal,
                                                      const struct statistics_answers *a,
                                                      const struct statistics_answers *low,
                                                      const struct statistics_answers *high,
                                                      const struct statistics_groups *g)
{
    double draws[STATISTICS_DRAWS];
    statistics_draw(g, STATISTICS_WHOLE);
    *equal = statistics_equal(a, low, high, g, STATISTICS_WHOLE) / (double)g->n;
    if (g->count < 2)
        return (struct statistics_interval){ (double)NAN, (double)NAN };
    for (size_t d = 0; d < STATISTICS_DRAWS; d++) {
        double items = statistics_draw(g, d);
        draws[d] = statistics_equal(a, low, high, g, d) / items;
    }
    return statistics_percentiles(draws, STATISTICS_DRAWS);
}

bool statistics_pgr(double *pgr, double routed, double edge, double cloud)
{
    if (cloud > edge)
        *pgr = (routed - edge) / (cloud - edge);
    return cloud > edge;
}

bool statistics_bootstrap_pgr(struct statistics_interval *out,
                              const struct statistics_answers *routed,
                              const struct statistics_answers *edge,
                              const struct statistics_answers *cloud,
                              const struct statistics_groups *g)
{
    double draws[STATISTICS_DRAWS];
    if (g->count < 2)
        return false;
    for (size_t d = 0; d < STATISTICS_DRAWS; d++) {
        statistics_draw(g, d);
        double low = statistics_right(edge, g, d);
        double high = cloud ? statistics_right(cloud, g, d) : 2 * low;
        if (!statistics_pgr(&draws[d], statistics_right(routed, g, d), low, high))
            draws[d] = (double)NAN;
    }
    return statistics_draws_interval(out, draws);
}

static int statistics_by_share(const void *a, const void *b)
{
    const struct statistics_point *x = a, *y = b;
    int order = (x->share > y->share) - (x->share < y->share);
    return order ? order : (x->pgr > y->pgr) - (x->pgr < y->pgr);
}

double statistics_apgr7(struct statistics_point *points, size_t n)
{
    const double most = 0.07;
    struct statistics_point last = { 0, 0 };
    double area = 0;
    qsort(points, n, sizeof(*points), statistics_by_share);
    for (size_t i = 0; i < n && last.share < most; i++) {
        struct statistics_point next = points[i];
        if (next.share > most) {
            next.pgr =
                last.pgr + (next.pgr - last.pgr) * (most - last.share) / (next.share - last.share);
            next.share = most;
        }
        area += (next.share - last.share) * (last.pgr + next.pgr) / 2;
        last = next;
    }
    return (area + (most - last.share) * last.pgr) / most;
}

/* Return the APGR7 of one draw, or NaN. */
static double statistics_apgr7_of_draw(const struct statistics_answers *at, size_t count,
                                       const struct statistics_answers *edge,
                                       const struct statistics_answers *cloud,
                                       const struct statistics_groups *g, size_t draw)
{
    struct statistics_point points[STATISTICS_POINTS];
    if (g->count < 2)
        return (double)NAN;
    statistics_draw(g, draw);
    double low = statistics_right(edge, g, draw), high = statistics_right(cloud, g, draw);
    for (size_t k = 0; k < count; k++) {
        double tokens = statistics_sum(&at[k], at[k].tokens, g, draw);
        points[k].share = tokens > 0 ? statistics_sum(&at[k], at[k].cloud, g, draw) / tokens : 0;
        if (!statistics_pgr(&points[k].pgr, statistics_right(&at[k], g, draw), low, high))
            return (double)NAN;
    }
    return statistics_apgr7(points, count);
}

void statistics_draw_apgr7(double *draws, const struct statistics_answers *at, size_t count,
                           const struct statistics_answers *edge,
                           const struct statistics_answers *cloud,
                           const struct statistics_groups *g)
{
    for (size_t d = 0; d < STATISTICS_DRAWS; d++)
        draws[d] = statistics_apgr7_of_draw(at, count, edge, cloud, g, d);
}

void statistics_draws_ratio(double *ratio, const double *a, const double *b)
{
    for (size_t d = 0; d < STATISTICS_DRAWS; d++)
        ratio[d] = b[d] > 0 ? a[d] / b[d] : (double)NAN;
}
