#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "tools/lab/eval/statistics.h"

enum { BOOTSTRAP_SEED = 1 };

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

double statistics_quantile(double *x, size_t n, double q)
{
    qsort(x, n, sizeof(*x), statistics_by_value);
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? x[i] + (at - (double)i) * (x[i + 1] - x[i]) : x[n - 1];
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
                                       .above = calloc(n + 1, sizeof(*out->above)) };
    if (!sorted || !out->of || !out->times || !out->above) {
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
    free(g->above);
    *g = (struct statistics_groups){ 0 };
}

/* Return the variance of the accuracy p of at least two groups. */
static double statistics_variance(const unsigned char *right, const struct statistics_groups *g,
                                  double p)
{
    double between = 0;
    memset(g->above, 0, g->n * sizeof(*g->above));
    for (size_t i = 0; i < g->n; i++)
        g->above[g->of[i]] += (right[i] - p) / (double)g->n;
    for (size_t i = 0; i < g->n; i++)
        between += g->above[i] * g->above[i];
    return between * (double)g->count / (double)(g->count - 1);
}

struct statistics_interval statistics_accuracy(const unsigned char *right,
                                               const struct statistics_groups *g, bool grouped)
{
    double n = (double)g->n, p = 0;
    for (size_t i = 0; i < g->n; i++)
        p += right[i];
    p /= n;
    if (!grouped || g->count == g->n)
        return statistics_wilson_of(p, n);
    if (g->count < 2) /* nothing is known of another one */
        return (struct statistics_interval){ 0, 1 };
    double variance = statistics_variance(right, g, p);
    /* All groups are alike, but for rounding. */
    double most = variance < ROUNDING ? (double)g->count : n;
    return statistics_wilson_of(p, variance > p * (1 - p) / most ? p * (1 - p) / variance : most);
}

struct statistics_interval statistics_bootstrap_difference(const unsigned char *a,
                                                           const unsigned char *b,
                                                           const struct statistics_groups *g)
{
    double draws[STATISTICS_DRAWS];
    if (g->count < 2)
        return (struct statistics_interval){ (double)NAN, (double)NAN };
    for (size_t d = 0; d < STATISTICS_DRAWS; d++) {
        const uint64_t key = rand_u64(BOOTSTRAP_SEED, d);
        int64_t more = 0, items = 0;
        memset(g->times, 0, g->count * sizeof(*g->times));
        for (size_t i = 0; i < g->count; i++)
            g->times[rand_below(key, i, g->count)]++;
        for (size_t i = 0; i < g->n; i++) {
            items += g->times[g->of[i]];
            more += (int64_t)g->times[g->of[i]] * (a[i] - b[i]);
        }
        draws[d] = (double)more / (double)items;
    }
    double low = statistics_quantile(draws, STATISTICS_DRAWS, 0.025);
    return (struct statistics_interval){ low, statistics_quantile(draws, STATISTICS_DRAWS, 0.975) };
}
