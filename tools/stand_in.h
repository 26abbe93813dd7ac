/* stand_in.h - the stand-in cloud: any local model behind the dialects of real servers, in this
 * process. */
#ifndef TOOLS_STAND_IN_H
#define TOOLS_STAND_IN_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct stand_in;

struct stand_in_options {
    const char *model; /* path; NULL: the demo pair's cloud model */
    const char *isa;   /* as --isa */
    const char *kv;    /* "f32" or "f16"; NULL: f32 */
    const char *host;  /* address to listen on; NULL: 127.0.0.1 */
    const char *key;   /* asked of every request but /health; NULL: none */
    size_t threads;    /* of the engine; 0: all processors */
    unsigned port;     /* 0: a free one */
    unsigned latency_ms,
        jitter_ms; /* each completion is held back latency - jitter to latency + jitter, drawn
                      from (seed, prefix, how often it was asked for), never from arrival order */
    uint64_t seed;
    size_t context; /* 0: the model's, at most 4,096 */
};

/* Listens and answers from its own threads until closed. ERR_IO: port in use; the model's own
 * errors (ERR_FORMAT also where it has no tokenizer). */
int stand_in_open(struct stand_in **out, const struct stand_in_options *o, struct err *err);
/* Waits for replies in progress; those that take longer than 2 s end with status 503. NULL is fine.
 */
void stand_in_close(struct stand_in *s);
unsigned stand_in_port(const struct stand_in *s);
const char *stand_in_url(const struct stand_in *s);   /* "http://127.0.0.1:PORT" */
const char *stand_in_model(const struct stand_in *s); /* its name, from the path */

#endif
