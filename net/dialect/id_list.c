#include "net/dialect/id_list.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"

/* Make room for n ids and their ends. */
static bool id_list_reserve(struct id_list *t, size_t n)
{
    size_t cap = t->cap ? t->cap : 256, bytes;
    while (cap < n)
        if (!size_mul(&cap, cap, 2))
            return false;
    if (cap == t->cap)
        return true;
    if (!size_mul(&bytes, cap, sizeof(*t->ends)))
        return false;
    uint32_t *ids = realloc(t->ids, cap * sizeof(*ids));
    t->ids = ids ? ids : t->ids;
    size_t *ends = ids ? realloc(t->ends, bytes) : NULL;
    t->ends = ends ? ends : t->ends;
    t->cap = ends ? cap : t->cap;
    return ends != NULL;
}

bool id_list_set(struct id_list *t, const uint32_t *ids, size_t n)
{
    size_t same = 0;
    while (same < t->n && same < n && t->ids[same] == ids[same])
        same++;
    if (!id_list_reserve(t, n)) {
        t->n = 0;
        return false;
    }
    t->n = same;
    t->text.n = same ? t->ends[same - 1] : 0;
    for (; t->n < n; t->n++) {
        if (!buf_id(&t->text, t->n ? ',' : '[', ids[t->n])) {
            t->n = 0;
            return false;
        }
        t->ids[t->n] = ids[t->n];
        t->ends[t->n] = t->text.n;
    }
    if (buf_add(&t->text, "]", 1))
        return true;
    t->n = 0;
    return false;
}

void id_list_free(struct id_list *t)
{
    free(t->ids);
    free(t->ends);
    buf_free(&t->text);
    *t = (struct id_list){ 0 };
}
