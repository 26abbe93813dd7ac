/* atomic_file.h - a file that appears under its name complete or not at all: written beside it,
 * then renamed. An existing regular file is replaced; anything else of that name (a device, a
 * folder) is refused. */
#ifndef WEIGHTS_ATOMIC_FILE_H
#define WEIGHTS_ATOMIC_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct err;

/* While it is open the unfinished file is on a list of this process, for part_abandon_all. */
struct atomic_file {
    char *path, *temp; /* the final name and the one while writing */
    FILE *f;
    bool listed;
};

/* ERR_IO, ERR_NOMEM: nothing is left. */
int atomic_file_open(struct atomic_file *p, const char *path, struct err *err);

/* Flush to disk and rename, or (commit false) delete. Where that fails nothing is left and ERR_IO
 * is returned. */
int atomic_file_close(struct atomic_file *p, bool commit, struct err *err);

/* Delete all unfinished files, because the process is about to end: for its signal handlers. */
void part_abandon_all(void);

#endif
