/* record_internal.h - a recording in memory, and its reader; for record.c and record_read.c
 * alone. */
#ifndef NET_ANSWERS_RECORD_INTERNAL_H
#define NET_ANSWERS_RECORD_INTERNAL_H

#include "kernels/sys/base.h"
#include "net/http/buf.h"
#include "net/answers/record.h"

enum {
    RECORD_LAST = 8,     /* last ids of a prefix that are written */
    RECORD_LINE = 8192,  /* longest line in bytes */
    RECORD_MESSAGE = 240 /* of a fault; malloc'ed */
};

struct record_entry {
    struct prefix_key key; /* of the prefix, or record_audit_key of it */
    uint32_t id;
    signed char fault;  /* OK, ERR_NET, ERR_REMOTE or ERR_TEXT */
    unsigned char from; /* enum origin */
    uint32_t nth;       /* ORIGIN_AUDIT: 1 for the first one after this prefix, 2 for the next */
    uint32_t audits;    /* in the first one: how many this run has had */
    char *message;      /* of a fault */
};

struct record {
    char *path;
    int fd;      /* -1: read only */
    bool broken; /* a write failed; why has the reason */
    struct err why;
    struct prefix_key print;
    char *model, *api; /* NULL until the first line is read or written */
    uint64_t tokenizer;
    struct record_entry *at; /* [n] */
    size_t n, cap;
    uint32_t *slots; /* [mask + 1]: index into at, plus 1; 0: free */
    size_t mask;
    struct prefix_key seed;
    size_t torn; /* bytes of a torn line that record_note has not reported */
    struct buf line;
};

extern const char *const record_origins[5]; /* by enum origin; NULL for ORIGIN_NONE */
extern const struct record_fault {
    const char *name;
    int code;
} record_faults[3];
extern const char record_begin[]; /* the first bytes of every recording */

/* Add e, or replace the entry with its key. Takes over e->message. False: out of memory, and
 * e->message stays with the caller. */
bool record_keep(struct record *r, const struct record_entry *e);
/* Set model, api, tokenizer and print. */
int record_name(struct record *r, const char *model, const char *api, uint64_t tokenizer,
                struct err *err);
/* Return the key of the nth audit after the prefix with key k. */
struct prefix_key record_audit_key(const struct prefix_key *k, uint32_t nth);
/* Write the CRC-32 of p[n] as 8 hexadecimal digits with an end. */
void record_crc(char out[9], const char *p, size_t n);

/* Read all whole lines of the file open on fd. *whole is their length in bytes, *size the length of
 * the file. */
int record_read(struct record *r, int fd, uint64_t *whole, uint64_t *size, struct err *err);

#endif
