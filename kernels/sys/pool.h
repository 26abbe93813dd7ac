/* pool.h - a few threads that stay warm between the many small steps of one token.
 *
 * A pool serves one caller at a time. Workers spin for a bounded time after each job, then sleep,
 * so an idle pool costs nothing and a busy machine is not starved. */
#ifndef KERNELS_SYS_POOL_H
#define KERNELS_SYS_POOL_H

#include <stddef.h>

struct err;
struct pool;

/* The most threads of a pool, and the stack of each worker in bytes. */
enum { POOL_MAX = 64, POOL_STACK = 4 << 20 };

/* Start a pool. threads includes the caller's own; 0 means one for each processor allowed, at most
 * POOL_MAX. On ERR_ARG (more than POOL_MAX were asked for), ERR_NOMEM, or ERR_IO when a thread
 * cannot be started, *out is NULL. */
int pool_open(struct pool **out, size_t threads, struct err *err);
/* Stop and join the workers; NULL is fine. */
void pool_close(struct pool *p);

/* Return the number of threads, the caller's own included; 1 for NULL. */
size_t pool_threads(const struct pool *p);

/* Call fn(arg, thread, first, last) for disjoint chunks [first, last) that together cover [0, n).
 * Each chunk is a multiple of grain long, except the last one. Chunks are handed out in ascending
 * order to whichever thread is free, the caller's included; thread is in [0, pool_threads). Returns
 * when all chunks are done; what fn wrote is then visible. fn must not use the pool; it may use
 * POOL_STACK / 2 bytes of stack. With p NULL the caller does everything. */
void pool_for(struct pool *p, size_t n, size_t grain,
              void (*fn)(void *arg, size_t thread, size_t first, size_t last), void *arg);

/* Count from now on how long threads wait for each other. It costs each thread two looks at the
 * clock for a job, and where a pool is not watched a branch. */
void pool_watch(struct pool *p);
/* Stop, and return the share of all threads' time since then in which they waited: the caller for
 * the others to end a job, the others for a job that has a chunk left. What others did in the last
 * job may not be counted yet. With one thread it is 0. */
double pool_waited(struct pool *p);

#endif
