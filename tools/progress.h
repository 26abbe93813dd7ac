/* progress.h - tells on a terminal that something takes long. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

struct progress;

/* From two seconds on a line on stderr says what goes on and for how long, if stderr is a terminal.
 * what is borrowed. NULL where there is nothing to show or nobody to see it. */
struct progress *progress_begin(const char *what);
void progress_end(struct progress *p); /* wipes the line; NULL is fine */

#endif
