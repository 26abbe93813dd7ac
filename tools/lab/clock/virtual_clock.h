/* virtual_clock.h - how long answers take on another machine and network: computed from what was
 * decided about each token, without waiting. The event model of ahead_model.h places the decisions;
 * the network is the stand-in server's (chance.h), so a virtual call takes as long as a real one
 * takes there, lost packets included. The same text and settings give the same times. Pure
 * functions. */
#ifndef TOOLS_LAB_CLOCK_VIRTUAL_CLOCK_H
#define TOOLS_LAB_CLOCK_VIRTUAL_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/lab/clock/chance.h"

struct err;

struct virtual_clock {
    double edge_ms;     /* of one step of the small model */
    double prefill_ms;  /* to read one id of the prompt; all of it takes one step at least */
    double cloud_ms;    /* that the cloud computes for one token */
    double deadline_ms; /* after which a call fails (virtual_cloud.h) */
    struct stand_in_net net;
    uint64_t seed; /* for loss */
    bool ahead;    /* as in decode.h */
};

struct virtual_token {
    bool routed, agrees; /* agrees: the token is the edge's own, as it is after a deadline, too */
    double call_ms;      /* of a routed token: until its answer or its deadline */
    double ms;           /* result: since the token before it; the first: since the start */
};

/* Sizes of a call in bytes. */
struct virtual_size {
    size_t header, up, down; /* of the request: header and body; of the answer: body */
};

/* Return the ms between a request and its answer, without deadline. key is stand_in_chance_first of
 * the clock's seed and the prefix. */
double virtual_clock_call(const struct virtual_clock *c, uint64_t key,
                          const struct virtual_size *size);

/* Return the ms that the small model computes for an answer of n tokens, n >= 1, if nothing is
 * thrown away. */
double virtual_clock_edge(const struct virtual_clock *c, size_t prompt, size_t n);

/* Set the times of an answer of n tokens, n >= 1, after a prompt of `prompt` ids: tokens[].ms.
 * ERR_NOMEM. */
int virtual_clock_answer(struct virtual_token *tokens, const struct virtual_clock *c, size_t prompt,
                         size_t n, struct err *err);

#endif
