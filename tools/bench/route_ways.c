/* route_ways.c - what the samples of `bench route --as-paper` say: the median of each way, and how
 * much of the whole its parts explain. */
#include <stdlib.h>

#include "tools/bench/bench_route.h"

static int route_ways_ascending(const void *a, const void *b)
{
    const struct bench_route_way *x = a, *y = b;
    return (x->s > y->s) - (x->s < y->s);
}

struct bench_route_way route_ways_median(struct bench_route_way *samples, size_t n)
{
    qsort(samples, n, sizeof(*samples), route_ways_ascending);
    return samples[n / 2];
}

void route_ways_extra(struct bench_route_way *ways, size_t n)
{
    double sum = 0;
    for (size_t i = 1; i < n; i++) {
        ways[i].more_s = ways[i].s - ways[i == 1 || i == n - 1 ? 0 : 1].s;
        sum += i < n - 1 ? ways[i].more_s : 0;
    }
    ways[n - 1].parts_s = sum;
}
