#include <ctype.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <strings.h>

#include "tests/support/http_client.h"
#include "tests/support/process.h"
#include "tests/support/rude.h"

enum {
    CONNECTIONS = 256, /* at a time */
    MAX_LAST = 4096,
    MAX_REQUEST = 1 << 16,
    MAX_FLOOD = 128 << 20,
    HALF = 16,
    DRIP_MS = 4,
    PATIENT_MS = 600000
};

struct connection {
    struct rude *server;
    int fd;
    pthread_t thread;
    bool used;
    atomic_bool done;
};

struct rude {
    int listener;
    unsigned port;
    char url[32];
    bool (*serve)(const struct rude_request *r);
    pthread_t acceptor;
    struct connection at[CONNECTIONS];
    atomic_bool stop;
    atomic_uint connections, requests, seen[MAX_LAST];
    pthread_mutex_t lock; /* of what follows */
    struct rude_part part;
    char latest[MAX_REQUEST];
};

/* Wait until fd is ready. Returns 1: ready; 0: not within ms; -1: the test ends. */
static int ready(const struct rude *s, int fd, short events, unsigned ms)
{
    uint64_t end = os_now_ns() + ms * UINT64_C(1000000);
    while (!atomic_load(&s->stop)) {
        struct pollfd p = { .fd = fd, .events = events };
        uint64_t now = os_now_ns();
        int left = now < end ? (int)((end - now) / 1000000) + 1 : 0;
        int n = poll(&p, 1, left < 10 ? left : 10);
        if (n > 0)
            return 1;
        if (n == 0 && os_now_ns() >= end)
            return 0;
    }
    return -1;
}

