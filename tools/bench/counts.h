/* counts.h - what a call or a token costs of each event that the processor counts. */
#ifndef TOOLS_BENCH_COUNTS_H
#define TOOLS_BENCH_COUNTS_H

#include <stdbool.h>

#include "kernels/sys/os.h"

/* The events that have columns: the key in csv and json, the title in a table. */
struct count_column {
    enum os_event event;
    const char *key, *title;
};
enum { COUNT_COLUMNS = 5 };
extern const struct count_column count_columns[COUNT_COLUMNS];

/* Set out to what each of n > 0 calls cost between two readings of os_counters_read; -1 for an
 * event that cannot be counted. */
void counts_each(double out[OS_EVENTS], const double before[OS_EVENTS],
                 const double after[OS_EVENTS], double n);

/* Return instructions per cycle, or -1 if they were not counted. */
double counts_ipc(const double count[OS_EVENTS]);

#endif
