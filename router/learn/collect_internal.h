/* collect_internal.h - texts in progress (collect.c), and what the cloud writes for them
 * (collect_cloud.c) and what the edge writes (collect_edge.c).
 *
 * Two orders are kept apart. Calls are made when there is room for them, and their tokens are used
 * as they come. They are committed text by text and in the order of each text's chains, with the
 * looks at what is known that a collection with one call at a time would have made there. So what
 * is recorded depends neither on the number of calls in flight nor on when replies come. Only the
 * calls of a router in answers that the edge writes are recorded as they come. */
#ifndef ROUTER_LEARN_COLLECT_INTERNAL_H
#define ROUTER_LEARN_COLLECT_INTERNAL_H

#include <pthread.h>

#include "router/decode/stops.h"
#include "router/learn/collect.h"

/* Unkept: one that is left out without being counted. */
enum { SAMPLE_UNDECIDED = SAMPLE_WAYS, SAMPLE_UNDRAWN, SAMPLE_UNKEPT };

/* One token, or all up to an end, that the cloud or the edge writes after the same ids. */
struct collect_chain {
    uint32_t *ids;       /* [most] */
    size_t given, begun; /* ids of the text; those and the token that is tried after them */
    size_t n, most;      /* ids now */
    size_t row;          /* of the text, whose label it is for */
    bool rolls;          /* an answer to be judged, which ends with its verdict */
    bool ended, refused; /* refused: the cloud does not take this text */
    enum collect_verdict verdict;
    struct stops stops;
    struct collect_call {
        void *call;
        size_t at, tokens; /* ids that it continues; tokens asked for */
    } * calls;
    size_t ncalls;
    bool live;         /* the last of the calls may bring more */
    struct text *text; /* of the edge, in place of calls; or NULL */
};

enum collect_stage {
    COLLECT_NEW,
    COLLECT_WRITE,    /* the cloud writes the reference answer */
    COLLECT_READ,     /* the edge reads it */
    COLLECT_ASK,      /* it gives its tokens where the edge is wrong */
    COLLECT_DRAW,     /* the texts before have not drawn their rollouts */
    COLLECT_ROLL,     /* it continues after the edge's tokens */
    COLLECT_ROLL_OWN, /* and after its own, where that came out wrong */
    COLLECT_DONE
};

/* A text in progress. */
struct collect_work {
    struct collect_run *run;
    struct collect_text *text;
    size_t number; /* in the task */
    enum collect_stage stage;
    bool written; /* the reference answer is the cloud's own */
    bool too_long;
    struct samples read; /* the rows of this text */
    struct collect_chain *chains;
    size_t nchains, room, first; /* chains; [first, nchains) are of this stage */
    bool right;                  /* labels gain: the edge's answer */
};

/* A shard in progress. */
struct collect_run {
    struct collect *c;
    struct sample_shard *s;
    struct collect_work *works; /* [s->ntexts] */
    size_t head;                /* the texts before it are complete */
    size_t live, calls;         /* calls in flight; the most of them */
    uint64_t drawn;             /* rollouts of all texts so far */
    bool moved;                 /* something has happened in this round */
    _Atomic uint32_t news;      /* changes when a call may have brought something */
    pthread_mutex_t lock;       /* for who waits for news */
    pthread_cond_t changed;
    struct collect_slot {            /* of c->texts */
        struct collect_work *work;   /* whose beginning it holds, or NULL */
        struct collect_chain *chain; /* that it writes, or NULL */
    } slots[COLLECT_SLOTS];
};

/* collect.c */

/* True when two ids are equal or both end the text. */
bool collect_same(const struct collect *c, uint32_t a, uint32_t b);
/* Set what is known of a token from the ids[at] before it and from the edge's logits. */
void collect_row(struct sample_row *row, const struct collect_work *w, const struct collect *c,
                 const uint32_t *ids, size_t at, const float *logits);
/* Take the answer that the first chain of this stage has written for a text without one. */
int collect_take_answer(struct collect_work *w, struct err *err);
/* Add the samples of a text to the shard, and count it. */
int collect_complete(struct collect_run *r, struct collect_work *w, struct err *err);
/* Tell that a call or a text may have brought something; may be called from any thread. */
void collect_news(void *run);
/* Wait for other news than `seen`, and see an interruption before the cloud does. ERR_STOP. */
int collect_wait(struct collect_run *r, uint32_t seen, struct err *err);

/* collect_edge.c */

/* Labels gain: let the edge write all answers, and begin to find the cloud's tokens in them. */
int collect_answers(struct collect_run *r, struct err *err);
/* Labels gain: mark the rows in which both models agree, and those that are to be decided. */
void collect_compare(struct collect_work *w, const struct collect *c);
/* Let the edge write on from the drawn rows of all texts, decide them, and complete the texts. */
int collect_roll_edge(struct collect_run *r, struct err *err);

/* collect_cloud.c */

/* Begin a chain after text[given] and, if last is not NULL, one more id. It ends with end-of-text,
 * at a stop string, after more further tokens, or at the end of the context; one that rolls, when
 * its verdict is there. */
int collect_chain_open(struct collect_work *w, struct collect *c, size_t given,
                       const uint32_t *last, size_t more, bool rolls, size_t row, struct err *err);
/* See whether a chain has ended with its last id, number `at`; its text's prompt ends before. */
int collect_chain_see(struct collect_chain *chain, struct collect *c, size_t number, size_t prompt,
                      size_t at, struct err *err);
/* Take what has come for the chains of this stage, and make calls for them while there is room.
 * *ended: all have ended, or the text is refused. */
int collect_chains_turn(struct collect_run *r, struct collect_work *w, bool *ended, bool *refused,
                        struct err *err);
/* Commit the calls of all chains of a text whose chains have ended, in order, and free them. */
int collect_chains_settle(struct collect_run *r, struct collect_work *w, struct err *err);
/* Drop all calls, and free the chains. */
void collect_chains_drop(struct collect_work *w, const struct collect *c);

#endif
