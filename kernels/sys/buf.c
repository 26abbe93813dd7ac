#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"

/* Make room for `extra` more bytes. The capacity doubles, so that a growing prefix costs few
 * allocations. */
static bool buf_grow(struct buf *b, size_t extra)
{
    size_t want;
    if (!size_add(&want, b->n, extra) || (b->max && want > b->max))
        return false;
    if (want <= b->cap)
        return true;
    size_t cap = b->cap ? b->cap : 512;
    while (cap < want)
        if (!size_mul(&cap, cap, 2))
            return false;
    char *p = realloc(b->p, cap);
    if (!p)
        return false;
    b->p = p;
    b->cap = cap;
    return true;
}

bool buf_add(struct buf *b, const void *p, size_t n)
{
    if (!n)
        return true;
    if (!buf_grow(b, n))
        return false;
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return true;
}

bool buf_str(struct buf *b, const char *s)
{
    return buf_add(b, s, strlen(s));
}

bool buf_ids(struct buf *b, const uint32_t *ids, size_t n)
{
    size_t start = b->n;
    if (!buf_add(b, "[", 1))
        return false;
    for (size_t i = 0; i < n; i++) {
        char text[12], *at = text + sizeof(text);
        uint32_t v = ids[i];
        *--at = i + 1 < n ? ',' : ']';
        do
            *--at = (char)('0' + v % 10);
        while (v /= 10);
        if (!buf_add(b, at, (size_t)(text + sizeof(text) - at))) {
            b->n = start;
            return false;
        }
    }
    return n ? true : buf_add(b, "]", 1);
}

void buf_free(struct buf *b)
{
    free(b->p);
    *b = (struct buf){ .max = b->max };
}
