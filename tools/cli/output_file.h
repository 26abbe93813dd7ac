/* output_file.h - files that commands write for the user: complete, or not there at all. */
#ifndef TOOLS_CLI_OUTPUT_FILE_H
#define TOOLS_CLI_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "kernels/sys/atomic_file.h"

struct output_file {
    const char *path; /* borrowed; NULL: no output, and f is NULL */
    FILE *f;
    struct atomic_file part; /* open unless f is stdout, a device or a pipe */
};

/* Open an output. path is "-" for stdout; a device or a pipe, which is written directly; a file,
 * which appears under its name when output_file_close commits it; or NULL. ERR_IO, ERR_NOMEM. */
int output_file_open(struct output_file *o, const char *path, struct err *err);
/* Write what is buffered and commit the file; with commit false, delete it instead. On ERR_IO no
 * file is left. */
int output_file_close(struct output_file *o, bool commit, struct err *err);
/* Return OK if an output with this path can be opened. For commands that compute for a long time
 * before they write. ERR_IO, ERR_NOMEM. */
int output_file_check(const char *path, struct err *err);

#endif
