#include "tests/support/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/support/test.h"

enum { MOST = 160 << 20, HEAD = 112 << 10 };

int http_client_open(unsigned port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
    return fd;
}

void http_client_send(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the server has closed; the test looks at the reply, or its absence */
        bytes += sent;
        n -= (size_t)sent;
    }
}

void http_client_put(int fd, const char *method, const char *path, const char *headers,
                     const char *body, size_t n)
{
    char length[64] = "", *all = malloc(n + 4096);
    CHECK(all && strlen(path) + (headers ? strlen(headers) : 0) < 3500);
    if (body)
        snprintf(length, sizeof(length), "Content-Length: %zu\r\n", n);
    size_t at = (size_t)snprintf(
        all, 4096, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s%s\r\n", method, path, length,
        headers && strstr(headers, "Content-Type") ? "" : "Content-Type: application/json\r\n",
        headers ? headers : "");
    if (body)
        memcpy(all + at, body, n);
    http_client_send(fd, all, at + (body ? n : 0));
    free(all);
}

struct reader {
    int fd;
    uint64_t until;
    char bytes[1 << 16];
    size_t at, n;
};

/* Return the next byte, or -1 at the end or after the deadline. */
static int next(struct reader *in)
{
    if (in->at == in->n) {
        uint64_t now = os_now_ns();
        struct pollfd p = { .fd = in->fd, .events = POLLIN };
        if (now >= in->until || poll(&p, 1, (int)((in->until - now) / 1000000) + 1) <= 0)
            return -1;
        ssize_t n = recv(in->fd, in->bytes, sizeof(in->bytes), 0);
        if (n <= 0)
            return -1;
        in->at = 0;
        in->n = (size_t)n;
    }
    return (unsigned char)in->bytes[in->at++];
}

static bool read_head(struct reader *in, struct http_client_reply *r)
{
    char end[4] = "";
    size_t n = 0;
    while (memcmp(end, "\r\n\r\n", 4) != 0) {
        int c = next(in);
        if (c < 0)
            return false;
        memmove(end, end + 1, 3);
        end[3] = (char)c;
        if (n + 1 < HEAD)
            r->head[n++] = (char)c;
    }
    r->head[n] = 0;
    r->status = n > 12 ? (int)strtol(r->head + 9, NULL, 10) : 0;
    return true;
}

static bool read_bytes(struct reader *in, struct http_client_reply *r, size_t n)
{
    CHECK(n <= MOST);
    char *grown = realloc(r->body, r->n + n + 1);
    CHECK(grown);
    r->body = grown;
    for (; n; n--) {
        int c = next(in);
        if (c < 0)
            return false;
        r->body[r->n++] = (char)c;
    }
    return true;
}

static bool read_chunk(struct reader *in, struct http_client_reply *r, bool *last)
{
    char line[20];
    size_t n = 0;
    int c;
    while ((c = next(in)) >= 0 && c != '\n')
        if (n + 1 < sizeof(line))
            line[n++] = (char)c;
    line[n] = 0;
    char *end;
    size_t size = strtoull(line, &end, 16);
    if (c < 0 || end == line || !read_bytes(in, r, size))
        return false;
    *last = !size;
    r->chunks += size > 0;
    return next(in) == '\r' && next(in) == '\n';
}

void http_client_get(int fd, struct http_client_reply *r, unsigned ms)
{
    struct reader *in = malloc(sizeof(*in));
    CHECK(in);
    in->fd = fd;
    in->until = os_now_ns() + ms * UINT64_C(1000000);
    in->at = in->n = 0;
    *r = (struct http_client_reply){ .head = calloc(1, HEAD) };
    CHECK(r->head && read_bytes(in, r, 0));
    if (read_head(in, r)) {
        const char *length = strstr(r->head, "Content-Length: ");
        bool last = false;
        if (strstr(r->head, "Transfer-Encoding: chunked")) {
            while (!last && read_chunk(in, r, &last))
                ;
            r->whole = last;
        } else if (length) {
            r->whole = read_bytes(in, r, strtoull(length + 16, NULL, 10));
        } else {
            r->whole = r->status == 204;
        }
    }
    r->body[r->n] = 0;
    free(in);
}

void http_client_free(struct http_client_reply *r)
{
    free(r->head);
    free(r->body);
    r->head = r->body = NULL;
}

void http_client_ask(unsigned port, struct http_client_reply *r, const char *method,
                     const char *path, const char *headers, const char *body)
{
    int fd = http_client_open(port);
    http_client_put(fd, method, path, headers, body, body ? strlen(body) : 0);
    http_client_get(fd, r, 30000);
    close(fd);
}

static struct http_client_reply latest;

struct http_client_reply *http_client_reply(unsigned port, const char *method, const char *path,
                                            const char *headers, const char *body)
{
    http_client_free(&latest);
    http_client_ask(port, &latest, method, path, headers, body);
    return &latest;
}

struct http_client_reply *http_client_read(int fd, unsigned ms)
{
    http_client_free(&latest);
    http_client_get(fd, &latest, ms);
    return &latest;
}

/* Count the replies, and those that are whole. */
static int raw_http_count(struct raw_reply *r)
{
    int whole = 0;
    const char *end = r->bytes + r->n, *p = r->bytes;
    r->replies = 0;
    while (p < end && strncmp(p, "HTTP/1.", 7) == 0) {
        if (!r->replies++)
            r->status = (int)strtol(p + 9, NULL, 10);
        const char *body = strstr(p, "\r\n\r\n"), *length = strstr(p, "Content-Length: ");
        if (!body)
            break;
        body += 4;
        size_t n = length && length < body ? strtoul(length + 16, NULL, 10) : 0;
        if ((size_t)(end - body) < n)
            break;
        whole++;
        p = body + n;
    }
    return whole;
}

void raw_http_read(int fd, struct raw_reply *r, int want, int ms)
{
    char more[4096];
    *r = (struct raw_reply){ .ended = false };
    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        if (poll(&p, 1, ms) <= 0)
            return;
        ssize_t got = recv(fd, more, sizeof(more), 0);
        if (got <= 0) {
            r->ended = true;
            return;
        }
        size_t room = sizeof(r->bytes) - 1 - r->n, n = (size_t)got < room ? (size_t)got : room;
        memcpy(r->bytes + r->n, more, n);
        r->n += n;
        if (raw_http_count(r) >= want && want)
            return;
    }
}

void raw_http_ask(unsigned port, struct raw_reply *r, const char *bytes, size_t n, int want, int ms)
{
    int fd = http_client_open(port);
    http_client_send(fd, bytes, n);
    raw_http_read(fd, r, want, ms);
    close(fd);
}
