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

bool buf_id(struct buf *b, char front, uint32_t id)
{
    char text[12], *at = text + sizeof(text);
    do
        *--at = (char)('0' + id % 10);
    while (id /= 10);
    *--at = front;
    return buf_add(b, at, (size_t)(text + sizeof(text) - at));
}

bool buf_ids(struct buf *b, const uint32_t *ids, size_t n)
{
    size_t start = b->n, i = 0;
    while (i < n && buf_id(b, i ? ',' : '[', ids[i]))
        i++;
    if (i == n && buf_str(b, n ? "]" : "[]"))
        return true;
    b->n = start;
    return false;
}

void buf_free(struct buf *b)
{
    free(b->p);
    *b = (struct buf){ .max = b->max };
}
