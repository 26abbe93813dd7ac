/* lose.h - a cloud of which some calls fail: a port (net/cloud_port.h) in front of another one.
 * Which ones follows from the seed and the ids before the token, so a text is the same again. */
#ifndef TOOLS_LAB_EVAL_LOSE_H
#define TOOLS_LAB_EVAL_LOSE_H

#include "net/cloud_port.h"

struct lose { /* must not move while the port is used; one call at a time */
    struct cloud_port port;
    const struct cloud_port *real; /* borrowed */
    double rate;                   /* share of the prefixes whose calls fail */
    uint64_t seed;
    void *call; /* rest: the call in flight; NULL: it fails */
};

/* Set up l->port in front of `real`. */
void lose_begin(struct lose *l, const struct cloud_port *real, double rate, uint64_t seed);

#endif
