/* traffic.h - what has gone over the network. Counted by http and wire, and handed up as it is to
 * the printed summary. */
#ifndef NET_HTTP_TRAFFIC_H
#define NET_HTTP_TRAFFIC_H

#include <stdint.h>

struct traffic {
    uint64_t retries;                            /* requests sent again */
    uint64_t bytes_up, bytes_down;               /* bodies (compressed, if they are) and headers */
    uint64_t header_bytes_up, header_bytes_down; /* the headers' part of these */
};

/* Add the counts of one to those of another. */
static inline void traffic_add(struct traffic *to, const struct traffic *more)
{
    to->retries += more->retries;
    to->bytes_up += more->bytes_up;
    to->bytes_down += more->bytes_down;
    to->header_bytes_up += more->header_bytes_up;
    to->header_bytes_down += more->header_bytes_down;
}

/* Return what has been added to *from since it had the value *before. */
static inline struct traffic traffic_since(const struct traffic *from, const struct traffic *before)
{
    return (struct traffic){ .retries = from->retries - before->retries,
                             .bytes_up = from->bytes_up - before->bytes_up,
                             .bytes_down = from->bytes_down - before->bytes_down,
                             .header_bytes_up = from->header_bytes_up - before->header_bytes_up,
                             .header_bytes_down =
                                 from->header_bytes_down - before->header_bytes_down };
}

#endif
