/* sse.h - a bounded parser for server-sent events: takes bytes cut anywhere, gives the data of
 * whole events.
 *
 * Lines end in LF, CR LF or CR; the "data" lines of one event are joined by LF; other fields
 * and comments are skipped; an event that the stream does not finish is discarded (WHATWG HTML,
 * 9.2.6). */
#ifndef NET_HTTP_SSE_H
#define NET_HTTP_SSE_H

#include "kernels/sys/buf.h"

struct err;

struct sse { /* start with event, arg, data.max and line.max, and all else zero */
    /* Called for each event. A result other than OK ends the parsing and is returned. */
    int (*event)(void *arg, const char *data, size_t n, struct err *err);
    void *arg;
    struct buf line, data; /* the current line; the data of the current event */
    bool cr, some;         /* the last byte was CR; the event has data */
};

/* Parse p[n]. ERR_NET: an event is longer than the limit; ERR_NOMEM. */
int sse_feed(struct sse *s, const char *p, size_t n, struct err *err);
/* Free the buffers. */
void sse_free(struct sse *s);

#endif
