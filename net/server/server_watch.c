#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernels/sys/os.h"
#include "net/server/server_internal.h"

static const uint64_t ms_ns = 1000000;

/* A client has left if its stream ends or holds a TLS record as short as an alert. While it awaits
 * an answer, no other input is expected; one that sends its next request early sends more. */
bool server_watch_left(int fd)
{
    enum { ALERT = 21, DATA = 23, SHORT = 5 + 26 };
    unsigned char seen[64];
    ssize_t n = recv(fd, seen, sizeof(seen), MSG_PEEK | MSG_DONTWAIT);
    if (n < 0)
        return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
    return n == 0 || (n >= 5 && n <= SHORT && (seen[0] == ALERT || seen[0] == DATA) &&
                      seen[1] == 3 && seen[3] == 0 && seen[4] + 5 == n);
}

/* Wake the thread to look again. Called with the lock held. */
static void server_watch_poke(struct server_watch *w)
{
    if (!w->poked && write(w->pipe[1], "", 1) == 1)
        w->poked = true;
}

/* Return the time that a head may take: less while the last half of the places fills. */
static uint64_t server_watch_head(const struct server_watch *w)
{
    const uint64_t least = 1000 * ms_ns;
    size_t half = w->places / 2, free_places = w->places > w->used ? w->places - w->used : 0;
    if (free_places >= half || w->head <= least)
        return w->head;
    return least + (w->head - least) / half * free_places;
}

static uint64_t server_watch_deadline(const struct server_watch *w, const struct server_guest *g)
{
    return g->phase == PHASE_NONE   ? UINT64_MAX
           : g->phase == PHASE_HEAD ? g->when + server_watch_head(w)
                                    : g->when;
}

/* Shut the socket down; libmicrohttpd then closes it. */
static void server_watch_shut(struct server_watch *w, struct server_guest *g)
{
    shutdown(g->fd, SHUT_RDWR);
    g->phase = PHASE_NONE;
    w->leaving += !g->leaving;
    g->leaving = true;
}

/* Say why, if that cannot be mistaken for the reply to something else, and shut the socket down. */
static void server_watch_late(struct server_watch *w, struct server_guest *g)
{
    if (!w->tls && (g->phase == PHASE_BODY || (g->phase == PHASE_HEAD && g->started)))
        server_reply_raw(g->server, g->fd, 408, g->server->o.late);
    server_watch_shut(w, g);
}

/* Return since when the guest keeps the server waiting for a request; UINT64_MAX: it does not. */
static uint64_t server_watch_since(const struct server_watch *w, const struct server_guest *g)
{
    return g->leaving               ? UINT64_MAX
           : g->phase == PHASE_HEAD ? g->when
           : g->phase == PHASE_BODY ? g->when - w->body
                                    : UINT64_MAX;
}

/* When all places are taken, make room: the guest that has kept the server waiting for the longest
 * must go. */
static void server_watch_evict(struct server_watch *w)
{
    struct server_guest *oldest = w->guests;
    for (struct server_guest *g = w->guests; g; g = g->next)
        if (server_watch_since(w, g) < server_watch_since(w, oldest))
            oldest = g;
    server_watch_late(w, oldest);
}

/* Set woken or gone of a guest. */
static void server_watch_signal(struct server_guest *g, bool *what)
{
    pthread_mutex_lock(&g->lock);
    *what = true;
    pthread_cond_signal(&g->change);
    pthread_mutex_unlock(&g->lock);
}

/* End the waiting of a guest whose answer is no longer wanted. */
static void server_watch_end(struct server_guest *g)
{
    void (*f)(void *) = g->on_gone;
    g->watched = false;
    g->on_gone = NULL;
    server_watch_signal(g, &g->gone);
    if (f)
        f(g->on_gone_arg);
}

/* The client sends no more: it has left, or has shut down that side alone, as nc -N does. A socket
 * that is closed answers the next bytes with a reset: those of an interim response, which HTTP/1.1
 * allows at any time, or of the stream. They are repeated, since what stands between passes on the
 * first of them to a client that has left. */
