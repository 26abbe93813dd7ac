/* id_list.h - the JSON text of a list of token ids. The list mostly grows, so only the part that
 * differs from the previous list is written again. One thread. */
#ifndef NET_DIALECT_ID_LIST_H
#define NET_DIALECT_ID_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/buf.h"

struct id_list { /* starts with all zero */
    struct id_end {
        uint32_t id;
        size_t end; /* length of the text including this id */
    } * at;
    size_t n, cap;
    struct buf text; /* "[1,2,3]" */
};

/* Make t->text the JSON of ids[n], n > 0. False: out of memory, and t is empty. */
bool id_list_set(struct id_list *t, const uint32_t *ids, size_t n);
/* Free everything; t can be used again. */
void id_list_free(struct id_list *t);

#endif
