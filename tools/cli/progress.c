#include "tools/cli/progress.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "kernels/sys/text.h"

static const uint64_t second_ns = 1000000000;
static const uint64_t quiet_ns = 2000000000; /* time before the first line */
static const uint64_t pause_ns = 100000000;  /* time between lines of progress_counted */

struct progress {
    struct err what; /* without control characters */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t done; /* ended was set */
    bool ended, shown;
    unsigned seconds; /* since the line was set */
};

/* Print a line over the one before. A narrow terminal gets less of it, and of its beginning first:
 * what wraps cannot be overwritten. */
static void progress_put(const char *what, const char *rest)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col;
    size_t columns = (known ? size.ws_col : 80u) - 1, n = strnlen(rest, columns);
    fprintf(stderr, "\r%.*s%.*s\033[K", (int)text_complete(what, strnlen(what, columns - n)), what,
            (int)n, rest);
}

/* Thread: wake up every second, until progress_end is called, and print the line. */
static void *progress_watch(void *arg)
{
    struct progress *p = arg;
    uint64_t next = os_now_ns();
    char time[24];
    pthread_mutex_lock(&p->lock);
    for (bool early = true; !p->ended; early = false) {
        next += second_ns;
        while (!p->ended && os_now_ns() < next)
            os_cond_wait(&p->done, &p->lock, next);
        p->seconds++;
        if (p->ended || early || !p->what.msg[0])
            continue;
        snprintf(time, sizeof(time), ", %u s", p->seconds);
        progress_put(p->what.msg, time);
        p->shown = true;
    }
    pthread_mutex_unlock(&p->lock);
    if (p->shown)
        fputs("\r\033[K", stderr);
    return NULL;
}

struct progress *progress_begin(const char *doing, const char *what)
{
    struct progress *p = isatty(STDERR_FILENO) ? calloc(1, sizeof(*p)) : NULL;
    if (!p)
        return NULL;
    err_set(&p->what, OK, "%s %s", doing, what);
    pthread_mutex_init(&p->lock, NULL);
    if (os_cond_open(&p->done)) {
        if (pthread_create(&p->thread, NULL, progress_watch, p) == 0)
            return p;
        pthread_cond_destroy(&p->done);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

void progress_end(struct progress *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->ended = true;
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->done);
    free(p);
}

void progress_say(struct progress *p, const char *line)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    err_set(&p->what, OK, "%s", line);
    p->seconds = 0;
    pthread_mutex_unlock(&p->lock);
}

void progress_keep(struct progress *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    fprintf(stderr, "\r%.100s\033[K\n", p->what.msg);
    p->what.msg[0] = '\0';
    p->shown = false;
    pthread_mutex_unlock(&p->lock);
}

void progress_left(char out[48], uint64_t since, size_t done, size_t all)
{
    double s = (double)(os_now_ns() - since) / 1e9, rate = s > 0 ? (double)done / s : 0;
    out[0] = '\0';
    if (!(rate > 0) || done > all)
        return;
    double left = (double)(all - done) / rate;
    snprintf(out, 48, ", %.*f/s, %.0f:%02.0f left", rate < 10, rate, floor(left / 60),
             fmod(floor(left), 60));
}

void progress_counted(struct progress_count *p, size_t done, size_t all)
{
    uint64_t now = os_now_ns();
    if (now - p->since < quiet_ns || now - p->last < pause_ns || !isatty(STDERR_FILENO))
        return;
    char left[48], rest[112];
    progress_left(left, p->since, done, all);
    snprintf(rest, sizeof(rest), ": %zu of %zu%s", done, all, left);
    progress_put(p->what, rest);
    p->shown = true;
    p->last = now;
}

void progress_wipe(struct progress_count *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}
