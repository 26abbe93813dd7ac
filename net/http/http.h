/* http.h - the transport: bounded transfers over kept-alive connections.
 *
 * One thread drives libcurl's multi interface and is the only one that touches it, except for
 * http_wake. Only http and https; HTTP/2 where TLS offers it; TLS is always verified; redirects,
 * cookies, .netrc and compressed replies are off. It knows no dialect and no clock: the thread that
 * drives it aborts transfers that take too long, and must have SIGPIPE blocked. */
#ifndef NET_HTTP_HTTP_H
#define NET_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "net/http/traffic.h"

struct http;
struct http_try;

struct http_options {
    const char *key;   /* sent as "Authorization: Bearer KEY", or NULL; copied */
    const char *ca;    /* PEM file of the only authorities to trust; NULL: those of the system */
    const char *proxy; /* as in cloud_options */
    size_t max_reply;  /* bytes of a body */
};

struct http_request {
    const char *url;
    const char *body; /* n bytes of JSON to POST, borrowed until the end; NULL: GET */
    size_t n;
    bool fresh;                        /* use a new connection */
    void *arg;                         /* for the callbacks, of which each may be NULL */
    bool (*leave)(struct http_try *t); /* before it goes out, once; false: it does not */
    bool (*data)(struct http_try *t); /* after a piece of a body, which it may consume (body.n = 0);
                                         false aborts */
    void (*moved)(struct http_try *t, const struct traffic *more); /* bytes were sent or received */
    void (*ended)(struct http_try *t); /* http_perform calls it last; it may release t */
};

struct http_try { /* one transfer */
    struct http_request request;
    long status; /* HTTP status; 0: no reply yet */
    bool stream; /* the reply has the type text/event-stream */
    struct buf body;
    bool sent;     /* it went out */
    bool answered; /* at least one byte came */
    /* Valid once the transfer has ended: */
    bool over;
    int rc;               /* OK: a whole reply with any status; else ERR_NET, ERR_NOMEM */
    struct err err;       /* without URL and key */
    bool broken;          /* the connection failed: a retry may help */
    bool http2;           /* the reply came over HTTP/2 */
    uint64_t retry_ms;    /* from Retry-After; 0: none */
    const char *location; /* target of a redirect, or NULL */
};

/* Check that a file holds a certificate in PEM form. ERR_ARG. */
int http_check_ca(const char *path, struct err *err);
/* Create a transport. ERR_NOMEM; ERR_ARG: the CA file cannot be used; ERR_NET: no file descriptor
 * is left. */
int http_open(struct http **out, const struct http_options *o, struct err *err);
/* Close it; all transfers must have been released. Do not call it in a forked child, whose
 * connections are the parent's. NULL is fine. */
void http_close(struct http *h);

/* Start a transfer. ERR_NOMEM. */
int http_start(struct http *h, struct http_try **out, const struct http_request *r,
               struct err *err);
/* End a transfer, finished or not (an unfinished one closes its HTTP/1.1 connection), and free it.
 * NULL is fine. */
void http_release(struct http *h, struct http_try *t);
/* Advance all transfers as far as possible without waiting, and report those that have ended. */
int http_perform(struct http *h, struct err *err);
/* Wait for network activity, for http_wake, or for ms milliseconds. */
void http_wait(struct http *h, int ms);
void http_wake(struct http *h); /* any thread */

#endif
