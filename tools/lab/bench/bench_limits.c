/* bench_limits.c - measures the limits of the machine: read bandwidth and each kind of
 * arithmetic. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "tools/lab/bench/bench.h"
#include "tools/lab/bench/doubt.h"
#include "tools/lab/bench/limits.h"
#include "tools/lab/bench/read_probe.h"
#include "tools/lab/bench/row.h"
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

struct limit_row {
    char name[48];
    const char *unit;
    double one, all; /* with one thread, with all threads */
    size_t bytes;    /* of a level of cache, or 0 */
};

/* Measure how fast each level is read; return the number of rows, 0 after an error. */
static size_t bench_limits_read(struct limit_row rows[READ_LEVELS], struct pool *one,
                                struct pool *all, struct err *err)
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
        rows[i] = (struct limit_row){ "", "GB/s", l->gb_s, b[READ_LEVELS - 1 - i].gb_s, l->bytes };
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
static int bench_limits_measure(struct limit_row rows[MOST], size_t *count, struct pool *all,
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
        rows[n] = (struct limit_row){ "", "GOP/s", arithmetic(&limits[i], one),
                                      arithmetic(&limits[i], all), 0 };
        snprintf(rows[n].name, sizeof(rows[n].name), "%s", limits[i].name);
        n++;
    }
    pool_close(one);
    *count = n;
    return n ? OK : ERR_NOMEM;
}

static int bench_limits_print(struct row *out, const struct limit_row *r, size_t threads,
                              struct err *err)
{
    char doubtful[DOUBT_TEXT], title[32];
    doubt_text(doubtful, 0, threads, r->one, r->all);
    snprintf(title, sizeof(title), "%zu threads", threads);
    row_text(out, "limit", "limit", r->name);
    row_text(out, "unit", "unit", r->unit);
    row_named(out, "n_threads", NULL, (double)threads, 0);
    row_named(out, "one_thread", "1 thread", r->one, 1);
    row_named(out, "all_threads", threads > 1 ? title : NULL, r->all, 1);
    row_named(out, "bytes", NULL, r->bytes ? (double)r->bytes : (double)NAN, 0);
    row_text(out, "doubtful", "doubtful", *doubtful ? doubtful : NULL);
    row_text(out, "cpu", NULL, cpu_name());
    return row_print(out, err);
}

int bench_limits(const struct bench_options *o, size_t threads, struct err *err)
{
    struct limit_row rows[MOST];
    struct pool *all;
    size_t n = 0;
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
    struct row out = { .format = o->format };
    for (size_t i = 0; i < n && rc == OK; i++)
        rc = bench_limits_print(&out, &rows[i], threads, err);
    row_end(&out);
    return rc;
}
