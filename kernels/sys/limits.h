/* limits.h - what this machine can do at most: loops that do one thing and nothing else, to hold a
 * kernel's speed against. No kernel uses them. */
#ifndef KERNELS_SYS_LIMITS_H
#define KERNELS_SYS_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* An instruction of which many independent ones are run, on registers alone. */
struct limit {
    const char *name; /* "f32 zmm", "int8 zmm (vpdpbusd)", ... */
    const char *what; /* "f32", "int8" or "bf16" */
    unsigned needs;   /* CPU_* bits, all required */
    double ops;       /* multiplications and additions of one turn */
    void (*run)(size_t turns);
};

extern const struct limit limits[];
extern const size_t limits_count;

/* Exclusive or of the n words at p, which is 64-byte aligned: four streams, with the widest vectors
 * that these CPU_* bits allow. The point is the reading. */
uint64_t limits_read(const uint64_t *p, size_t n, unsigned cpu);

#endif
