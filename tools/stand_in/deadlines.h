/* deadlines.h - a deadline for what a client sends: the handshake, the headers and the body of
 * a request. libmicrohttpd's own limit begins anew with each byte, so that one byte now and then
 * would hold a connection for ever; here a thread shuts down those that are late. */
#ifndef TOOLS_STAND_IN_DEADLINES_H
#define TOOLS_STAND_IN_DEADLINES_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct stand_in_guest; /* one connection */

struct stand_in_deadlines {
    pthread_mutex_t lock;
    pthread_cond_t change; /* of guests or closing */
    pthread_t thread;
    struct stand_in_guest *guests;
    uint64_t patience; /* nanoseconds that a client has */
    bool runs, closing;
};

/* False: no thread can be started. */
bool stand_in_deadlines_open(struct stand_in_deadlines *w, unsigned patience_ms);
void stand_in_deadlines_close(struct stand_in_deadlines *w); /* when no connection is left */

/* Callback of libmicrohttpd for each connection; arg: a struct stand_in_deadlines. */
void stand_in_deadlines_connection(void *arg, struct MHD_Connection *c, void **state,
                                   enum MHD_ConnectionNotificationCode what);
/* The request that c sends must be whole at os_now_ns() = until; 0: it is. */
void stand_in_deadlines_until(struct stand_in_deadlines *w, struct MHD_Connection *c,
                              uint64_t until);
/* True at the first request of a connection. */
bool stand_in_deadlines_first(struct MHD_Connection *c);

#endif
