/* matrix.h - one fault, one server, one client: what a raw loopback server does to one request in a
 * dialect, and what net/ is to make of it.
 *
 * Each check has a server of its own on a port of its own, with a thread for each connection, so
 * checks can run side by side. */
#ifndef TESTS_SUPPORT_MATRIX_H
#define TESTS_SUPPORT_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/cloud.h"

enum matrix_when { WHOLE, ACCEPT, HALF }; /* a request is there; nothing yet; 16 bytes of it */
enum matrix_then {
    KEEP,
    CLOSE,
    RESET,
    SILENT,
    DRIP,
    FLOOD
}; /* after the bytes; DRIP: as they go */

/* Bytes that are no UTF-8 stand in `bytes` for what differs between the dialects: */
#define W "\361" /* a whole reply with ids */
#define L "\362" /* its length, decimal */
#define X "\363" /* the same in hexadecimal */
#define E "\364" /* an event with ids, as the stream's first */
#define Z "\365" /* a zero byte */

struct matrix_row {
    const char *name;
    int code;         /* OK: with 42; ERR_NET, ERR_REMOTE */
    const char *says; /* part of the message */
    enum matrix_then then;
    const char *bytes;
    const char *ids;   /* in W and E; NULL: [42] */
    const char *flood; /* with FLOOD: sent until the client goes, at most 128 MiB */
    enum matrix_when when;
    bool stream; /* asked for as a stream */
    bool late;   /* only the deadline ends it */
    bool hasty;  /* the deadline may end it, and is as short */
    bool tls;    /* by https */
};

/* A row; what is not said is 0. */
#define ROW(kind, becomes, line, ends, sent, ...)                                           \
    {                                                                                       \
        .name = (kind), .code = (becomes), .says = (line), .then = (ends), .bytes = (sent), \
        __VA_ARGS__                                                                         \
    }

extern const struct matrix_row matrix_replies[], matrix_bodies[]; /* ended by a row without name */

enum { MATRIX_ID = 42, MATRIX_VOCAB = 1000, MATRIX_LATE_MS = 250 };

struct matrix_server;

/* Starts a server that does to each request what the row says; row NULL: answers well. Exits the
 * test where no socket is to be had. */
struct matrix_server *matrix_open(const struct matrix_row *row, enum cloud_api api);
unsigned matrix_port(const struct matrix_server *s);
void matrix_mend(struct matrix_server *s); /* from now on it answers well */
void matrix_close(struct matrix_server *s);

/* The row's call and, where the server is there, one more that must be answered: code, token, line,
 * ledger, time. False where it differs, which is said on stderr. */
bool matrix_check(const struct matrix_row *row, enum cloud_api api);
/* The first half of that, at any address. */
bool matrix_call(const struct matrix_row *row, enum cloud_api api, const char *url,
                 struct matrix_server *s);

#endif
