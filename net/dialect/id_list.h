/* id_list.h - the JSON text of a list of token ids that mostly grows: only what differs from the
 * list before is written anew. Plain memory; one thread. */
#ifndef NET_DIALECT_ID_LIST_H
#define NET_DIALECT_ID_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http/buf.h"

struct id_list { /* all zero to begin */
    uint32_t *ids;
    size_t *ends; /* ends[i]: bytes of text up to and with ids[i] */
    size_t n, cap;
    struct buf text; /* "[1,2,3]" */
};

/* Make t->text the list ids[n], n > 0. False: no memory, and t is empty. */
bool id_list_set(struct id_list *t, const uint32_t *ids, size_t n);
void id_list_free(struct id_list *t);

#endif
