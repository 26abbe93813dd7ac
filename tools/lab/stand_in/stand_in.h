/* stand_in.h - the stand-in cloud: the server of `mizzle serve` with another table of routes, those
 * of vLLM, SGLang and llama.cpp, with latency and faults. */
#ifndef TOOLS_LAB_STAND_IN_STAND_IN_H
#define TOOLS_LAB_STAND_IN_STAND_IN_H

#include <stddef.h>
#include <stdint.h>

#include "net/cloud.h"
#include "net/server/server.h"
#include "tools/lab/stand_in/fault.h"

struct err;
struct stand_in;

struct stand_in_options {
    const char *model;             /* path; NULL: the demo pair's cloud model */
    const char *isa;               /* as --isa */
    const char *kv;                /* as --kv; NULL: f32 */
    struct server_options listen;  /* host, port, key, TLS, and times; 60 s unless given */
    enum cloud_api server;         /* to imitate; CLOUD_AUTO: the path of a request decides */
    size_t threads;                /* of the engine; 0: all, or 1 for models up to 64 MiB */
    size_t slots;                  /* texts kept; 0: as texts_fit (texts.h) says */
    size_t queue;                  /* requests that may wait for a slot; 0: 256 */
    size_t latency_ms;             /* of a round trip */
    struct stand_in_faults faults; /* applied to completions */
    uint64_t seed;                 /* for everything that is drawn */
    size_t context;                /* 0: the model's, at most 4,096 */
};

/* Start a server that answers from its own threads until it is closed. ERR_NET: the port is in use;
 * ERR_FORMAT: the certificate is unusable or the model has no tokenizer; other errors of the
 * model. */
int stand_in_open(struct stand_in **out, const struct stand_in_options *o, struct err *err);
/* Stop the server. Replies in progress may finish for 2 s; after that they end with status 503.
 * NULL is fine. */
void stand_in_close(struct stand_in *s);
/* Set the latency for the tokens that are sent from now on. Any thread. */
void stand_in_set_latency(struct stand_in *s, size_t ms);
unsigned stand_in_port(const struct stand_in *s);
const char *stand_in_url(const struct stand_in *s); /* "http://127.0.0.1:PORT", or https */

#endif
