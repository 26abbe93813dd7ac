/* limits.h - what this machine can do at most: loops that do one thing only, as a yardstick for the
 * speed of kernels, which use none of them; and what its caches hold. */
#ifndef TOOLS_LAB_MACHINE_LIMITS_H
#define TOOLS_LAB_MACHINE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct pool;

/* The peak rate of one instruction: many independent copies of it run on registers alone. */
struct limit {
    const char *name; /* "f32 zmm", "int8 zmm (vpdpbusd)", ... */
    const char *what; /* "f32", "int8", "bf16" or "clock", whose turns take a cycle */
    unsigned needs;   /* CPU_* bits, all required */
    double ops;       /* multiplications plus additions per turn */
    void (*run)(size_t turns);
};

extern const struct limit limits[];
extern const size_t limits_count;

/* Return GOP/s of one of these with all threads. It is a limit, so the best pass counts, not the
 * median. */
double limits_measure(const struct limit *limit, struct pool *pool);
/* Return the GOP/s of the fastest instruction for this kind of arithmetic ("f32", "int8", "bf16")
 * among those that these CPU_* bits allow; 0 if there is none. Each is measured only once by
 * number of threads. */
double limits_peak(const char *what, unsigned cpu, struct pool *pool);

/* Sort the n samples and return their median. */
double limits_median(double *samples, size_t n);

/* Read the n words at p, which is 64-byte aligned, `turns` times over: as 1, 2 or 4 streams, each a
 * part of the words, with the widest vectors that these CPU_* bits allow. Nothing is prefetched but
 * by the processor. Return the exclusive or of all that was read, which keeps the reading alive. */
uint64_t limits_read(const uint64_t *p, size_t n, size_t streams, size_t turns, unsigned cpu);

/* Return the bytes of the data cache of level 1, 2 or 3 that a processor reaches, whoever else
 * shares it, as /sys or the C library tell, in this order. Where neither does, this is
 * a usual size; it is never 0. read_probe.h measures what there is of level 3. */
size_t limits_cache(unsigned level);

/* Return the peak resident memory of this process so far in bytes, or 0 if unknown. */
size_t limits_peak_memory(void);

#endif
