/* fault_matrix.h - the faults of t_net_matrix.c: what a rude server does to one request in a
 * dialect, and what net/ must make of it. */
#ifndef TESTS_SUPPORT_FAULT_MATRIX_H
#define TESTS_SUPPORT_FAULT_MATRIX_H

#include "net/cloud.h"
#include "tests/support/rude.h"

/* In `bytes`, bytes that never occur in UTF-8 stand for what differs between the dialects: */
#define W "\361" /* a whole reply with ids */
#define L "\362" /* its length, decimal */
#define X "\363" /* the same in hexadecimal */
#define E "\364" /* an event with ids, as the stream's first */
#define Z "\365" /* a zero byte */

struct matrix_row {
    const char *name;
    int code;         /* OK (the id is 42), ERR_NET or ERR_REMOTE */
    const char *says; /* part of the message */
    enum rude_mode then;
    const char *bytes;
    const char *ids;   /* the list in W and E; NULL: [42] */
    const char *fault; /* a row of the table of `mizzle cloud` (fault.h), in place of bytes */
    const char *flood;
    enum rude_when when;
    bool stream; /* the client asks for a stream */
    bool late;   /* only the deadline ends the call */
    bool hasty;  /* the deadline may end the call, and is as short */
    bool tls;    /* the client uses https */
};

/* A row; fields that it does not set are 0. */
#define ROW(kind, becomes, line, ends, sent, ...)                                                \
    {                                                                                            \
        .name = (kind), .code = (becomes), .says = (line), .then = RUDE_##ends, .bytes = (sent), \
        __VA_ARGS__                                                                              \
    }

/* One that is no answer, and one that is, after which the server closes the connection. */
#define BAD(kind, ...)  ROW(kind, ERR_NET, "", CLOSE, __VA_ARGS__)
#define FINE(kind, ...) ROW(kind, OK, "", CLOSE, __VA_ARGS__)

/* Each ends with a row without name. */
extern const struct matrix_row matrix_replies[], matrix_bodies[];

enum { MATRIX_ID = 42, MATRIX_VOCAB = 1000, MATRIX_LATE_MS = 250 };

#endif
