/* pool.h - a few threads that stay warm between the many small steps of one token.
 *
 * A pool serves one caller at a time. Workers spin for a bounded time after each job, then sleep
 * on a futex, so an idle pool costs nothing and a busy machine is not starved. */
#ifndef KERNELS_SYS_POOL_H
#define KERNELS_SYS_POOL_H

#include <stddef.h>

struct err;
struct pool;

enum { POOL_MAX = 64, POOL_STACK = 4 << 20 };

/* threads counts the caller's own; 0 means one for each processor allowed. At most POOL_MAX.
 * ERR_NOMEM, or ERR_IO where threads cannot be made; *out is NULL then. */
int pool_open(struct pool **out, size_t threads, struct err *err);
void pool_close(struct pool *p); /* NULL is fine */

size_t pool_threads(const struct pool *p);

/* Call fn(arg, thread, first, last) for disjoint chunks [first, last) that together cover [0, n),
 * each a multiple of grain long except the last one; chunks are handed out in ascending order to
 * whoever is free, the caller's thread included. thread is in [0, pool_threads). Returns
 * when all are done; what fn wrote is then visible. fn must not use the pool; it may put
 * POOL_STACK / 2 bytes on the stack. p may be NULL: the caller does everything. */
void pool_for(struct pool *p, size_t n, size_t grain,
              void (*fn)(void *arg, size_t thread, size_t first, size_t last), void *arg);

#endif
