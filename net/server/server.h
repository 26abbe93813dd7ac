/* server.h - an HTTP/1.1 server that knows no API: listener, TLS, deadlines, checks of each head,
 * bodies, replies and streams, and clients that leave.
 *
 * The callbacks below run on the thread of their connection, so they may wait. One more thread, the
 * watcher, looks at all sockets and deadlines together. Nothing here depends on the wall clock.
 *
 * Refused before a callback sees the request and before its body is read: Transfer-Encoding beside
 * Content-Length, or other than "chunked", or in HTTP/1.0; a doubled Host, Content-Length,
 * Authorization, Origin or the like; no Host; a Host that is not served here; the Origin of another
 * site; a blank or any other character in a header's name that does not belong there; control
 * characters, NUL and "%00"; folded lines and lines that do not end in CRLF; a target of another
 * host; the body of a GET; a body that is too large or compressed; a wrong key.
 *
 * libmicrohttpd reads chunks loosely (a lone LF, extensions), so that a proxy could see another end
 * of the body. Whatever follows a request in chunks is never read: the connection closes. */
#ifndef NET_SERVER_SERVER_H
#define NET_SERVER_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct server;
struct server_request; /* one exchange; for its connection's thread unless stated otherwise */

/* Why the server itself refuses a request, and the usual status. */
enum server_refusal {
    SERVER_BAD_HEAD,     /* 400 */
    SERVER_BAD_HOST,     /* 403 */
    SERVER_BAD_ORIGIN,   /* 403 */
    SERVER_BAD_KEY,      /* 401 */
    SERVER_TOO_LARGE,    /* 413 */
    SERVER_BAD_ENCODING, /* 415: the body is compressed */
    SERVER_BUSY,         /* 503: too many bytes of bodies at a time */
    SERVER_STOPPING,     /* 503: no answer came in time when the server closed */
    SERVER_NO_MEMORY,    /* 503 */
};

struct server_options {
    const char *host;   /* "localhost" or an address of this machine; NULL: 127.0.0.1 */
    unsigned port;      /* 0: any free one */
    const char *key;    /* required as "Authorization: Bearer KEY"; NULL: none */
    const char *tls;    /* PEM file of a certificate and its key: https; or NULL */
    size_t connections; /* places; 0: 1,100. Fewer if descriptors are limited. When all are taken, a
                           new connection ends the one whose request has been awaited longest */
    unsigned head_ms;   /* for handshake and head, and between requests, counted in all; shrinks to
                           1 s while the last half of the places fills; 0: 10 s */
    unsigned body_ms;   /* for the body, in all; 0: 60 s */
    unsigned send_ms;   /* for each 16 KiB of a reply; 0: 30 s */
    size_t head_max;    /* bytes of a request's head, and of a reply's; 0: 32 KiB */
    size_t body_max;    /* bytes of one body; 0: 4 MiB */
    size_t bodies_max;  /* of all bodies in memory, and of their JSON; 0: 128 MiB */
    const char *const *hosts; /* names accepted as Host besides IP addresses and localhost; ends
                                 with NULL; NULL: none */
    bool any_host;            /* accept all names instead */
    const char *origin;       /* site that may call besides one's own, as "http://localhost:3000",
                                 maybe with a slash behind it */
    const char *name;         /* Server header of replies; NULL: none */
    const char *late;         /* JSON body of status 408; NULL: no body */
    const char *malformed;    /* that of what libmicrohttpd finds wrong behind the first line */
    /* True if the request needs no key. NULL: all do. */
    bool (*open)(void *arg, struct server_request *r);
    /* Looks at the head of a request that has passed the checks, before its body is read. False: it
     * has answered, and the body will not be read. NULL: all are fine. */
    bool (*head)(void *arg, struct server_request *r);
    /* Answers a complete request with server_reply or server_stream. If it returns without an
     * answer, the connection is closed, or gets status 503 once the grace of server_close is over.
     */
    void (*handle)(void *arg, struct server_request *r);
    /* Answers a request that the server refuses, with server_reply; `why` is one line. NULL: plain
     * text is sent. What libmicrohttpd refuses by itself gets `malformed`, and that library's
     * reply if it is the first line of a connection or comes over TLS. */
    void (*refuse)(void *arg, struct server_request *r, enum server_refusal what, unsigned status,
                   const char *why);
    void *arg;
};

