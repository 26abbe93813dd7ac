#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"

enum {
    SPIN_NS = 50000,       /* longer than a step of a small model, too short to matter */
    CHUNKS_PER_THREAD = 32 /* evens out the ends without much contention on `left` */
};

struct worker {
    struct pool *pool;
    size_t thread;
    pthread_t id;
    _Atomic uint64_t worked; /* ns, while the pool is watched */
};

/* Chunks of a job are claimed by counting `left` down. A thread that has claimed a chunk may read
 * the job, which stays unchanged until every chunk has been counted in `done`. No one waits for a
 * worker that has claimed nothing, so a sleeping thread never delays a job. */
struct pool {
    void (*fn)(void *arg, size_t thread, size_t first, size_t last);
    void *arg;
    size_t n, step;
    uint32_t chunks;

    _Alignas(64) _Atomic uint32_t left;
    _Alignas(64) _Atomic uint32_t done;
    _Alignas(64) _Atomic uint32_t job; /* incremented for each job; workers sleep on it */
    _Atomic uint32_t sleepers;         /* workers that sleep or are about to */
    _Atomic uint32_t owner_sleeps;
    _Atomic bool stop;

    _Atomic uint64_t watched; /* since when, 0: it is not */
    uint64_t waited;          /* ns, by the caller */

    uint64_t spin_ns;
    size_t threads, started;
    struct worker worker[POOL_MAX];
};

/* Tell the processor that this is a spin loop. */
static void pool_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spin for a bounded time while *word == seen; true once it differs. */
static bool pool_spin(const struct pool *p, _Atomic uint32_t *word, uint32_t seen)
{
    uint64_t start = p->spin_ns ? os_now_ns() : 0;
    do {
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != seen)
                return true;
            if (!p->spin_ns)
                return false;
            pool_relax();
        }
    } while (os_now_ns() - start < p->spin_ns);
    return false;
}

/* Claim and run chunks until there are none left. */
static void pool_work(struct pool *p, size_t thread)
{
    uint32_t left = atomic_load(&p->left);
    while (left > 0) {
        if (!atomic_compare_exchange_weak(&p->left, &left, left - 1))
            continue;
        uint32_t chunks = p->chunks;
        size_t first = (size_t)(chunks - left) * p->step;
        size_t last = left > 1 ? first + p->step : p->n;
        p->fn(p->arg, thread, first, last);
        if (atomic_fetch_add(&p->done, 1) + 1 == chunks && atomic_load(&p->owner_sleeps))
            os_wake(&p->done);
        left = atomic_load(&p->left);
    }
}

/* Return the time if the pool is watched, else 0. */
static uint64_t pool_clock(struct pool *p)
{
    return atomic_load_explicit(&p->watched, memory_order_relaxed) ? os_now_ns() : 0;
}

/* Wait for a job, first by spinning and then asleep, run its chunks, and repeat. */
static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct pool *p = w->pool;
    uint32_t seen = 0;
    while (!atomic_load(&p->stop)) {
        if (!pool_spin(p, &p->job, seen)) {
            atomic_fetch_add(&p->sleepers, 1);
            while (atomic_load(&p->job) == seen)
                os_wait(&p->job, seen);
            atomic_fetch_sub(&p->sleepers, 1);
        }
        seen = atomic_load(&p->job);
        uint64_t begin = pool_clock(p);
        pool_work(p, w->thread);
        if (begin)
            atomic_fetch_add(&w->worked, os_now_ns() - begin);
    }
    return NULL;
}

/* Start the workers with all signals blocked, so that the caller's thread gets them. Their stack
 * size is set here because the system's default may be too small: musl's is 128 KiB, less than
 * blas.c needs. */
