#include "tests/support/fault_matrix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "tests/support/test.h"

#define KEY "sk-matrix-0123456789"

enum {
    CONNECTIONS = 32,
    DRIP_MS = 4,
    PATIENT_MS = 30000,
    SLACK_MS = 10000,
    MAX_FLOOD = 128 << 20,
    FIRST_MARK = 0xf1
};

struct text {
    char p[4096];
    size_t n;
};

struct matrix_server {
    const struct matrix_row *row;
    struct text bad, good;
    int listener;
    unsigned port;
    atomic_int mended, stop;
    pthread_t acceptor, threads[CONNECTIONS];
    struct connection {
        struct matrix_server *server;
        int fd;
    } at[CONNECTIONS];
    size_t started;
};

static const uint32_t prompt[] = { 7, 8, 9 };
static const char good_reply[] = "HTTP/1.1 200 OK\r\nContent-Length: " L "\r\n\r\n" W;

/* Return the format of a whole reply in this dialect, with room for the list of ids. */
static const char *whole_form(enum cloud_api api)
{
    switch (api) {
    case CLOUD_SGLANG:
        return "{\"text\":\"x\",\"output_ids\":%s,\"meta_info\":{\"finish_reason\":{\"type\":"
               "\"length\",\"length\":1},\"completion_tokens\":1}}";
    case CLOUD_LLAMACPP:
        return "{\"index\":0,\"content\":\"x\",\"tokens\":%s,\"stop\":true,\"stop_type\":\"limit\","
               "\"tokens_predicted\":1}";
    default:
        return "{\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":\"length\","
               "\"token_ids\":%s}],\"usage\":{\"completion_tokens\":1}}";
    }
}

/* Return the format of one event in this dialect. */
static const char *event_form(enum cloud_api api)
{
    switch (api) {
    case CLOUD_SGLANG:
        return "data: {\"text\":\"x\",\"output_ids\":%s,\"meta_info\":{\"finish_reason\":null,"
               "\"completion_tokens\":1}}\n\n";
    case CLOUD_LLAMACPP:
        return "data: {\"content\":\"x\",\"tokens\":%s,\"stop\":false}\n\n";
    default:
        return "data: {\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":null,"
               "\"token_ids\":%s}]}\n\n";
    }
}

static void add(struct text *t, const char *p, size_t n)
{
    CHECK(n <= sizeof(t->p) - t->n);
    memcpy(t->p + t->n, p, n);
    t->n += n;
}

/* Write the bytes to t with their marks replaced. */
static void render(struct text *t, const char *bytes, const char *ids, enum cloud_api api)
{
    struct text parts[5];
    const char *list = ids ? ids : "[42]";
    int n = snprintf(parts[0].p, sizeof(parts[0].p), whole_form(api), list);
    CHECK(n > 0 && (size_t)n < sizeof(parts[0].p));
    parts[0].n = (size_t)n;
    parts[1].n = (size_t)snprintf(parts[1].p, 20, "%d", n);
    parts[2].n = (size_t)snprintf(parts[2].p, 20, "%x", (unsigned)n);
    n = snprintf(parts[3].p, sizeof(parts[3].p), event_form(api), list);
    CHECK(n > 0 && (size_t)n < sizeof(parts[3].p));
    parts[3].n = (size_t)n;
    parts[4].p[0] = 0;
    parts[4].n = 1;
    t->n = 0;
    for (; *bytes; bytes++)
        if ((*bytes & 0xff) >= FIRST_MARK && (*bytes & 0xff) < FIRST_MARK + 5)
            add(t, parts[(*bytes & 0xff) - FIRST_MARK].p, parts[(*bytes & 0xff) - FIRST_MARK].n);
        else
            add(t, bytes, 1);
}

/* Wait until fd is ready. Returns 1: ready; 0: not within ms; -1: the check ends. */
static int ready(const struct matrix_server *s, int fd, short events, int ms)
{
    for (; !atomic_load(&s->stop); ms -= 10) {
        struct pollfd p = { .fd = fd, .events = events };
        if (poll(&p, 1, ms < 10 ? ms : 10) > 0)
            return 1;
        if (ms <= 10)
            return 0;
    }
    return -1;
}

