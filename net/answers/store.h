/* store.h - maps prefixes to tokens on disk; processes can share the file (answer_file.h), whose
 * lines are in answer_line.h. It holds no text, no token of a prompt and no API key.
 *
 * Damage (a flipped bit, a block of zeros) costs the lines it hits: they are counted and never used
 * as answers. The answers themselves are kept in memory, some 64 bytes each.
 *
 * The file is bounded. A store beyond its limit is compacted: the answers that came last, as many
 * as fill half of the limit, go to a new file that takes the old one's place (atomic_file.h). A
 * process killed meanwhile leaves the old file intact. Other processes notice the new file at their
 * next miss or append.
 *
 * Readers see what others have appended at their next miss. One thread at a time. After fork, the
 * child may keep using what it inherited. */
#ifndef NET_ANSWERS_STORE_H
#define NET_ANSWERS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/answers/prefix_key.h"

struct err;
struct store;

enum { STORE_LEAST = 65536, STORE_LIMIT = 64 << 20 };

/* Open path, or create it, readable by its owner alone. limit is the size of the file in bytes, 0
 * for STORE_LIMIT. Without write permission the store answers and keeps nothing. ERR_FORMAT: the
 * file is not a store, and is left as it is; ERR_ARG: a limit below STORE_LEAST or too large, or
 * not a regular file; ERR_IO; ERR_NOMEM. */
int store_open(struct store **out, const char *path, uint64_t limit, struct err *err);
/* Write the answers that still wait for the lock, and close. NULL is fine. */
void store_close(struct store *s);

/* Find the answer to a prefix. False: there is none. Never an error: a file that cannot be read has
 * no answers. */
bool store_get(struct store *s, const struct prefix_key *k, uint32_t *id);
/* Append an answer, unless the store has it. An answer that cannot be written now (full disk,
 * another process holds the lock for more than 50 ms) is kept in memory and written later, as long
 * as there are few of them; store_note reports it. */
void store_put(struct store *s, const struct prefix_key *k, uint32_t id);

size_t store_size(struct store *s); /* number of answers known */
/* Give one line that a person should see (torn line cut off, damage, full disk, read-only), each
 * once. False: there is none. */
bool store_note(struct store *s, struct err *note);

#endif
