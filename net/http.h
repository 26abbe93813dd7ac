/* http.h - the transport: one kept-alive connection, one request at a time, everything bounded.
 *
 * libcurl's multi interface drives it, so that a deadline and an interruption hold in every phase
 * (name look-up, connect, TLS, waiting, reading). Only http and https; TLS is always verified;
 * redirects, proxies, cookies, .netrc and compression are off. Knows no dialect. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct http; /* one thread at a time; not usable in a forked child */

struct http_options {
    const char *key;  /* sent as "Authorization: Bearer KEY", or NULL; copied */
    const char *ca;   /* PEM file: the only authorities then trusted; NULL: the system's */
    size_t max_reply; /* bytes of a body */
    const _Atomic int *stop;
};

struct http_reply {
    long status;
    const char *body; /* [n], not terminated; until the next request */
    size_t n;
    const char *location; /* of a redirect, or NULL; until the next request */
};

/* ERR_NOMEM; ERR_ARG: the key or the CA file cannot be used. */
int http_open(struct http **out, const struct http_options *o, struct err *err);
void http_close(struct http *h);

/* body NULL: GET, else POST of n bytes of JSON. deadline: os_now_ns() at which to give up. Any
 * status is OK here. ERR_NET: no whole reply (err says why, without URL and key); ERR_STOP;
 * ERR_NOMEM. A request that failed on a connection kept from an earlier call, before any byte of
 * an answer, is sent once more on a new one: asking for a greedy token twice changes nothing. */
int http_request(struct http *h, const char *url, const char *body, size_t n, uint64_t deadline,
                 struct http_reply *reply, struct err *err);

/* Bytes of headers and bodies so far, both ways. */
uint64_t http_bytes_up(const struct http *h);
uint64_t http_bytes_down(const struct http *h);

#endif
