/* stand_in.h - the stand-in cloud: any local model behind the dialects of real servers, in this
 * process. */
#ifndef TOOLS_STAND_IN_STAND_IN_H
#define TOOLS_STAND_IN_STAND_IN_H

#include <stddef.h>
#include <stdint.h>

#include "tools/stand_in/refusal.h"
#include "tools/stand_in/fault.h"

struct err;
struct stand_in;
struct tokenizer;

/* Answers in place of a model: the next token is a function of the prefix, which any thread may
 * call, and which may take its time. */
struct stand_in_oracle {
    uint32_t (*next)(void *arg, const uint32_t *ids, size_t n);
    void *arg;
    const struct tokenizer *tokenizer; /* for text; its size is the vocabulary; borrowed */
};

struct stand_in_options {
    const char *model;                    /* path; NULL: the demo pair's cloud model */
    const struct stand_in_oracle *oracle; /* or NULL; copied; then model is its name alone */
    const char *isa;                      /* as --isa */
    const char *kv;                       /* "f32" or "f16"; NULL: f32 */
    const char *host;                     /* address to listen on; NULL: 127.0.0.1 */
    const char *key; /* asked of every request but /health and the like; NULL: none */
    const char *tls_cert, *tls_key; /* PEM files: https; both or neither */
    enum stand_in_server server;    /* which one is played */
    size_t threads;                 /* of the engine; 0: all processors */
    size_t workers;       /* questions computed at a time, one thread each; 1: one by all threads;
                             0: 1 for models over 64 MiB, else one a thread */
    size_t slots;         /* texts kept; 0: as many as fit into 512 MiB, 4 to 64 */
    size_t queue;         /* questions that may wait for a slot; 0: 256 */
    unsigned port;        /* 0: a free one */
    unsigned patience_ms; /* for a client to send a request; 0: 60,000 */
    unsigned latency_ms, jitter_ms; /* as in struct stand_in_net (chance.h) */
    uint64_t up, down;              /* bytes a second of a connection; 0: no limit */
    double loss;                    /* share of packets, 0 to 1 */
    unsigned trips; /* round trips that a new connection costs before its first completion */
    struct stand_in_faults faults; /* what happens to completions besides */
    uint64_t seed;                 /* of all that is drawn */
    size_t context;                /* 0: the model's, at most 4,096 */
};

/* Listens and answers from its own threads until closed. ERR_NET: port in use, or the certificate
 * cannot be used; the model's own errors (ERR_FORMAT also where it has no tokenizer). */
int stand_in_open(struct stand_in **out, const struct stand_in_options *o, struct err *err);
/* Waits for replies in progress; those that take longer than 2 s end with status 503. NULL is fine.
 */
void stand_in_close(struct stand_in *s);
unsigned stand_in_port(const struct stand_in *s);
const char *stand_in_url(const struct stand_in *s);   /* "http://127.0.0.1:PORT", or https */
const char *stand_in_model(const struct stand_in *s); /* its name, from the path */

#endif
