/* t_progress.c - the progress line appears only on a terminal, and not before two seconds. */
#define _XOPEN_SOURCE 700
#include "tools/cli/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "tests/support/test.h"

static char said[256];

/* Return what was written to the terminal, or "". */
static const char *heard(int terminal)
{
    struct pollfd p = { .fd = terminal, .events = POLLIN };
    size_t n = 0;
    fflush(stderr);
    while (n < sizeof(said) - 1 && poll(&p, 1, 0) > 0) {
        ssize_t got = read(terminal, said + n, sizeof(said) - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    said[n] = 0;
    return said;
}

int main(void)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), kept = dup(STDERR_FILENO), none[2];
    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal))
        SKIP("no pseudo-terminal");
    int side = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    CHECK(side >= 0 && kept >= 0 && pipe(none) == 0);
    uint64_t now = os_now_ns();
    struct progress_count early = { .what = "reading", .since = now };
    struct progress_count late = { .what = "reading", .since = now - 3000000000u };
    dup2(none[1], STDERR_FILENO); /* not a terminal */
    progress_counted(&late, 5, 9);
    dup2(side, STDERR_FILENO);
    bool quiet = !late.shown;
    early.since = os_now_ns();
    progress_counted(&early, 5, 9);
    quiet = quiet && (!early.shown || os_now_ns() - early.since >= 2000000000u);
    heard(terminal);
    progress_counted(&late, 5, 9);
    bool shows = late.shown && strstr(heard(terminal), "\rreading: 5 of 9, 1.7/s, 0:02 left");
    progress_wipe(&late);
    bool wipes = !late.shown && strstr(heard(terminal), "\r\033[K");
    progress_wipe(&late);
    bool once = !*heard(terminal);
    /* A thread shows that work goes on, though its line stays the same. */
    struct progress *p = progress_begin("reading", "on");
    progress_say(p, "one answer");
    rest_us(2500000);
    bool goes_on = strstr(heard(terminal), "\rone answer, 2 s");
    progress_keep(p);
    bool stands = strstr(heard(terminal), "\rone answer\033[K\r\n");
    progress_end(p);
    bool gone = !*heard(terminal);
    /* A line as wide as the terminal would wrap, and leave a copy each time. */
    const struct winsize narrow = { .ws_row = 5, .ws_col = 20 };
    bool cuts = ioctl(side, TIOCSWINSZ, &narrow) == 0;
    late = (struct progress_count){ .what = "reading", .since = os_now_ns() - 3000000000u };
    progress_counted(&late, 5, 9);
    cuts = cuts && !strcmp(heard(terminal), "\r: 5 of 9, 1.7/s, 0:\033[K");
    p = progress_begin("loading", "x\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
    rest_us(2500000);
    cuts = cuts && strstr(heard(terminal), "\rloading x\xc3\xa9\xc3\xa9, 2 s\033[K");
    progress_end(p);
    dup2(kept, STDERR_FILENO);
    CHECK(goes_on && stands && gone && cuts);
    CHECK(quiet);
    CHECK(shows && wipes && once);
    return 0;
}
