/* buf.h - bytes that grow up to a limit: requests on their way out, replies on their way in. */
#ifndef NET_HTTP_BUF_H
#define NET_HTTP_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *p; /* [n]; not terminated */
    size_t n, cap;
    size_t max; /* never longer than this; 0: no limit */
};

/* Append. False, with nothing appended, where memory or the limit does not allow it. */
bool buf_add(struct buf *b, const void *p, size_t n);
bool buf_str(struct buf *b, const char *s);
/* Token ids in decimal, as a JSON array: "[1,2,3]". */
bool buf_ids(struct buf *b, const uint32_t *ids, size_t n);
void buf_free(struct buf *b);

#endif
