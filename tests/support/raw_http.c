#include "tests/support/raw_http.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/http_client.h"

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
