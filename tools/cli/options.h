/* options.h - command-line options. The parser, --help and the man page read the same table.
 *
 * The parser takes "--name value", "--name=value" and "-x value"; "--" ends the options. Flags take
 * no value. A command keeps its values in static variables that the rows point to; what these hold
 * before options_parse are the defaults. */
#ifndef TOOLS_CLI_OPTIONS_H
#define TOOLS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "kernels/sys/base.h"

struct command;

/* OPTION_COUNT is a size and OPTION_AMOUNT a double that must be above 0, so 0 can stand for an
 * option that was not given. OPTION_LENGTH is a size, too; -1 stands for SIZE_MAX. OPTION_REAL is a
 * double, too; both have the value of a float. */
enum option_type {
    OPTION_FLAG,
    OPTION_STR,
    OPTION_SIZE,
    OPTION_COUNT,
    OPTION_LENGTH,
    OPTION_U64,
    OPTION_FLOAT,
    OPTION_REAL,
    OPTION_AMOUNT,
    OPTION_LIST
};

/* The values of an option that may be given up to 16 times. */
struct option_list {
    const char *at[17]; /* in the order given, NULL-terminated */
    size_t n;
};

struct option {
    const char *name; /* "--threads" */
    const char *alt;  /* "-t" or NULL */
    enum option_type type;
    void *to;         /* bool, const char *, size_t, uint64_t, float, double, struct option_list */
    const char *arg;  /* "N", for the help; NULL for a flag */
    const char *help; /* one line that starts with a verb and names the default */
};

struct option_group {
    const char *title;         /* "Model", "Cloud", ... */
    const struct option *opts; /* ends with OPTION_END */
};

/* An option that many use, for the short help of a command that has many. */
struct option_brief {
    const char *name; /* that of its row */
    const char *help; /* for one line of 80 columns */
};

/* The last row of a table. */
#define OPTION_END                                \
    {                                             \
        NULL, NULL, OPTION_FLAG, NULL, NULL, NULL \
    }

/* Parse argv against the command's groups. Move the positional arguments to the front, beginning at
 * argv[1], and set *nargs to their number. Return -1 if the command should run, else the exit
 * status: EXIT_FINE after printing --help to stdout, EXIT_USAGE after one line on stderr. */
int options_parse(const struct command *cmd, int argc, char **argv, int *nargs);

/* True if the last options_parse found this option. */
bool options_given(const char *name);

/* The command whose options were parsed, NULL before. Notes of the library name its options. */
extern const struct command *options_command;

/* Print what --help shows: what many use, if the command says what that is, else all; or all. */
void options_help(FILE *to, const struct command *cmd, bool all);

/* Translate the option names in a message of the library to the way they are typed: cloud_url
 * becomes --cloud-url. A name without an underscore is recognized only at the beginning of the
 * line, as in "policy: ...". Names that are not options of cmd, which may be NULL, stay as they
 * are. */
void options_as_typed(struct err *out, const struct command *cmd, const char *line);

/* Return how many letters must be inserted, deleted or replaced to turn a into b (the Levenshtein
 * distance), or SIZE_MAX if either is longer than 32 bytes. */
size_t edit_distance(const char *a, const char *b);

#endif
