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
#include "tools/bench/doubt.h"
#include "tools/bench/read_probe.h"
#include "tools/cli/json_report.h"
#include "tools/cli/setup.h"

enum { PASSES = 5 };

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
    static size_t threads; /* with which they were measured */
    double best = 0;
    if (threads != pool_threads(pool))
        memset(known, 0, sizeof(known));
    threads = pool_threads(pool);
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
    char name[48];
    const char *unit;
    double one, all; /* with one thread, with all threads */
    size_t bytes;    /* of a level of cache, or 0 */
};

/* Measure how fast each level is read; return the number of rows, 0 after an error. */
static size_t bench_limits_read(struct row rows[READ_LEVELS], struct pool *one, struct pool *all,
                                struct err *err)
{
    struct read_probe *probe;
    struct read_level a[READ_LEVELS], b[READ_LEVELS];
    if (read_probe_open(&probe, all, err) != OK)
        return 0;
    read_probe_levels(a, probe, one);
    read_probe_levels(b, probe, all);
    read_probe_close(probe);
    for (size_t i = 0; i < READ_LEVELS; i++) {
        const struct read_level *l = &a[READ_LEVELS - 1 - i]; /* memory first */
        rows[i] = (struct row){ "", "GB/s", l->gb_s, b[READ_LEVELS - 1 - i].gb_s, l->bytes };
        if (l->bytes)
            snprintf(rows[i].name, sizeof(rows[i].name), "read from %s, %zu KiB", l->name,
                     l->bytes >> 10);
        else
            snprintf(rows[i].name, sizeof(rows[i].name), "read from %s", l->name);
    }
    return READ_LEVELS;
}

/* Measure all limits of this processor with one thread and with all, and set *count to the number
 * of rows. */
static int bench_limits_measure(struct row rows[MOST], size_t *count, struct pool *all,
                                struct err *err)
{
    struct pool *one;
    int rc = pool_open(&one, 1, err);
    if (rc != OK)
        return rc;
    size_t n = bench_limits_read(rows, one, all, err);
    for (size_t i = 0; n && i < limits_count && n < MOST && !interrupted; i++) {
        if ((cpu_detect() & limits[i].needs) != limits[i].needs)
            continue;
        rows[n] = (struct row){ "", "GOP/s", arithmetic(&limits[i], one),
                                arithmetic(&limits[i], all), 0 };
        snprintf(rows[n].name, sizeof(rows[n].name), "%s", limits[i].name);
        n++;
    }
    pool_close(one);
    *count = n;
    return n ? OK : ERR_NOMEM;
}

static int bench_limits_print_json(const struct row *r, size_t threads, const char *doubtful,
                                   const char *end, struct err *err)
{
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:I,s:f,s:f,s:o,s:o}", "cpu", cpu_name(), "limit", r->name, "unit",
                  r->unit, "n_threads", (json_int_t)threads, "one_thread", r->one, "all_threads",
                  r->all, "bytes", r->bytes ? json_integer((json_int_t)r->bytes) : json_null(),
                  "doubtful", *doubtful ? json_string(doubtful) : json_null());
    return json_report_print("bench", o, 0, "", end, err);
}

int bench_limits(const struct bench_options *o, size_t threads, struct err *err)
{
    struct row rows[MOST];
    struct pool *all;
    size_t n = 0;
    bool json = !strcmp(o->format, "json"), lines = !strcmp(o->format, "jsonl");
    int rc = pool_open(&all, threads, err);
    if (rc != OK)
        return rc;
    threads = pool_threads(all);
    rc = bench_limits_measure(rows, &n, all, err);
    pool_close(all);
    if (rc != OK)
        return rc;
    if (interrupted)
        return err_set(err, ERR_STOP, "interrupted");
    if (json)
        puts("[");
    else if (!lines && !strcmp(o->format, "csv"))
        puts("limit,unit,n_threads,one_thread,all_threads,bytes,doubtful");
    else if (!lines && threads > 1)
        printf("| limit | unit | 1 thread | %zu threads | doubtful |\n|---|---|---|---|---|\n",
               threads);
    else if (!lines)
        puts("| limit | unit | 1 thread | doubtful |\n|---|---|---|---|");
    for (size_t i = 0; i < n && rc == OK; i++) {
        const struct row *r = &rows[i];
        char doubtful[DOUBT_TEXT];
        doubt_text(doubtful, 0, threads, r->one, r->all);
        if (json || lines)
            rc = bench_limits_print_json(r, threads, doubtful, json && i + 1 < n ? "," : "", err);
        else if (!strcmp(o->format, "csv"))
            printf("\"%s\",%s,%zu,%.1f,%.1f,%zu,%s\n", r->name, r->unit, threads, r->one, r->all,
                   r->bytes, doubtful);
        else if (threads > 1)
            printf("| %s | %s | %.1f | %.1f | %s |\n", r->name, r->unit, r->one, r->all, doubtful);
        else
            printf("| %s | %s | %.1f | %s |\n", r->name, r->unit, r->one, doubtful);
    }
    if (json && rc == OK)
        puts("]");
    return rc;
}