static bool put(const struct matrix_server *s, int fd, const char *p, size_t n)
{
    while (n) {
        if (ready(s, fd, POLLOUT, PATIENT_MS) <= 0)
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

/* Discard input until the client closes. */
static void until_gone(const struct matrix_server *s, int fd)
{
    char sink[512];
    while (ready(s, fd, POLLIN, PATIENT_MS) > 0 && recv(fd, sink, sizeof(sink), 0) > 0)
        ;
}

static void flood(const struct matrix_server *s, int fd, const char *unit)
{
    char block[1 << 14];
    size_t n = 0, len = strlen(unit);
    for (; n + len <= sizeof(block); n += len)
        memcpy(block + n, unit, len);
    for (size_t sent = 0; sent < MAX_FLOOD && put(s, fd, block, n); sent += n)
        ;
}

static void drip(const struct matrix_server *s, int fd, const struct text *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (!put(s, fd, t->p + i, 1) || ready(s, fd, POLLIN, DRIP_MS) != 0)
            return;
}

/* Do what the row says; true when the connection stays open for another request. */
static bool play(const struct matrix_server *s, int fd)
{
    const struct matrix_row *r = s->row;
    if (r->then == DRIP) {
        drip(s, fd, &s->bad);
        return false;
    }
    if (!put(s, fd, s->bad.p, s->bad.n))
        return false;
    if (r->then == FLOOD)
        flood(s, fd, r->flood);
    if (r->then == SILENT)
        until_gone(s, fd);
    if (r->then == RESET) {
        struct linger now = { .l_onoff = 1, .l_linger = 0 };
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    }
    return r->then == KEEP;
}

/* Read one whole request, or `least` bytes of it; false when the client has gone. */
static bool get(const struct matrix_server *s, int fd, char *text, size_t cap, size_t least)
{
    size_t n = 0;
    for (;;) {
        size_t room = least ? least - n : cap - 1 - n;
        if (ready(s, fd, POLLIN, PATIENT_MS) <= 0)
            return false;
        ssize_t got = recv(fd, text + n, room, 0);
        if (got <= 0)
            return false;
        n += (size_t)got;
        text[n] = 0;
        if (n == least)
            return true;
        const char *end = least ? NULL : strstr(text, "\r\n\r\n");
        const char *length = end ? strstr(text, "Content-Length:") : NULL;
        if (end &&
            n >= (size_t)(end - text) + 4 + (length ? (size_t)strtoul(length + 15, NULL, 10) : 0))
            return true;
        CHECK(n + 1 < cap);
    }
}

static void *connection(void *arg)
{
    char text[1 << 16];
    const struct connection *c = arg;
    const struct matrix_server *s = c->server;
    bool bad = s->row && !atomic_load(&s->mended), stays = true;
    if (bad && s->row->when == ACCEPT)
        stays = play(s, c->fd);
    while (stays && get(s, c->fd, text, sizeof(text), bad && s->row->when == HALF ? 16 : 0)) {
        bad = s->row && !atomic_load(&s->mended);
        stays = bad ? play(s, c->fd) : put(s, c->fd, s->good.p, s->good.n);
    }
    close(c->fd);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct matrix_server *s = arg;
    while (ready(s, s->listener, POLLIN, 1 << 30) > 0) {
        int one = 1, fd = accept(s->listener, NULL, NULL);
        if (fd < 0)
            continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        CHECK(s->started < CONNECTIONS);
        s->at[s->started] = (struct connection){ s, fd };
        CHECK(!pthread_create(&s->threads[s->started], NULL, connection, &s->at[s->started]));
        s->started++;
    }
    return NULL;
}

struct matrix_server *matrix_open(const struct matrix_row *row, enum cloud_api api)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    struct matrix_server *s = calloc(1, sizeof(*s));
    CHECK(s);
    s->row = row;
    render(&s->good, good_reply, NULL, api);
    if (row)
        render(&s->bad, row->bytes ? row->bytes : "", row->ids, api);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(s->listener >= 0 && bind(s->listener, (struct sockaddr *)&at, sizeof(at)) == 0);
    CHECK(listen(s->listener, 64) == 0);
    CHECK(getsockname(s->listener, (struct sockaddr *)&at, &len) == 0);
    s->port = ntohs(at.sin_port);
    CHECK(pthread_create(&s->acceptor, NULL, accept_all, s) == 0);
    return s;
}

unsigned matrix_port(const struct matrix_server *s)
{
    return s->port;
}

void matrix_mend(struct matrix_server *s)
{
    atomic_store(&s->mended, 1);
}

void matrix_close(struct matrix_server *s)
{
    atomic_store(&s->stop, 1);
    pthread_join(s->acceptor, NULL);
    for (size_t i = 0; i < s->started; i++)
        pthread_join(s->threads[i], NULL);
    close(s->listener);
    free(s);
}

/* Check code, id and message: one harmless line that contains the row's text and not the key. */
static bool check_answer(const struct matrix_row *r, enum cloud_api api, int rc, uint32_t id,
                         const struct err *err)
{
    bool line = rc == OK || (*err->msg && strstr(err->msg, r->says) && !strstr(err->msg, KEY));
    bool right = rc == r->code && id == (rc == OK ? MATRIX_ID : 77) && line;
    for (const char *c = err->msg; *c && rc; c++)
        right = right && *c >= 0x20 && *c != 0x7f;
    if (!right)
        fprintf(stderr, "%s, %s: code %d, id %u: %s\n", r->name, cloud_api_name(api), rc,
                (unsigned)id, rc ? err->msg : "");
    return right;
}

/* Check that the call ended in time, and not before a deadline that alone can end it. */
static bool check_time(const struct matrix_row *r, int rc, double ms)
{
    bool waits = r->late && rc != OK;
    bool right =
        ms < (waits ? MATRIX_LATE_MS : 0) + SLACK_MS && (!waits || ms > MATRIX_LATE_MS - 1);
    if (!right)
        fprintf(stderr, "%s: %.0f ms\n", r->name, ms);
    return right;
}

static bool check_ledger(const struct matrix_row *r, const struct cloud_ledger *l, int rc)
{
    bool right = l->calls == 1 && l->faults == (rc != OK) && l->committed == (rc == OK) &&
                 (r->stream ? (l->tokens > 0) == (rc == OK) : l->tokens == (rc == OK));
    if (!right)
        fprintf(stderr, "%s: the ledger is wrong\n", r->name);
    return right;
}

/* Check the next call, after the server has been told to answer correctly. */
static bool check_next(const struct matrix_row *r, struct cloud *c, enum cloud_api api)
{
    const struct matrix_row well = { .name = r->name, .code = OK, .says = "" };
    struct err err = { "" };
    uint32_t id = 77;
    int rc = cloud_next(c, prompt, 3, &id, &err);
    for (int again = 0; rc == ERR_NET && r->late && again < 20; again++) /* its deadline is short */
        rc = cloud_next(c, prompt, 3, &id, &err);
    return check_answer(&well, api, rc, id, &err);
}

bool matrix_call(const struct matrix_row *r, enum cloud_api api, const char *url,
                 struct matrix_server *s)
{
    const struct cloud_options o = { .url = url,
                                     .api = api,
                                     .model = "m",
                                     .key = KEY,
                                     .vocab = MATRIX_VOCAB,
                                     .max_reply = 1 << 16,
                                     .tokens = r->stream ? 4 : 1,
                                     .timeout_ms =
                                         r->late || r->hasty ? MATRIX_LATE_MS : PATIENT_MS };
    struct err err = { "" };
    struct cloud *c;
    uint32_t id = 77;
    CHECK(cloud_open(&c, &o, &err) == OK);
    uint64_t start = os_now_ns();
    int rc = cloud_next(c, prompt, 3, &id, &err);
    bool right = check_time(r, rc, (double)(os_now_ns() - start) / 1e6);
    right = check_answer(r, api, rc, id, &err) && right;
    right = check_ledger(r, cloud_ledger(c), rc) && right;
    if (s)
        matrix_mend(s);
    right = right && (!s || check_next(r, c, api));
    cloud_close(c);
    return right;
}

bool matrix_check(const struct matrix_row *r, enum cloud_api api)
{
    struct matrix_server *s = matrix_open(r, api);
    char url[64];
    snprintf(url, sizeof(url), "%s://127.0.0.1:%u", r->tls ? "https" : "http", s->port);
    bool right = matrix_call(r, api, url, r->tls ? NULL : s);
    matrix_close(s);
    return right;
}
