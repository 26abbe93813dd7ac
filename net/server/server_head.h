/* server_head.h - decides from a request's head whether it is let in. Uses no sockets;
 * t_server_abuse.c sends it any bytes. */
#ifndef NET_SERVER_SERVER_HEAD_H
#define NET_SERVER_SERVER_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "net/server/server.h"

/* Headers of which a request may have one at most. */
enum server_single {
    SINGLE_HOST,
    SINGLE_LENGTH,
    SINGLE_TRANSFER,
    SINGLE_AUTHORIZATION,
    SINGLE_ORIGIN,
    SINGLE_TYPE,
    SINGLE_ENCODING,
    SINGLE_EXPECT,
    SINGLES
};

/* A head as it is read. */
struct server_head {
    const char *method;
    bool old;                    /* HTTP/1.0 */
    const char *single[SINGLES]; /* values; NULL: none */
    uint64_t length;             /* of the body, if stated */
    char *path;
    bool foreign;    /* the Origin is the one allowed besides one's own */
    const char *why; /* the first thing that is wrong; NULL: nothing */
    enum server_refusal what;
};

void server_head_begin(struct server_head *h, const char *method, const char *version);
/* Read one header; name and value are terminated and borrowed. */
void server_head_field(struct server_head *h, const char *name, const char *value);
/* Read the target, which is changed and borrowed: the path is a part of it. */
void server_head_target(struct server_head *h, char *target);
/* Check the whole: of o count origin, hosts, any_host, tls and body_max. Any of these four may
 * set h->why. */
void server_head_end(struct server_head *h, const struct server_options *o);
/* True if the head announces a body. */
bool server_head_has_body(const struct server_head *h);
/* True if the head carries the key. The time taken does not depend on where a wrong key differs. */
bool server_head_has_key(const struct server_head *h, const char *key);

#endif
