/* wire_internal.h - struct wire, and one question in the network thread: its attempts, timers and
 * end. For wire*.c alone.
 *
 * From top to bottom: wire.c (the thread), wire_call.c (one question), wire_reply.c (one attempt's
 * result). No file calls a function of a file above it; tests/net/t_net_order.sh checks this. */
#ifndef NET_WIRE_INTERNAL_H
#define NET_WIRE_INTERNAL_H

#include <pthread.h>
#include <sys/types.h>

#include "net/wire.h"

struct wire {
    struct http *http;
    char *key; /* hidden in messages */
    size_t max_reply;
    struct quota *quota; /* or NULL */
    const _Atomic int *stop;
    pthread_t thread;
    pid_t owner;
    bool running; /* the thread can be joined */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by the lock. */
    struct wire_call *queue, **queue_end;
    bool closing;
    struct cloud_ledger ledger;
    void (*notify)(void *arg); /* or NULL */
    void *notify_arg;
    /* Owned by the network thread. */
    struct wire_call *active, **active_end; /* oldest first, since the oldest may be opening the
                                               connection */
    uint64_t next;                          /* os_now_ns() at which something is due again */
};

/* wire_reply.c */

/* Write one line: the URL, then a lower layer's message, without the API key. Returns code. */
int wire_reply_error(const struct wire_call *call, struct err *err, int code, const char *why);
/* Read one event of a stream, or a whole reply as its call's only event, into call->reply; without
 * a dialect into call->root. */
int wire_reply_event(void *call, const char *data, size_t n, struct err *err);
/* Judge an attempt that has ended. *passes: another attempt may succeed. */
int wire_reply_end(struct wire_call *call, const struct http_try *t, bool *passes, struct err *err);

/* wire_call.c */

/* Charge the limits for a first or repeated request of the call. False: too little is left. With
 * the lock held. */
bool wire_call_fund(struct wire_call *call);
/* Do what is due now, and lower w->next to the next due time. */
void wire_call_turn(struct wire *w, struct wire_call *call, uint64_t now);
/* End the call and take it out of w->active; its memory may be freed here. */
void wire_call_finish(struct wire *w, struct wire_call *call, int code, const struct err *why);

#endif
