/* progress.h - tells on a terminal that something takes long. */
#ifndef TOOLS_CLI_PROGRESS_H
#define TOOLS_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress;

/* From two seconds on a line on stderr says what goes on and for how long, if stderr is a terminal.
 * what is borrowed. NULL where there is nothing to show or nobody to see it. */
struct progress *progress_begin(const char *what);
void progress_end(struct progress *p); /* wipes the line; NULL is fine */

/* The same for work that counts what it has done, without a thread. */
struct progress_count {
    const char *what; /* borrowed */
    uint64_t since;   /* os_now_ns at the beginning */
    bool shown;
};
/* After two seconds, prints "what: done of all" if stderr is a terminal. */
void progress_counted(struct progress_count *p, size_t done, size_t all);
void progress_wipe(struct progress_count *p); /* wipes the line if it is shown */

#endif
