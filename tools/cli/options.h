/* options.h - options from one table: parsing, --help and the man page read the same rows.
 *
 * "--name value", "--name=value", "-x value"; "--" ends the options; flags take no value. A
 * command's own values live in static variables that the rows point to; defaults are what the
 * variables hold before. */
#ifndef TOOLS_CLI_OPTIONS_H
#define TOOLS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kernels/sys/base.h"

struct command;

enum option_type { OPTION_FLAG, OPTION_STR, OPTION_SIZE, OPTION_U64, OPTION_FLOAT, OPTION_LIST };

/* What an option that may be given several times points to: its values in order, NULL-ended. */
struct option_list {
    const char *at[17];
    size_t n;
};

struct option {
    const char *name; /* "--threads" */
    const char *alt;  /* "-t" or NULL */
    enum option_type type;
    void *to;         /* bool, const char *, size_t, uint64_t, float, struct option_list */
    const char *arg;  /* "N", for the help; NULL for a flag */
    const char *help; /* one line; defaults are named here */
};

struct option_group {
    const char *title;         /* "Model", "Cloud", ... */
    const struct option *opts; /* ended by a row with name NULL */
};

/* Parse argv against the command's groups. Positional arguments are moved to the front, *nargs of
 * them, beginning at argv[1]. Returns -1 to go on, or the exit status: EXIT_FINE after --help was
 * printed to stdout, EXIT_USAGE after one line on stderr. */
int options_parse(const struct command *cmd, int argc, char **argv, int *nargs);

void options_help(FILE *to, const struct command *cmd); /* what --help prints */

/* Print text in lines of at most 80 columns, indented; a line that begins with two blanks is kept
 * as it is, an empty line ends a paragraph. */
void options_wrap(FILE *to, const char *text, int indent);

/* The library names its options as C does: in line, write those that the command has as they are
 * typed. cloud_url is --cloud-url, and so is a single word at the beginning, as in "policy: ...".
 */
void options_as_typed(struct err *out, const struct command *cmd, const char *line);

#endif
