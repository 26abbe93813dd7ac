/* cloud_port.h - the cloud as the decoding loop sees it: a table of functions. A call asks for the
 * token after one prefix, and perhaps for some after that one. cloud_port_cloud fills in the real
 * one (net/cloud.h); tests put a simulated cloud behind the same table. Used by one thread. */
#ifndef ROUTER_CLOUD_PORT_H
#define ROUTER_CLOUD_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/cloud.h"

struct err;

struct cloud_port {
    void *arg; /* argument of the functions that have one of this name */
    /* Find the token after ids[n] without a call: ORIGIN_MEMO or ORIGIN_STORE, else ORIGIN_NONE. */
    enum origin (*known)(void *arg, const uint32_t *ids, size_t n, uint32_t *id);
    /* Say what known would find if no further call were committed. Never waits and leaves no
     * trace. */
    enum cloud_sight (*peek)(void *arg, const uint32_t *ids, size_t n, uint32_t *id);
    /* Return how many tokens a call may ask for, at least 1; may fall to 1 until the first
     * answer. */
    size_t (*tokens)(void *arg);
    /* Ask for `tokens` tokens after ids[n] (copied), or as many as are allowed; return at once.
     * What the call moves over the network, now and later, dropped or not, is counted in *tally
     * unless that is NULL. ERR_ARG, ERR_NOMEM, ERR_STOP. */
    int (*ask)(void *arg, const uint32_t *ids, size_t n, size_t tokens, struct cloud_tally *tally,
               void **call, struct err *err);
    /* True when take would not wait. */
    bool (*done)(const void *call);
    /* Wait for the answer: the id, or ERR_NET, ERR_REMOTE (will not work in this run), ERR_TEXT
     * (will not work with this text), ERR_STOP. A repeated call gives the same. */
    int (*take)(void *call, uint32_t *id, struct err *err);
    /* Both end the call. commit: the text continues with its answer or its fault. drop: it was not
     * needed and is cancelled. */
    void (*commit)(void *call);
    void (*drop)(void *call);
    /* Return what has been counted so far. */
    struct traffic (*traffic)(void *arg, const struct cloud_tally *tally);
    /* Count no more in *tally. */
    void (*end_tally)(void *arg, struct cloud_tally *tally);
    /* Call f from now on, from any thread, whenever done or peek may say something else;
     * NULL: no longer. Only texts.h needs it; else it may be NULL. */
    void (*notify)(void *arg, void (*f)(void *), void *f_arg);
    /* Return what the call has moved so far. May be NULL. */
    struct traffic (*moved)(const void *call);
};

/* Fill in the port of a real cloud, which is borrowed. */
void cloud_port_cloud(struct cloud_port *out, struct cloud *c);

#endif
