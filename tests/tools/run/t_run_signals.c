/* t_run_signals.c - whatever ends `mizzle run` at its prompt, the terminal is no longer asked to
 * mark what is pasted: here two signals at once, at moments from the prompt on. */
#define _XOPEN_SOURCE 700 /* terminals */
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "tests/support/test.h"

#define EDGE "weights/milli/edge-0.5.gguf"

enum { ROUNDS = 12, STEP_US = 400, EXIT_SIGNALS = 130 };

/* Start the program on a terminal of its own; return its process and *master. */
static pid_t start(int *master, const char *program)
{
    char name[64];
    *master = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(*master >= 0 && grantpt(*master) == 0 && unlockpt(*master) == 0);
    CHECK(snprintf(name, sizeof(name), "%s", ptsname(*master)) < (int)sizeof(name));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child)
        return child;
    setsid();
    int terminal = open(name, O_RDWR);
    if (terminal < 0 || ioctl(terminal, TIOCSCTTY, 0) < 0)
        _exit(126);
    for (int fd = 0; fd < 3; fd++)
        dup2(terminal, fd);
    setenv("TERM", "xterm", 1);
    execl(program, "mizzle", "run", "--policy", "never", "-n", "2", (char *)NULL);
    _exit(127);
}

/* Read what the terminal shows, up to this text, or to the end of the program. */
static void show(char *all, size_t room, int master, const char *until)
{
    size_t n = strlen(all);
    ssize_t got;
    while ((!until || !strstr(all, until)) && n + 1 < room &&
           (got = read(master, all + n, room - 1 - n)) > 0) {
        n += (size_t)got;
        all[n] = '\0';
    }
}

int main(void)
{
    const char *program = getenv("MIZZLE"), *run = getenv("RUN");
    if (!program || (run && *run))
        SKIP("the program is not started here");
    if (access(EDGE, R_OK))
        SKIP("no demo pair in weights/milli");
    for (size_t i = 0; i < ROUNDS; i++) {
        char all[4096] = "", *on = all;
        int master, status;
        pid_t child = start(&master, program);
        show(all, sizeof(all), master, "> ");
        rest_us(i * STEP_US);
        CHECK(!kill(child, SIGSTOP) && !kill(child, SIGINT) && !kill(child, SIGTERM));
        CHECK(!kill(child, SIGCONT));
        show(all, sizeof(all), master, NULL);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(close(master) == 0);
        for (char *p = all; (p = strstr(p, "\033[?2004h")); p++)
            on = p;
        const char *off = strstr(on, "\033[?2004l");
        CHECK_MSG(off && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SIGNALS,
                  "round %zu: status %#x: %s", i, (unsigned)status, all);
    }
    return 0;
}
