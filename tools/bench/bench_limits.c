/* bench_limits.c - measures the limits of the machine: read bandwidth and each kind of
 * arithmetic. */
#include "kernels/sys/limits.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "tools/bench/bench.h"
#include "tools/cli/setup.h"

enum { PROBE_BYTES = 512 << 20, PIECE = 1 << 18, PASSES = 5, L2_BYTES = 1 << 19, L2_PASSES = 400 };

/* A buffer that the threads of a pool read. */
struct reading {
    const uint64_t *data;
    unsigned cpu;
    size_t turns; /* reads of each piece */
    _Atomic uint64_t sum;
};

static int bench_limits_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *samples, size_t n)
{
    qsort(samples, n, sizeof(*samples), bench_limits_ascending);
    return n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
}

/* Thread function: read pieces [first, last). The sum keeps the reads from being optimized away. */
static void read_pieces(void *arg, size_t thread, size_t first, size_t last)
{
    struct reading *r = arg;
    (void)thread;
    for (size_t i = first; i < last; i++)
        for (size_t turn = 0; turn < r->turns; turn++)
            r->sum ^= limits_read(r->data + i * (PIECE / 8), PIECE / 8, r->cpu);
}

double bench_probe(struct pool *pool)
{
    struct reading r = { .data = os_alloc(PROBE_BYTES), .cpu = cpu_detect(), .turns = 1 };
    double sample[PASSES];
    if (!r.data)
        return 0;
    memset((void *)(uintptr_t)r.data, 1, PROBE_BYTES);
    for (size_t i = 0; i < PASSES; i++) {
        uint64_t begin = os_now_ns();
        pool_for(pool, PROBE_BYTES / PIECE, 1, read_pieces, &r);
        sample[i] = (double)PROBE_BYTES / (double)(os_now_ns() - begin);
    }
    os_free((void *)(uintptr_t)r.data, PROBE_BYTES);
    return bench_median(sample, PASSES);
}

/* Return the GB/s from the caches next to the cores: each thread reads a small piece of its own
 * repeatedly. */
static double read_near(struct pool *pool)
{
    size_t threads = pool_threads(pool), bytes = threads * L2_BYTES;
    struct reading r = { .data = os_alloc(bytes), .cpu = cpu_detect(), .turns = L2_PASSES };
    double sample[PASSES];
    if (!r.data)
        return 0;
    memset((void *)(uintptr_t)r.data, 1, bytes);
    for (size_t i = 0; i < PASSES; i++) {
        uint64_t begin = os_now_ns();
        pool_for(pool, bytes / PIECE, L2_BYTES / PIECE, read_pieces, &r);
        sample[i] = (double)bytes * L2_PASSES / (double)(os_now_ns() - begin);
    }
    os_free((void *)(uintptr_t)r.data, bytes);
    return bench_median(sample, PASSES);
}

/* Arguments of bench_limits_turn. */
struct turning {
    const struct limit *limit;
    size_t turns;
};

/* Thread function: run pieces [first, last) of the arithmetic. */
static void bench_limits_turn(void *arg, size_t thread, size_t first, size_t last)
{
    const struct turning *t = arg;
    (void)thread;
    for (size_t i = first; i < last; i++)
        t->limit->run(t->turns);
}

/* Return GOP/s of one kind of arithmetic. It is a limit, so the best pass counts, not the
 * median. */
static double arithmetic(const struct limit *limit, struct pool *pool)
{
    enum { PIECES = 16 };
    struct turning t = { limit, 20000 };
    size_t n = PIECES * pool_threads(pool);
    double best = 0;
    for (size_t i = 0; i < 2 * PASSES; i++) {
        uint64_t begin = os_now_ns();
        pool_for(pool, n, 1, bench_limits_turn, &t);
        double now = limit->ops * (double)(n * t.turns) / (double)(os_now_ns() - begin);
        best = now > best ? now : best;
    }
    return best;
}

enum { MOST = 16 };

double bench_peak(const char *what, unsigned cpu, struct pool *pool)
{
    static double known[MOST];
    double best = 0;
    for (size_t i = 0; i < limits_count && i < MOST; i++) {
        if (strcmp(limits[i].what, what) != 0 || (limits[i].needs & cpu) != limits[i].needs)
            continue;
        if (known[i] <= 0)
            known[i] = arithmetic(&limits[i], pool);
        best = known[i] > best ? known[i] : best;
    }
    return best;
}

struct row {
    const char *name, *unit;
    double one, all; /* with one thread, with all threads */
};

/* Measure all limits of this processor; return the number of rows, 0 after an error. */
static size_t bench_limits_measure(struct row rows[MOST], size_t threads, struct err *err)
{
    struct pool *one, *all;
    size_t n = 0;
    if (pool_open(&one, 1, err) != OK)
        return 0;
    if (pool_open(&all, threads, err) != OK) {
        pool_close(one);
        return 0;
    }
    rows[n++] = (struct row){ "read from memory", "GB/s", bench_probe(one), bench_probe(all) };
    rows[n++] = (struct row){ "read from the near caches", "GB/s", read_near(one), read_near(all) };
    for (size_t i = 0; i < limits_count && n < MOST && !interrupted; i++)
        if ((cpu_detect() & limits[i].needs) == limits[i].needs)
            rows[n++] = (struct row){ limits[i].name, "GOP/s", arithmetic(&limits[i], one),
                                      arithmetic(&limits[i], all) };
    pool_close(one);
    pool_close(all);
    return n;
}

static void bench_limits_print_json(const struct row *r, size_t threads, const char *end)
{
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:I,s:f,s:f}", "cpu", cpu_name(), "limit", r->name, "unit", r->unit,
                  "n_threads", (json_int_t)threads, "one_thread", r->one, "all_threads", r->all);
    char *text = o ? json_dumps(o, 0) : NULL;
    printf("%s%s\n", text ? text : "{}", end);
    free(text);
    json_decref(o);
}

int bench_limits(const struct bench_options *o, size_t threads, struct err *err)
{
    struct row rows[MOST];
    bool json = !strcmp(o->format, "json"), lines = !strcmp(o->format, "jsonl");
    threads = threads ? threads : os_cpus();
    size_t n = bench_limits_measure(rows, threads, err);
    if (!n)
        return ERR_NOMEM;
    if (interrupted)
        return err_set(err, ERR_STOP, "interrupted");
    if (json)
        puts("[");
    else if (!lines && !strcmp(o->format, "csv"))
        puts("limit,unit,n_threads,one_thread,all_threads");
    else if (!lines)
        printf("| limit | unit | 1 thread | %zu threads |\n|---|---|---|---|\n", threads);
    for (size_t i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        if (json || lines)
            bench_limits_print_json(r, threads, json && i + 1 < n ? "," : "");
        else if (!strcmp(o->format, "csv"))
            printf("\"%s\",%s,%zu,%.1f,%.1f\n", r->name, r->unit, threads, r->one, r->all);
        else
            printf("| %s | %s | %.1f | %.1f |\n", r->name, r->unit, r->one, r->all);
    }
    if (json)
        puts("]");
    return OK;
}
