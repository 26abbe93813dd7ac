/* sending.h - sends bytes to the client at a given pace, at once or as they are made, complete or
 * not. Each connection has a thread, so it may wait here. */
#ifndef TOOLS_STAND_IN_SENDING_H
#define TOOLS_STAND_IN_SENDING_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http/buf.h"
#include "tools/stand_in/fault.h"

struct stand_in_waiting;

/* Result of asking for more bytes. */
enum stand_in_more { MORE_BYTES, MORE_END, MORE_BROKEN };

/* A body on its way. */
struct stand_in_sending {
    struct stand_in_waiting *hold;
    int fd;
    struct buf bytes; /* the bytes to send; freed by the owner */
    size_t at;
    /* Replaces bytes, once they were sent, by the next ones; NULL: there are none. */
    enum stand_in_more (*more)(void *arg, struct buf *bytes);
    void *arg;
    enum stand_in_way way;
    uint64_t pace;    /* bytes per second; 0: no limit */
    uint64_t due;     /* time when the line is free again */
    size_t blanks;    /* blanks still to be sent before bytes */
    size_t sent, cut; /* bytes sent; bytes after which to stop */
};

/* Set up the fault of s->way for the bytes that are there. */
void stand_in_sending_begin(struct stand_in_sending *s);
/* Return a response that sends the body; without `length` it is sent in chunks. */
struct MHD_Response *stand_in_sending_response(struct stand_in_sending *s, bool length);

#endif
