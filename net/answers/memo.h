/* memo.h - maps prefixes to tokens in memory. The number of answers is bounded: the oldest makes
 * room for the newest. One thread at a time. The contents depend on the order of memo_put calls
 * alone. */
#ifndef NET_ANSWERS_MEMO_H
#define NET_ANSWERS_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/answers/prefix_key.h"

struct err;
struct memo;

/* Create a memo with room for max answers (1 to 2^24); about 32 bytes each, all allocated at once.
 * ERR_ARG, ERR_NOMEM. */
int memo_open(struct memo **out, size_t max, struct err *err);
void memo_close(struct memo *m);

bool memo_get(const struct memo *m, const struct prefix_key *k, uint32_t *id);
/* Keep an answer. A second answer to the same prefix replaces the first and keeps its age. */
void memo_put(struct memo *m, const struct prefix_key *k, uint32_t id);
/* Remove all answers. */
void memo_clear(struct memo *m);
size_t memo_size(const struct memo *m);

#endif
