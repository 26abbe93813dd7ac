/* os.h - the operating system beyond POSIX: sleeping on a word, big pages, core counts, counters.
 *
 * os.c has one fast path (Linux) and one portable path (pthreads and posix_memalign only), which
 * macOS takes and `make PORTABLE=1` builds on Linux. Same contract for both. */
#ifndef KERNELS_SYS_OS_H
#define KERNELS_SYS_OS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sleep while *word == seen; may return early for any reason, so the caller looks again. */
void os_wait(_Atomic uint32_t *word, uint32_t seen);
/* Wake every thread that sleeps on word. Call after changing it. */
void os_wake(_Atomic uint32_t *word);

/* Processors that this process may run on; at least 1. */
size_t os_cpus(void);

/* True on an aarch64 processor with FEAT_DotProd; user code cannot ask it directly. */
bool os_has_dotprod(void);
/* The same of FEAT_I8MM. */
bool os_has_i8mm(void);

/* Zeroed memory, aligned to 64 bytes, in big pages where it is large and the system has them.
 * NULL when there is none. Free with the same size. */
void *os_alloc(size_t size);
void os_free(void *p, size_t size);

/* Tell the system that a mapped file's range has been read and will not be needed soon. */
void os_dontneed(const void *p, size_t size);

/* Monotonic clock, nanoseconds. */
uint64_t os_now_ns(void);

/* What is counted of the thread that opened the counters, user code alone: by the processor
 * (cycles to misses of the last cache), then by the system (time on a processor, page faults). */
enum { OS_WHY = 100 };
enum os_event {
    OS_CYCLES,
    OS_INSTRUCTIONS,
    OS_L1D_MISSES,
    OS_LLC_MISSES,
    OS_CPU_NS,
    OS_FAULTS,
    OS_EVENTS
};
struct os_counters {
    int fd[OS_EVENTS]; /* -1: not to be had */
};

/* Begin to count what can be counted. why: empty, or a few words on why there are no cycles. Close
 * in either case. */
void os_counters_open(struct os_counters *c, char why[OS_WHY]);
/* Counts since then, estimated where the processor had to take turns; -1: not to be had. */
void os_counters_read(const struct os_counters *c, double count[OS_EVENTS]);
void os_counters_close(struct os_counters *c);

/* Peak resident memory of this process so far, in bytes; 0 if unknown. */
size_t os_peak_memory(void);

#endif
