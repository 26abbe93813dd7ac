#include "tools/lab/machine/read_probe.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "tools/lab/machine/limits.h"

enum { PASSES = 5, STAIR_PASSES = 3, MOST_STREAMS = 4, WORD = sizeof(uint64_t), ALIGN_BYTES = 64 };
enum { PASS_BYTES = 64 << 20, LEAST_PASSES = 4, CACHE_PIECE = 4 << 20, FIRST_STAIR = 4 << 20 };
static const double NEARER = 1.25; /* a cache is read at least so many times as fast as memory */

struct read_probe {
    uint64_t *data; /* [bytes / WORD] */
    size_t bytes;
    size_t l3;   /* bytes, 0: not measured */
    size_t next; /* byte at which the next pass begins, so that it meets nothing it has read */
};

/* A pass of all threads. */
struct pass {
    const uint64_t *data;
    size_t threads, streams, turns; /* turns: reads of each piece */
    size_t part, piece, step;       /* words: between threads, of a piece, to the next piece */
    unsigned cpu;
    _Atomic size_t arrived;
    struct read_log log[POOL_MAX];
    uint64_t sum[POOL_MAX]; /* keeps the reading alive */
};

double read_probe_rate(const struct read_log *logs, size_t threads)
{
    uint64_t first = logs[0].at[0], begin = first, end = logs[0].at[READ_PIECES], last = end;
    double bytes = 0, all = 0;
    for (size_t i = 0; i < threads; i++) {
        uint64_t from = logs[i].at[0], to = logs[i].at[READ_PIECES];
        first = from < first ? from : first;
        begin = from > begin ? from : begin;
        end = to < end ? to : end;
        last = to > last ? to : last;
        all += logs[i].bytes;
    }
    if (begin >= end)
        return last > first ? all / (double)(last - first) : 0;
    for (size_t i = 0; i < threads; i++)
        for (size_t k = 0; k < READ_PIECES; k++) {
            uint64_t at = logs[i].at[k], to = logs[i].at[k + 1];
            uint64_t low = at > begin ? at : begin, high = to < end ? to : end;
            if (high > low)
                bytes += logs[i].bytes / READ_PIECES * (double)(high - low) / (double)(to - at);
        }
    return bytes / (double)(end - begin);
}

/* Thread function: wait until all threads are here, then read the part of this one. No thread can
 * get two parts, because it leaves the first one only when the others have theirs. */
static void read_probe_part(void *arg, size_t thread, size_t first, size_t last)
{
    struct pass *p = arg;
    struct read_log *log = &p->log[thread];
    const uint64_t *at = p->data + thread * p->part;
    uint64_t sum = 0;
    (void)first;
    (void)last;
    atomic_fetch_add(&p->arrived, 1);
    while (atomic_load(&p->arrived) < p->threads)
        sched_yield();
    log->at[0] = os_now_ns();
    for (size_t i = 0; i < READ_PIECES; i++) {
        sum ^= limits_read(at + i * p->step, p->piece, p->streams, p->turns, p->cpu);
        log->at[i + 1] = os_now_ns();
    }
    log->bytes = (double)(READ_PIECES * p->piece * WORD) * (double)p->turns;
    p->sum[thread] = sum;
}

/* Run one pass and return its GB/s. */
static double read_probe_pass(struct pass *p, struct pool *pool)
{
    atomic_store(&p->arrived, 0);
    pool_for(pool, p->threads, 1, read_probe_part, p);
    return read_probe_rate(p->log, p->threads);
}

/* Thread function: write pieces [first, last), so that they have pages, no two of which are equal:
 * a host may keep equal pages of a virtual machine once. */
static void read_probe_fill(void *arg, size_t thread, size_t first, size_t last)
{
    uint64_t *data = arg;
    (void)thread;
    for (size_t i = first * CACHE_PIECE / WORD; i < last * CACHE_PIECE / WORD; i++)
        data[i] = i;
}

size_t read_probe_bytes(uint64_t memory, size_t l3)
{
    uint64_t most = memory / 8 / PASS_BYTES, passes = 1 + 2 * (uint64_t)l3 / PASS_BYTES;
    passes = passes < LEAST_PASSES ? LEAST_PASSES : passes;
    passes = passes > most ? most : passes;
    return (size_t)(passes < 2 ? 2 : passes) * PASS_BYTES;
}

/* Open a probe of so many bytes. */
static int read_probe_make(struct read_probe **out, size_t bytes, struct pool *pool,
                           struct err *err)
{
    struct read_probe *p = calloc(1, sizeof(*p));
    if (p) {
        p->bytes = bytes;
        p->data = os_alloc(p->bytes);
    }
    *out = p && p->data ? p : NULL;
    if (!*out) {
        read_probe_close(p);
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    }
    pool_for(pool, p->bytes / CACHE_PIECE, 1, read_probe_fill, p->data);
    return OK;
}

void read_probe_close(struct read_probe *p)
{
    if (p)
        os_free(p->data, p->bytes);
    free(p);
}

/* Return the GB/s of the median pass over so many bytes, which the threads share: again and again
 * the same, or each pass others. */
