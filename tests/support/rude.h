/* rude.h - a server on a raw loopback socket that misbehaves in ways an HTTP library cannot, with a
 * thread for each connection. It reads a request and then plays the part that was given last,
 * or calls a function of the test, which writes the reply. */
#ifndef TESTS_SUPPORT_RUDE_H
#define TESTS_SUPPORT_RUDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum rude_mode {
    RUDE_KEEP,   /* send, leave the connection open */
    RUDE_CLOSE,  /* send, then close */
    RUDE_RESET,  /* send, then RST */
    RUDE_SILENT, /* send, then nothing until the client goes */
    RUDE_DRIP,   /* send the bytes one by one, then close */
    RUDE_FLOOD   /* send, then `flood` until the client goes (at most 128 MiB) */
};

/* After a request; on connect; after 16 bytes of a request. */
enum rude_when { RUDE_WHOLE, RUDE_ACCEPT, RUDE_HALF };

struct rude_part {
    enum rude_mode mode;
    const char *bytes; /* NULL: none; must outlive the part */
    size_t n;          /* 0: strlen */
    const char *flood;
    enum rude_when when;
};

struct rude_request {
    struct rude *server;
    int fd;
    char path[64];
    const char *text; /* [length], terminated: head and body */
    size_t length;
    const char *body; /* [n], terminated */
    size_t n;
    unsigned last; /* the last id of the list in the body; 0: none */
    unsigned seen; /* earlier requests with this last id, over all connections */
};

/* Start a server. serve answers one request, in any of the connections' threads, and returns true
 * to keep the connection; NULL: the server plays parts. Ends the test when no socket can be had. */
struct rude *rude_open(bool (*serve)(const struct rude_request *r));
void rude_close(struct rude *r); /* NULL is allowed */
unsigned rude_port(const struct rude *r);
const char *rude_url(const struct rude *r); /* "http://127.0.0.1:PORT" */
/* From now on, play this part. */
void rude_part(struct rude *r, const struct rude_part *part);
void rude_play(struct rude *r, enum rude_mode mode, const char *bytes);

unsigned rude_connections(struct rude *r);         /* accepted so far */
unsigned rude_requests(struct rude *r);            /* read so far */
unsigned rude_seen(struct rude *r, unsigned last); /* requests with this last id */
void rude_forget(struct rude *r);                  /* reset these counts */
/* Copy the latest request to out[cap], terminated. */
void rude_latest(struct rude *r, char *out, size_t cap);

/* Send part of a reply. These return false when the client or the test has gone. */
bool rude_text(const struct rude_request *r, const char *bytes);
bool rude_json(const struct rude_request *r, const char *status, const char *json);
/* Wait; also false when the client hangs up. */
bool rude_pause(const struct rude_request *r, unsigned ms);
/* Carry bytes to a port of this machine and back until a side closes, beginning with the request if
 * that is to be sent on, and add up what goes there and what comes back (NULL: do not count). serve
 * then returns what this returns, false. */
typedef atomic_uint_fast64_t rude_count;
bool rude_carry(const struct rude_request *r, unsigned port, bool request, rude_count moved[2]);
/* Make the close an RST; serve then returns what this returns, false. */
bool rude_reset(const struct rude_request *r);

#endif
