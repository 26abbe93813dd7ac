/* cloud_internal.h - struct cloud, for cloud*.c and probe.c alone.
 *
 * From the bottom to the top, above wire.c: cloud_call.c (one call, sent or settled), cloud_url.c,
 * api_key.c, probe.c (the server's facts), cloud.c (the probe, and calls that wait for it),
 * cloud_ask.c. No file calls a function of a file above it; tests/net/t_net_order.sh checks
 * this. */
#ifndef NET_CLOUD_INTERNAL_H
#define NET_CLOUD_INTERNAL_H

#include <pthread.h>

#include "net/cloud.h"
#include "net/wire.h"

enum cloud_state {
    CLOUD_ASLEEP,  /* the server must be probed first, and no probe is running */
    CLOUD_PROBING, /* the prober is asking */
    CLOUD_READY,   /* calls can be written */
    CLOUD_FAILED,  /* the probe failed while no call waited; the next call fails */
    CLOUD_REFUSED, /* this server cannot be used; `why` has the reason */
};

struct cloud_call {
    struct cloud *cloud;
    struct cloud_call *next, **link;
    struct wire_call *wire;
    bool parked;   /* the call waits for the prober */
    bool sent;     /* the network thread has or had it */
    size_t tokens; /* number of tokens to request, if the server can */
};

struct cloud {
    struct cloud_options o; /* strings are copies; the key is not kept */
    struct wire *wire;
    char *base; /* URL without a slash at its end */
    uint64_t timeout_ns;
    /* Written by the prober or cloud_open; read once the state is READY. */
    const struct dialect *dialect;
    char *model, *model_json; /* for display, and for requests; NULL: requests name no model */
    bool text;                /* replies have no ids */
    struct cloud_info info;   /* except health, version and http2 */
    uint64_t trip_ns;         /* the probe's slowest exchange */
    size_t sample;            /* tokens of the probe's test text; 0: unknown */
    /* Guarded by the wire's lock. */
    enum cloud_state state;
    int failed; /* the error of the latest probe */
    struct err why;
    struct err note; /* empty: already reported */
    struct cloud_call *calls;
    /* Belongs to the decoding thread, or in PROBING to the prober. */
    bool prober_runs;
    pthread_t prober;
    struct cloud_ledger shown;
};

/* cloud_url.c */

/* True if nobody can overhear the connection: https, or this machine. */
bool cloud_url_private(const char *url);
/* Name the model. ERR_ARG: not 1 to 512 bytes of UTF-8; ERR_NOMEM. */
int cloud_set_model(struct cloud *c, const char *name, size_t n, struct err *err);

/* cloud_call.c */

int cloud_no_memory(struct err *err);
int cloud_forked(struct err *err);

/* probe.c */

/* True when probe_run has something to ask. */
bool probe_needed(const struct cloud *c);
/* Ask the server for the facts that the first call needs; set dialect, model, text, info. ERR_NET,
 * ERR_REMOTE, ERR_STOP, ERR_NOMEM. */
int probe_run(struct cloud *c, struct err *err);
/* Do the work of cloud_inspect for a cloud that is ready. */
int probe_inspect(struct cloud *c, struct cloud_info *out, struct err *err);

/* cloud_call.c; from here on all with the lock held. */

/* Write the request and hand it to the network thread. In READY. */
void cloud_call_launch(struct cloud *c, struct cloud_call *call);
/* End the call with an error, without the network. */
void cloud_call_settle(struct cloud_call *call, int rc, const struct err *why);
/* Free the call, or leave its wire call to the network thread. */
void cloud_call_free(struct cloud_call *call);

/* cloud.c; with the lock held. */

/* Start the thread of the prober, from ASLEEP to PROBING. False: no thread could be started. */
bool cloud_wake_prober(struct cloud *c);

#endif
