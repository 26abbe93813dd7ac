/* ahead.h - a queue of tokens that are written but not decided. The first one waits for the cloud;
 * those after it assume that the cloud will agree with the local model. */
#ifndef ROUTER_DECODE_AHEAD_H
#define ROUTER_DECODE_AHEAD_H

#include "router/decode/decode.h"
#include "router/gate.h"

enum ahead_state {
    AHEAD_NEW,    /* its score is not known */
    AHEAD_LOCAL,  /* the local model's own, by its score */
    AHEAD_ROUTED, /* the cloud's; its turn has not come */
    AHEAD_ASKED,  /* its call is in flight */
    AHEAD_HERE,   /* `answer` is the cloud's token */
    AHEAD_HELD    /* `gate` says why the local model's token stands in its place */
};

struct ahead_token {
    struct decode_token t; /* t.id is the guess, once written */
    size_t at;             /* length of the prefix before it */
    enum ahead_state state;
    bool written; /* the text continues after it */
    bool called;  /* the answer is that of its own call */
    uint32_t answer;
    enum gate_reason gate;
    size_t tokens;        /* that its call asks for */
    void *call;           /* the port's, while it is in flight */
    uint64_t asked_ns;    /* when it was made */
    struct traffic moved; /* by the text until it was made; then from there until its answer */
};

enum { AHEAD_MOST = 256 }; /* more than a call gives time for */

struct ahead {
    struct ahead_token tokens[AHEAD_MOST]; /* oldest first */
    size_t n;
};

#endif
