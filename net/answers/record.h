/* record.h - keeps the answers of a run in a file (`--record`), from which a later run needs no
 * network (`--replay`): lines as in answer_line.h, with origins and faults, bytes as in
 * answer_file.h.
 *
 * A replay repeats the faults. A later line for the same prefix replaces an
 * earlier one, but a fault never replaces an answer. Unlike a store, a recording has no limit, is
 * of one server, is written by one process at a time, and with damage within it is refused.
 *
 * One thread at a time. Prefixes come as their key k and, where lines name them, as ids[n]. */
#ifndef NET_ANSWERS_RECORD_H
#define NET_ANSWERS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/answers/answer_line.h"

struct err;
struct record;

/* Open path, for a replay or to append to it; then it is created if needed. ERR_FORMAT, with the
 * line's number, also when its tokenizer is another one; ERR_IO, also if another process records
 * there; ERR_ARG (not a regular file), ERR_NOMEM. */
int record_open(struct record **out, const char *path, uint64_t tokenizer, bool replay,
                struct err *err);
/* Return the server of the first line; NULL if there is none yet. */
const struct answer_server *record_server(const struct record *r);
/* Say which server the answers are from, before the first record_put. ERR_FORMAT: the file is of
 * another one. ERR_IO. */
int record_begin(struct record *r, const struct answer_server *s, struct err *err);
/* Return ERR_IO, with the reason that the first failing record_put gave, if not everything could be
 * written. NULL is fine. */
int record_whole(const struct record *r, struct err *err);
/* Close it after all has reached the disk. Returns what record_whole does. */
int record_close(struct record *r, struct err *err);

size_t record_size(const struct record *r); /* number of different prefixes */
/* Give one line that a person should see (a torn line), once. False: there is none. */
bool record_note(struct record *r, struct err *note);

/* Return the answer after a prefix. NULL: there is none. Valid until the next change. */
const struct answer *record_get(const struct record *r, const struct prefix_key *k);
/* Append an answer (from, and id, or fault and why), unless the file already has it, or has any
 * answer when *a is a fault. After an error the recording is incomplete (record_whole), and nothing
 * more is written. */
void record_put(struct record *r, const struct prefix_key *k, const uint32_t *ids, size_t n,
                const struct answer *a, const char *why);
/* Put into err that a prefix has no answer, with its length, hash and last ids. Returns ERR_NET. */
int record_miss(const struct record *r, const struct prefix_key *k, const uint32_t *ids, size_t n,
                struct err *err);

#endif
