/* atomic_file.h - a file that appears under its name complete or not at all: it is written beside
 * the final name and then renamed. An existing regular file is replaced; anything else of that name
 * (a device, a folder) is refused. A symbolic link stays: what it leads to is written, unless the
 * link is another user's in a folder where everybody may make files. So it is with links to folders
 * on the way.
 *
 * The umask decides about the permissions of a new file, and one that replaces another allows no
 * more than that did. It stays in the old one's group; where that is not allowed, the new group
 * gets no more than all others. Owner and access control list are those of any new file. */
#ifndef KERNELS_SYS_ATOMIC_FILE_H
#define KERNELS_SYS_ATOMIC_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct err;
struct stat;

/* While a file is open, its unfinished name is on a list of this process, for
 * atomic_file_abandon_all. */
struct atomic_file {
    char *path, *temp; /* the final name, without links, and the name while writing */
    FILE *f;
    bool listed; /* temp is on the list; false when the list was full */
};

enum { ATOMIC_FILE_NAME = 4096 };
/* Write the name that a path leads to after all its symbolic links. The last one may lead to
 * nothing: the file is created there, as a shell's > does. ERR_IO: another user's link, as above,
 * or none that can be followed. */
int atomic_file_target(char name[ATOMIC_FILE_NAME], const char *path, struct err *err);

/* Refuse a file that others may write, or one of another user: ERR_IO. Unless this process writes
 * it, root's is fine. */
int atomic_file_owned(const char *path, const struct stat *st, bool writes, struct err *err);

/* Create the unfinished file. On ERR_IO or ERR_NOMEM nothing is left behind. */
int atomic_file_open(struct atomic_file *p, const char *path, struct err *err);

/* With commit, flush to disk and rename; without, delete. When that fails, nothing is left and
 * ERR_IO is returned. */
int atomic_file_close(struct atomic_file *p, bool commit, struct err *err);

/* Delete all unfinished files because the process is about to end. It is for signal handlers. */
void atomic_file_abandon_all(void);

#endif
