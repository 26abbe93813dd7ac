/* wire_internal.h - struct wire, and one question in the network thread: its attempts, timers and
 * end. For wire*.c alone.
 *
 * From the bottom to the top: wire_base.c (lock, error lines), wire_call.c (one question), wire.c
 * (the thread). None calls a function of a file above it; tests/net/t_net_order.sh holds that. */
#ifndef NET_WIRE_INTERNAL_H
#define NET_WIRE_INTERNAL_H

#include <pthread.h>
#include <sys/types.h>

#include "net/wire.h"

struct wire {
    struct http *http;
    char *key; /* blotted out of messages */
    size_t max_reply;
    const _Atomic int *stop;
    pthread_t thread;
    pid_t owner;
    bool running; /* the thread is there to be joined */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock. */
    struct wire_call *queue, **queue_end;
    bool closing;
    struct cloud_ledger ledger;
    bool multiplexes; /* as http_multiplexes */
    /* The network thread's. */
    struct wire_call *active, **active_end; /* oldest first: it may be making the connection */
    size_t lingering;
};

/* A call just taken from the queue enters w->active, and is sent. */
void wire_call_begin(struct wire *w, struct wire_call *call, uint64_t now);
/* What is due by now is done, and *next lowered to when something is due again. */
void wire_call_turn(struct wire *w, struct wire_call *call, uint64_t now, uint64_t *next);
/* One of its transfers has ended. */
void wire_call_ended(struct wire *w, struct http_try *t);
/* Ends the call, which leaves w->active; its memory may be gone afterwards. */
void wire_call_finish(struct wire *w, struct wire_call *call, int code, const struct err *why);
/* Nobody waits for it any more. HTTP/1.1 would lose the connection of a transfer that is broken
 * off, so a few short ones are left to end by themselves. */
void wire_call_forget(struct wire *w, struct wire_call *call, uint64_t now);

#endif
