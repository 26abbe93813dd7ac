/* sse.h - server-sent events: bytes cut anywhere in, the data of whole events out. Bounded.
 *
 * Lines end in LF, CR LF or CR; "data" lines of one event are joined by LF; other fields and
 * comments are skipped; an event that its stream does not finish is none (WHATWG HTML, 9.2.6). */
#ifndef NET_HTTP_SSE_H
#define NET_HTTP_SSE_H

#include "net/http/buf.h"

struct err;

struct sse {               /* all zero, but for data.max and line.max, to begin */
    struct buf line, data; /* the present line; the present event */
    bool cr, some;         /* the last byte was CR; the event has data */
};

/* event(arg, data[n], err) is called for each event that these bytes finish; what it returns other
 * than OK ends the feeding and is returned. ERR_NET: an event is longer than the limit; ERR_NOMEM.
 */
int sse_feed(struct sse *s, const char *p, size_t n,
             int (*event)(void *arg, const char *data, size_t n, struct err *err), void *arg,
             struct err *err);
void sse_free(struct sse *s);

#endif
