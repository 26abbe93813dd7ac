/* bench_limits.c - measures the limits of the machine: read bandwidth and each kind of
 * arithmetic. */
#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* Working sets that are read again and again, with one thread and with all. */
struct limit_stairs {
    struct read_stair one[READ_STAIRS], all[READ_STAIRS];
    size_t n, threads;
    struct doubt_others others;
    double took; /* by others, while they were read */
};

/* Measure how fast each level is read, and working sets; return the number of rows, 0 after an
 * error. */
static size_t bench_limits_read(struct limit_row rows[], struct limit_stairs *s, struct pool *one,
                                struct pool *all, struct err *err)
{
    struct read_probe *probe;
    struct read_level a[READ_LEVELS], b[READ_LEVELS];
    doubt_look(&s->others);
    if (read_probe_open(&probe, false, all, err) != OK)
        return 0;
    s->threads = pool_threads(all);
    s->n = read_probe_stairs(s->all, probe, all);
    read_probe_levels(b, probe, all);
    memcpy(s->one, s->all, sizeof(s->one));
    memcpy(a, b, sizeof(a));
    if (s->threads > 1) {
        read_probe_stairs(s->one, probe, one);
        read_probe_levels(a, probe, one);
    }
    read_probe_close(probe);
    doubt_look(&s->others);
    s->took = s->others.took;
    for (size_t i = 0; i < READ_LEVELS + s->n; i++) {
        struct limit_row *r = &rows[i];
        size_t level = READ_LEVELS - 1 - i, stair = i - READ_LEVELS; /* memory first */
        if (i < READ_LEVELS)
            *r = (struct limit_row){ "",     "GB/s", a[level].gb_s, b[level].gb_s, a[level].bytes,
                                     s->took };
        else
            *r = (struct limit_row){
                "", "GB/s", s->one[stair].gb_s, s->all[stair].gb_s, s->one[stair].bytes, s->took
            };
        if (i >= READ_LEVELS)
            snprintf(r->name, sizeof(r->name), "read %zu MiB again and again", r->bytes >> 20);
        else if (r->bytes)
            snprintf(r->name, sizeof(r->name), "read from %s, %zu KiB", a[level].name,
                     r->bytes >> 10);
        else
            snprintf(r->name, sizeof(r->name), "read from %s", a[level].name);
    }
    return READ_LEVELS + s->n;
}

/* Measure all limits of this processor with one thread and with all, and set *count to the number
 * of rows. */
static int bench_limits_measure(struct limit_row rows[MOST], size_t *count,
                                struct limit_stairs *stairs, struct pool *all, struct err *err)
{
    struct pool *one;
    int rc = pool_open(&one, 1, err);
    if (rc != OK)
        return rc;
    size_t n = bench_limits_read(rows, stairs, one, all, err);
    for (size_t i = 0; n && i < limits_count && n < MOST && !interrupted; i++) {
        if ((cpu_detect() & limits[i].needs) != limits[i].needs)
            continue;
        double most = limits_measure(&limits[i], all);
        rows[n] = (struct limit_row){ "", "GOP/s", most, most, 0, 0 };
        if (pool_threads(all) > 1)
            rows[n].one = limits_measure(&limits[i], one);
        doubt_look(&stairs->others);
        rows[n].others = stairs->others.took;
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

int bench_limits(const struct bench_options *o, size_t threads, struct err *err)
{
    struct limit_row rows[MOST];
    struct limit_stairs stairs = { .n = 0 };
    struct pool *all;
    size_t n = 0;
    int rc = pool_open(&all, threads, err);
    if (rc != OK)
        return rc;
    threads = pool_threads(all);
    rc = bench_limits_measure(rows, &n, &stairs, all, err);
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
