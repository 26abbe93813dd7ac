/* decode_internal.h - state of the decoding loop, for decode*.c alone. */
#ifndef ROUTER_DECODE_INTERNAL_H
#define ROUTER_DECODE_INTERNAL_H

#include "kernels/sys/base.h"
#include "router/ahead.h"
#include "router/decode.h"
#include "router/stops.h"

struct kernels;

struct decode {
    struct decode_stats *stats;
    struct session *session;
    const struct tokenizer *tok;
    struct sampler *sampler;
    const struct router *router;
    const struct cloud_port *cloud; /* or NULL */
    struct gate *gate;
    const struct kernels *kernels;
    const struct decode_options *o;
    struct err *err;
    size_t size;    /* number of ids in use */
    size_t n;       /* length of the prompt */
    float *scratch; /* scratch memory of the router */
    struct ahead ahead;
    struct ahead_token next; /* the token after the written ones, while it is scored */
    bool scored;             /* next has its score */
    bool halted;             /* the written text ends with end-of-text or a stop string */
    uint32_t last;           /* the newest token written */
    struct stops stops;      /* stop strings found in the decided text */
    struct stops tail;       /* and in all text, tentative tokens included */
    struct err fault;        /* why the cloud did not answer */
    uint64_t clock;          /* when the previous token was decided */
    bool ended;
    size_t end; /* length of the prefix before the last token */
};

/* Return the milliseconds since *since, which becomes now. */
double decode_lap(uint64_t *since);

/* Find the ways in which the token may be requested. */
void decode_find_ways(struct decode *d, struct ahead_token *e);
/* Request it in e->way; returns the port's errors. */
int decode_ask(struct decode *d, struct ahead_token *e, struct err *err);
/* Begin the turn of a routed token: all tokens before it are decided. Afterwards it is known or
 * requested, or the gate has said why not. */
int decode_begin_turn(struct decode *d, struct ahead_token *e);
/* Wait for the answer to a token whose turn it is. */
int decode_await_answer(struct decode *d, struct ahead_token *e);
/* For the oracle: ask for a token whose turn it is, wait, and then score it and say again whether
 * it is routed. */
int decode_ask_first(struct decode *d, struct ahead_token *e);
/* True when the answer to this token, whose turn it is, is already on the way. */
bool decode_is_coming(const struct decode *d, const struct ahead_token *e);

/* For a routed token whose turn has not come: see without a trace whether it will need no call,
 * because it is known (then *id is set) or covered. */
void decode_look_up(const struct decode *d, struct ahead_token *e, uint32_t *id);
/* True when such a token is worth a call, in e->way. */
bool decode_expects(const struct decode *d, struct ahead_token *e);
/* True when one more call may be in flight after the oldest one, given that each may be wasted. */
bool decode_has_room(const struct decode *d);

#endif
