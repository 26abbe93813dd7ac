/* answer_table.h - maps prefixes to answers in memory, for memo, store and recording. The number of
 * answers is bounded: the oldest makes room for the newest. One thread at a time. The contents
 * depend on the order of answer_table_put calls alone. */
#ifndef NET_ANSWERS_ANSWER_TABLE_H
#define NET_ANSWERS_ANSWER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/answers/answer_origin.h"
#include "net/answers/prefix_key.h"

struct answer {
    struct prefix_key key; /* of the prefix */
    enum origin from;
    int fault; /* OK, ERR_NET, ERR_REMOTE or ERR_TEXT */
    uint32_t id;
    char *message; /* of a fault, one line; else NULL */
};

struct answer_table {
    struct answer *at; /* [cap]; when n is max, a ring whose oldest answer is overwritten */
    size_t max, n, cap, next;
    uint32_t *slots; /* [mask + 1], open addressing: index into at, plus 1; 0: free */
    size_t mask;
    struct prefix_key seed;
};

/* Make an empty table for at most max answers (1 or more), about 64 bytes each. Memory grows with
 * use. All zero is a table in which nothing is found. */
void answer_table_init(struct answer_table *t, size_t max);
/* Make room for max answers at once, so that answer_table_put cannot fail. False: out of memory. */
bool answer_table_reserve(struct answer_table *t);
void answer_table_free(struct answer_table *t);

/* Return the answer with this key, valid until the next change, or NULL. */
struct answer *answer_table_find(const struct answer_table *t, const struct prefix_key *k);
/* Keep an answer and take over its message. A second answer to the same prefix replaces the first
 * and keeps its age. False: out of memory, and the message stays with the caller. */
bool answer_table_put(struct answer_table *t, const struct answer *a);
/* Return answer i < n, counted from the oldest. */
const struct answer *answer_table_at(const struct answer_table *t, size_t i);
/* Remove all answers. */
void answer_table_clear(struct answer_table *t);

#endif
