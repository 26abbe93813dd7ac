#include "tools/stand_in/deadlines.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "kernels/sys/os.h"

enum { PATIENCE_MS = 60000, LOOK_MS = 1000 };

/* One connection. */
struct stand_in_guest {
    struct stand_in_guest *next, **link;
    int fd;
    uint64_t until; /* 0: none */
    bool known;     /* it has sent a request before */
};

/* Shut down all connections that are late; libmicrohttpd then closes them. */
static void watch_look(struct stand_in_deadlines *w, uint64_t now)
{
    for (struct stand_in_guest *g = w->guests; g; g = g->next)
        if (g->until && now >= g->until) {
            shutdown(g->fd, SHUT_RDWR);
            g->until = 0;
        }
}

/* Thread function: look at all connections at regular intervals, as long as there are any. */
static void *watch_run(void *arg)
{
    struct stand_in_deadlines *w = arg;
    uint64_t look = LOOK_MS * UINT64_C(1000000);
    look = w->patience / 4 < look ? w->patience / 4 : look;
    pthread_mutex_lock(&w->lock);
    while (!w->closing) {
        if (!w->guests) {
            pthread_cond_wait(&w->change, &w->lock);
            continue;
        }
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        uint64_t at = (uint64_t)t.tv_nsec + look;
        t.tv_sec += (time_t)(at / 1000000000);
        t.tv_nsec = (long)(at % 1000000000);
        pthread_cond_timedwait(&w->change, &w->lock, &t);
        watch_look(w, os_now_ns());
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

bool stand_in_deadlines_open(struct stand_in_deadlines *w, unsigned patience_ms)
{
    w->patience = (patience_ms ? patience_ms : PATIENCE_MS) * UINT64_C(1000000);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->change, NULL);
    w->runs = pthread_create(&w->thread, NULL, watch_run, w) == 0;
    if (!w->runs) {
        pthread_cond_destroy(&w->change);
        pthread_mutex_destroy(&w->lock);
    }
    return w->runs;
}

void stand_in_deadlines_close(struct stand_in_deadlines *w)
{
    if (!w->runs)
        return;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_signal(&w->change);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->change);
    pthread_mutex_destroy(&w->lock);
    w->runs = false;
}

/* Add a connection to the list. */
static void watch_enter(struct stand_in_deadlines *w, struct stand_in_guest *g)
{
    pthread_mutex_lock(&w->lock);
    g->next = w->guests;
    g->link = &w->guests;
    if (g->next)
        g->next->link = &g->next;
    w->guests = g;
    pthread_cond_signal(&w->change);
    pthread_mutex_unlock(&w->lock);
}

/* Remove a connection from the list and free it. */
static void watch_leave(struct stand_in_deadlines *w, struct stand_in_guest *g)
{
    pthread_mutex_lock(&w->lock);
    *g->link = g->next;
    if (g->next)
        g->next->link = g->link;
    pthread_mutex_unlock(&w->lock);
    free(g);
}

void stand_in_deadlines_connection(void *arg, struct MHD_Connection *c, void **state,
                                   enum MHD_ConnectionNotificationCode what)
{
    struct stand_in_deadlines *w = arg;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) { /* fd is still open here */
        if (*state)
            watch_leave(w, *state);
        *state = NULL;
        return;
    }
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct stand_in_guest *g = fd ? calloc(1, sizeof(*g)) : NULL;
    *state = g;
    if (!g)
        return; /* no memory: its request will fail, too */
    g->fd = fd->connect_fd;
    g->until = os_now_ns() + w->patience;
    watch_enter(w, g);
}

/* Return the connection's entry; NULL if there was no memory for it. */
static struct stand_in_guest *watch_guest(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *state =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return state ? state->socket_context : NULL;
}

void stand_in_deadlines_until(struct stand_in_deadlines *w, struct MHD_Connection *c,
                              uint64_t until)
{
    struct stand_in_guest *g = watch_guest(c);
    if (!g)
        return;
    pthread_mutex_lock(&w->lock);
    g->until = until;
    pthread_mutex_unlock(&w->lock);
}

bool stand_in_deadlines_first(struct MHD_Connection *c)
{
    struct stand_in_guest *g = watch_guest(c);
    bool first = g && !g->known;
    if (g)
        g->known = true;
    return first;
}
