/* commands.c - the table of subcommands, apart from main() so that test programs can link it. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "net/http/json_input.h"
#include "tools/command.h"
#include "tools/cli/shared_options.h"

#define X(name) &cmd_##name
const struct command *const commands[] = { COMMANDS(X), NULL };
#undef X

bool command_unread(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return ferror(stdout) && poll(&out, 1, 0) == 1 && out.revents & (POLLERR | POLLHUP);
}

int command_fail(const struct command *cmd, int code, const struct err *err)
{
    static const int status[] = {
        [-ERR_NOMEM] = EXIT_FAILED,     [-ERR_IO] = EXIT_BAD_FILE,   [-ERR_FORMAT] = EXIT_BAD_FILE,
        [-ERR_ARG] = EXIT_USAGE,        [-ERR_NET] = EXIT_NO_CLOUD,  [-ERR_REMOTE] = EXIT_NO_CLOUD,
        [-ERR_STOP] = EXIT_INTERRUPTED, [-ERR_TEXT] = EXIT_NO_CLOUD,
    };
    if (code == OK || (code == ERR_IO && command_unread()))
        return EXIT_FINE;
    struct err line = *err;
    if (code == ERR_ARG || code == ERR_NET)
        options_as_typed(&line, cmd, err->msg);
    if (code != ERR_STOP)
        fprintf(stderr, "mizzle %s: %s\n", cmd->name, line.msg);
    return -code > 0 && -code < (int)(sizeof(status) / sizeof(*status)) ? status[-code]
                                                                        : EXIT_FAILED;
}

int command_run(const struct command *cmd, int argc, char **argv)
{
    struct err err = { "" };
    int n;
    json_input_watch();
    shared_options = routing_defaults;
    shared_options.cloud = shared_options.cloud_api = "auto";
    if (cmd->begin)
        cmd->begin();
    int rc = options_parse(cmd, argc, argv, &n);
    if (rc >= 0)
        return rc;
    rc = n > cmd->most ? err_set(&err, ERR_ARG, "unexpected argument %s", argv[1 + cmd->most])
                       : cmd->run(n, argv + 1, &err);
    return rc > 0 ? rc : command_fail(cmd, rc, &err);
}
