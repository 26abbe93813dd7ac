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
    size_t threads;    /* of the engine; 0: all processors */
    unsigned port;     /* 0: a free one */
    unsigned latency_ms,
        jitter_ms; /* added before each reply; jitter drawn from (seed, prefix, attempt) */
    uint64_t seed;
    size_t context; /* 0: the model's, at most 4,096 */
};

/* Listens on 127.0.0.1 and answers from its own threads until closed. */
int stand_in_open(struct stand_in **out, const struct stand_in_options *o, struct err *err);
void stand_in_close(struct stand_in *s); /* waits for replies in progress */
unsigned stand_in_port(const struct stand_in *s);
const char *stand_in_url(const struct stand_in *s); /* "http://127.0.0.1:PORT" */

#endif
