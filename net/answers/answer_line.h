/* answer_line.h - the one format of files of answers: JSON lines, for stores and recordings.
 *
 * First line of a store:     {"mizzle_answers":2,"crc":"..."}
 * First line of a recording: {"mizzle_answers":2,"model":"...","api":"...","tokenizer":"16 hex
 * digits","crc":"..."}
 * An answer in a store:      {"hash":"32 hex digits","id":17,"crc":"..."}
 * An answer in a recording:  {"n":41,"hash":"32 hex digits","last":[...],"from":"call","id":17,
 * "crc":"..."}
 *
 * hash is the key of the prefix (prefix_key.h). A store holds no text and no token of a prompt. A
 * recording says with n how long the prefix is and with last how it ends (at most 8 ids). from says
 * where the answer came from: "call", or "memo" and "store", which made no call. A fault has
 * "fault":"net", "remote" or "text" and "message" instead of id. "crc" is the last member: the
 * CRC-32 (8 hex digits) of the line's bytes before ,"crc". The API key is never written. */
#ifndef NET_ANSWERS_ANSWER_LINE_H
#define NET_ANSWERS_ANSWER_LINE_H

#include "net/answers/answer_table.h"

struct err;

enum {
    ANSWER_LINE = 8192,      /* longest line, and room for each, in bytes */
    ANSWER_LINE_STORED = 78, /* room for a store's line; one has at least 10 less */
    ANSWER_MESSAGE = 240     /* room for the message of a fault */
};

/* The server whose answers a recording holds, with the names as they are written. */
struct answer_server {
    char model[2048], api[64];
    uint64_t tokenizer; /* fingerprint */
};

void answer_line_set_server(struct answer_server *s, const char *model, const char *api,
                            uint64_t tokenizer);

/* Write a line with checksum and LF, and return its length. */
size_t answer_line_store(char line[ANSWER_LINE]);
size_t answer_line_server(char line[ANSWER_LINE], const struct answer_server *s);
size_t answer_line_stored(char line[ANSWER_LINE_STORED], const struct prefix_key *k, uint32_t id);
/* ids[n] is the prefix, k its key. */
size_t answer_line_recorded(char line[ANSWER_LINE], const struct answer *a,
                            const struct prefix_key *k, const uint32_t *ids, size_t n);

/* Read a line of n bytes without its LF: checksum first, then JSON. recorded: a recording's.
 * out->message is malloc'ed. ERR_FORMAT, ERR_NOMEM. */
int answer_line_read(struct answer *out, const char *p, size_t n, bool recorded, struct err *err);
int answer_line_read_server(struct answer_server *out, const char *p, size_t n, struct err *err);

#endif
