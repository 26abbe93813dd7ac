/* sending.h - lays the faults and the pace of the network over a reply: a body that is sent slowly,
 * at once or as it is made, complete or not. Each connection has a thread, so it may wait here. */
#ifndef TOOLS_LAB_STAND_IN_SENDING_H
#define TOOLS_LAB_STAND_IN_SENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/buf.h"
#include "net/server/server.h"
#include "tools/lab/stand_in/fault.h"

/* A body on its way. */
struct stand_in_sending {
    struct server_request *r;
    struct buf bytes; /* the bytes to send; freed by the owner */
    size_t at;
    /* Replaces bytes, once they were sent, by the next ones; NULL: there are none. */
    enum server_more (*more)(void *arg, struct buf *bytes);
    void *arg;
    enum stand_in_way way;
    uint64_t pace;    /* bytes per second; 0: no limit */
    uint64_t due;     /* time when the line is free again */
    size_t blanks;    /* blanks still to be sent before bytes */
    size_t sent, cut; /* bytes sent; bytes after which to stop */
};

/* Answer with the body and the fault of s->way; without `length` it is sent in chunks. s lasts as
 * long as the request. */
void stand_in_sending_begin(struct stand_in_sending *s, unsigned status, const char *type,
                            bool length, const char *const headers[][2]);
/* Wait until os_now_ns() reaches `until` or the server begins to close. False: the client of r has
 * gone. */
bool stand_in_sending_wait(struct server_request *r, uint64_t until);

#endif
