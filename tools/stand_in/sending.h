/* sending.h - bytes on their way to the client: at a given pace, in one piece or as they are
 * made, whole or not. One thread a connection: it may wait here. */
#ifndef TOOLS_STAND_IN_SENDING_H
#define TOOLS_STAND_IN_SENDING_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http/buf.h"
#include "tools/stand_in/fault.h"

struct stand_in_waiting;

enum stand_in_more { MORE_BYTES, MORE_END, MORE_BROKEN };

struct stand_in_sending {
    struct stand_in_waiting *hold;
    int fd;
    struct buf bytes; /* to be sent; freed by the owner */
    size_t at;
    /* Replaces bytes, which have been sent, by the next ones; NULL: there are none. */
    enum stand_in_more (*more)(void *arg, struct buf *bytes);
    void *arg;
    enum stand_in_way way;
    uint64_t pace; /* bytes a second; 0: no limit */
    uint64_t due;  /* when the line is free again */
    size_t blanks; /* to be sent first */
    size_t sent, cut;
};

/* What the way and the pace mean for bytes that are there. */
void stand_in_sending_begin(struct stand_in_sending *s);
/* Of a whole answer; chunked where it is made while it is sent, or length is false. */
struct MHD_Response *stand_in_sending_response(struct stand_in_sending *s, bool length);

#endif
