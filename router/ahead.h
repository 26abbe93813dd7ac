/* ahead.h - the tokens that are written but not decided, in order: the first one waits for the
 * cloud, those behind it stand on the guess that the cloud will say what the small model says. */
#ifndef ROUTER_AHEAD_H
#define ROUTER_AHEAD_H

#include "router/decode.h"
#include "router/gate.h"

struct cloud_port;

struct ahead_token {
    struct decode_token t;    /* t.id: the guess, if written */
    size_t at;                /* length of the prefix that it follows */
    struct caps_call ways[2]; /* in which it may be asked for: as many tokens at once as is set, or
                                 one */
    size_t way;               /* the one of its call */
    bool routed;
    bool held;             /* private_holds of the prefix */
    bool written;          /* the text may go on behind it */
    bool known;            /* t.id came from memo or store, ahead of its turn */
    bool covered;          /* a call in front of it has asked for this one as well */
    bool met;              /* its turn has come: it waits for the call, or needs none */
    enum gate_reason gate; /* once met */
    bool answered;         /* once met: answer is the cloud's */
    uint32_t answer;
    void *call; /* the teller's, or NULL */
};

struct ahead {
    const struct cloud_port *port; /* or NULL; borrowed */
    struct ahead_token *ring;      /* [cap] */
    size_t cap, first, n;
    size_t out;      /* calls among them */
    uint64_t wasted; /* calls dropped */
};

/* Room for cap >= 1 tokens. ERR_NOMEM. */
int ahead_open(struct ahead *a, const struct cloud_port *port, size_t cap, struct err *err);
/* Drops the calls that are left. All zero is fine. */
void ahead_close(struct ahead *a);

/* i < n, 0 is the oldest. */
struct ahead_token *ahead_at(const struct ahead *a, size_t i);
/* The newest, or NULL. */
struct ahead_token *ahead_last(const struct ahead *a);
/* Append; n < cap. Who asks counts the call in out. */
void ahead_push(struct ahead *a, const struct ahead_token *t);
/* Take the oldest away; its call has been ended. */
void ahead_pop(struct ahead *a);
/* Forget all but the oldest keep tokens, the newest first; their calls are dropped. */
void ahead_cut(struct ahead *a, size_t keep);
/* End a token's call, if there is one. */
void ahead_commit(struct ahead *a, struct ahead_token *t);
void ahead_drop(struct ahead *a, struct ahead_token *t);

#endif
