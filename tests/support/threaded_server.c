#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernels/sys/os.h"
#include "tests/support/threaded_server.h"
#include "tests/support/test.h"

enum { MAX_CONNECTIONS = 512, MAX_LAST = 4096, MAX_REQUEST = 1 << 16 };

static struct {
    int listener;
    unsigned port;
    bool (*serve)(const struct threaded_server_request *r);
    pthread_t acceptor, threads[MAX_CONNECTIONS];
    int fds[MAX_CONNECTIONS];
    pthread_mutex_t lock;
    unsigned connections, seen[MAX_LAST];
    size_t started;
    atomic_int stop;
} the;

/* Wait until fd is ready. Returns 1: ready; 0: not within ms; -1: the test ends. */
static int ready(int fd, short events, unsigned ms)
{
    uint64_t end = os_now_ns() + ms * UINT64_C(1000000);
    while (!atomic_load(&the.stop)) {
        struct pollfd p = { .fd = fd, .events = events };
        uint64_t now = os_now_ns();
        int left = now < end ? (int)((end - now) / 1000000) + 1 : 0;
        int n = poll(&p, 1, left < 20 ? left : 20);
        if (n > 0)
            return 1;
        if (n == 0 && os_now_ns() >= end)
            return 0;
    }
    return -1;
}

bool threaded_server_send(const struct threaded_server_request *r, const char *bytes, size_t n)
{
    while (n) {
        if (ready(r->fd, POLLOUT, 10000) <= 0)
            return false;
        ssize_t sent = send(r->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (sent <= 0)
            return false;
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

bool threaded_server_text(const struct threaded_server_request *r, const char *bytes)
{
    return threaded_server_send(r, bytes, strlen(bytes));
}

bool threaded_server_json(const struct threaded_server_request *r, const char *status,
                          const char *json)
{
    char text[4096];
    int n = snprintf(text, sizeof(text),
                     "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n"
                     "%s",
                     status, strlen(json), json);
    CHECK(n > 0 && (size_t)n < sizeof(text));
    return threaded_server_send(r, text, (size_t)n);
}

bool threaded_server_pause(const struct threaded_server_request *r, unsigned ms)
{
    return ready(r->fd, POLLIN, ms) == 0; /* the client has nothing to send: input is a hang-up */
}

void threaded_server_reset(const struct threaded_server_request *r)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };
    setsockopt(r->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

/* Return what follows this name at the beginning of a header line, or NULL. */
static const char *header(const char *head, const char *name)
{
    const char *end = strstr(head, "\r\n\r\n");
    for (const char *at = strstr(head, "\r\n"); at && at < end; at = strstr(at + 2, "\r\n"))
        if (strncasecmp(at + 2, name, strlen(name)) == 0)
            return at + 2 + strlen(name);
    return NULL;
}

/* Return the last id of the first list in the body, or 0. */
static unsigned last_id(const char *body, size_t n)
{
    const char *open = memchr(body, '[', n), *end = open ? strchr(open, ']') : NULL;
    unsigned id = 0;
    if (!end || !isdigit((unsigned char)end[-1]))
        return 0;
    while (isdigit((unsigned char)end[-1]))
        end--;
    id = (unsigned)strtoul(end, NULL, 10);
    return id < MAX_LAST ? id : 0;
}

/* Read one whole request; false when the client has gone. */
static bool get(struct threaded_server_request *r, char *text)
{
    size_t n = 0;
    for (;;) {
        ssize_t got =
            ready(r->fd, POLLIN, 600000) > 0 ? recv(r->fd, text + n, MAX_REQUEST - 1 - n, 0) : 0;
        if (got <= 0)
            return false;
        n += (size_t)got;
        text[n] = 0;
        const char *end = strstr(text, "\r\n\r\n");
        if (!end)
            continue;
        const char *length = header(text, "Content-Length:");
        r->body = end + 4;
        r->n = length ? (size_t)strtoul(length, NULL, 10) : 0;
        if (n >= (size_t)(r->body - text) + r->n)
            break;
    }
    char method[8];
    CHECK(sscanf(text, "%7s %63s", method, r->path) == 2);
    r->gzip = header(text, "Content-Encoding:") != NULL;
    r->last = last_id(r->body, r->n);
    pthread_mutex_lock(&the.lock);
    r->seen = the.seen[r->last]++;
    pthread_mutex_unlock(&the.lock);
    return true;
}

static void *connection(void *arg)
{
    char text[MAX_REQUEST];
    struct threaded_server_request r = { .fd = *(const int *)arg };
    while (get(&r, text) && the.serve(&r))
        ;
    close(r.fd);
    return NULL;
}

static void *accept_all(void *arg)
{
    (void)arg;
    while (ready(the.listener, POLLIN, 600000) > 0) {
        int one = 1, fd = accept(the.listener, NULL, NULL);
        if (fd < 0)
            continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        CHECK(the.started < MAX_CONNECTIONS);
        the.fds[the.started] = fd;
        pthread_mutex_lock(&the.lock);
        the.connections++;
        pthread_mutex_unlock(&the.lock);
        CHECK(pthread_create(&the.threads[the.started], NULL, connection, &the.fds[the.started]) ==
              0);
        the.started++;
    }
    return NULL;
}

void threaded_server_open(bool (*serve)(const struct threaded_server_request *r))
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memset(&the, 0, sizeof(the));
    the.serve = serve;
    pthread_mutex_init(&the.lock, NULL);
    the.listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(the.listener >= 0 && bind(the.listener, (struct sockaddr *)&at, sizeof(at)) == 0);
    CHECK(listen(the.listener, 128) == 0);
    CHECK(getsockname(the.listener, (struct sockaddr *)&at, &len) == 0);
    the.port = ntohs(at.sin_port);
    CHECK(pthread_create(&the.acceptor, NULL, accept_all, NULL) == 0);
}

void threaded_server_close(void)
{
    atomic_store(&the.stop, 1);
    pthread_join(the.acceptor, NULL);
    for (size_t i = 0; i < the.started; i++)
        pthread_join(the.threads[i], NULL);
    close(the.listener);
    pthread_mutex_destroy(&the.lock);
}

unsigned threaded_server_port(void)
{
    return the.port;
}

/* Read a counter under the lock. */
static unsigned locked(const unsigned *counter)
{
    pthread_mutex_lock(&the.lock);
    unsigned n = *counter;
    pthread_mutex_unlock(&the.lock);
    return n;
}

unsigned threaded_server_connections(void)
{
    return locked(&the.connections);
}

unsigned threaded_server_seen(unsigned last)
{
    return locked(&the.seen[last]);
}

void threaded_server_forget(void)
{
    pthread_mutex_lock(&the.lock);
    the.connections = 0;
    memset(the.seen, 0, sizeof(the.seen));
    pthread_mutex_unlock(&the.lock);
}
