/* traffic.h - what has gone over the network, counted by http and wire and handed up as it is to
 * the printed summary; and how much may still be asked for. */
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

/* How many tokens may be asked for, and how many ids may go up for that: each request sends its
 * whole prefix. Who decides on a call takes both; the network thread takes them for a request that
 * goes out again, and gives back what never went out. */
struct quota {
    uint64_t tokens, input; /* limits; UINT64_MAX: none */
    _Atomic uint64_t asked, sent;
};

/* Add n to a count. False: that would be more than `most`. */
static inline bool quota_add(_Atomic uint64_t *count, uint64_t most, uint64_t n)
{
    uint64_t had = atomic_load(count);
    while (n <= most && had <= most - n)
        if (atomic_compare_exchange_weak(count, &had, had + n))
            return true;
    return false;
}

static inline void quota_give(struct quota *q, uint64_t tokens, uint64_t input)
{
    atomic_fetch_sub(&q->asked, tokens);
    atomic_fetch_sub(&q->sent, input);
}

/* Take them. False: they are not left. */
static inline bool quota_take(struct quota *q, uint64_t tokens, uint64_t input)
{
    if (!quota_add(&q->asked, q->tokens, tokens))
        return false;
    if (quota_add(&q->sent, q->input, input))
        return true;
    atomic_fetch_sub(&q->asked, tokens);
    return false;
}

static inline bool quota_limits(const struct quota *q)
{
    return q->tokens != UINT64_MAX || q->input != UINT64_MAX;
}

#endif