static void server_watch_half(struct server_watch *w, struct server_guest *g)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    uint64_t now = os_now_ns();
    if (g->half && now < g->again)
        return;
    g->half = true;
    g->again = now + 1000 * ms_ns;
    g->doubt = g->answered;
    if (w->tls ||
        (!g->answered && (g->request->head.old || send(g->fd, interim, sizeof(interim) - 1,
                                                       MSG_DONTWAIT | MSG_NOSIGNAL) < 0)))
        server_watch_end(g);
    else if (g->doubt)
        server_wake(g->request);
}

/* List the sockets to poll and return how long to sleep in milliseconds; -1: until something
 * happens. Called with the lock held, as are the two functions below. */
static int server_watch_list(struct server_watch *w, nfds_t *n)
{
    uint64_t now = os_now_ns(), look = UINT64_MAX;
    bool deaf = false; /* some client could leave without a sign */
    w->polls[0] = (struct pollfd){ .fd = w->pipe[0], .events = POLLIN };
    *n = 1;
    w->round++;
    for (struct server_guest *g = w->guests; g; g = g->next) {
        uint64_t deadline = server_watch_deadline(w, g);
        if (now >= deadline)
            server_watch_late(w, g);
        else if (deadline < look)
            look = deadline;
        if (g->watched && g->half) {
            server_watch_half(w, g);
            look = g->again < look ? g->again : look;
        }
        if (!g->watched || *n > w->limit)
            continue;
        g->round = w->round;
        g->slot = *n;
        deaf |= g->early && !os_poll_closed();
        w->polls[(*n)++] = (struct pollfd){
            .fd = g->fd, .events = g->half ? 0 : (short)(os_poll_closed() | (g->early ? 0 : POLLIN))
        };
    }
    if (deaf && look - now > 250 * ms_ns)
        look = now + 250 * ms_ns;
    w->look = look;
    if (look == UINT64_MAX)
        return -1;
    uint64_t ms = (look - now) / ms_ns + 1;
    return ms < 3600000 ? (int)ms : 3600000;
}

/* Look at the sockets on which something has happened. */
static void server_watch_see(struct server_watch *w)
{
    for (struct server_guest *g = w->guests; g; g = g->next) {
        if (!g->watched || g->round != w->round)
            continue;
        short seen = w->polls[g->slot].revents;
        if (seen & (POLLHUP | POLLERR | POLLNVAL))
            server_watch_end(g);
        else if (seen & os_poll_closed())
            server_watch_half(w, g);
        else if (seen & POLLIN || (g->early && !os_poll_closed())) {
            if (server_watch_left(g->fd))
                server_watch_half(w, g);
            else
                g->early = true;
        }
    }
}

