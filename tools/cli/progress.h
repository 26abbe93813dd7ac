/* progress.h - shows on a terminal that something takes long. Nothing is shown during the first two
 * seconds, or if stderr is not a terminal. */
#ifndef TOOLS_CLI_PROGRESS_H
#define TOOLS_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress;

/* Start a thread that, after two seconds, prints "DOING WHAT" and the time on stderr once per
 * second. Both are copied. Return NULL if there is no terminal or no thread. */
struct progress *progress_begin(const char *doing, const char *what);
/* Print this line in its place from now on, with the time since then. NULL is fine for p. */
void progress_say(struct progress *p, const char *line);
/* Let the line stand, and continue below it. NULL is fine. */
void progress_keep(struct progress *p);
/* Write the rate and the time left into out after `done` of `all` in the time since then, as
 * ", 2.5/s, 1:20 left"; "" if nothing is done. */
void progress_left(char out[48], uint64_t since, size_t done, size_t all);
/* Stop the thread, erase the line and free p. NULL is fine. */
void progress_end(struct progress *p);

/* Progress of work that counts what it has done; it needs no thread. */
struct progress_count {
    const char *what; /* borrowed */
    uint64_t since;   /* os_now_ns at the beginning */
    uint64_t last;    /* when the line was printed */
    bool shown;       /* a line is on the terminal */
};
/* Print "WHAT: DONE of ALL, 2.5/s, M:SS left", once two seconds have passed, and ten times a second
 * at most. */
void progress_counted(struct progress_count *p, size_t done, size_t all);
/* Erase the line if one is shown. */
void progress_wipe(struct progress_count *p);

#endif
