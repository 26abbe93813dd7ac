/* cloud_port.h - the cloud as the decoding loop sees it: a table of functions.
 *
 * A call asks for the token after one prefix, and maybe for some behind it. cloud_port_cloud is the
 * real one (net/cloud.h); tests put a simulated cloud behind the same table. Used by one thread. */
#ifndef ROUTER_CLOUD_PORT_H
#define ROUTER_CLOUD_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/cloud.h"

struct err;

struct cloud_port {
    void *arg; /* of known, peek, tokens, ask, bytes and traffic */
    /* Find the token after ids[n] without a call: ORIGIN_MEMO or ORIGIN_STORE, else ORIGIN_NONE. */
    enum origin (*known)(void *arg, const uint32_t *ids, size_t n, uint32_t *id);
    /* Would known say so, were nothing committed any more? Never waits, and leaves no trace. */
    enum cloud_sight (*peek)(void *arg, const uint32_t *ids, size_t n, uint32_t *id);
    /* How many tokens a call may ask for, at least 1; may fall to 1 until the first answer. */
    size_t (*tokens)(void *arg);
    /* Ask for the token after ids[n] (copied) and those behind it, `tokens` in all, where that many
     * are allowed; returns at once. ERR_ARG, ERR_NOMEM, ERR_STOP. */
    int (*ask)(void *arg, const uint32_t *ids, size_t n, size_t tokens, void **call,
               struct err *err);
    /* Would take return at once? */
    bool (*done)(const void *call);
    /* Wait for the answer: the id, or ERR_NET, ERR_REMOTE (will not work in this run), ERR_TEXT
     * (nor with this text), ERR_STOP. The same again if called again. */
    int (*take)(void *call, uint32_t *id, struct err *err);
    /* Both end the call. commit: its answer, or its fault, is what the text goes on with. drop: it
     * was not needed; cancelled. */
    void (*commit)(void *call);
    void (*drop)(void *call);
    /* Bytes of the request's body; depends on ids[n] and tokens alone. */
    size_t (*bytes)(void *arg, const uint32_t *ids, size_t n, size_t tokens);
    /* Return what has gone over the network since the cloud was opened. */
    struct traffic (*traffic)(void *arg);
};

/* c is borrowed. */
void cloud_port_cloud(struct cloud_port *out, struct cloud *c);

#endif