/* Start a server that runs until it is closed. Strings are borrowed. May raise the limit of this
 * process on open files. ERR_ARG: the options contradict each other, or others can reach the host
 * and there is no key; ERR_NET: the port is in use; ERR_IO, ERR_FORMAT: certificate or key are
 * unusable; ERR_NOMEM. */
int server_open(struct server **out, const struct server_options *o, struct err *err);
/* Take no new connections and close the idle ones. Replies in progress may finish for grace_ms;
 * then waiting ends, requests without an answer get status 503, and each stream is asked for bytes
 * once more and cut unless these are its last. NULL is fine. */
void server_close(struct server *s, unsigned grace_ms);
unsigned server_port(const struct server *s);
const char *server_url(const struct server *s); /* "http://127.0.0.1:PORT", or https */
/* Return the number of open connections. Any thread may call it. */
size_t server_connections(struct server *s);

/* The request. Texts live as long as it does. */
const char *server_method(const struct server_request *r);
const char *server_path(const struct server_request *r); /* decoded, begins with '/' */
/* Return the value of a header, or NULL. A head with two of those checked above is refused; of
 * others the first is returned. */
const char *server_header(const struct server_request *r, const char *name);
/* Return the body. It lasts until handle returns. */
const struct buf *server_body(const struct server_request *r);
/* Read the body as JSON, which is the caller's to free before the body goes. What it may take in
 * memory counts among all bodies until then. A byte order mark is skipped, and half of a surrogate
 * pair is read as U+FFFD. Errors of json_input_parse; ERR_FORMAT: it would take more than 64 MiB;
 * ERR_NOMEM: all together would take too much. */
int server_parse(struct server_request *r, json_t **out, struct err *err);
/* Free the body; others may claim its memory. */
void server_drop_body(struct server_request *r);
/* True if it is declared as JSON. */
bool server_is_json(const struct server_request *r);
struct server_facts {
    size_t head, body; /* bytes */
    int fd;
    unsigned status; /* of the reply; 0: there is none */
};
struct server_facts server_facts(const struct server_request *r);
/* Return a number that no other request of this server has, nor, in all likelihood, of another. All
 * replies have it in x-request-id, "req-" and 16 digits, base 16, but those of libmicrohttpd itself
 * and the one to a malformed Content-Length, which has no body either. */
uint64_t server_number(const struct server_request *r);
enum { SERVER_PEER = 64 };
/* Write the client's address, or "-", to out, and return that. */
const char *server_peer(const struct server_request *r, char out[SERVER_PEER]);
/* True for the first request of its connection. */
bool server_first(const struct server_request *r);
/* Attach something to the request; drop(own) is called once when the request ends. */
void server_set_own(struct server_request *r, void *own, void (*drop)(void *own));
void *server_own(const struct server_request *r);

/* Answer with *body, which is taken and may be empty. headers: pairs that end with a NULL name, or
 * NULL; type may be NULL. Out of memory: the connection is closed. */
void server_reply(struct server_request *r, unsigned status, const char *type, struct buf *body,
                  const char *const headers[][2]);

enum server_more { SERVER_MORE, SERVER_END, SERVER_BROKEN };

/* Answer with what `more` appends to out, which is empty each time; it may wait. SERVER_BROKEN cuts
 * the connection. length: of the whole body; -1: it is sent in chunks. */
void server_stream(struct server_request *r, unsigned status, const char *type, int64_t length,
                   const char *const headers[][2],
                   enum server_more (*more)(void *arg, struct buf *out), void *arg);

/* Wait until os_now_ns() reaches until_ns, server_wake is called, or the server begins to close;
 * the caller checks again. False: the client has gone, or the grace is over. */
bool server_wait(struct server_request *r, uint64_t until_ns);
/* End the request's wait, or its next one. Any thread may call it while the request lasts; it does
 * not block. */
void server_wake(struct server_request *r);
/* True, once, if the client of a stream has shut down its sending side: it may have left, which the
 * next bytes show. */
bool server_doubts(struct server_request *r);
/* True if the answer is no longer wanted: the client has gone, or the grace is over. */
bool server_gone(struct server_request *r);
/* True from the beginning of server_close. Any thread may call it. */
bool server_closing(const struct server_request *r);
/* Have the watcher call f(arg) once when the answer is no longer wanted. f must not block, and of
 * this header call server_wake alone. Once this returns, an earlier f is not running and will not
 * be called; so do not hold a lock that f takes. NULL: none. */
void server_on_gone(struct server_request *r, void (*f)(void *arg), void *arg);

#endif
