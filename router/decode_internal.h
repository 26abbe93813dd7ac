/* decode_internal.h - the loop while it runs, for decode*.c alone. */
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
    size_t size;    /* ids in use */
    size_t n;       /* of the prompt */
    float *scratch; /* the router's */
    struct ahead ahead;
    struct ahead_token next;  /* the token after all that is written, while it is thought about */
    bool scored;              /* next has its score */
    bool halted;              /* what is written ahead ends with end-of-text or a stop string */
    uint32_t last;            /* the newest token written */
    struct stops stops, tail; /* of the decided text; of all that is written */
    struct err fault;         /* why the cloud did not answer */
    uint64_t clock;           /* when the token before was decided */
    bool ended;
    size_t end; /* length of the prefix of the last token */
};

/* Milliseconds since *since, which becomes now. */
double decode_lap(uint64_t *since);

/* In which ways may the token be asked for? */
void decode_find_ways(struct decode *d, struct ahead_token *e);
/* Ask for it, in e->way. teller.ask's errors. */
int decode_ask(struct decode *d, struct ahead_token *e, struct err *err);
/* The turn of a routed token: all before it is decided. It is known, or asked for, or neither: then
 * the gate has said why. */
int decode_begin_turn(struct decode *d, struct ahead_token *e);
/* Wait for the answer to a token whose turn it is. */
int decode_await_answer(struct decode *d, struct ahead_token *e);
/* Is the answer to this token, whose turn it is, on the way already? */
bool decode_is_coming(const struct decode *d, const struct ahead_token *e);

/* Of a routed token whose turn has not come. Look, without leaving a trace, whether it will need no
 * call: known or covered, and *id if known. */
void decode_look_up(const struct decode *d, struct ahead_token *e, uint32_t *id);
/* Is it worth a call? In e->way, then. */
bool decode_expects(const struct decode *d, struct ahead_token *e);
/* May one more call be out, behind the oldest one? Each of these may be in vain. */
bool decode_has_room(const struct decode *d);

#endif
