/* command.h - the subcommands of the program, one file cmd_NAME.c for each.
 *
 * Each file exports one row for the table in commands.c, from which --help, the manual page and the
 * dispatch are made. */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include "kernels/sys/base.h"
#include "tools/cli/options.h"

enum { COMMAND_ANY = 1 << 20 }; /* arguments */

/* The exit status of every subcommand. */
enum {
    EXIT_FINE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_BAD_FILE = 3,
    EXIT_NO_CLOUD = 4,
    EXIT_INTERRUPTED = 130
};

struct command {
    const char *name;        /* one word, or two as in "router train" */
    const char *summary;     /* one line that starts with a verb, no full stop */
    const char *args;        /* what follows the options, e.g. "IN OUT", or NULL */
    const char *description; /* paragraphs for --help and the manual page, then examples */
    const struct option_group *const *groups; /* NULL-ended: own options, then shared ones */
    void (*begin)(void); /* sets defaults before the options are parsed, or NULL */
    /* Does the work with args[n], which are no options; n is at most `most`. Returns a code of the
     * libraries and sets err, or returns another exit status. */
    int (*run)(int n, char **args, struct err *err);
    int most;
    const struct option_brief *brief; /* ends with a NULL name; NULL: --help shows all */
};

/* All subcommands in the order of the help; each is cmd_NAME. */
#define COMMANDS(X)                                                                             \
    X(run), X(info), X(convert), X(tokenize), X(logits), X(man), X(serve), X(eval), X(explain), \
        X(router), X(router_collect), X(router_train), X(router_calibrate), X(router_score),    \
        X(cloud), X(pretrain), X(bench), X(bench_model), X(bench_memory), X(bench_kernels),     \
        X(bench_limits)
#define X(name) cmd_##name
extern const struct command COMMANDS(X);
#undef X
extern const struct command *const commands[]; /* NULL-ended */

/* Parse the options, run the command and return the exit status. argv[0] is the last word of its
 * name. */
int command_run(const struct command *cmd, int argc, char **argv);
/* Return the exit status for an error code of the libraries, and print "mizzle NAME: msg" to
 * stderr; ERR_STOP prints nothing. A file that cannot be read or written counts as a bad file; so
 * does standard output, unless nobody reads it any more. */
int command_fail(const struct command *cmd, int code, const struct err *err);
/* True if writing to standard output has failed because its reader has gone, as `| head` does. */
bool command_unread(void);

#endif
