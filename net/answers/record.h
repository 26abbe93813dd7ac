/* record.h - the answers of a run as a file of JSON lines, to write (`--record`) and to run from
 * without a network (`--replay`).
 *
 * First line: {"mizzle_record":1,"model":"...","api":"...","tokenizer":"16 hex digits","crc":"..."}
 * Then one a prefix: {"n":41,"hash":"32 hex digits","last":[...],"from":"call","id":17,"crc":"..."}
 * n is the length of the prefix, hash its key (prefix_key.h), last its last ids (at most 8), from
 * who had the answer: "call", or "memo" and "store", which were no calls. A fault has
 * "fault":"net", "remote" or "text" and "message" in place of id: the replay has the same faults. A
 * later line for the same prefix replaces an earlier one, but a fault never replaces an answer.
 * "crc" is the CRC-32 (8 hex digits) of the line's bytes before
 * ,"crc" and is the last member. The API key never comes here.
 *
 * Each line is written whole, with one write(2): after a crash at most the last line is torn, which
 * the next run that appends cuts off and says. Any other line that does not match its checksum is
 * refused (ERR_FORMAT, with its number).
 *
 * One thread at a time. */
#ifndef NET_ANSWERS_RECORD_H
#define NET_ANSWERS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/answers/origin.h"
#include "net/answers/prefix_key.h"

struct err;
struct record;

struct record_answer {
    enum origin from; /* not ORIGIN_NONE */
    int fault;        /* OK, ERR_NET, ERR_REMOTE or ERR_TEXT */
    uint32_t id;
    const char *message; /* of a fault, one line; else NULL. Until the next call */
};

/* To append to path, which is made or continued. The file's first line is written or compared by
 * record_server. One process at a time: ERR_IO where another one records there. ERR_FORMAT, ERR_IO,
 * ERR_ARG (no regular file), ERR_NOMEM. */
int record_create(struct record **out, const char *path, struct err *err);
/* Of which server the answers are: before the first record_put. name: the
 * model's. ERR_FORMAT where the file is
 * of another model or tokenizer. */
int record_server(struct record *r, const char *name, const char *api, uint64_t tokenizer,
                  struct err *err);
/* To read. ERR_FORMAT also where the tokenizer is not this one. */
int record_open(struct record **out, const char *path, uint64_t tokenizer, struct err *err);
/* ERR_IO where not everything could be written: why, as the first record_put that failed has said.
 * NULL is fine. */
int record_whole(const struct record *r, struct err *err);
/* The same, after all has reached the disk. */
int record_close(struct record *r, struct err *err);

const char *record_model(const struct record *r); /* as in the first line; NULL before */
const char *record_api(const struct record *r);
size_t record_size(const struct record *r); /* different prefixes */
/* What a person should know (a torn line), one line, or false. Told once. */
bool record_note(struct record *r, struct err *note);

/* The answer after ids[n], or false. */
bool record_get(struct record *r, const uint32_t *ids, size_t n, struct record_answer *out);
/* Append, unless the file has this answer, or any where *a is a fault. ERR_IO, ERR_NOMEM: the
 * recording is incomplete from here on, nothing more is written. */
int record_put(struct record *r, const uint32_t *ids, size_t n, const struct record_answer *a,
               struct err *err);
/* The line for a prefix without answer: its length, its hash, its last ids. Returns ERR_NET. */
int record_miss(const struct record *r, const uint32_t *ids, size_t n, struct err *err);

#endif