/* Thread function. */
static void *server_watch_run(void *arg)
{
    struct server_watch *w = arg;
    char sink[64];
    nfds_t n;
    pthread_mutex_lock(&w->lock);
    while (!w->quit) {
        int ms = server_watch_list(w, &n);
        pthread_mutex_unlock(&w->lock);
        int ready = poll(w->polls, n, ms);
        if (ready > 0 && w->polls[0].revents && read(w->pipe[0], sink, sizeof(sink)) > 0)
            ready--;
        pthread_mutex_lock(&w->lock);
        w->poked = false;
        if (ready >= 0)
            server_watch_see(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Open the pipe, whose ends do not block. */
static bool server_watch_pipe(struct server_watch *w)
{
    w->pipe[0] = w->pipe[1] = -1;
    if (pipe(w->pipe))
        return false;
    for (int i = 0; i < 2; i++)
        if (fcntl(w->pipe[i], F_SETFL, O_NONBLOCK) || fcntl(w->pipe[i], F_SETFD, FD_CLOEXEC))
            return false;
    return true;
}

static void server_watch_free(struct server_watch *w)
{
    for (int i = 0; i < 2; i++)
        if (w->pipe[i] >= 0)
            close(w->pipe[i]);
    free(w->polls);
    pthread_cond_destroy(&w->idle);
    pthread_mutex_destroy(&w->lock);
}

bool server_watch_open(struct server_watch *w, const struct server_options *o, size_t places)
{
    w->places = places;
    w->limit = places + places / 8 + 16;
    w->head = (o->head_ms ? o->head_ms : 10000) * ms_ns;
    w->body = (o->body_ms ? o->body_ms : 60000) * ms_ns;
    w->send = (o->send_ms ? o->send_ms : 30000) * ms_ns;
    w->tls = o->tls != NULL;
    if (!os_cond_open(&w->idle))
        return false;
    pthread_mutex_init(&w->lock, NULL);
    w->polls = calloc(w->limit + 1, sizeof(*w->polls));
    w->runs = server_watch_pipe(w) && w->polls &&
              pthread_create(&w->thread, NULL, server_watch_run, w) == 0;
    if (!w->runs)
        server_watch_free(w);
    return w->runs;
}

void server_watch_close(struct server_watch *w)
{
    if (!w->runs)
        return;
    pthread_mutex_lock(&w->lock);
    w->quit = true;
    server_watch_poke(w);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    server_watch_free(w);
    w->runs = false;
}

/* Add a connection to the list. */
static void server_watch_add(struct server_watch *w, struct server_guest *g)
{
    pthread_mutex_lock(&w->lock);
    g->next = w->guests;
    g->link = &w->guests;
    if (g->next)
        g->next->link = &g->next;
    w->guests = g;
    w->used++;
    g->phase = PHASE_HEAD;
    g->when = os_now_ns();
    if (w->used - w->leaving > w->places)
        server_watch_evict(w); /* this one, if all others are busy */
    /* Beyond half of the places each one shortens the time of all. */
    if (w->used > w->places / 2 || server_watch_deadline(w, g) < w->look)
        server_watch_poke(w);
    pthread_mutex_unlock(&w->lock);
}

static void server_watch_remove(struct server_watch *w, struct server_guest *g)
{
    pthread_mutex_lock(&w->lock);
    *g->link = g->next;
    if (g->next)
        g->next->link = g->link;
    w->used--;
    w->leaving -= g->leaving;
    pthread_mutex_unlock(&w->lock);
    pthread_cond_destroy(&g->change);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

void server_watch_connection(void *arg, struct MHD_Connection *c, void **state,
                             enum MHD_ConnectionNotificationCode what)
{
    struct server *s = arg;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) { /* the socket is still open here */
        if (*state)
            server_watch_remove(&s->watch, *state);
        *state = NULL;
        return;
    }
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct server_guest *g = calloc(1, sizeof(*g));
    if (g && fd && os_cond_open(&g->change)) {
        pthread_mutex_init(&g->lock, NULL);
        g->server = s;
        g->fd = fd->connect_fd;
        *state = g;
        server_watch_add(&s->watch, g);
        return;
    }
    free(g);
    *state = NULL;
    if (fd) /* it would have no deadline, so it must not stay */
        shutdown(fd->connect_fd, SHUT_RDWR);
}

/* Called with the lock held. */
static void server_watch_set(struct server_watch *w, struct server_guest *g,
                             enum server_phase phase, uint64_t when)
{
    g->phase = phase;
    g->when = when;
    if (server_watch_deadline(w, g) < w->look)
        server_watch_poke(w);
}

void server_watch_phase(struct server_guest *g, enum server_phase phase)
{
    struct server_watch *w = &g->server->watch;
    uint64_t now = phase == PHASE_NONE ? 0 : os_now_ns();
    pthread_mutex_lock(&w->lock);
    if (phase == PHASE_NONE && g->phase == PHASE_BODY) {
        g->early = false; /* what was unread was the body */
        if (g->watched)
            server_watch_poke(w);
    }
    g->answered |= phase == PHASE_SEND;
    server_watch_set(w, g, phase,
                     now + (phase == PHASE_BODY   ? w->body
                            : phase == PHASE_SEND ? w->send
                                                  : 0));
    pthread_mutex_unlock(&w->lock);
}

void server_watch_started(struct server_guest *g, struct server_request *r, bool enters)
{
    struct server_watch *w = &g->server->watch;
    pthread_mutex_lock(&w->lock);
    w->busy += enters;
    g->request = r;
    g->started = true;
    pthread_mutex_unlock(&w->lock);
}

void server_watch_leave(struct server_guest *g, bool busy)
{
    struct server_watch *w = &g->server->watch;
    pthread_mutex_lock(&w->lock);
    g->request = NULL;
    g->watched = g->early = g->started = g->answered = g->half = g->doubt = false;
    g->on_gone = NULL;
    pthread_mutex_lock(&g->lock);
    g->woken = false;
    pthread_mutex_unlock(&g->lock);
    server_watch_set(w, g, PHASE_HEAD, os_now_ns()); /* of the next request */
    w->busy -= busy;
    if (!w->busy)
        pthread_cond_broadcast(&w->idle);
    pthread_mutex_unlock(&w->lock);
}

void server_watch_settle(struct server_watch *w, uint64_t until_ns)
{
    pthread_mutex_lock(&w->lock);
    while (w->busy && os_now_ns() < until_ns)
        os_cond_wait(&w->idle, &w->lock, until_ns);
    pthread_mutex_unlock(&w->lock);
}

void server_watch_dismiss(struct server_watch *w, bool over)
{
    pthread_mutex_lock(&w->lock);
    for (struct server_guest *g = w->guests; g; g = g->next) {
        if (g->phase == PHASE_HEAD || (over && g->phase == PHASE_BODY))
            server_watch_shut(w, g);
        if (over && g->request)
            server_watch_end(g);
        server_watch_signal(g, &g->woken);
    }
    pthread_mutex_unlock(&w->lock);
}

/* Have the watcher look whether the client of r leaves, from now on. */
static void server_watch_client(struct server_request *r)
{
    struct server_guest *g = r->guest;
    struct server_watch *w = &g->server->watch;
    pthread_mutex_lock(&w->lock);
    if (!g->watched && !g->gone) {
        g->watched = true;
        server_watch_poke(w);
    }
    pthread_mutex_unlock(&w->lock);
}

bool server_wait(struct server_request *r, uint64_t until_ns)
{
    struct server_guest *g = r->guest;
    server_watch_client(r);
    pthread_mutex_lock(&g->lock);
    while (!g->woken && !g->gone && os_now_ns() < until_ns)
        os_cond_wait(&g->change, &g->lock, until_ns);
    g->woken = false;
    bool stays = !g->gone;
    pthread_mutex_unlock(&g->lock);
    return stays;
}

void server_wake(struct server_request *r)
{
    server_watch_signal(r->guest, &r->guest->woken);
}

bool server_doubts(struct server_request *r)
{
    struct server_guest *g = r->guest;
    pthread_mutex_lock(&g->server->watch.lock);
    bool doubt = g->doubt;
    g->doubt = false;
    pthread_mutex_unlock(&g->server->watch.lock);
    return doubt;
}

bool server_gone(struct server_request *r)
{
    struct server_guest *g = r->guest;
    server_watch_client(r);
    pthread_mutex_lock(&g->lock);
    bool gone = g->gone || atomic_load(&g->server->over);
    pthread_mutex_unlock(&g->lock);
    return gone;
}

void server_on_gone(struct server_request *r, void (*f)(void *arg), void *arg)
{
    struct server_guest *g = r->guest;
    struct server_watch *w = &g->server->watch;
    if (f)
        server_watch_client(r);
    pthread_mutex_lock(&w->lock);
    g->on_gone = f;
    g->on_gone_arg = arg;
    if (f && g->gone)
        server_watch_end(g);
    pthread_mutex_unlock(&w->lock);
}
