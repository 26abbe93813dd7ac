#include "net/dialect/id_list.h"

#include <stdlib.h>

#include "kernels/sys/base.h"

bool id_list_set(struct id_list *t, const uint32_t *ids, size_t n)
{
    size_t same = 0;
    while (same < t->n && same < n && t->at[same].id == ids[same])
        same++;
    t->text.n = same ? t->at[same - 1].end : 0;
    for (t->n = same; t->n < n; t->n++) {
        struct id_end *at = array_grow(t->at, &t->cap, t->n, sizeof(*at));
        t->at = at ? at : t->at;
        if (!at || !buf_id(&t->text, t->n ? ',' : '[', ids[t->n]))
            break;
        at[t->n] = (struct id_end){ ids[t->n], t->text.n };
    }
    if (t->n == n && buf_add(&t->text, "]", 1))
        return true;
    t->n = 0;
    return false;
}

void id_list_free(struct id_list *t)
{
    free(t->at);
    buf_free(&t->text);
    *t = (struct id_list){ 0 };
}