static int pool_start_workers(struct pool *p)
{
    sigset_t all, old;
    pthread_attr_t attr;
    int failed = pthread_attr_init(&attr);
    if (failed)
        return failed;
    failed = pthread_attr_setstacksize(&attr, POOL_STACK);
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* a worker's own fault goes to the program's handler */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (size_t i = 1; i < p->threads && !failed; i++) {
        p->worker[i] = (struct worker){ .pool = p, .thread = i };
        failed = pthread_create(&p->worker[i].id, &attr, worker_main, &p->worker[i]);
        p->started += !failed;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return failed;
}

int pool_open(struct pool **out, size_t threads, struct err *err)
{
    *out = NULL;
    size_t cpus = os_cpus();
    if (threads > POOL_MAX)
        return err_set(err, ERR_ARG, "threads: expected at most %d, found %zu", POOL_MAX, threads);
    if (!threads)
        threads = cpus < POOL_MAX ? cpus : POOL_MAX;
    struct pool *p = os_alloc(sizeof(*p));
    if (!p)
        return err_set(err, ERR_NOMEM, "pool: out of memory");
    p->threads = threads;
    /* With more threads than processors, a spinning thread would hold up one that has work. */
    p->spin_ns = threads <= cpus ? SPIN_NS : 0;
    int failed = pool_start_workers(p);
    if (failed) {
        pool_close(p);
        return err_set(err, ERR_IO, "pool: cannot start thread %zu of %zu: %s", p->started + 2,
                       threads, strerror(failed));
    }
    *out = p;
    return OK;
}

void pool_close(struct pool *p)
{
    if (!p)
        return;
    atomic_store(&p->stop, true);
    atomic_fetch_add(&p->job, 1);
    os_wake(&p->job);
    for (size_t i = 1; i <= p->started; i++)
        pthread_join(p->worker[i].id, NULL);
    os_free(p, sizeof(*p));
}

size_t pool_threads(const struct pool *p)
{
    return p ? p->threads : 1;
}

/* Choose the step and the number of chunks for the current n. */
static void pool_cut(struct pool *p, size_t grain)
{
    size_t units = (p->n - 1) / grain + 1, most = p->threads * CHUNKS_PER_THREAD;
    p->step = grain * ((units - 1) / most + 1);
    p->chunks = (uint32_t)((p->n - 1) / p->step + 1);
}

/* Wait until every chunk is done, first by spinning and then asleep. */
static void wait_done(struct pool *p)
{
    uint32_t done = atomic_load(&p->done);
    while (done != p->chunks) {
        if (!pool_spin(p, &p->done, done)) {
            atomic_store(&p->owner_sleeps, 1);
            while ((done = atomic_load(&p->done)) != p->chunks)
                os_wait(&p->done, done);
            atomic_store(&p->owner_sleeps, 0);
        }
        done = atomic_load(&p->done);
    }
}

void pool_for(struct pool *p, size_t n, size_t grain,
              void (*fn)(void *arg, size_t thread, size_t first, size_t last), void *arg)
{
    if (!n)
        return;
    if (!grain)
        grain = 1;
    if (!p || p->threads == 1 || n <= grain) {
        fn(arg, 0, 0, n);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    p->n = n;
    pool_cut(p, grain);
    atomic_store(&p->done, 0);
    atomic_store(&p->left, p->chunks);
    atomic_fetch_add(&p->job, 1);
    if (atomic_load(&p->sleepers))
        os_wake(&p->job);
    pool_work(p, 0);
    uint64_t begin = pool_clock(p);
    wait_done(p);
    if (begin)
        p->waited += os_now_ns() - begin;
}

void pool_watch(struct pool *p)
{
    p->waited = 0;
    for (size_t i = 1; i < p->threads; i++)
        atomic_store(&p->worker[i].worked, 0);
    atomic_store(&p->watched, os_now_ns());
}

double pool_waited(struct pool *p)
{
    uint64_t since = os_now_ns() - atomic_exchange(&p->watched, 0), waited = p->waited;
    for (size_t i = 1; i < p->threads; i++) {
        uint64_t worked = atomic_load(&p->worker[i].worked);
        waited += worked < since ? since - worked : 0;
    }
    return since ? (double)waited / ((double)since * (double)p->threads) : 0;
}
