/* os.h - the operating system beyond POSIX: sleeping on a word, big pages, core counts.
 *
 * os.c has a fast path (Linux) and a portable path (pthreads and posix_memalign only), which macOS
 * takes and `make PORTABLE=1` builds on Linux. The contract is the same for both. */
#ifndef KERNELS_SYS_OS_H
#define KERNELS_SYS_OS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sleep while *word == seen. It may return early for any reason, so the caller checks again. */
void os_wait(_Atomic uint32_t *word, uint32_t seen);
/* Wake every thread that sleeps on word. Call it after changing *word. */
void os_wake(_Atomic uint32_t *word);

/* Return the number of processors that this process may run on, at least 1 and at most os_quota. */
size_t os_cpus(void);
/* Return how many processors' time the control groups of this process allow, rounded up; 0: as much
 * as there is. root: the folder that has proc and sys, "" but in tests. */
size_t os_quota(const char *root);

/* Return the bytes of memory that this machine has; UINT64_MAX if the system does not tell. */
uint64_t os_memory(void);

/* True on an aarch64 processor with FEAT_DotProd. User code cannot ask the processor directly. */
bool os_has_dotprod(void);
/* True on an aarch64 processor with FEAT_I8MM. */
bool os_has_i8mm(void);

/* Return zeroed memory, aligned to 64 bytes; large blocks get big pages if the system has them.
 * Returns NULL when out of memory. Pass the same size to os_free; p may be NULL. */
void *os_alloc(size_t size);
void os_free(void *p, size_t size);

/* Tell the system that a block of os_alloc is filled here and there, so that no big page is cleared
 * for a few bytes. */
void os_sparse(void *p, size_t size);

/* Tell the system that this range of a mapped file has been read and will not be needed soon. */
void os_dontneed(const void *p, size_t size);

/* Return the monotonic clock in nanoseconds. */
uint64_t os_now_ns(void);
/* Nanoseconds for which this thread has run on a processor. */
uint64_t os_thread_ns(void);
/* Sleep for so long, or until a signal. */
void os_nap(uint64_t ns);

/* Initialize a condition for os_cond_wait; false if that is impossible. */
bool os_cond_open(pthread_cond_t *c);
/* Wait, with m locked, until the condition is signalled or os_now_ns() reaches until_ns. It
 * may return early for any reason, so the caller checks again. Setting the wall clock changes
 * nothing. */
void os_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, uint64_t until_ns);

/* Return the event with which poll tells that the other side has closed a stream, even while bytes
 * of it are unread; 0 where the system has none. */
short os_poll_closed(void);

#endif
