/* output.h - a file that a subcommand writes for its user: complete or not there at all. */
#ifndef TOOLS_CLI_OUTPUT_H
#define TOOLS_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "weights/atomic_file.h"

struct output {
    const char *path; /* borrowed; NULL: nothing is asked for, and f is NULL */
    FILE *f;
    struct atomic_file part; /* unless f is stdout, a device or a pipe */
};

/* path: a file, which replaces one of that name when output_close commits it; "-" for stdout; a
 * device or a pipe, which is written straight away; or NULL. ERR_IO, ERR_NOMEM. */
int output_open(struct output *o, const char *path, struct err *err);
/* The rest is written, or (commit false) the file thrown away. ERR_IO: no file stays behind. */
int output_close(struct output *o, bool commit, struct err *err);
/* Can a file of that name be written? For commands that take long before they write. */
int output_check(const char *path, struct err *err);

#endif
