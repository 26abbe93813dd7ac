/* step_internal.h - state of the decoding loop, for step.c alone: the text, the rows of the latest
 * pass, and a queue of tokens that are written but not decided.
 *
 * The session follows the text when a row is needed, and no sooner: then it is rewound to what it
 * shares with the text, and what it lacks is evaluated. Behind the newest id a draft may be
 * evaluated, too, because the text may come to say the same. Then its rows are there already. */
#ifndef ROUTER_DECODE_STEP_INTERNAL_H
#define ROUTER_DECODE_STEP_INTERNAL_H

#include "kernels/sys/base.h"
#include "net/cloud_port.h"
#include "router/decode/draft.h"
#include "router/decode/step.h"
#include "router/decode/stops.h"

struct step_row { /* what has been computed from a row */
    bool picked, scored;
    uint32_t id;  /* the local model's own token; valid if picked */
    float score;  /* the router's, or that of the logits; valid if scored */
    float *extra; /* what a router reads besides (router_look), valid if picked; NULL */
};

struct step_rows {
    size_t first, n; /* prefixes of first to first + n - 1 of s->ids have rows */
    struct step_row at[STEP_HEADS];
    float *extra; /* that of at; NULL: the router reads no more than hidden states */
};

enum step_state {
    TOKEN_NEW,    /* its score is not known */
    TOKEN_LOCAL,  /* the local model's own, by its score */
    TOKEN_ROUTED, /* the cloud's; its turn has not come */
    TOKEN_ASKED,  /* its call is in flight */
    TOKEN_HERE,   /* `answer` of its turn is the cloud's token */
    TOKEN_HELD    /* `gate` of its turn says why the local model's token stands in its place */
};

struct step_token {
    struct decode_token t; /* t.id is the guess, once written */
    size_t at;             /* length of the prefix before it */
    enum step_state state;
    bool written; /* the text continues after it */
};

enum { QUEUE_MOST = 256 }; /* more than a call gives time for */

struct step_queue { /* the first one waits for the cloud; the others assume that it will agree */
    struct step_token at[QUEUE_MOST + 1]; /* oldest first; at[n]: the next one, while scored */
    size_t n;
};

struct step_turn { /* of a routed token that is the oldest of the queue */
    enum gate_reason gate;
    uint32_t answer;
    bool called;          /* the answer is that of its own call */
    size_t tokens;        /* that its call asks for */
    void *call;           /* the port's, while it is in flight */
    uint64_t asked_ns;    /* when it was made */
    struct traffic moved; /* by the text until it was made; then from there until its answer */
};

struct step {
    struct step_text text;
    const struct decode_options *o;
    enum policy_reads reads; /* what the policy's score is made of */
    struct decode_stats *stats;
    struct gate *gate, own;
    struct gate_text its; /* this text's part of the gate */
    struct cloud_tally tally;
    size_t size, context; /* number of ids in use; positions of the session */
    uint32_t *ids;        /* [length] the text, and room for a draft after it */
    size_t length;
    struct step_rows rows;
    float *scratch; /* of the router */
    struct draft draft;
    struct step_need need; /* want 0: nothing */
    uint64_t since;        /* when it was said */
    struct step_queue queue;
    struct step_turn turn;
    bool halted;        /* the written text ends with end-of-text or a stop string */
    struct stops stops; /* stop strings found in the decided text */
    struct stops tail;  /* and in all text, tentative tokens included */
    struct err fault;   /* why the cloud did not answer */
    uint64_t begun;     /* when the text was opened */
    uint64_t clock;     /* when the previous token was decided */
    bool ended;
    int rc; /* the error that has ended the text, with err */
    struct err err;
};

#endif
