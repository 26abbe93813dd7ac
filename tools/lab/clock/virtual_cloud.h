/* virtual_cloud.h - a cloud whose calls take the time of the virtual clock: a port (cloud_port.h)
 * in front of another one. A call that the clock gives more time than its deadline fails, so the
 * decoding loop takes the local model's token; what the other port has answered is dropped.
 *
 * Time and failure of a call depend on the prefix, the sizes of its request and answer, and the
 * clock. So the text is the same again, in step and ahead. In step: one call
 * at a time, with a tally, as its size is what it adds to that. */
#ifndef TOOLS_LAB_CLOCK_VIRTUAL_CLOUD_H
#define TOOLS_LAB_CLOCK_VIRTUAL_CLOUD_H

#include "kernels/sys/base.h"
#include "net/http/traffic.h"
#include "net/cloud_port.h"
#include "tools/lab/clock/virtual_clock.h"

/* Return the size of the body of a request of this port that has not been made. */
typedef size_t virtual_cloud_bytes(const struct cloud_port *port, const uint32_t *ids, size_t n,
                                   size_t tokens);
virtual_cloud_bytes virtual_cloud_measure; /* in the dialect that its info names; 0: no memory */

struct virtual_cloud { /* must not move while the port is used */
    struct cloud_port port;
    const struct cloud_port *real;     /* borrowed */
    virtual_cloud_bytes *bytes;        /* of a request of `real` */
    const struct virtual_clock *clock; /* borrowed */
    struct virtual_size size;          /* of the latest call */
    double ms;                         /* time of the latest call, at most the deadline */
    bool late;                         /* the latest call failed because of the deadline */
    int failed;                        /* code of the other port's latest error; OK: it had none */
    struct err why;                    /* its message */
    uint64_t key;                      /* rest: the call in flight */
    struct cloud_tally *tally;
    struct traffic before; /* of the tally, when it began */
    void *call;
};

/* Set up v->port in front of `real`. v->size is that of the call before, for answers that the other
 * port knows without a call: they are timed like a call of that size, and if that is late, the
 * cloud is asked, so that times do not depend on what is stored. */
void virtual_cloud_begin(struct virtual_cloud *v, const struct cloud_port *real,
                         virtual_cloud_bytes *bytes, const struct virtual_clock *clock);

#endif
