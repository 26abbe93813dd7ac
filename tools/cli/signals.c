#include "tools/cli/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tools/command.h"
#include "kernels/sys/atomic_file.h"
#include "weights/weights.h"

/* Delete unfinished files, then end the process as the signal would have done. */
static void signals_on_end(int number)
{
    atomic_file_abandon_all();
    signal(number, SIG_DFL);
    raise(number);
}

/* Print the line in one write, so that it does not mix with other output. Async-signal-safe. */
static void signals_print_truncated(const char *path)
{
    static const char begin[] = "mizzle: ", end[] = ": another process cut it short\n";
    char line[600];
    size_t n = sizeof(begin) - 1;
    memcpy(line, begin, n);
    for (; *path && n < sizeof(line) - sizeof(end); path++)
        line[n++] = *path > 0 && *path < ' ' ? '?' : *path;
    memcpy(line + n, end, sizeof(end) - 1);
    (void)!write(STDERR_FILENO, line, n + sizeof(end) - 1);
}

/* Handle SIGBUS, which accesses to a truncated mapping raise. Calls only functions that are
 * async-signal-safe. */
static void signals_on_fault(int number, siginfo_t *info, void *context)
{
    static _Atomic bool ending;
    const char *path = weights_mapped(info->si_addr);
    (void)context;
    if (!path) { /* not a mapped file: the instruction faults again and ends the process */
        signal(number, SIG_DFL);
        return;
    }
    while (atomic_exchange(&ending, true)) /* another thread is ending the process */
        pause();
    atomic_file_abandon_all();
    signals_print_truncated(path);
    _exit(EXIT_BAD_FILE);
}

void signals_init(void)
{
    static const int ends[] = { SIGHUP, SIGINT, SIGTERM };
    struct sigaction fault = { .sa_sigaction = signals_on_fault, .sa_flags = (int)SA_SIGINFO };
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct sigaction act = { .sa_handler = signals_on_end }, old;
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(ends[i], &act, NULL);
    }
    sigaction(SIGBUS, &fault, NULL);
}
