/* server_internal.h - what the files of the server share.
 *
 * Locks, in this order: the watcher's, then that of one guest. */
#ifndef NET_SERVER_SERVER_INTERNAL_H
#define NET_SERVER_SERVER_INTERNAL_H

#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "kernels/sys/buf.h"
#include "net/server/server.h"
#include "net/server/server_head.h"

enum { SERVER_BLOCK = 16 << 10 };

/* What a connection has a deadline for. */
enum server_phase {
    PHASE_NONE, /* nothing: the server works */
    PHASE_HEAD, /* handshake, or the head of a request, or none yet */
    PHASE_BODY,
    PHASE_SEND, /* the client reads */
};

enum { SERVER_ID = 24 };

/* One connection, from its acceptance until its socket is closed. */
struct server_guest {
    struct server *server;
    struct server_guest *next, **link;
    int fd;
    struct server_request *request; /* the one in progress, or NULL */
    bool known;                     /* it has sent a request before */
    /* Guarded by the watcher's lock. */
    enum server_phase phase;
    uint64_t when;  /* PHASE_HEAD: since when; else: until when */
    bool leaving;   /* the socket has been shut down */
    bool started;   /* the first line of a request has arrived */
    bool watched;   /* the watcher looks whether the client leaves */
    bool early;     /* unread bytes are there, so only the end of the stream tells */
    bool answered;  /* the reply has begun */
    bool half;      /* the client sends no more; it may still read */
    bool doubt;     /* server_doubts will say so */
    uint64_t again; /* when a client that is half gone is tried again */
    uint64_t round; /* in which `slot` was given */
    size_t slot;    /* in the watcher's list of sockets */
    void (*on_gone)(void *arg);
    void *on_gone_arg;
    /* Guarded by the guest's lock. */
    pthread_mutex_t lock;
    pthread_cond_t change; /* signalled when woken or gone is set */
    bool woken, gone;
};

/* The thread that looks at all connections. */
struct server_watch {
    pthread_mutex_t lock;
    pthread_cond_t idle; /* signalled when busy becomes 0 */
    pthread_t thread;
    struct server_guest *guests;
    size_t used, places, limit; /* connections; limit: with those about to be closed */
    size_t leaving;             /* of them have been shut down */
    size_t busy;                /* requests whose head has been read */
    uint64_t head, body, send;  /* ns */
    uint64_t look, round;       /* look: when the thread wakes at the latest */
    struct pollfd *polls;       /* [limit + 1] */
    int pipe[2];                /* wakes the thread */
    bool runs, poked, quit, tls;
};

struct server {
    struct server_options o; /* strings are borrowed */
    struct server_watch watch;
    struct MHD_Daemon *daemon;
    int listener; /* -1: not open */
    unsigned port;
    char url[300];
    char *tls;                    /* PEM */
    bool layout;                  /* heads lie in memory as server_request.c expects them */
    _Atomic size_t bodies;        /* bytes claimed */
    atomic_uint_fast64_t numbers; /* of requests: the latest */
    _Atomic bool closing, over;   /* over: the grace has ended */
};

struct server_request {
    struct server *server;
    struct server_guest *guest;
    struct MHD_Connection *c;
    const char *raw; /* the target as it lies in libmicrohttpd's memory; [raw_n] */
    size_t raw_n;
    struct server_head head;
    struct buf body;
    size_t received, claimed;
    enum server_refusal what; /* set with why, if the body is refused */
    const char *why;
    bool begun, busy, last; /* last: close the connection after this reply */
    bool farewell;          /* `more` has been called since the grace is over */
    struct MHD_Response *reply;
    unsigned status;
    struct buf out; /* bytes of the reply; those before `at` are sent */
    size_t at;
    enum server_more (*more)(void *arg, struct buf *out);
    void *more_arg;
    void *own;
    void (*drop)(void *own);
    uint64_t number;
    char target[]; /* as sent, then decoded by server_head_target */
};

/* server_watch.c */
bool server_watch_open(struct server_watch *w, const struct server_options *o, size_t places);
void server_watch_close(struct server_watch *w);
/* Callback of libmicrohttpd for each connection; arg is a struct server. */
void server_watch_connection(void *arg, struct MHD_Connection *c, void **state,
                             enum MHD_ConnectionNotificationCode what);
/* Give the connection the deadline of a phase that begins now. */
void server_watch_phase(struct server_guest *g, enum server_phase phase);
/* The first line of a request has arrived; enters: its head has, so it is counted in. */
void server_watch_started(struct server_guest *g, struct server_request *r, bool enters);
/* The request is over, and counted out if it is counted in. */
void server_watch_leave(struct server_guest *g, bool busy);
/* Wait until no request is in progress, or until os_now_ns() reaches until_ns. */
void server_watch_settle(struct server_watch *w, uint64_t until_ns);
/* Close idle connections and wake all that wait; over: all are to end. */
void server_watch_dismiss(struct server_watch *w, bool over);
/* True if the bytes that wait on the socket, or their end, say that the client has left. */
bool server_watch_left(int fd);

/* server_listen.c */
int server_listen_open(struct server *s, struct err *err);
int server_listen_tls(struct server *s, struct err *err);

/* server_body.c. False: r->why is set. */
bool server_body_add(struct server_request *r, const char *data, size_t n);
/* Claim n bytes of the memory for all bodies, until the body is dropped. False: there are too many.
 */
bool server_body_claim(struct server_request *r, size_t n);
#define SERVER_TOO_MANY "too many bytes of requests at a time"
/* Change halves of surrogate pairs to U+FFFD and whole numbers beyond 64 bits to real ones, in
 * place, for jansson would refuse the text. Return how much memory parsing takes at most, about. */
size_t server_json_mend(char *p, size_t n);

/* server_reply.c */
void server_reply_refuse(struct server_request *r, enum server_refusal what, const char *why);
/* Answer a browser that asks whether another site may call. */
void server_reply_preflight(struct server_request *r);
/* Write what x-request-id is for this number, and return it. */
const char *server_reply_id(char id[SERVER_ID], uint64_t number);
bool server_reply_is_preflight(const struct server_request *r);
/* Send a whole reply past libmicrohttpd, which will send none; json may be NULL. */
void server_reply_raw(struct server *s, int fd, unsigned status, const char *json);
enum MHD_Result server_reply_queue(struct server_request *r);

/* server_request.c: callbacks of libmicrohttpd; arg is a struct server. */
void *server_request_begin(void *arg, const char *uri, struct MHD_Connection *c);
enum MHD_Result server_request_handle(void *arg, struct MHD_Connection *c, const char *path,
                                      const char *method, const char *version, const char *data,
                                      size_t *n, void **state);
void server_request_done(void *arg, struct MHD_Connection *c, void **state,
                         enum MHD_RequestTerminationCode why);
void server_request_log(void *arg, const char *format, va_list args);
size_t server_request_unescape(void *arg, struct MHD_Connection *c, char *text);

#endif
