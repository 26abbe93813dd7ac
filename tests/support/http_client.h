/* http_client.h - a plain HTTP client for tests of our own server: it shows status, headers and
 * whether a body came whole, and it sends any bytes. It makes one request per call. */
#ifndef TESTS_SUPPORT_HTTP_CLIENT_H
#define TESTS_SUPPORT_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

struct http_client_reply {
    int status; /* 0: no reply came */
    char *head; /* status line and headers, terminated, truncated if very long */
    char *body; /* [n], terminated; chunks joined */
    size_t n, chunks;
    bool whole; /* the stated length, or the last chunk, was reached */
};

/* Connect to 127.0.0.1; ends the test when that fails. */
int http_client_open(unsigned port);
void http_client_send(int fd, const char *bytes, size_t n);
/* Send "METHOD PATH HTTP/1.1", a host, a length if there is a body (NULL: none), headers (each with
 * CRLF, or NULL) and the body. */
void http_client_put(int fd, const char *method, const char *path, const char *headers,
                     const char *body, size_t n);
/* Read one reply, until it is whole, the other side closes, or ms have passed. */
void http_client_get(int fd, struct http_client_reply *r, unsigned ms);
void http_client_free(struct http_client_reply *r); /* head and body */

/* Do all of this on a new connection. */
void http_client_ask(unsigned port, struct http_client_reply *r, const char *method,
                     const char *path, const char *headers, const char *body);
/* The same; the reply stays valid until the next call of either, which one thread may make. */
struct http_client_reply *http_client_reply(unsigned port, const char *method, const char *path,
                                            const char *headers, const char *body);
struct http_client_reply *http_client_read(int fd, unsigned ms);

/* Whatever comes back, be it HTTP or not. */
struct raw_reply {
    char bytes[16 << 10]; /* terminated; what comes after that is dropped */
    size_t n;
    int status;  /* of the first reply; 0: none */
    int replies; /* status lines that came */
    bool ended;  /* the server closed the connection */
};

/* Read until the other side closes, `want` replies have come whole (0: no limit), or ms have
 * passed without a byte. */
void raw_http_read(int fd, struct raw_reply *r, int want, int ms);
/* Send bytes[n] on a new connection to 127.0.0.1 and read. */
void raw_http_ask(unsigned port, struct raw_reply *r, const char *bytes, size_t n, int want,
                  int ms);

#endif
