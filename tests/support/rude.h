/* rude.h - a server on a raw loopback socket that misbehaves in ways an HTTP library cannot.
 *
 * It has one thread, serves one connection at a time and allocates nothing. It reads each request
 * completely and then plays the part that was last given to rude_play. */
#ifndef TESTS_SUPPORT_RUDE_H
#define TESTS_SUPPORT_RUDE_H

#include <stddef.h>

enum rude_mode {
    RUDE_KEEP,         /* send, leave the connection open */
    RUDE_CLOSE,        /* send, then close */
    RUDE_RESET,        /* send, then RST */
    RUDE_DRIP,         /* send one byte each 10 ms */
    RUDE_SILENT,       /* send, then nothing until the client goes */
    RUDE_FLOOD,        /* send, then 'x' until the client goes (at most 64 MiB) */
    RUDE_FLOOD_HEADERS /* send, then header lines until the client goes (at most 64 MiB) */
};

struct rude_part {
    enum rude_mode mode;
    const char *bytes; /* sent first; must outlive the part */
    size_t n;          /* 0: strlen */
};

struct rude;

struct rude *rude_open(void); /* ends the test when no socket can be had */
void rude_close(struct rude *r);
unsigned rude_port(const struct rude *r);
void rude_play(struct rude *r, const struct rude_part *part);
unsigned rude_connections(struct rude *r); /* accepted so far */
unsigned rude_requests(struct rude *r);    /* read so far */
/* Copy the latest request to out[cap], terminated. */
void rude_request(struct rude *r, char *out, size_t cap);

#endif