static bool rude_send(const struct rude_request *r, const char *bytes, size_t n)
{
    while (n) {
        if (ready(r->server, r->fd, POLLOUT, PATIENT_MS) <= 0)
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

bool rude_text(const struct rude_request *r, const char *bytes)
{
    return rude_send(r, bytes, strlen(bytes));
}

bool rude_json(const struct rude_request *r, const char *status, const char *json)
{
    char text[4096];
    int n = snprintf(text, sizeof(text),
                     "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n"
                     "%s",
                     status, strlen(json), json);
    CHECK(n > 0 && (size_t)n < sizeof(text));
    return rude_send(r, text, (size_t)n);
}

bool rude_pause(const struct rude_request *r, unsigned ms)
{
    return ready(r->server, r->fd, POLLIN, ms) == 0; /* a client has nothing to send: it hangs up */
}

bool rude_carry(const struct rude_request *r, unsigned port, bool request, rude_count moved[2])
{
    struct pollfd at[2] = { { .fd = r->fd, .events = POLLIN }, { .events = POLLIN } };
    char bytes[1 << 14];
    at[1].fd = http_client_open(port);
    if (request) {
        atomic_fetch_add(&moved[0], r->length);
        http_client_send(at[1].fd, r->text, r->length);
    }
    for (bool open = true; open && poll(at, 2, -1) > 0;)
        for (int i = 0; i < 2 && open; i++) {
            ssize_t n = at[i].revents ? read(at[i].fd, bytes, sizeof(bytes)) : 0;
            open = n > 0 || !at[i].revents;
            if (n <= 0)
                continue;
            if (moved)
                atomic_fetch_add(&moved[i], (uint64_t)n);
            http_client_send(at[!i].fd, bytes, (size_t)n);
        }
    close(at[1].fd);
    return false;
}

bool rude_reset(const struct rude_request *r)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };
    setsockopt(r->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    return false;
}

static void flood(const struct rude_request *r, const char *unit)
{
    char block[1 << 14];
    size_t n = 0, len = strlen(unit);
    for (; n + len <= sizeof(block); n += len)
        memcpy(block + n, unit, len);
    for (size_t sent = 0; sent < MAX_FLOOD && rude_send(r, block, n); sent += n)
        ;
}

/* Play the part; true when the connection stays open for another request. */
static bool play(const struct rude_request *r, const struct rude_part *part)
{
    char sink[512];
    size_t n = part->n ? part->n : part->bytes ? strlen(part->bytes) : 0;
    if (part->mode == RUDE_DRIP) {
        for (size_t i = 0; i < n && rude_send(r, part->bytes + i, 1) && rude_pause(r, DRIP_MS); i++)
            ;
        return false;
    }
    if (!rude_send(r, part->bytes, n))
        return false;
    if (part->mode == RUDE_FLOOD)
        flood(r, part->flood);
    while (part->mode == RUDE_SILENT && ready(r->server, r->fd, POLLIN, PATIENT_MS) > 0 &&
           recv(r->fd, sink, sizeof(sink), 0) > 0)
        ;
    if (part->mode == RUDE_RESET)
        rude_reset(r);
    return part->mode == RUDE_KEEP;
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
    if (!end || !isdigit((unsigned char)end[-1]))
        return 0;
    while (isdigit((unsigned char)end[-1]))
        end--;
    unsigned id = (unsigned)strtoul(end, NULL, 10);
    return id < MAX_LAST ? id : 0;
}

/* Find the parts of a request; false as long as it is not whole. */
static bool parse(struct rude_request *r)
{
    char method[8];
    const char *end = strstr(r->text, "\r\n\r\n");
    const char *length = end ? header(r->text, "Content-Length:") : NULL;
    if (!end)
        return false;
    r->body = end + 4;
    r->n = length ? (size_t)strtoul(length, NULL, 10) : 0;
    if (r->length < (size_t)(r->body - r->text) + r->n)
        return false;
    CHECK(sscanf(r->text, "%7s %63s", method, r->path) == 2);
    r->last = last_id(r->body, r->n);
    return true;
}

/* Read one whole request, or half of one, and count it; false when the client has gone. */
static bool get(struct rude_request *r, char *text, bool half)
{
    struct rude *s = r->server;
    size_t cap = half ? HALF : MAX_REQUEST - 1;
    r->text = text;
    r->length = 0;
    do {
        ssize_t got = ready(s, r->fd, POLLIN, PATIENT_MS) > 0
                          ? recv(r->fd, text + r->length, cap - r->length, 0)
                          : 0;
        if (got <= 0)
            return false;
        r->length += (size_t)got;
        text[r->length] = 0;
    } while (half ? r->length < HALF : !parse(r));
    s->requests++;
    r->seen = s->seen[r->last]++;
    pthread_mutex_lock(&s->lock);
    memcpy(s->latest, text, r->length + 1);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static struct rude_part present(struct rude *s)
{
    pthread_mutex_lock(&s->lock);
    struct rude_part part = s->part;
    pthread_mutex_unlock(&s->lock);
    return part;
}

static void *connection(void *arg)
{
    char text[MAX_REQUEST];
    struct connection *c = arg;
    struct rude *s = c->server;
    struct rude_request r = { .server = s, .fd = c->fd };
    struct rude_part part = present(s);
    bool stays = part.when != RUDE_ACCEPT || play(&r, &part);
    while (stays && get(&r, text, part.when == RUDE_HALF)) {
        part = present(s);
        stays = s->serve ? s->serve(&r) : play(&r, &part);
    }
    close(c->fd);
    atomic_store(&c->done, true);
    return NULL;
}

/* Return a connection that is free, or NULL. */
static struct connection *vacant(struct rude *s)
{
    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct connection *c = &s->at[i];
        if (c->used && !atomic_load(&c->done))
            continue;
        if (c->used)
            pthread_join(c->thread, NULL);
        return c;
    }
    return NULL;
}

static void *accept_all(void *arg)
{
    struct rude *s = arg;
    for (int n; (n = ready(s, s->listener, POLLIN, PATIENT_MS)) >= 0;) {
        int one = 1, fd = n ? accept(s->listener, NULL, NULL) : -1;
        if (fd < 0)
            continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        s->connections++;
        struct connection *c = vacant(s);
        CHECK(c);
        c->server = s;
        c->fd = fd;
        c->used = true;
        atomic_store(&c->done, false);
        CHECK(pthread_create(&c->thread, NULL, connection, c) == 0);
    }
    return NULL;
}

struct rude *rude_open(bool (*serve)(const struct rude_request *r))
{
    struct rude *s = calloc(1, sizeof(*s));
    CHECK(s);
    s->serve = serve;
    pthread_mutex_init(&s->lock, NULL);
    s->listener = loopback(&s->port, 128);
    snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u", s->port);
    CHECK(pthread_create(&s->acceptor, NULL, accept_all, s) == 0);
    return s;
}

void rude_close(struct rude *s)
{
    if (!s)
        return;
    atomic_store(&s->stop, true);
    pthread_join(s->acceptor, NULL);
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (s->at[i].used)
            pthread_join(s->at[i].thread, NULL);
    close(s->listener);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

unsigned rude_port(const struct rude *s)
{
    return s->port;
}

const char *rude_url(const struct rude *s)
{
    return s->url;
}

void rude_part(struct rude *s, const struct rude_part *part)
{
    pthread_mutex_lock(&s->lock);
    s->part = *part;
    pthread_mutex_unlock(&s->lock);
}

void rude_play(struct rude *s, enum rude_mode mode, const char *bytes)
{
    rude_part(s, &(struct rude_part){ .mode = mode, .bytes = bytes });
}

unsigned rude_connections(struct rude *s)
{
    return s->connections;
}

unsigned rude_requests(struct rude *s)
{
    return s->requests;
}

unsigned rude_seen(struct rude *s, unsigned last)
{
    return s->seen[last];
}

void rude_forget(struct rude *s)
{
    s->connections = s->requests = 0;
    for (size_t i = 0; i < MAX_LAST; i++)
        s->seen[i] = 0;
}

void rude_latest(struct rude *s, char *out, size_t cap)
{
    pthread_mutex_lock(&s->lock);
    snprintf(out, cap, "%s", s->latest);
    pthread_mutex_unlock(&s->lock);
}
