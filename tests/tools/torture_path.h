/* torture_path.h - asks a server of this process while the n-th allocation fails, for every n: it
 * answers whole, with an error, or not at all. */
#ifndef TESTS_TOOLS_TORTURE_PATH_H
#define TESTS_TOOLS_TORTURE_PATH_H

#include "tests/support/http_client.h"
#include "tests/support/test.h"

enum { TORTURE_ANSWER = 64 << 10 };

/* Ask and read what comes back, without an allocation. Returns the status, 0 if the connection was
 * closed without a whole answer, and the body with its numbers blotted out, which may differ. */
static inline int torture_ask(unsigned port, const char *path, const char *body,
                              char out[TORTURE_ANSWER], size_t *n)
{
    static struct raw_reply r;
    char head[300];
    int fd = http_client_open(port);
    snprintf(head, sizeof(head),
             "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: "
             "application/json\r\nContent-Length: %zu\r\n\r\n",
             body ? "POST" : "GET", path, body ? strlen(body) : 0);
    http_client_send(fd, head, strlen(head));
    http_client_send(fd, body ? body : "", body ? strlen(body) : 0);
    raw_http_read(fd, &r, 0, 60000);
    close(fd);
    CHECK(r.ended && r.n < sizeof(r.bytes) - 1);
    const char *p = strstr(r.bytes, "\r\n\r\n"), *end = r.bytes + r.n;
    const char *length = strstr(r.bytes, "Content-Length: ");
    *n = 0;
    if (!p || !length || (size_t)(end - p - 4) < strtoul(length + 16, NULL, 10))
        return 0;
    for (p += 4; p < end; *n += 1) {
        size_t digits = strspn(p, "0123456789abcdef.-");
        out[*n] = digits ? '0' : *p;
        p += digits ? digits : 1;
    }
    return r.status;
}

/* Ask for a path, with a body or without (NULL); first without a failure, which gets this status.
 */
static inline void torture_path(unsigned port, const char *path, const char *body, int wanted)
{
    static char text[TORTURE_ANSWER], whole[TORTURE_ANSWER];
    long n = 0, silent = 0, refused = 0;
    size_t all = 0;
    do {
        size_t length;
        torture_begin(n);
        int status = torture_ask(port, path, body, text, &length);
        CHECK_MSG(status == wanted || (n && (!status || status >= 400)), "%s: %d", path, status);
        if (!n)
            memcpy(whole, text, all = length);
        CHECK_MSG(status != wanted || (length == all && memcmp(text, whole, length) == 0),
                  "%s, allocation %ld: %.*s", path, n, (int)length, text);
        silent += !status;
        refused += status >= 400;
    } while (torture_end() + (n++ == 0));
    printf("%s: %ld allocations, %ld refused, %ld closed\n", path, n, refused, silent);
}

#endif
