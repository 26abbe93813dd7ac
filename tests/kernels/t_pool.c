/* t_pool.c - the pool runs every index exactly once, with more threads than processors and when
 * memory runs out; memory, conditions and counters of os.h. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "tests/support/test.h"
#include "tests/support/torture.h"

enum { MOST = 5000 };

struct job {
    unsigned char hit[MOST];
    size_t grain, n, threads;
    _Atomic size_t calls;
};

/* Check one chunk against the contract of pool_for and count its indices. */
static void count(void *arg, size_t thread, size_t first, size_t last)
{
    struct job *j = arg;
    CHECK(thread < j->threads && first < last && last <= j->n);
    CHECK(last == j->n || (last - first) % j->grain == 0);
    for (size_t i = first; i < last; i++)
        j->hit[i]++;
    atomic_fetch_add(&j->calls, 1);
}

/* Check that a job of n indices runs each of them once. */
static void covers(struct pool *p, size_t n, size_t grain)
{
    static struct job j;
    memset(j.hit, 0, sizeof(j.hit));
    j.n = n;
    j.grain = grain ? grain : 1;
    j.threads = pool_threads(p);
    atomic_store(&j.calls, 0);
    pool_for(p, n, grain, count, &j);
    for (size_t i = 0; i < MOST; i++)
        CHECK(j.hit[i] == (i < n));
    CHECK(n ? j.calls > 0 : j.calls == 0);
    if (n && n <= j.grain)
        CHECK(j.calls == 1);
}

static void sizes(size_t threads)
{
    struct pool *p = NULL;
    struct err err;
    CHECK(pool_open(&p, threads, &err) == OK);
    CHECK(pool_threads(p) == threads);
    for (size_t n = 0; n < 70; n++)
        covers(p, n, n % 9);
    covers(p, MOST, 1);
    covers(p, MOST, 7);
    covers(p, MOST, SIZE_MAX);
    pool_close(p);
}

/* Run many short jobs in a row, some after a pause in which the workers fall asleep. Each job reads
 * what the one before wrote. */
static uint32_t cells[64];

static void step(void *arg, size_t thread, size_t first, size_t last)
{
    (void)arg, (void)thread;
    for (size_t i = first; i < last; i++)
        cells[i] += cells[(i + 32) % 64] & 1;
}

static void half_step(void *arg, size_t thread, size_t first, size_t last)
{
    (void)arg, (void)thread;
    for (size_t i = first; i < last; i++)
        cells[i]++;
}

static void jobs_in_a_row(size_t threads, size_t rounds)
{
    struct pool *p = NULL;
    struct err err;
    CHECK(pool_open(&p, threads, &err) == OK);
    memset(cells, 0, sizeof(cells));
    for (size_t i = 0; i < rounds; i++) {
        pool_for(p, 32, 1, half_step, NULL); /* the lower half */
        pool_for(p, 32, 3, step, NULL);      /* reads the upper half, which no job writes */
        if (i % (rounds / 4) == 0)
            for (uint64_t t = os_now_ns(); os_now_ns() - t < 300000;)
                continue;
    }
    for (size_t i = 0; i < 64; i++)
        CHECK(cells[i] == (i < 32 ? rounds : 0));
    pool_close(p);
}

/* Use half a megabyte of stack in whichever thread is free. */
static void dig(void *arg, size_t thread, size_t first, size_t last)
{
    volatile unsigned char deep[POOL_STACK / 8];
    (void)thread;
    for (size_t i = first; i < last; i++) {
        for (size_t k = sizeof(deep); k > 0; k -= 512)
            deep[k - 1] = (unsigned char)i;
        for (uint64_t t = os_now_ns(); os_now_ns() - t < 100000;)
            continue; /* gives every thread a chance to take some */
        ((unsigned char *)arg)[i] += deep[511];
    }
}

static void deep_stacks(size_t threads)
{
    struct pool *p = NULL;
    struct err err;
    unsigned char out[32] = { 0 };
    CHECK(pool_open(&p, threads, &err) == OK);
    pool_for(p, sizeof(out), 1, dig, out);
    for (size_t i = 0; i < sizeof(out); i++)
        CHECK(out[i] == i);
    pool_close(p);
}

