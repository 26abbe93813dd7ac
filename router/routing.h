/* routing.h - router, policy, cloud and their limits, opened together from plain options.
 *
 * Nothing is printed: what a person should know waits for routing_note. */
#ifndef ROUTER_ROUTING_H
#define ROUTER_ROUTING_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/sys/base.h"
#include "router/caps.h"
#include "router/gate.h"
#include "router/policy.h"
#include "router/cloud_port.h"

struct answers;
struct cloud;
struct cloud_options;
struct engine;
struct mizzle_options;
struct private_filter;
struct router;
struct tokenizer;

struct routing {           /* must stay where it is */
    struct router *router; /* NULL unless found */
    enum policy policy;
    float threshold;
    struct cloud *cloud;          /* NULL: off */
    struct cloud_port port;       /* of cloud */
    struct gate gate;             /* limits and breaker, over all answers */
    size_t ahead;                 /* requests out at once */
    bool required;                /* a fault of the cloud ends the text */
    struct answers *answers;      /* memo, store, recording */
    struct private_filter *spans; /* NULL: none */
    struct caps caps;
    double start_ms;     /* waited for the cloud to answer */
    struct err notes[2]; /* to be told, [unsaid]: of the key, and why the cloud is off */
    size_t unsaid;
};

/* For an open engine. *stop, which may be NULL, is borrowed: not zero gives up, here and in every
 * call of the cloud. A cloud that does not answer is an error only where it is required or wanted
 * for every token. On error *r is all zero. ERR_ARG, ERR_IO, ERR_FORMAT, ERR_NOMEM, ERR_NET,
 * ERR_REMOTE, ERR_STOP. */
int routing_open(struct routing *r, const struct engine *e, const struct mizzle_options *o,
                 const _Atomic int *stop, struct err *err);
/* ERR_IO where the recording is incomplete. All zero is fine. */
int routing_close(struct routing *r, struct err *err);

/* What decode_run asks: r's teller, or NULL where the cloud is off. */
const struct cloud_port *routing_teller(const struct routing *r);
/* What a person should know and was not told yet: one line, or false. */
bool routing_note(struct routing *r, struct err *note);
/* ERR_IO, and why, where the recording is incomplete already. */
int routing_recorded(const struct routing *r, struct err *err);

/* The options of the cloud alone, without caches. *key is malloc'ed or NULL, for the caller to give
 * to wipe_text once the cloud is open. *note is one line on it for a person, or empty. t: the
 * tokenizer of the model here, borrowed, to compare the server's
 * with; NULL: it is not compared. ERR_ARG, ERR_IO, ERR_NOMEM. */
int routing_cloud_options(struct cloud_options *out, char **key, const struct mizzle_options *o,
                          const struct tokenizer *t, const _Atomic int *stop, struct err *note,
                          struct err *err);

#endif
