/* main.c - finds the subcommand and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "router/mizzle.h"
#include "tools/command.h"
#include "tools/cli/demo_files.h"
#include "tools/cli/setup.h"

/* Return the subcommand whose name is these words, or only the first of them, or NULL. next may be
 * NULL. *words is set to the number of words in the name. */
static const struct command *command_find(const char *name, const char *next, int *words)
{
    const struct command *found = NULL;
    size_t n = strlen(name);
    *words = 1;
    for (size_t i = 0; commands[i]; i++) {
        const char *have = commands[i]->name;
        if (strcmp(have, name) == 0)
            found = commands[i];
        else if (next && strncmp(have, name, n) == 0 && have[n] == ' ' &&
                 strcmp(have + n + 1, next) == 0) {
            *words = 2;
            return commands[i];
        }
    }
    return found;
}

/* Report that one of the commands of two words that begin with this one's name was expected; false
 * if there is none. */
static bool main_expected(const struct command *cmd, const char *found)
{
    char list[200];
    size_t n = strlen(cmd->name), at = 0;
    for (size_t i = 0; commands[i]; i++)
        if (strncmp(commands[i]->name, cmd->name, n) == 0 && commands[i]->name[n] == ' ')
            at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", at ? ", " : "",
                                   commands[i]->name + n + 1);
    struct err err;
    err_set(&err, ERR_ARG, "expected one of %s, found %s", at ? list : "", found ? found : "none");
    if (at)
        fprintf(stderr, "mizzle %s: %s; see mizzle %s --help\n", cmd->name, err.msg, cmd->name);
    return at;
}

/* Print the text of `mizzle --help`. */
static void overview(FILE *to)
{
    fprintf(to, "Mizzle runs a small language model here and asks a large one, in the cloud, for\n"
                "the few tokens that the small one would get wrong.\n\n"
                "Usage: mizzle COMMAND [options]\n\n");
    for (size_t i = 0; commands[i]; i++) {
        if (commands[i] == &cmd_run || commands[i] == &cmd_serve || commands[i] == &cmd_eval)
            fprintf(to, "%s\n",
                    commands[i] == &cmd_run     ? "Write texts, with:"
                    : commands[i] == &cmd_serve ? "Serve them:"
                                                : "Measure, train and show:");
        if (!strchr(commands[i]->name, ' '))
            fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    }
    fprintf(to,
            "\nmizzle help COMMAND and mizzle COMMAND --help show the options of a command.\n"
            "mizzle --version shows the version.\n\n"
            "To start, try: mizzle run --question 2\n"
            "Without -m, mizzle uses a small demo pair of models.\n\n"
            "Exit status: 0 success, 1 failure, 2 wrong usage, 3 a file that is bad, or cannot\n"
            "be read or written, 4 cloud required but not available, 130 interrupted (serve\n"
            "and cloud: 0 after SIGTERM).\n");
}

/* Report an unknown subcommand or option and suggest the nearest name, if one is at most two
 * letters off. */
static int main_unknown(const char *name)
{
    const char *near = NULL;
    size_t least = 3;
    for (size_t i = 0; commands[i]; i++)
        if (edit_distance(name, commands[i]->name) < least) {
            least = edit_distance(name, commands[i]->name);
            near = commands[i]->name;
        }
    struct err err;
    err_set(&err, ERR_ARG, "unknown %s %s", *name == '-' ? "option" : "command", name);
    fprintf(stderr, "mizzle: %s%s%s%s; see mizzle --help\n", err.msg, near ? " (did you mean " : "",
            near ? near : "", near ? "?)" : "");
    return EXIT_USAGE;
}

/* Handle --help, --version and help, else run the subcommand; return the exit status. */
static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        overview(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        puts("mizzle " MIZZLE_VERSION);
        return EXIT_FINE;
    }
    bool help = strcmp(name, "help") == 0;
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || (help && argc == 2)) {
        overview(stdout);
        return EXIT_FINE;
    }
    int words, first = help ? 2 : 1;
    const struct command *cmd = command_find(argv[first], argv[first + 1], &words);
    if (!cmd)
        return main_unknown(argv[first]);
    const char *next = argv[first + 1];
    if (words == 1 && (next ? *next != '-' : !help) && main_expected(cmd, next))
        return EXIT_USAGE;
    if (help) {
        const char *how = argv[first + words];
        options_help(stdout, cmd, how && strcmp(how, "all") == 0);
        return EXIT_FINE;
    }
    return command_run(cmd, argc - words, argv + words);
}

/* Open those of the first three descriptors that are closed on /dev/null, lest a file or socket
 * become one of them: the wrong way round, so that their use stays an error. */
static bool main_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    if (!main_descriptors())
        return EXIT_FAILED;
    setup_signals();
    if (argc > 0)
        demo_files_program = argv[0];
    int status = dispatch(argc, argv);
    if ((fflush(stdout) || ferror(stdout)) && status == EXIT_FINE && !command_unread()) {
        status = EXIT_BAD_FILE;
        fprintf(stderr, "mizzle: cannot write to standard output: %s\n", strerror(errno));
    }
    return status;
}
