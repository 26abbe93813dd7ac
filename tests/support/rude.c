#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/rude.h"
#include "tests/support/test.h"

enum { MAX_FLOOD = 64 << 20 };

struct rude {
    int listener;
    unsigned port;
    pthread_t thread;
    pthread_mutex_t lock;
    struct rude_part part;
    unsigned connections, requests;
    char request[1 << 16];
    char last[1 << 16];
    atomic_int stop;
};

static struct rude the; /* static, so that tests that count allocations do not see it */

/* Wait until fd is ready; false when the server stops. */
static bool ready(struct rude *r, int fd, short events)
{
    while (!atomic_load(&r->stop)) {
        struct pollfd p = { .fd = fd, .events = events };
        int n = poll(&p, 1, 20);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
    return false;
}

/* Send n bytes; false once the client is gone. */
static bool put(struct rude *r, int fd, const char *p, size_t n)
{
    while (n) {
        if (!ready(r, fd, POLLOUT))
            return false;
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (sent <= 0)
            return false;
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

static size_t body_length(const char *head)
{
    const char *at = strstr(head, "Content-Length:");
    return at ? (size_t)strtoul(at + 15, NULL, 10) : 0;
}

/* Read one whole request into r->request; false when the client has gone. */
static bool get(struct rude *r, int fd)
{
    size_t n = 0;
    for (;;) {
        if (!ready(r, fd, POLLIN) || n + 1 >= sizeof(r->request))
            return false;
        ssize_t got = recv(fd, r->request + n, sizeof(r->request) - 1 - n, 0);
        if (got <= 0)
            return false;
        n += (size_t)got;
        r->request[n] = 0;
        char *end = strstr(r->request, "\r\n\r\n");
        if (end && n >= (size_t)(end - r->request) + 4 + body_length(r->request))
            return true;
    }
}

static void wait_for_end(struct rude *r, int fd)
{
    char sink[512];
    while (ready(r, fd, POLLIN) && recv(fd, sink, sizeof(sink), 0) > 0)
        ;
}

static void flood(struct rude *r, int fd, const char *unit)
{
    char block[1 << 14];
    size_t n = 0, len = strlen(unit);
    while (n + len <= sizeof(block)) {
        memcpy(block + n, unit, len);
        n += len;
    }
    for (size_t sent = 0; sent < MAX_FLOOD && put(r, fd, block, n); sent += n)
        ;
}

static bool drip(struct rude *r, int fd, const char *p, size_t n)
{
    const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
    for (size_t i = 0; i < n; i++) {
        if (!put(r, fd, p + i, 1))
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Play the present part; true when the connection stays open for another request. */
static bool play(struct rude *r, int fd)
{
    pthread_mutex_lock(&r->lock);
    struct rude_part part = r->part;
    r->requests++;
    memcpy(r->last, r->request, sizeof(r->last));
    pthread_mutex_unlock(&r->lock);
    size_t n = part.n ? part.n : part.bytes ? strlen(part.bytes) : 0;
    if (part.mode == RUDE_DRIP)
        return drip(r, fd, part.bytes, n);
    if (n && !put(r, fd, part.bytes, n))
        return false;
    switch (part.mode) {
    case RUDE_SILENT:
        wait_for_end(r, fd);
        return false;
    case RUDE_FLOOD:
        flood(r, fd, "x");
        return false;
    case RUDE_FLOOD_HEADERS:
        flood(r, fd, "X-Padding: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n");
        return false;
    case RUDE_RESET: {
        struct linger now = { .l_onoff = 1, .l_linger = 0 };
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        return false;
    }
    default:
        return part.mode == RUDE_KEEP;
    }
}

static void *serve(void *arg)
{
    struct rude *r = arg;
    while (ready(r, r->listener, POLLIN)) {
        int fd = accept(r->listener, NULL, NULL);
        if (fd < 0)
            continue;
        pthread_mutex_lock(&r->lock);
        r->connections++;
        pthread_mutex_unlock(&r->lock);
        while (get(r, fd) && play(r, fd))
            ;
        close(fd);
    }
    return NULL;
}

struct rude *rude_open(void)
{
    struct rude *r = &the;
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    atomic_store(&r->stop, 0);
    r->connections = r->requests = 0;
    pthread_mutex_init(&r->lock, NULL);
    r->listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(r->listener >= 0);
    CHECK(bind(r->listener, (struct sockaddr *)&at, sizeof(at)) == 0);
    CHECK(listen(r->listener, 16) == 0);
    CHECK(getsockname(r->listener, (struct sockaddr *)&at, &len) == 0);
    r->port = ntohs(at.sin_port);
    CHECK(pthread_create(&r->thread, NULL, serve, r) == 0);
    return r;
}

void rude_close(struct rude *r)
{
    atomic_store(&r->stop, 1);
    pthread_join(r->thread, NULL);
    close(r->listener);
    pthread_mutex_destroy(&r->lock);
}

unsigned rude_port(const struct rude *r)
{
    return r->port;
}

void rude_play(struct rude *r, const struct rude_part *part)
{
    pthread_mutex_lock(&r->lock);
    r->part = *part;
    pthread_mutex_unlock(&r->lock);
}

unsigned rude_connections(struct rude *r)
{
    pthread_mutex_lock(&r->lock);
    unsigned n = r->connections;
    pthread_mutex_unlock(&r->lock);
    return n;
}

unsigned rude_requests(struct rude *r)
{
    pthread_mutex_lock(&r->lock);
    unsigned n = r->requests;
    pthread_mutex_unlock(&r->lock);
    return n;
}

void rude_request(struct rude *r, char *out, size_t cap)
{
    pthread_mutex_lock(&r->lock);
    size_t n = strlen(r->last);
    if (n >= cap)
        n = cap - 1;
    memcpy(out, r->last, n);
    out[n] = 0;
    pthread_mutex_unlock(&r->lock);
}
