/* read_probe.h - how fast the threads of a pool read, from memory and from each level of cache.
 *
 * Every thread reads a part of its own and times it itself, so that waking threads and waiting for
 * the last one cost nothing. Nothing is prefetched but by the processor. The parts are read as 1, 2
 * and 4 streams, and the best of the three is reported. */
#ifndef TOOLS_LAB_MACHINE_READ_PROBE_H
#define TOOLS_LAB_MACHINE_READ_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct pool;

/* One pass of one thread: it read the same number of bytes between at[i] and at[i + 1], which are
 * nanoseconds, as between all others. */
enum { READ_PIECES = 16 };
struct read_log {
    uint64_t at[READ_PIECES + 1];
    double bytes; /* of all pieces */
};

/* Return GB/s of a pass: the sum of the threads' rates over the time in which all of them were
 * reading, from the last beginning to the first end. A piece that is cut by these counts in
 * proportion. If the threads were never reading all at once, it is what they read over the time
 * that it took. */
double read_probe_rate(const struct read_log *logs, size_t threads);

/* Memory to be read, in big pages as a model's weights. */
struct read_probe;
/* Return the bytes that it takes on a machine with this much memory and L3: 256 MiB, or more than
 * twice L3, so that a pass finds in no cache what a former one has read; but at most an eighth of
 * the memory, and at least 128 MiB. */
size_t read_probe_bytes(uint64_t memory, size_t l3);
/* Allocate and fill it with these threads: for the L3 that the system tells of, unless that holds
 * no 64 MiB. small: 128 MiB, which is faster and enough for L1 and L2; a larger L3 may then be
 * taken for memory. ERR_NOMEM. */
int read_probe_open(struct read_probe **out, bool small, struct pool *pool, struct err *err);
void read_probe_close(struct read_probe *p); /* NULL is fine */

/* Return the GB/s at which these threads read memory that no cache holds: the median of five passes
 * over 64 MiB, after one to warm up. Takes about 50 ms. This is the limit of decoding. */
double read_probe_memory(struct read_probe *p, struct pool *pool);

/* Working sets of 4, 8, 16, ... MiB up to half of the probe, each divided among the threads and
 * read again and again, and the GB/s of the median pass. */
enum { READ_STAIRS = 16 };
struct read_stair {
    size_t bytes;
    double gb_s;
};
/* Measure them and return how many there are; where L3 ends follows from the first ones that are
 * measured, beside memory before and after them. Takes some 0.2 s for 256 MiB. */
size_t read_probe_stairs(struct read_stair out[READ_STAIRS], struct read_probe *p,
                         struct pool *pool);
/* Return the largest one that is read a quarter faster than memory: a cache holds it, whatever the
 * system tells. If none is, what is told, but no more than half of the first one. */
size_t read_stairs_end(const struct read_stair *stairs, size_t n, double memory, size_t told);
/* Return the bytes of L3: where the stairs end. They are measured unless they were before. */
size_t read_probe_l3(struct read_probe *p, struct pool *pool);

/* A place where data lies, and the GB/s at which it is read there. bytes: a cache's size; 0 for
 * memory, which comes last. */
enum { READ_LEVELS = 4 };
struct read_level {
    const char *name; /* "L1", "L2", "L3", "memory" */
    size_t bytes;
    double gb_s;
};

/* Measure all levels with these threads, each of which reads a buffer of its own that this cache
 * holds and the one before it does not. In L3, a buffer has at least twice the size of L2;
 * where so many threads share L3 that it has less for each, a part comes from memory, and the limit
 * is that of both. The limit of a cache is the best of the passes, because it changes with the
 * clock. Takes about 0.1 s. */
void read_probe_levels(struct read_level out[READ_LEVELS], struct read_probe *p, struct pool *pool);

/* Return the nearest level that holds this many bytes. */
const struct read_level *read_level_of(const struct read_level levels[READ_LEVELS], double bytes);

#endif
