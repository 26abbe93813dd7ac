/* counts.h - events that the processor counts, and what a call or a token costs of each. */
#ifndef TOOLS_LAB_BENCH_COUNTS_H
#define TOOLS_LAB_BENCH_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

/* Counters cover the thread that opened them and those that it starts later, in user code alone.
 * Those down to COUNT_TLB_MISSES are counted by the processor, the others (time on a processor,
 * page faults) by the system. COUNT_WHY is the size of the text of counts_open. */
enum { COUNT_WHY = 100 };
enum count_event {
    COUNT_CYCLES,
    COUNT_INSTRUCTIONS,
    COUNT_L1D_MISSES,
    COUNT_LLC_MISSES,
    COUNT_TLB_MISSES, /* of data that was read */
    COUNT_CPU_NS,
    COUNT_FAULTS,
    COUNT_EVENTS
};
struct counts {
    int handle[COUNT_EVENTS]; /* -1: not available */
};

/* Where counts come from. open starts to count and returns a handle, or -1 with *error set to an
 * errno. read sets now to the count, the time since open, and the part of it in which the event was
 * counted; false if it cannot be read. */
struct count_source {
    int (*open)(enum count_event event, int *error);
    bool (*read)(int handle, uint64_t now[3]);
    void (*close)(int handle);
};
/* The system's perf_event; NULL where only POSIX is asked. Tests put a simulated one here, while no
 * counters are open. */
extern const struct count_source *count_source;

/* Start the counters that are available. why becomes empty, or a few words on why cycles are not
 * available. Call counts_close in either case. */
void counts_open(struct counts *c, char why[COUNT_WHY]);
/* Return the counts since then, extrapolated if the processor had to multiplex its counters; -1 if
 * a counter is not available. */
void counts_read(const struct counts *c, double count[COUNT_EVENTS]);
void counts_close(struct counts *c);

/* The events that have columns: the key in csv and json, the title in a table. */
struct count_column {
    enum count_event event;
    const char *key, *title;
};
enum { COUNT_COLUMNS = 5 };
extern const struct count_column count_columns[COUNT_COLUMNS];

/* Set out to what each of n > 0 calls cost between two readings of counts_read; -1 for an
 * event that cannot be counted. */
void counts_each(double out[COUNT_EVENTS], const double before[COUNT_EVENTS],
                 const double after[COUNT_EVENTS], double n);

/* Return instructions per cycle, or -1 if they were not counted. */
double counts_ipc(const double count[COUNT_EVENTS]);

#endif
