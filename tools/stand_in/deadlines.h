/* deadlines.h - a deadline for what a client sends: the handshake, the headers and the body of a
 * request. libmicrohttpd's own timeout restarts with every byte, so a client could hold a
 * connection forever with an occasional byte; here a thread shuts down connections that are
 * late. */
#ifndef TOOLS_STAND_IN_DEADLINES_H
#define TOOLS_STAND_IN_DEADLINES_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct stand_in_guest; /* one connection */

struct stand_in_deadlines {
    pthread_mutex_t lock;
    pthread_cond_t change; /* signalled when guests or closing change */
    pthread_t thread;
    struct stand_in_guest *guests;
    uint64_t patience; /* ns that a client has for a request */
    bool runs, closing;
};

/* Start the thread; false if that is impossible. patience_ms 0: one minute. */
bool stand_in_deadlines_open(struct stand_in_deadlines *w, unsigned patience_ms);
void stand_in_deadlines_close(struct stand_in_deadlines *w); /* once no connection is left */

/* Callback of libmicrohttpd for each connection; arg is a struct stand_in_deadlines. */
void stand_in_deadlines_connection(void *arg, struct MHD_Connection *c, void **state,
                                   enum MHD_ConnectionNotificationCode what);
/* Set the time at which the request that c sends must be complete; 0: it is. */
void stand_in_deadlines_until(struct stand_in_deadlines *w, struct MHD_Connection *c,
                              uint64_t until);
/* True for the first request of a connection. */
bool stand_in_deadlines_first(struct MHD_Connection *c);

#endif
