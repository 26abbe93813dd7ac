/* ahead.h - a queue of tokens that are written but not decided. The first one waits for the cloud;
 * those after it assume that the cloud will agree with the local model. */
#ifndef ROUTER_DECODE_AHEAD_H
#define ROUTER_DECODE_AHEAD_H

#include "router/decode/decode.h"
#include "router/gate.h"

struct cloud_port;

struct ahead_token {
    struct decode_token t;    /* t.id is the guess, once written */
    size_t at;                /* length of the prefix before it */
    struct caps_call ways[2]; /* how to request it: as many tokens at once as is set, or one */
    size_t way;               /* index of the way its call uses */
    bool routed;
    bool held;             /* gate_holds of the prefix */
    bool own;              /* it is held by the patterns of this text */
    bool written;          /* the text continues after it */
    bool known;            /* t.id came from memo or store before its turn */
    bool covered;          /* an earlier call has requested this token, too */
    bool met;              /* its turn has come: it waits for its call, or needs none */
    enum gate_reason gate; /* valid once met */
    bool answered;         /* valid once met: answer holds the cloud's token */
    bool called;           /* by its own call */
    uint32_t answer;
    void *call;        /* the port's, or NULL */
    uint64_t asked_ns; /* when it was made */
};

struct ahead {
    const struct cloud_port *port; /* or NULL; borrowed */
    struct gate *gate;             /* counts the calls of all texts; borrowed */
    struct ahead_token *ring;      /* [cap] */
    size_t cap, first, n;
    size_t out;      /* how many of them have a call in flight */
    uint64_t wasted; /* calls dropped */
};

/* Make room for cap >= 1 tokens. ERR_NOMEM. */
int ahead_open(struct ahead *a, const struct cloud_port *port, struct gate *gate, size_t cap,
               struct err *err);
/* Free it and drop the calls that are left. All zero is fine. */
void ahead_close(struct ahead *a);

/* Return token i < n; 0 is the oldest. */
struct ahead_token *ahead_at(const struct ahead *a, size_t i);
/* Return the newest token, or NULL. */
struct ahead_token *ahead_last(const struct ahead *a);
/* Count a call that has been made. */
void ahead_asked(struct ahead *a);
/* Append a token; n < cap. Its call has been counted. */
void ahead_push(struct ahead *a, const struct ahead_token *t);
/* Remove the oldest token, whose call has ended. */
void ahead_pop(struct ahead *a);
/* Remove all but the oldest `keep` tokens, the newest first, and drop their calls. */
void ahead_cut(struct ahead *a, size_t keep);
/* Commit a token's call, if there is one. */
void ahead_commit(struct ahead *a, struct ahead_token *t);
/* End a token's call, whose answer is of no use, so that nobody keeps it. */
void ahead_reject(struct ahead *a, struct ahead_token *t);
/* Drop a token's call, if there is one, and count it as wasted. */
void ahead_drop(struct ahead *a, struct ahead_token *t);

#endif
