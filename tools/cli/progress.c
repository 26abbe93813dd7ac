#include "tools/cli/progress.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"

static const uint64_t second_ns = 1000000000;
static const uint64_t quiet_ns = 2000000000; /* time before the first line */
static const uint64_t pause_ns = 100000000;  /* time between lines of progress_counted */

struct progress {
    struct err what; /* without control characters */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t done; /* ended was set */
    bool ended;
};

/* Thread: wake up every second, until progress_end is called, and print the line. */
static void *progress_watch(void *arg)
{
    struct progress *p = arg;
    uint64_t next = os_now_ns();
    bool shown = false;
    pthread_mutex_lock(&p->lock);
    for (unsigned seconds = 1; !p->ended; seconds++) {
        next += second_ns;
        while (!p->ended && os_now_ns() < next)
            os_cond_wait(&p->done, &p->lock, next);
        if (!p->ended && seconds >= 2) {
            fprintf(stderr, "\r%.60s, %u s", p->what.msg, seconds);
            shown = true;
        }
    }
    pthread_mutex_unlock(&p->lock);
    if (shown)
        fprintf(stderr, "\r%80s\r", "");
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

void progress_counted(struct progress_count *p, size_t done, size_t all)
{
    uint64_t now = os_now_ns();
    if (now - p->since < quiet_ns || now - p->last < pause_ns || !isatty(STDERR_FILENO))
        return;
    char left[32] = "";
    if (done && done <= all) {
        double s = (double)(now - p->since) / 1e9 / (double)done * (double)(all - done);
        snprintf(left, sizeof(left), ", %.0f:%02.0f left", floor(s / 60), fmod(floor(s), 60));
    }
    fprintf(stderr, "\r%s: %zu of %zu%s    ", p->what, done, all, left);
    p->shown = true;
    p->last = now;
}

void progress_wipe(struct progress_count *p)
{
    if (p->shown)
        fprintf(stderr, "\r%80s\r", "");
    p->shown = false;
}
