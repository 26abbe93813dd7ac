/* http.h - the transport: transfers over kept-alive connections, everything bounded.
 *
 * libcurl's multi interface; one thread drives it and is the only one that touches it, but for
 * http_wake. Only http and https; HTTP/2 where TLS offers it; TLS is always verified; redirects,
 * proxies, cookies, .netrc and compressed replies are off. Knows no dialect and no clock: who
 * drives it aborts what takes too long. The thread must have SIGPIPE blocked. */
#ifndef NET_HTTP_HTTP_H
#define NET_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/base.h"
#include "net/http/buf.h"
#include "net/http/traffic.h"

struct http;

struct http_options {
    const char *key;  /* sent as "Authorization: Bearer KEY", or NULL; copied */
    const char *ca;   /* PEM file: the only authorities then trusted; NULL: the system's */
    size_t max_reply; /* bytes of a body */
};

struct http_try { /* one transfer */
    void *arg;    /* the caller's */
    /* Called after each piece of a body, which it may take away (body.n = 0). False: abort. */
    bool (*data)(struct http_try *t);
    long status; /* 0: no reply yet */
    bool stream; /* the reply says it is text/event-stream */
    struct buf body;
    /* Once ended: */
    int rc;                 /* OK: a whole reply, whatever its status; ERR_NET, ERR_NOMEM */
    struct err err;         /* without URL and key */
    bool broken;            /* the connection failed: may be tried again */
    bool lost;              /* so, with the request sent once and no byte of an answer */
    bool answered;          /* at least one byte came */
    unsigned sent;          /* 2: libcurl sent it once more, as a kept connection was dead */
    uint64_t retry_ms;      /* Retry-After, 0: none */
    const char *location;   /* of a redirect, or NULL; until http_release */
    struct http_hold *hold; /* http.c's own */
};

struct http_request {
    const char *url;
    const char *body; /* [n] JSON to POST, borrowed until the end; NULL: GET */
    size_t n;
    bool gzip;  /* body is compressed */
    bool fresh; /* on a connection of its own */
    bool once;  /* never sent twice, whatever becomes of the connection */
};

/* ERR_NOMEM; ERR_ARG: the key or the CA file cannot be used; ERR_NET: no descriptor is left. */
int http_open(struct http **out, const struct http_options *o, struct err *err);
/* No transfers may be out. Not in a forked child: its connections are the parent's. NULL is fine.
 */
void http_close(struct http *h);

/* Starts a transfer; arg and data as in struct http_try. ERR_NOMEM. */
int http_start(struct http *h, struct http_try **out, const struct http_request *r, void *arg,
               bool (*data)(struct http_try *t), struct err *err);
/* Ends a transfer, finished or not (HTTP/1.1 then loses its connection), and takes t back. */
void http_release(struct http *h, struct http_try *t);
/* Let all transfers go on as far as they can without waiting. */
int http_perform(struct http *h, struct err *err);
/* The next transfer that has ended since, or NULL. */
struct http_try *http_ended(struct http *h);
/* Wait until something happens, http_wake or ms. */
void http_wait(struct http *h, int ms);
void http_wake(struct http *h); /* any thread */

bool http_multiplexes(const struct http *h); /* the latest reply came over HTTP/2 */
/* Return the bytes of all transfers since http_open; retries and hedges are 0. */
struct traffic http_traffic(const struct http *h);

#endif
