/* store.h - prefix -> token, on disk, shared by processes.
 *
 * The file is a header of 32 bytes and then records of 24: key (16 bytes), token id, CRC-32 of the
 * 20 before it; all little-endian. It holds no text, no token of a prompt and no API key.
 *
 * Append-only. Each record is appended whole, under a lock (fcntl) that the system takes away when
 * a process dies. A writer that was killed, or a full disk, leaves at most a torn record at the
 * end; the next process that opens or appends cuts it off and says so. Damage elsewhere (a flipped
 * bit, a block of zeros) costs the records it lies in: they are counted and never answered.
 *
 * Bounded. A store longer than its limit is compacted: the youngest different answers, as many as
 * fill half of the limit, go to a new file beside it (FILE.new), which is synced and then takes the
 * old one's name by rename(2). A process killed meanwhile leaves the old file as it was. Other
 * processes notice the new file at their next miss or append. In memory a record takes 8 to 32
 * bytes.
 *
 * Readers see what others have appended at their next miss. Threads may share a store. A process
 * opens a file once (locks of fcntl belong to the process); after fork, the child may go on with
 * what it has inherited, unless another thread was inside a call. */
#ifndef NET_ANSWERS_STORE_H
#define NET_ANSWERS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/answers/prefix_key.h"

struct err;
struct store;

enum { STORE_HEADER = 32, STORE_RECORD = 24, STORE_LEAST = 65536, STORE_LIMIT = 64 << 20 };

/* Opens path, or makes it (for its owner alone). limit: bytes of the file, 0: STORE_LIMIT. Without
 * permission to write it answers and keeps nothing. ERR_FORMAT: a file that is no store, which is
 * left as it is; ERR_ARG: a limit below STORE_LEAST or above 2^32 records, or no regular file;
 * ERR_IO; ERR_NOMEM. */
int store_open(struct store **out, const char *path, uint64_t limit, struct err *err);
/* Writes what still waits for the lock. NULL is fine. */
void store_close(struct store *s);

/* False: no answer is kept. Never an error: a file that cannot be read has no answers. */
bool store_get(struct store *s, const struct prefix_key *k, uint32_t *id);
/* Append, unless that answer is there. An answer that cannot be written (full disk, a process that
 * holds the lock for more than 50 ms) is kept in memory and written later, as long as there are few
 * of them; store_note says it. */
void store_put(struct store *s, const struct prefix_key *k, uint32_t id);

size_t store_size(struct store *s); /* records known of, repeated ones included */
/* What a person should know (torn record cut, damage, full disk, read-only), one line, or false.
 * Each is told once. */
bool store_note(struct store *s, struct err *note);

#endif
