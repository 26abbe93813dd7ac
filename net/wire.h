/* wire.h - the one network thread, which brings each question to an answer or an error.
 *
 * The thread sends a question (struct wire_call), reads the reply as it arrives, and ends the
 * question at its deadline. It sends again after a dead connection, and retries once after 408,
 * 425, 429, 5xx or a broken connection. The decoding thread only submits questions and looks at
 * answers.
 *
 * Locking: wire_lock guards `answer`, `dropped` and `tally` of a call. The rest of a call belongs
 * to its creator until wire_submit, and to the network thread after that. */
#ifndef NET_WIRE_H
#define NET_WIRE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "net/cloud.h"
#include "net/dialect/dialect.h"
#include "net/http/http.h"
#include "net/http/sse.h"

struct wire;

/* The answer of a call; read it with the lock held. */
struct wire_answer {
    bool done;  /* the first token or a fault is there */
    bool ended; /* nothing more will come, and the network thread no longer uses the call */
    int rc;     /* the error of the first token, with err */
    struct err err;
    struct reply reply; /* grows until ended */
    /* Without a dialect: the reply; the last HTTP status, 0: no reply; true for HTTP/2. */
    json_t *root;
    long status;
    bool http2;
    struct traffic traffic; /* the call's traffic so far */
};

struct wire_call {
    /* The question. */
    const struct dialect *dialect; /* NULL: any JSON; the caller then owns answer.root */
    struct ask ask;                /* its ids are the call's own copy */
    char *url;
    struct buf body;     /* p is NULL for GET */
    uint64_t deadline;   /* os_now_ns() */
    uint64_t seed;       /* of the jitter */
    struct quota *quota; /* or NULL */
    uint64_t paid, fed;  /* tokens and ids taken from the quota for an unsent request */
    /* Owned by the network thread. */
    struct wire *wire;
    struct wire_call *next, **link; /* link: what points to this call; unused in the queue */
    struct http_try *try;           /* the attempt in flight; NULL: none */
    struct sse sse;                 /* the stream's data, then its values and error */
    struct reply reply;
    json_t *root;
    int rc;
    struct err err;
    uint64_t retry_at;    /* 0: never */
    bool retried, resent; /* after a temporary fault; after a lost connection */
    /* Guarded by wire_lock; kept apart from the flags above, which share a word. */
    struct wire_answer answer;
    bool dropped;              /* the network thread frees it */
    struct cloud_tally *tally; /* also counts its traffic until it is dropped; or NULL */
};

struct wire_options {
    struct http_options http;
    const _Atomic int *stop; /* may be NULL */
    struct quota *quota;     /* as in cloud_options */
};

/* Start the network thread. ERR_NOMEM, ERR_ARG, ERR_NET. */
int wire_open(struct wire **out, const struct wire_options *o, struct err *err);
/* End all calls with ERR_STOP, then the thread. wire_submit ends later calls at once. */
void wire_stop(struct wire *w);
void wire_close(struct wire *w);        /* call wire_stop before; NULL is fine */
bool wire_forked(const struct wire *w); /* true in a forked child of the process that opened it */

void wire_lock(struct wire *w);
bool wire_enter(struct wire *w); /* lock it; false, without the lock, in a forked child */
void wire_unlock(struct wire *w);
void wire_wait(struct wire *w); /* wait until some call may have changed; with the lock held */
void wire_tell(struct wire *w); /* wake the threads that wait; with the lock held */
/* Call f with the lock held whenever some call may have changed; NULL: no longer. */
void wire_notify(struct wire *w, void (*f)(void *arg), void *arg);

/* Hand a call to the network thread, which owns it until answer.ended. With the lock held. */
void wire_submit(struct wire *w, struct wire_call *call);
/* Forget a submitted call that has not ended. With the lock held. */
void wire_drop(struct wire *w, struct wire_call *call);
/* Free a call that was never submitted or has ended. NULL is fine. */
void wire_free(struct wire_call *call);

/* Copy a text of the server as json_input_line does, and mask the API key in any spelling. */
void wire_line(const struct wire *w, char *out, size_t cap, const char *text, size_t n);

/* Return the counts, for reading and changing. With the lock held. */
struct cloud_ledger *wire_ledger(struct wire *w);

/* Make one exchange, which asks for `tokens` tokens after `input` ids, and wait for it; body NULL
 * is GET. Returns out->rc: OK, with out->root to be freed by json_decref, for status 200 and JSON.
 * ERR_TEXT: the quota has too few tokens or ids. Any thread except the network's. */
int wire_fetch(struct wire *w, const char *base, const char *path, const struct buf *body,
               size_t tokens, size_t input, uint64_t deadline, struct wire_answer *out);

#endif
