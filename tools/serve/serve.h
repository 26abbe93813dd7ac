/* serve.h - an OpenAI-compatible server of the routed model, with a page, from threads of this
 * process. */
#ifndef TOOLS_SERVE_SERVE_H
#define TOOLS_SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "net/server/server.h"

struct err;
struct routing_options;
struct serve;
struct serve_face;

struct serve_options {
    /* Its callbacks are set here; the key is required of all but /health and the page's files. */
    struct server_options listen;
    const struct serve_face *face; /* NULL: serve's own (serve_exchange.h) */
    void *face_arg;
    bool demo;       /* the page offers questions of the demo world */
    size_t parallel; /* texts at a time, up to TEXTS_SLOTS; 0: as texts_fit says */
    size_t queue;    /* those that wait */
    size_t context;  /* of each text; 0: that of the model, at most 4,096 */
    bool log;        /* print a line for each request to stderr */
};

/* Listen; all requests get status 503 until serve_load is done. Strings are borrowed. Errors of
 * server_open. */
int serve_open(struct serve **out, const struct serve_options *o, struct err *err);
/* Open model, router and cloud, and begin to answer. Notes for the user are printed to stderr.
 * Errors of engine_open, routing_open and texts_open. */
int serve_load(struct serve *s, const struct routing_options *mo, struct err *err);
/* Print to stderr if the cloud has been lost or found since the last call, of one thread. After
 * serve_load. For listen_wait. */
void serve_look(void *serve);
/* Take no new requests; those in progress have grace_ms to finish and then get status 503. Frees
 * everything. NULL is fine. */
void serve_close(struct serve *s, unsigned grace_ms);
const char *serve_url(const struct serve *s); /* "http://127.0.0.1:PORT" */

#endif
