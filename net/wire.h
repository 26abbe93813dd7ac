/* wire.h - the one network thread: takes questions, carries them to their end, whatever happens.
 *
 * A question (struct call) is sent, sent once more where that helps (a dead connection, one retry
 * after 408, 425, 429, 5xx or a broken connection, one hedge when it is late), read as it arrives,
 * and ended at its deadline. The decoding thread only hands over and looks.
 *
 * Locking: `shared` of a call, and what the comment says here, is guarded by wire_lock; the rest of
 * a call belongs to who made it until wire_submit, and to the network thread after that. */
#ifndef NET_WIRE_H
#define NET_WIRE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/base.h"
#include "net/http/buf.h"
#include "net/cloud.h"
#include "net/dialect/dialect.h"
#include "net/http/http.h"
#include "net/http/sse.h"

struct wire;

struct wire_attempt {
    struct http_try *try; /* NULL: none is out */
    struct wire_call *call;
    struct sse sse;
    struct reply reply;
    int rc; /* why its data were refused, with err */
    struct err err;
};

/* What has come of a call; read under wire_lock. */
struct wire_answer {
    bool done;  /* the first token, or a fault, is there */
    bool ended; /* no more will come; the network thread has let go of it */
    int rc;     /* of the first token */
    struct err err;
    struct reply reply; /* grows until ended */
    json_t *root;       /* of a question without dialect */
    long status;        /* of the last reply; 0: none came */
};

struct wire_call {
    /* The question. */
    const struct dialect *dialect; /* NULL: any JSON; answer.root is then owned by the caller */
    struct ask ask;                /* ids: the call's own copy */
    char *url;
    struct buf body; /* p NULL: GET */
    bool gzip;
    uint64_t deadline; /* os_now_ns() */
    uint64_t hedge_ns; /* 0: never */
    uint64_t seed;     /* of the jitter */
    /* The network thread's. */
    struct wire *wire;
    struct wire_call *next, **link; /* who points here; in the queue unused */
    struct wire_attempt attempts[2];
    struct wire_attempt *winner;  /* whose tokens are the answer */
    uint64_t retry_at, hedge_at;  /* 0: not */
    bool retried, resent, linger; /* linger: dropped, and left to end by itself */
    /* Under wire_lock; apart from the flags above, which are read in one word. */
    struct wire_answer answer;
    bool dropped; /* freed by the network thread */
};

struct wire_options {
    struct http_options http;
    const _Atomic int *stop; /* may be NULL */
};

/* ERR_NOMEM, ERR_ARG, ERR_NET. */
int wire_open(struct wire **out, const struct wire_options *o, struct err *err);
/* Ends all calls with ERR_STOP, and the thread. wire_submit then ends at once what it is given. */
void wire_stop(struct wire *w);
void wire_close(struct wire *w);        /* after wire_stop; NULL is fine */
bool wire_forked(const struct wire *w); /* this is a child of the process that opened it */

void wire_lock(struct wire *w);
void wire_unlock(struct wire *w);
void wire_wait(struct wire *w); /* under the lock: until some call may have changed */
void wire_tell(struct wire *w); /* under the lock: wake who waits */

/* With the lock held. The call is the network thread's until answer.ended. */
void wire_submit(struct wire *w, struct wire_call *call);
/* With the lock held: the caller forgets a submitted call that has not ended. */
void wire_drop(struct wire *w, struct wire_call *call);
/* Frees a call that was never submitted, or has ended. NULL is fine. */
void wire_free(struct wire_call *call);

/* Counters of the network thread, and bytes; with the lock held. */
struct cloud_ledger *wire_ledger(struct wire *w);

/* One exchange, waited for: body NULL is GET. OK with *root for status 200 and JSON (json_decref).
 * Any thread but the network's. */
int wire_fetch(struct wire *w, const char *base, const char *path, const struct buf *body,
               bool gzip, uint64_t deadline, json_t **root, long *status, struct err *err);

bool wire_multiplexes(struct wire *w); /* the latest reply came over HTTP/2; not under the lock */

/* A lower layer's message as one line behind the URL, without the key. */
int wire_error(const struct wire *w, struct err *err, int code, const char *url,
               const struct err *low);

#endif
