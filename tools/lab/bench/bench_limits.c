/* bench_limits.c - measures the limits of the machine: read bandwidth and each kind of
 * arithmetic. */
#include <math.h>
#include <stdio.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "tools/lab/bench/bench.h"
#include "tools/lab/bench/doubt.h"
#include "tools/lab/machine/limits.h"
#include "tools/lab/machine/read_probe.h"
#include "tools/lab/bench/row.h"
#include "tools/cli/setup.h"

enum { MOST = 32 };

struct limit_row {
    char name[48];
    const char *unit;
    double one, all; /* with one thread, with all threads */
    size_t bytes;    /* of a level of cache or a working set, or 0 */
    double others;   /* as doubt_look found */
};

struct limit_table {
    struct limit_row rows[MOST];
    size_t n;
    struct doubt_others others;
};

/* Add a row without a name; the last look saw who ran beside it. */
static struct limit_row *limit_add(struct limit_table *t, const char *unit, double one, double all,
                                   size_t bytes)
{
    struct limit_row *r = &t->rows[t->n++];
    *r = (struct limit_row){ "", unit, one, all, bytes, t->others.took };
    return r;
}

/* Measure how fast each level is read, memory first, and working sets again and again. */
static int bench_limits_read(struct limit_table *t, struct pool *pool, struct err *err)
{
    struct read_probe *probe;
    struct read_level levels[2][READ_LEVELS]; /* with one thread, with all */
    struct read_stair stairs[2][READ_STAIRS];
    size_t n = 0, one = pool_threads(pool) == 1;
    doubt_look(&t->others);
    int rc = read_probe_open(&probe, false, pool, err);
    if (rc != OK)
        return rc;
    for (size_t all = 2; all-- > one;) { /* what one thread gets is measured last */
        n = read_probe_stairs(stairs[all], probe, all ? pool : NULL);
        read_probe_levels(levels[all], probe, all ? pool : NULL);
    }
    read_probe_close(probe);
    doubt_look(&t->others);
    for (size_t i = READ_LEVELS; i-- > 0;) {
        const struct read_level *x = &levels[one][i], *y = &levels[1][i];
        struct limit_row *r = limit_add(t, "GB/s", x->gb_s, y->gb_s, x->bytes);
        int at = snprintf(r->name, sizeof(r->name), "read from %s", x->name);
        if (x->bytes)
            snprintf(r->name + at, sizeof(r->name) - (size_t)at, ", %zu KiB", x->bytes >> 10);
    }
    for (size_t i = 0; i < n; i++) {
        const struct read_stair *x = &stairs[one][i], *y = &stairs[1][i];
        struct limit_row *r = limit_add(t, "GB/s", x->gb_s, y->gb_s, x->bytes);
        snprintf(r->name, sizeof(r->name), "read %zu MiB again and again", x->bytes >> 20);
    }
    return OK;
}

/* Measure each kind of arithmetic of this processor. */
static void bench_limits_compute(struct limit_table *t, struct pool *pool)
{
    for (size_t i = 0; i < limits_count && t->n < MOST && !interrupted; i++) {
        if ((cpu_detect() & limits[i].needs) != limits[i].needs)
            continue;
        double all = limits_measure(&limits[i], pool);
        double one = pool_threads(pool) > 1 ? limits_measure(&limits[i], NULL) : all;
        doubt_look(&t->others);
        struct limit_row *r = limit_add(t, "GOP/s", one, all, 0);
        snprintf(r->name, sizeof(r->name), "%s", limits[i].name);
    }
}

static int bench_limits_print(struct row *out, const struct limit_row *r, size_t threads,
                              struct err *err)
{
    char doubtful[DOUBT_TEXT], title[32];
    doubt_text(doubtful, 0, threads, r->one, r->all);
    doubt_busy(doubtful, 1, r->others);
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

int bench_limits(const struct bench_options *o, struct err *err)
{
    static struct limit_table t;
    struct row out = { .format = o->format };
    struct pool *pool;
    int rc = pool_open(&pool, o->threads, err);
    if (rc != OK)
        return rc;
    size_t threads = pool_threads(pool);
    rc = bench_limits_read(&t, pool, err);
    if (rc == OK)
        bench_limits_compute(&t, pool);
    pool_close(pool);
    if (rc == OK && interrupted)
        return err_set(err, ERR_STOP, "interrupted");
    for (size_t i = 0; rc == OK && i < t.n; i++)
        rc = bench_limits_print(&out, &t.rows[i], threads, err);
    if (t.n)
        row_end(&out);
    return rc;
}
