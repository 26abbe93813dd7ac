#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernels/math.h"
#include "tools/eval/statistics.h"

enum { BOOTSTRAP_SEED = 1 };

struct statistics_interval statistics_wilson(size_t hits, size_t n)
{
    const double z = 1.959963984540054; /* 97.5 % of the normal distribution */
    double m = (double)n, p = (double)hits / m, z2 = z * z;
    double middle = (p + z2 / (2 * m)) / (1 + z2 / m);
    double half = z * sqrt(p * (1 - p) / m + z2 / (4 * m * m)) / (1 + z2 / m);
    return (struct statistics_interval){ .low = middle > half ? middle - half : 0,
                                         .high = middle + half < 1 ? middle + half : 1 };
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

/* Count the right answers of one draw of n items, in count arrays at once. */
static void statistics_draw(size_t *right, const unsigned char *const *arrays, size_t count,
                            size_t n, size_t draw)
{
    for (size_t k = 0; k < count; k++)
        right[k] = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t item = rand_below(rand_u64(BOOTSTRAP_SEED, draw), i, n);
        for (size_t k = 0; k < count; k++)
            right[k] += arrays[k][item];
    }
}

struct statistics_interval statistics_bootstrap_difference(const unsigned char *a,
                                                           const unsigned char *b, size_t n)
{
    const unsigned char *const arrays[] = { a, b };
    double draws[STATISTICS_DRAWS];
    for (size_t d = 0; d < STATISTICS_DRAWS; d++) {
        size_t right[2];
        statistics_draw(right, arrays, 2, n, d);
        draws[d] = ((double)right[0] - (double)right[1]) / (double)n;
    }
    return statistics_percentiles(draws, STATISTICS_DRAWS);
}

bool statistics_pgr(double *pgr, double routed, double edge, double cloud)
{
    if (cloud > edge)
        *pgr = (routed - edge) / (cloud - edge);
    return cloud > edge;
}

bool statistics_bootstrap_pgr(struct statistics_interval *out, const unsigned char *routed,
                              const unsigned char *edge, const unsigned char *cloud, size_t n)
{
    const unsigned char *const arrays[] = { routed, edge, cloud };
    double draws[STATISTICS_DRAWS];
    for (size_t d = 0; d < STATISTICS_DRAWS; d++) {
        size_t right[3];
        statistics_draw(right, arrays, 3, n, d);
        if (!statistics_pgr(&draws[d], (double)right[0], (double)right[1], (double)right[2]))
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
                                       const unsigned char *edge, const unsigned char *cloud,
                                       size_t n, size_t draw)
{
    struct statistics_point points[STATISTICS_POINTS];
    struct {
        uint64_t right, tokens, cloud;
    } sum[STATISTICS_POINTS] = { { 0, 0, 0 } };
    uint64_t low = 0, high = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t item = rand_below(rand_u64(BOOTSTRAP_SEED, draw), i, n);
        low += edge[item];
        high += cloud[item];
        for (size_t k = 0; k < count; k++) {
            sum[k].right += at[k].right[item];
            sum[k].tokens += at[k].tokens[item];
            sum[k].cloud += at[k].cloud[item];
        }
    }
    for (size_t k = 0; k < count; k++) {
        double tokens = (double)sum[k].tokens;
        points[k].share = tokens > 0 ? (double)sum[k].cloud / tokens : 0;
        if (!statistics_pgr(&points[k].pgr, (double)sum[k].right, (double)low, (double)high))
            return (double)NAN;
    }
    return statistics_apgr7(points, count);
}

void statistics_draw_apgr7(double *draws, const struct statistics_answers *at, size_t count,
                           const unsigned char *edge, const unsigned char *cloud, size_t n)
{
    for (size_t d = 0; d < STATISTICS_DRAWS; d++)
        draws[d] = statistics_apgr7_of_draw(at, count, edge, cloud, n, d);
}

void statistics_draws_ratio(double *ratio, const double *a, const double *b)
{
    for (size_t d = 0; d < STATISTICS_DRAWS; d++)
        ratio[d] = b[d] > 0 ? a[d] / b[d] : (double)NAN;
}
