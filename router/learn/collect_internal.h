/* collect_internal.h - a shard in progress (collect.c), and what models write for it
 * (collect_write.c).
 *
 * A shard goes through all of a kind of work before the next: answers, reading, the cloud's tokens,
 * draws, rollouts. Within one, many texts are written together and end in any order. What depends
 * on an order is done between them, text by text. */
#ifndef ROUTER_LEARN_COLLECT_INTERNAL_H
#define ROUTER_LEARN_COLLECT_INTERNAL_H

#include <pthread.h>

#include "router/decode/stops.h"
#include "router/learn/collect.h"
#include "router/texts/texts.h"

/* Unkept: one that is left out without being counted. */
enum { SAMPLE_UNDECIDED = SAMPLE_WAYS, SAMPLE_UNDRAWN, SAMPLE_UNKEPT };

/* What is written after some ids of a text. READS: the large model reads them and says what it
 * would have written everywhere. */
enum collect_writer { COLLECT_EDGE, COLLECT_CLOUD, COLLECT_READS };

struct collect_chain {
    enum collect_writer by;
    uint32_t *ids;       /* [most] */
    size_t given, begun; /* ids of the text; those and the token that is tried after them */
    size_t n, most;      /* ids now */
    size_t row;          /* of the text, whose label it is for */
    bool rolls;          /* an answer to be judged, which ends with its verdict */
    bool ended;
    enum collect_verdict verdict;
    struct stops stops;
    struct text *text; /* or NULL */
};

/* A text in progress; text->left_out: no longer. */
struct collect_work {
    struct collect_run *run;
    struct collect_text *text;
    size_t number; /* in the task */
    bool written;  /* the reference answer is the cloud's own */
    bool too_long;
    bool right;          /* labels gain: the edge's answer */
    struct samples read; /* the rows of this text */
    struct collect_chain *chains;
    size_t nchains, room, next; /* next: the first that is not being written */
};

struct collect_run {
    struct collect *c;
    struct sample_shard *s;
    struct collect_work *works; /* [s->ntexts] */
    size_t calls;               /* most in flight */
    bool moved;                 /* something has happened in this round */
    _Atomic uint32_t news;      /* changes when a text may have brought something */
    pthread_mutex_t lock;       /* for who waits for news */
    pthread_cond_t changed;
    struct collect_lane {
        struct collect_work *work;   /* whose beginning its slot holds, or NULL */
        struct collect_chain *chain; /* that it writes, or NULL */
    } lanes[TEXTS_SLOTS];
};

/* Set what is known of a token from the ids[at] before it and from the edge's logits. */
void collect_row(struct sample_row *row, const struct collect_work *w, const struct collect *c,
                 const uint32_t *ids, size_t at, const float *logits);

/* collect_write.c */

/* Begin a chain after text[given] and, if last is not NULL, one more id. It ends with end-of-text,
 * at a stop string, after more further tokens, or at the end of the context; one that rolls, when
 * its verdict is there. */
int collect_chain(struct collect_work *w, enum collect_writer by, size_t given,
                  const uint32_t *last, size_t more, bool rolls, size_t row, struct err *err);
/* Write all chains of all texts, as many together as may be. All must have one writer. */
int collect_write(struct collect_run *r, enum collect_writer by, struct err *err);
void collect_chains_drop(struct collect_work *w);

#endif
