/* buf.h - a byte buffer that grows up to a limit; holds requests and replies. */
#ifndef KERNELS_SYS_BUF_H
#define KERNELS_SYS_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *p; /* n bytes, not terminated */
    size_t n, cap;
    size_t max; /* never longer than this; 0: no limit */
};

/* Append p[n]. False, with nothing appended, when memory or the limit does not allow it; so do the
 * functions below. */
bool buf_add(struct buf *b, const void *p, size_t n);
/* Append the string s without its end. */
bool buf_str(struct buf *b, const char *s);
/* Append a token id in decimal with one character in front. */
bool buf_id(struct buf *b, char front, uint32_t id);
/* Append token ids as a JSON array: "[1,2,3]". */
bool buf_ids(struct buf *b, const uint32_t *ids, size_t n);
/* Free the bytes and empty the buffer; its limit stays. */
void buf_free(struct buf *b);

#endif
