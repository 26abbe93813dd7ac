#define _DEFAULT_SOURCE /* mincore */
/* t_pool.c - the pool runs every index exactly once, with more threads than processors and when
 * memory runs out, and knows who waited; memory and conditions of os.h. */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "kernels/sys/pool.h"
#include "tests/support/test.h"

#if defined(__linux__) && !defined(PORTABLE)
enum { LINUX = 1 };
#else
enum { LINUX = 0 };
#endif
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
    CHECK(pool_open(&p, threads, NULL) == OK);
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
    CHECK(pool_open(&p, threads, NULL) == OK);
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
    unsigned char out[32] = { 0 };
    CHECK(pool_open(&p, threads, NULL) == OK);
    pool_for(p, sizeof(out), 1, dig, out);
    for (size_t i = 0; i < sizeof(out); i++)
        CHECK(out[i] == i);
    pool_close(p);
}

/* ERR_IO: the memory was for a thread. This happens in a static program, where requests of the C
 * library itself fail, too. */
static int open_once(const void *arg)
{
    struct pool *p;
    int rc = pool_open(&p, 2, NULL);
    (void)arg;
    CHECK((rc == OK) == (p != NULL));
    pool_close(p);
    return rc == ERR_IO ? ERR_NOMEM : rc;
}

/* A byte here and there takes no more than its page, where the system tells. */
static void sparse(void)
{
    enum { SIZE = 16 << 20, PAGES = SIZE >> 12 };
    unsigned char *p = os_alloc(SIZE);
    CHECK(p);
    os_sparse(p, SIZE);
    p[0] = p[SIZE / 2] = p[SIZE - 1] = 1;
    CHECK(p[1] == 0 && p[SIZE - 2] == 0);
#if defined(__linux__) && !defined(PORTABLE)
    unsigned char there[PAGES] = { 0 };
    size_t n = 0;
    CHECK(sysconf(_SC_PAGESIZE) != 4096 || mincore(p, SIZE, there) == 0);
    for (size_t i = 0; i < PAGES; i++)
        n += there[i] & 1;
    CHECK_MSG(n <= 3, "%zu pages", n);
#endif
    os_free(p, SIZE);
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
    sparse();
    CHECK(!os_alloc(SIZE_MAX) && !os_alloc(SIZE_MAX / 2 + 1) && !os_alloc(SIZE_MAX - 4096));
    os_free(NULL, 100);
    CHECK(os_cpus() >= 1 && (!os_quota("") || os_cpus() <= os_quota("")));
}

/* Write a file below root, and make the folders above it. */
static void write_below(const char *root, const char *path, const char *text)
{
    char name[200];
    snprintf(name, sizeof(name), "%s/%s", root, path);
    for (char *end = name + strlen(root); (end = strchr(end, '/')); *end++ = '/') {
        *end = '\0';
        CHECK(mkdir(name, 0700) == 0 || errno == EEXIST);
    }
    FILE *f = fopen(name, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* The smallest quota from a process's control group up to the root counts, rounded up. */
static void quotas(void)
{
    static const struct {
        const char *group, *file[4]; /* name, text, .. */
        size_t want;
    } rows[] = {
        { "0::/\n", { "cpu.max", "200000 100000\n" }, 2 },
        { "0::/\n", { "cpu.max", "200001 100000\n" }, 3 },
        { "0::/\n", { "cpu.max", "1000 100000\n" }, 1 },
        { "0::/\n", { "cpu.max", "max 100000\n" }, 0 },
        { "0::/\n", { "cpu.max", "0 0\n" }, 0 },
        { "0::/a/b\n", { "a/b/cpu.max", "max 100000\n", "a/cpu.max", "50000 20000\n" }, 3 },
        { "0::/a/b\n", { "a/b/cpu.max", "4 1\n", "cpu.max", "6 1\n" }, 4 },
        { "0::/a/b\n", { "a/b/cpu.max", "6 1\n", "cpu.max", "4 1\n" }, 4 },
        { "0::/a/b\n", { "a/c/cpu.max", "2 1\n" }, 0 },
        { "0::/../x\n", { "cpu.max", "5 1\n" }, 5 }, /* of another name space */
        { "4:cpuset:/\n3:cpuacct,cpu:/d/e\n0::/\n",
          { "cpu/cpu.cfs_quota_us", "150000\n", "cpu/cpu.cfs_period_us", "100000\n" },
          2 }, /* d/e is the host's name of it */
        { "3:cpu,cpuacct:/\n",
          { "cpu,cpuacct/cpu.cfs_quota_us", "2\n", "cpu,cpuacct/cpu.cfs_period_us", "1\n" },
          2 }, /* without a link of the name cpu */
        { "3:cpu:/d\n", { "cpu/d/cpu.cfs_quota_us", "-1\n", "cpu/d/cpu.cfs_period_us", "9\n" }, 0 },
        { "3:cpu:/d\n", { "cpu/d/cpu.cfs_quota_us", "8\n" }, 0 },
        { "3:cpuset:/\n", { "cpu/cpu.cfs_quota_us", "2\n", "cpu/cpu.cfs_period_us", "1\n" }, 0 },
        { "no colon\n1:\n", { "cpu.max", "1 1\n" }, 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char root[] = "/tmp/t_pool_XXXXXX", path[100];
        CHECK(mkdtemp(root) && os_quota(root) == 0);
        write_below(root, "proc/self/cgroup", rows[i].group);
        for (size_t k = 0; k < 4 && rows[i].file[k]; k += 2) {
            snprintf(path, sizeof(path), "sys/fs/cgroup/%s", rows[i].file[k]);
            write_below(root, path, rows[i].file[k + 1]);
        }
        size_t got = os_quota(root), want = LINUX ? rows[i].want : 0;
        CHECK_MSG(got == want, "row %zu: expected %zu, found %zu", i, want, got);
        snprintf(path, sizeof(path), "rm -r %s", root);
        CHECK(system(path) == 0);
    }
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

/* Run a chunk for at least a millisecond, at the same time as the other one if there are two. */
static void meet(void *arg, size_t thread, size_t first, size_t last)
{
    struct job *j = arg;
    uint64_t until = os_now_ns() + 1000000;
    (void)thread;
    atomic_fetch_add(&j->calls, last - first);
    while (atomic_load(&j->calls) < j->n || os_now_ns() < until)
        sched_yield();
}

/* A job of one chunk is the caller's alone, so one of two threads waits; of two chunks at once, no
 * thread waits all the time, but what a thread did last may not be counted yet. */
static void waiting(void)
{
    static struct job j;
    for (size_t threads = 1; threads <= 2; threads++) {
        struct pool *p;
        CHECK(pool_open(&p, threads, NULL) == OK);
        for (j.n = 1; j.n <= 2; j.n++) {
            atomic_store(&j.calls, 0);
            pool_watch(p);
            pool_for(p, j.n, 1, meet, &j);
            double share = pool_waited(p);
            CHECK(threads == 2 && j.n == 1 ? share > 0.4999 && share < 0.5001 : share < 1);
            CHECK(threads == 2 ? share >= 0 : share <= 0);
        }
        pool_close(p);
    }
}

int main(void)
{
    waiting();
    torture_each(open_once, NULL);
    os_pages();
    quotas();
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
