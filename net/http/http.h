/* http.h - the transport: bounded transfers over kept-alive connections.
 *
 * Built on libcurl's multi interface. One thread drives it and is the only one that touches it,
 * except for http_wake. Only http and https; HTTP/2 where TLS offers it; TLS is always verified;
 * redirects, cookies, .netrc and compressed replies are off. It knows no dialect and no
 * clock: the thread that drives it aborts transfers that take too long, and must have SIGPIPE
 * blocked. */
#ifndef NET_HTTP_HTTP_H
#define NET_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "net/http/traffic.h"

struct http;

struct http_options {
    const char *key;   /* sent as "Authorization: Bearer KEY", or NULL; copied */
    const char *ca;    /* PEM file of the only authorities to trust; NULL: those of the system */
    const char *proxy; /* as in cloud_options */
    size_t max_reply;  /* bytes of a body */
};

struct http_try { /* one transfer */
    void *arg;    /* for the caller */
    /* Called after each piece of a body, which it may consume (body.n = 0). False aborts. */
    bool (*data)(struct http_try *t);
    bool (*leave)(struct http_try *t); /* as in http_request */
    long status;                       /* HTTP status; 0: no reply yet */
    bool stream;                       /* the reply has the type text/event-stream */
    struct buf body;
    struct traffic traffic; /* bytes of this transfer so far */
    /* Valid once the transfer has ended: */
    int rc;            /* OK: a whole reply with any status; else ERR_NET, ERR_NOMEM */
    struct err err;    /* without URL and key */
    bool broken;       /* the connection failed: a retry may help */
    bool lost;         /* broken, after the request was sent once and before any byte came */
    bool answered;     /* at least one byte came */
    unsigned sent;     /* how often the request went out; 2: libcurl found a kept connection dead */
    uint64_t retry_ms; /* from Retry-After; 0: none */
    const char *location;   /* target of a redirect, or NULL; valid until http_release */
    struct http_hold *hold; /* private to http.c */
};

struct http_request {
    const char *url;
    const char *body; /* n bytes of JSON to POST, borrowed until the end; NULL: GET */
    size_t n;
    bool fresh; /* use a new connection */
    bool once;  /* never send it twice, whatever becomes of the connection */
    /* Called each time before it goes out, with the http_try. False: it does not. NULL: it may. */
    bool (*leave)(struct http_try *t);
};

/* Create a transport. ERR_NOMEM; ERR_ARG: the key or the CA file cannot be used; ERR_NET: no file
 * descriptor is left. */
int http_open(struct http **out, const struct http_options *o, struct err *err);
/* Close it; all transfers must have been released. Do not call it in a forked child, whose
 * connections are the parent's. NULL is fine. */
void http_close(struct http *h);

/* Start a transfer; for arg and data see struct http_try. ERR_NOMEM. */
int http_start(struct http *h, struct http_try **out, const struct http_request *r, void *arg,
               bool (*data)(struct http_try *t), struct err *err);
/* End a transfer, finished or not (an unfinished one closes its HTTP/1.1 connection), and take t
 * back. */
void http_release(struct http *h, struct http_try *t);
/* Advance all transfers as far as possible without waiting. */
int http_perform(struct http *h, struct err *err);
/* Return the next transfer that has ended, or NULL. */
struct http_try *http_ended(struct http *h);
/* Wait for network activity, for http_wake, or for ms milliseconds. */
void http_wait(struct http *h, int ms);
void http_wake(struct http *h); /* any thread */

bool http_multiplexes(const struct http *h); /* the latest reply came over HTTP/2 */
/* Return the bytes of all transfers since http_open; retries are 0. */
struct traffic http_traffic(const struct http *h);

#endif