static void memory_runs_out(void)
{
    struct pool *p;
    struct err err;
    for (long n = 1;; n++) {
        torture_begin(n);
        int rc = pool_open(&p, 2, &err);
        if (!torture_end()) {
            CHECK(rc == OK);
            pool_close(p);
            break;
        }
        /* ERR_IO: the memory was for a thread. This happens in a static program, where requests
         * of the C library itself fail, too. */
        CHECK((rc == ERR_NOMEM || rc == ERR_IO) && !p && torture_live() == 0);
        CHECK(n < 100);
    }
}

/* Memory is aligned and zeroed, and absurd sizes are refused. */
static void os_pages(void)
{
    static const size_t size[] = { 1, 64, 4096, 100000, ((size_t)2 << 20) - 1, (size_t)5 << 20 };
    for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
        unsigned char *p = os_alloc(size[i]);
        CHECK(p && (uintptr_t)p % 64 == 0);
        for (size_t k = 0; k < size[i]; k += 61)
            CHECK(p[k] == 0);
        CHECK(p[size[i] - 1] == 0);
        memset(p, 0xff, size[i]);
        os_free(p, size[i]);
    }
    CHECK(!os_alloc(SIZE_MAX) && !os_alloc(SIZE_MAX / 2 + 1) && !os_alloc(SIZE_MAX - 4096));
    os_free(NULL, 100);
    CHECK(os_cpus() >= 1 && os_peak_memory() > (size_t)1 << 20);
}

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    bool done;
};

