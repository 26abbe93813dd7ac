/* traffic.h - what has gone over the network, counted by http and wire and handed up as it is to
 * the printed summary; and how many tokens may still be asked for. */
#ifndef NET_HTTP_TRAFFIC_H
#define NET_HTTP_TRAFFIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Requests that were sent again; tokens that were asked for, each time a request went out; bodies
 * and headers; the headers' part of these. */
#define TRAFFIC_COUNTS(X) \
    X(retries) X(asked_tokens) X(bytes_up) X(bytes_down) X(header_bytes_up) X(header_bytes_down)

struct traffic {
#define X(name) uint64_t name;
    TRAFFIC_COUNTS(X)
#undef X
};

/* Add the counts of one to those of another. */
static inline void traffic_add(struct traffic *to, const struct traffic *more)
{
#define X(name) to->name += more->name;
    TRAFFIC_COUNTS(X)
#undef X
}

/* Return what has been added to *from since it had the value *before. */
static inline struct traffic traffic_since(const struct traffic *from, const struct traffic *before)
{
    struct traffic since = *from;
#define X(name) since.name -= before->name;
    TRAFFIC_COUNTS(X)
#undef X
    return since;
}

/* How many tokens may be asked for. Who decides on a call takes its tokens; the network thread
 * takes those of a request that goes out again, and gives back what never went out. */
struct quota {
    uint64_t most; /* UINT64_MAX: no limit */
    _Atomic uint64_t taken;
};

/* Take n tokens. False: that many are not left. */
static inline bool quota_take(struct quota *q, uint64_t n)
{
    uint64_t had = atomic_load(&q->taken);
    while (n <= q->most && had <= q->most - n)
        if (atomic_compare_exchange_weak(&q->taken, &had, had + n))
            return true;
    return false;
}

#endif