static double read_probe_median(struct read_probe *probe, struct pool *pool, size_t bytes,
                                size_t streams, bool again)
{
    struct pass p = { .threads = pool_threads(pool), .cpu = cpu_detect() };
    double sample[PASSES + 1];
    p.streams = streams;
    p.turns = 1;
    p.piece = bytes / p.threads / READ_PIECES / ALIGN_BYTES * (ALIGN_BYTES / WORD);
    p.step = p.piece;
    p.part = READ_PIECES * p.piece;
    size_t passes = again ? STAIR_PASSES : PASSES;
    for (size_t i = 0; i <= passes; i++) {
        p.data = probe->data + (again ? 0 : probe->next) / WORD;
        probe->next = again ? probe->next : (probe->next + bytes) % probe->bytes;
        sample[i] = read_probe_pass(&p, pool);
    }
    return limits_median(sample + 1, passes);
}

double read_probe_memory(struct read_probe *probe, struct pool *pool)
{
    double best = 0;
    for (size_t streams = 1; streams <= MOST_STREAMS; streams *= 2) {
        double now = read_probe_median(probe, pool, PASS_BYTES, streams, false);
        best = now > best ? now : best;
    }
    return best;
}

/* Return the GB/s of buffers of this many bytes, one for each thread, that are read again and
 * again. */
static double read_probe_cache(const struct read_probe *probe, struct pool *pool, size_t bytes)
{
    struct pass p = { .threads = pool_threads(pool), .cpu = cpu_detect() };
    double best = 0;
    bytes = bytes < probe->bytes / p.threads ? bytes : probe->bytes / p.threads;
    bytes = bytes / ALIGN_BYTES * ALIGN_BYTES;
    p.data = probe->data;
    p.piece = bytes / WORD;
    p.part = p.piece;
    p.turns = bytes < CACHE_PIECE ? CACHE_PIECE / bytes : 1;
    for (p.streams = 1; p.streams <= MOST_STREAMS; p.streams *= 2)
        for (size_t i = 0; i <= PASSES; i++) {
            double now = read_probe_pass(&p, pool);
            best = i && now > best ? now : best;
        }
    return best;
}

size_t read_probe_stairs(struct read_stair out[READ_STAIRS], struct read_probe *p,
                         struct pool *pool)
{
    size_t n = 0;
    double before = p->l3 ? 0 : read_probe_memory(p, pool);
    for (size_t bytes = FIRST_STAIR; bytes <= p->bytes / 2 && n < READ_STAIRS; bytes *= 2)
        out[n++] =
            (struct read_stair){ bytes, read_probe_median(p, pool, bytes, MOST_STREAMS, true) };
    if (!p->l3) {
        double after = read_probe_memory(p, pool);
        p->l3 = read_stairs_end(out, n, before > after ? before : after, limits_cache(3));
    }
    return n;
}

size_t read_stairs_end(const struct read_stair *stairs, size_t n, double memory, size_t told)
{
    size_t i = n;
    while (i > 0 && stairs[i - 1].gb_s < NEARER * memory)
        i--;
    size_t below = n && stairs[0].bytes / 2 < told ? stairs[0].bytes / 2 : told;
    return i ? stairs[i - 1].bytes : below;
}

size_t read_probe_l3(struct read_probe *p, struct pool *pool)
{
    struct read_stair stairs[READ_STAIRS];
    if (!p->l3)
        read_probe_stairs(stairs, p, pool);
    return p->l3;
}

int read_probe_open(struct read_probe **out, bool small, struct pool *pool, struct err *err)
{
    size_t l3 = limits_cache(3), bytes = small ? 0 : read_probe_bytes(os_memory(), l3);
    if (small)
        return read_probe_make(out, read_probe_bytes(0, 0), pool, err);
    size_t enough = read_probe_bytes(os_memory(), 0);
    int rc = read_probe_make(out, bytes < enough ? bytes : enough, pool, err);
    if (rc != OK || bytes <= enough ||
        read_probe_median(*out, pool, PASS_BYTES, MOST_STREAMS, true) <
            NEARER * read_probe_memory(*out, pool))
        return rc;
    read_probe_close(*out);
    return read_probe_make(out, bytes, pool, err);
}

void read_probe_levels(struct read_level out[READ_LEVELS], struct read_probe *p, struct pool *pool)
{
    static const char *const names[] = { "L1", "L2", "L3", "memory" };
    size_t threads = pool_threads(pool), use[READ_LEVELS - 1];
    for (unsigned i = 0; i < READ_LEVELS; i++)
        out[i] = (struct read_level){ names[i], i + 1 < READ_LEVELS ? limits_cache(i + 1) : 0, 0 };
    out[2].bytes = read_probe_l3(p, pool);
    size_t l2 = out[1].bytes, share = out[2].bytes / 2 / threads;
    use[0] = out[0].bytes / 2;
    use[1] = l2 / 2;
    use[2] = share > 4 * l2 ? 4 * l2 : share < 2 * l2 ? 2 * l2 : share;
    for (size_t i = 0; i + 1 < READ_LEVELS; i++)
        out[i].gb_s = read_probe_cache(p, pool, use[i]);
    out[READ_LEVELS - 1].gb_s = read_probe_memory(p, pool);
}

const struct read_level *read_level_of(const struct read_level levels[READ_LEVELS], double bytes)
{
    size_t i = 0;
    while (i + 1 < READ_LEVELS && bytes > (double)levels[i].bytes)
        i++;
    return &levels[i];
}
