/* plain.h - a plain HTTP client for tests of our own server: it sees status, headers and whether a
 * body came whole, and takes any bytes. One request a call. */
#ifndef TESTS_SUPPORT_PLAIN_H
#define TESTS_SUPPORT_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

struct plain_reply {
    int status;           /* 0: nothing came */
    char head[112 << 10]; /* status line and headers, cut where they are longer */
    char *body;           /* [n], terminated; chunks joined; plain_free frees it */
    size_t n, chunks;
    bool whole; /* as long as the reply said, or with its last chunk */
};

/* A connection to 127.0.0.1; exits the test where there is none. */
int plain_open(unsigned port);
void plain_send(int fd, const char *bytes, size_t n);
/* "METHOD PATH HTTP/1.1", host, length where there is a body (NULL: none), headers (each with CRLF,
 * or NULL) and the body. */
void plain_put(int fd, const char *method, const char *path, const char *headers, const char *body,
               size_t n);
/* Reads one reply, or until the other side closes or ms have passed. */
void plain_get(int fd, struct plain_reply *r, unsigned ms);
void plain_free(struct plain_reply *r);

/* All of it on a connection of its own. */
void plain_ask(unsigned port, struct plain_reply *r, const char *method, const char *path,
               const char *headers, const char *body);

#endif
