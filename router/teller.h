/* teller.h - the cloud as the decoding loop sees it: a table of functions.
 *
 * A call is one token asked for after one prefix. teller_cloud is the real one (net/cloud.h); tests
 * put a simulated cloud behind the same table. Used by one thread. */
#ifndef ROUTER_TELLER_H
#define ROUTER_TELLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cloud;
struct err;

enum teller_from { TELLER_MEMO, TELLER_STORE };

struct teller_ledger {             /* since the beginning; differences are what counts */
    uint64_t retries, hedges;      /* requests sent once more: after a fault; for being late */
    uint64_t bytes_up, bytes_down; /* bodies and headers */
    uint64_t header_bytes_up, header_bytes_down;
};

struct teller {
    void *arg; /* of known, ask, bytes and ledger */
    /* Is the token after ids[n] known without a call? */
    bool (*known)(void *arg, const uint32_t *ids, size_t n, uint32_t *id, enum teller_from *from);
    /* Ask for the token after ids[n] (copied); returns at once. ERR_ARG, ERR_NOMEM, ERR_STOP. */
    int (*ask)(void *arg, const uint32_t *ids, size_t n, void **call, struct err *err);
    /* Would take return at once? */
    bool (*done)(const void *call);
    /* Wait for the answer: the id, or ERR_NET, ERR_REMOTE (will not work in this run), ERR_STOP.
     * The same again if called again. */
    int (*take)(void *call, uint32_t *id, struct err *err);
    /* Both end the call. commit: its answer, or its fault, is what the text goes on with. drop: it
     * was not needed; cancelled. */
    void (*commit)(void *call);
    void (*drop)(void *call);
    /* Bytes of the request's body; depends on ids[n] alone. */
    size_t (*bytes)(void *arg, const uint32_t *ids, size_t n);
    void (*ledger)(void *arg, struct teller_ledger *out);
};

/* c is borrowed. */
void teller_cloud(struct teller *out, struct cloud *c);

#endif
