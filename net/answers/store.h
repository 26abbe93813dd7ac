/* store.h - maps prefixes to tokens on disk; processes can share the file.
 *
 * The file is a header of 32 bytes and then records of 24: key (16 bytes), token id, CRC-32 of the
 * 20 bytes before it; all little-endian. It holds no text, no token of a prompt and no API key.
 *
 * The file is append-only. Each record is appended whole, under an fcntl lock that the system drops
 * when a process dies. A killed writer or a full disk leaves at most a torn record at the end; the
 * next process that opens or appends cuts it off and reports it. Damage elsewhere (a flipped bit, a
 * block of zeros) costs the records it hits: they are counted and never used as answers.
 *
 * The file is bounded. A store beyond its limit is compacted: the newest distinct answers, as many
 * as fill half of the limit, go to a new file beside it (FILE.new), which is synced and then takes
 * the old one's name by rename(2). A process killed meanwhile leaves the old file intact. Other
 * processes notice the new file at their next miss or append. In memory a record takes 8 to 32
 * bytes.
 *
 * Readers see what others have appended at their next miss. Threads may share a store. A process
 * may open a file only once, because fcntl locks belong to the process. After fork, the child may
 * keep using what it inherited, unless another thread was inside a call. */
#ifndef NET_ANSWERS_STORE_H
#define NET_ANSWERS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/answers/prefix_key.h"

struct err;
struct store;

enum { STORE_HEADER = 32, STORE_RECORD = 24, STORE_LEAST = 65536, STORE_LIMIT = 64 << 20 };

/* Open path, or create it, readable by its owner alone. limit is the size of the file in bytes, 0
 * for STORE_LIMIT. Without write permission the store answers and keeps nothing. ERR_FORMAT: the
 * file is not a store, and is left as it is; ERR_ARG: a limit below STORE_LEAST or above 2^32
 * records, or not a regular file; ERR_IO; ERR_NOMEM. */
int store_open(struct store **out, const char *path, uint64_t limit, struct err *err);
/* Write the records that still wait for the lock, and close. NULL is fine. */
void store_close(struct store *s);

/* Find the answer to a prefix. False: there is none. Never an error: a file that cannot be read has
 * no answers. */
bool store_get(struct store *s, const struct prefix_key *k, uint32_t *id);
/* Append an answer, unless the store has it. An answer that cannot be written now (full disk,
 * another process holds the lock for more than 50 ms) is kept in memory and written later, as long
 * as there are few of them; store_note reports it. */
void store_put(struct store *s, const struct prefix_key *k, uint32_t id);

size_t store_size(struct store *s); /* number of records known, repeated keys included */
/* Give one line that a person should see (torn record cut off, damage, full disk, read-only), each
 * once. False: there is none. */
bool store_note(struct store *s, struct err *note);

#endif
