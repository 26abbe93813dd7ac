/* record.h - keeps the answers of a run in a file of JSON lines (`--record`), from which a later
 * run needs no network (`--replay`).
 *
 * First line: {"mizzle_record":1,"model":"...","api":"...","tokenizer":"16 hex digits","crc":"..."}
 * Then one per prefix: {"n":41,"hash":"32 hex
 * digits","last":[...],"from":"call","id":17,"crc":"..."} n is the length of the prefix, hash its
 * key (prefix_key.h), last its last ids (at most 8). from says where the answer came from: "call",
 * or "memo" and "store", which made no call. An answer from "audit" was only compared with a text;
 * "nth" after it is 1 for the first audit of this prefix, 2 for the next one. A fault has
 * "fault":"net", "remote" or "text" and "message" instead of id; a replay repeats the faults. A
 * later line for the same prefix (and "nth") replaces an earlier one, but a fault never replaces an
 * answer. "crc" is the last member: the CRC-32 (8 hex digits) of the line's bytes before ,"crc".
 * The API key is never written here.
 *
 * Each line is written by one write(2): after a crash at most the last line is torn. The next run
 * that appends cuts it off and reports it. Any other line that does not match its checksum is
 * refused (ERR_FORMAT, with its number).
 *
 * One thread at a time. */
#ifndef NET_ANSWERS_RECORD_H
#define NET_ANSWERS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/answers/answer_origin.h"
#include "net/answers/prefix_key.h"

struct err;
struct record;

struct record_answer {
    enum origin from; /* not ORIGIN_NONE */
    int fault;        /* OK, ERR_NET, ERR_REMOTE or ERR_TEXT */
    uint32_t id;
    const char *message; /* of a fault, one line; else NULL; valid until the next call */
};

/* Open path for appending; create it if needed. record_server writes or compares the first line.
 * One process at a time: ERR_IO if another one records there. ERR_FORMAT, ERR_IO, ERR_ARG (not a
 * regular file), ERR_NOMEM. */
int record_create(struct record **out, const char *path, struct err *err);
/* Say which server the answers are from, before the first record_put; name is the model's.
 * ERR_FORMAT: the file is of another model or tokenizer. */
int record_server(struct record *r, const char *name, const char *api, uint64_t tokenizer,
                  struct err *err);
/* Open path for reading. ERR_FORMAT also when its tokenizer is another one. */
int record_open(struct record **out, const char *path, uint64_t tokenizer, struct err *err);
/* Return ERR_IO, with the reason that the first failing record_put gave, if not everything could be
 * written. NULL is fine. */
int record_whole(const struct record *r, struct err *err);
/* Close it after all has reached the disk. Returns what record_whole does. */
int record_close(struct record *r, struct err *err);

const char *record_model(const struct record *r); /* from the first line; NULL before */
const char *record_api(const struct record *r);
size_t record_size(const struct record *r); /* number of different prefixes and audits */
/* Give one line that a person should see (a torn line), once. False: there is none. */
bool record_note(struct record *r, struct err *note);

/* Find the answer after ids[n]. False: there is none. */
bool record_get(struct record *r, const uint32_t *ids, size_t n, struct record_answer *out);
/* Find the answer of the next audit after ids[n]: the first, until record_count_audit. */
bool record_get_audit(const struct record *r, const uint32_t *ids, size_t n,
                      struct record_answer *out);
/* Count an audit after ids[n], once its answer or fault has been recorded or replayed. */
void record_count_audit(struct record *r, const uint32_t *ids, size_t n);
/* Append an answer, unless the file already has it, or has any answer when *a is a fault. ERR_IO,
 * ERR_NOMEM: the recording is incomplete, and nothing more is written. */
int record_put(struct record *r, const uint32_t *ids, size_t n, const struct record_answer *a,
               struct err *err);
/* Put into err that a prefix has no answer, with its length, hash and last ids. Returns ERR_NET. */
int record_miss(const struct record *r, const uint32_t *ids, size_t n, struct err *err);

#endif
