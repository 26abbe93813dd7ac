#include "tools/serve/serve_browser.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __APPLE__
#define OPENER "open"
#else
#define OPENER "xdg-open"
#endif

/* True if there is a desktop. Without one, xdg-open would start a browser for text in the terminal,
 * which is ours. */
static bool serve_browser_desktop(void)
{
#ifdef __APPLE__
    return true;
#else
    return getenv("DISPLAY") || getenv("WAYLAND_DISPLAY") || getenv("BROWSER");
#endif
}

/* Wait for the URL, and become the program that opens it. */
static void serve_browser_child(int from)
{
    char url[256];
    size_t n = 0;
    ssize_t got;
    while (n < sizeof(url) - 1 && (got = read(from, url + n, sizeof(url) - 1 - n)) > 0)
        n += (size_t)got;
    url[n] = '\0';
    if (!n)
        _exit(0);
    unsetenv("MIZZLE_SERVE_KEY");
    unsetenv("MIZZLE_API_KEY");
    if (serve_browser_desktop())
        execlp(OPENER, OPENER, url, (char *)NULL);
    fprintf(stderr, "mizzle serve: --open found no browser here; the page is at %s\n", url);
    _exit(0);
}

int serve_browser_prepare(void)
{
    int ends[2];
    if (pipe(ends))
        return -1;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    pid_t first = fork();
    if (first == 0) { /* a second fork, so that nobody has to wait for the browser */
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_DFL);
        close(ends[1]);
        if (fork() == 0)
            serve_browser_child(ends[0]);
        _exit(0);
    }
    close(ends[0]);
    if (first > 0)
        waitpid(first, NULL, 0);
    if (first > 0)
        return ends[1];
    close(ends[1]);
    return -1;
}

void serve_browser_open(int to, const char *url)
{
    if (to < 0)
        return;
    if (url)
        (void)!write(to, url, strlen(url));
    close(to);
}