static void *ring(void *arg)
{
    struct bell *b = arg;
    pthread_mutex_lock(&b->lock);
    b->done = true;
    pthread_cond_signal(&b->rung);
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* A wait for a condition ends at its time and not before, and with a signal. */
static void os_conditions(void)
{
    struct bell b = { .lock = PTHREAD_MUTEX_INITIALIZER };
    const uint64_t until = os_now_ns() + 20000000;
    pthread_t thread;
    CHECK(os_cond_open(&b.rung));
    pthread_mutex_lock(&b.lock);
    for (int waits = 0; os_now_ns() < until; waits++) {
        CHECK(waits < 1000);
        os_cond_wait(&b.rung, &b.lock, until);
    }
    os_cond_wait(&b.rung, &b.lock, 0); /* long past */
    CHECK(pthread_create(&thread, NULL, ring, &b) == 0);
    while (!b.done)
        os_cond_wait(&b.rung, &b.lock, UINT64_MAX);
    pthread_mutex_unlock(&b.lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&b.rung);
}

/* Work is counted as work; counters that are not available are reported, and nothing fails. */
static void os_counting(void)
{
    struct os_counters c;
    char why[OS_WHY];
    double before[OS_EVENTS], after[OS_EVENTS];
    os_counters_open(&c, why);
    uint64_t begin = os_now_ns();
    os_counters_read(&c, before);
    volatile uint32_t x = 0;
    for (uint32_t i = 0; i < 3000000; i++)
        x = x + i;
    size_t size = (size_t)1 << 20;
    unsigned char *pages = os_alloc(size);
    CHECK(pages);
    os_free(pages, size);
    os_counters_read(&c, after);
    double wall = (double)(os_now_ns() - begin);
    CHECK(!why[0] == (c.handle[OS_CYCLES] >= 0) && strlen(why) < OS_WHY);
    for (size_t i = 0; i < OS_EVENTS; i++)
        CHECK(c.handle[i] < 0 ? after[i] < 0 : after[i] < 0 || after[i] >= before[i]);
    if (after[OS_CPU_NS] >= 0 && before[OS_CPU_NS] >= 0)
        CHECK(after[OS_CPU_NS] > before[OS_CPU_NS] &&
              after[OS_CPU_NS] - before[OS_CPU_NS] <= wall * 1.01 + 1e6);
    if (after[OS_INSTRUCTIONS] >= 0 && before[OS_INSTRUCTIONS] >= 0)
        CHECK(after[OS_INSTRUCTIONS] - before[OS_INSTRUCTIONS] > 3000000);
    os_counters_close(&c);
    os_counters_close(&c);
    os_counters_read(&c, after);
    CHECK(after[OS_CYCLES] < 0 && after[OS_CPU_NS] < 0);

    struct rlimit most, none = { 0, 0 };
    CHECK(getrlimit(RLIMIT_NOFILE, &most) == 0);
    none.rlim_max = most.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    os_counters_open(&c, why); /* no file descriptor is left */
    CHECK(why[0] && c.handle[OS_CYCLES] < 0 && c.handle[OS_FAULTS] < 0);
    os_counters_close(&c);
    CHECK(setrlimit(RLIMIT_NOFILE, &most) == 0);
}

/* A simulated source: event e has counted 1000 * (e + 1) in half of the time. Misses in the TLB
 * cannot be counted, those in the last cache not be read, and faults never had their turn. */
static int source_open_now, source_opened, source_readings;

static int source_open(enum os_event event, int *error)
{
    *error = ENOENT;
    if (event == OS_TLB_MISSES)
        return -1;
    source_open_now++;
    source_opened++;
    return 10 + (int)event;
}

static bool source_read(int handle, uint64_t now[3])
{
    source_readings++;
    now[0] = 1000u * (unsigned)(handle - 9);
    now[1] = 4000;
    now[2] = handle == 10 + OS_FAULTS ? 0 : 2000;
    return handle != 10 + OS_LLC_MISSES;
}

static void source_close(int handle)
{
    CHECK(handle >= 10 && handle < 10 + OS_EVENTS && handle != 10 + OS_TLB_MISSES);
    source_open_now--;
}

static int source_refuses(enum os_event event, int *error)
{
    (void)event;
    *error = EACCES;
    return -1;
}

/* What a source counts is extrapolated; what it cannot count or read is -1; no source is no
 * error. */
static void os_counting_simulated(void)
{
    static const struct os_event_source simulated = { source_open, source_read, source_close };
    static const struct os_event_source refuses = { source_refuses, source_read, source_close };
    const struct os_event_source *kept = os_event_source;
    struct os_counters c;
    char why[OS_WHY];
    double count[OS_EVENTS];
    os_event_source = &simulated;
    os_counters_open(&c, why);
    CHECK(!why[0] && source_opened == OS_EVENTS - 1 && c.handle[OS_TLB_MISSES] < 0);
    os_counters_read(&c, count);
    CHECK(source_readings == OS_EVENTS - 1);
    for (size_t i = 0; i < OS_EVENTS; i++)
        if (i == OS_TLB_MISSES || i == OS_LLC_MISSES || i == OS_FAULTS)
            CHECK(count[i] < 0);
        else
            CHECK(fabs(count[i] - 2000.0 * (double)(i + 1)) < 1e-6);
    os_counters_close(&c);
    os_counters_close(&c);
    CHECK(source_open_now == 0);
    os_event_source = &refuses;
    os_counters_open(&c, why);
    CHECK(!strncmp(why, "not permitted (kernel.perf_event_paranoid is ", 45) &&
          strlen(why) < OS_WHY);
    os_event_source = NULL;
    os_counters_open(&c, why);
    CHECK(!strcmp(why, "only Linux is asked for them"));
    os_counters_read(&c, count);
    CHECK(count[OS_CYCLES] < 0 && count[OS_CPU_NS] < 0);
    os_counters_close(&c);
    os_event_source = kept;
}

int main(void)
{
    memory_runs_out();
    os_pages();
    os_counting();
    os_counting_simulated();
    os_conditions();
    covers(NULL, 100, 3);
    for (size_t threads = 1; threads <= 8; threads++)
        sizes(threads);
    jobs_in_a_row(2, 3000);
    deep_stacks(4);
    jobs_in_a_row(8, 1000); /* more than this machine may have */
    struct pool *p;
    struct err err;
    CHECK(pool_open(&p, POOL_MAX + 1, &err) == ERR_ARG && !p);
    CHECK(!strcmp(err.msg, "threads: expected at most 64, found 65"));
    CHECK(pool_open(&p, POOL_MAX, &err) == OK && pool_threads(p) == POOL_MAX);
    covers(p, MOST, 1);
    pool_close(p);
    CHECK(pool_open(&p, 0, &err) == OK && pool_threads(p) >= 1);
    pool_close(p);
    pool_close(NULL);
    return 0;
}
