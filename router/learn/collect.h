/* collect.h - turns reference answers into samples: each token of an answer gives a hidden state of
 * the local model (the edge) and a label, 1 if the edge's own token may stand there.
 *
 *   match      1 if the edge's token is the reference's.
 *   citer      That; else 0 if the cloud's token is the reference's. If both are wrong, the edge
 *              continues alone from its own token to the end: 1 if the final answer is right.
 *              With a router, the cloud helps it. Source: CITER (arXiv 2502.01976).
 *   divergent  1 where the edge's token is the reference's or the cloud's. Otherwise the cloud
 *              continues from the edge's token to the end: 0 only if the final answer is wrong
 *              although it is right when the cloud continues from its own token.
 *
 *   gain       The edge writes the answer itself; with a router, the cloud helps it. Where the
 *              two models differ, the gain is 1 if the answer is right with the cloud's token and
 *              wrong with the edge's, -1 if it is the other way round, else 0. One of the two is
 *              the answer as it was written, and the other is written on from that token in the
 *              same way. The label is 0 for gain 1. Of the other tokens, one in ten is kept.
 *
 * Reference answers are teacher-forced: each token is judged after those before it. Labels gain
 * ignore them. For the others the cloud is asked only where the edge is wrong. An end-of-text token
 * is equal to any other. All results depend on the texts, the models and the options alone, neither
 * on how many calls are in flight nor on the order in which replies come. */
#ifndef ROUTER_LEARN_COLLECT_H
#define ROUTER_LEARN_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/base.h"
#include "model/session.h"
#include "router/learn/sample_files.h"

struct router;
struct texts;
struct tokenizer;
struct turn;

enum collect_labels { COLLECT_MATCH, COLLECT_CITER, COLLECT_DIVERGENT, COLLECT_GAIN };
enum { COLLECT_CALLS = 32 }; /* most calls in flight, at most TEXTS_SLOTS, unless another is set */
/* Answers that the edge writes at once: one for each text of a shard. With as many rows a pass
 * costs a row little more than its arithmetic, and keys and values take some 200 MB. */
enum { COLLECT_SLOTS = SAMPLE_FILES_TEXTS };

/* What is known of a generated answer: whether it is right may still depend on what follows. */
enum collect_verdict { COLLECT_OPEN, COLLECT_WRONG, COLLECT_RIGHT };

/* Return "match", "citer", "divergent" or "gain". */
const char *collect_labels_name(enum collect_labels l);
/* Parse such a name. False: it is none of them. */
bool collect_labels_parse(enum collect_labels *out, const char *name);

struct collect_text {
    uint32_t *ids;    /* [n] malloc'ed: the prompt, then the reference answer with end-of-text */
    size_t prompt, n; /* ids of the prompt, at least 1; all ids; equal: there is no reference */
    uint32_t subject; /* hash of what it asks about */
    bool left_out;    /* set by collect_shard: too long, or refused by the cloud */
};

struct collect_stats {
    uint64_t texts;    /* that are complete, those left out included */
    uint64_t tokens;   /* of reference answers that the edge has read */
    uint64_t rollouts; /* answers written to their end, after a token of the edge or of the cloud */
    uint64_t calls;    /* made to the cloud */
    uint64_t written;  /* tokens of the cloud */
    uint64_t known;    /* of these: without a call of their own */
};

struct collect_options {
    enum collect_labels labels;
    size_t calls;                /* most in flight; 0: COLLECT_CALLS */
    size_t max_tokens;           /* of what is written to the end of an answer */
    uint64_t rollouts;           /* draw this many of the tokens whose answers have to be written */
    uint64_t texts;              /* evenly over this many texts */
    const struct router *router; /* for labels citer or gain; or NULL */
    float threshold;             /* of that router */
    const char *const *stops;    /* NULL-terminated strings at which an answer ends, or NULL */
    struct turn *turn;           /* of a cloud in this process, to read in turns with it; or NULL */
    const _Atomic int *stop;     /* nonzero: interrupted; may be NULL */
    /* Judge a generated answer ids[n] of this text, end-of-text included if it has come. Called
     * after each token, so that an answer ends with its verdict; COLLECT_OPEN is not for one that
     * has ended. Depends on the ids alone. */
    int (*judge)(void *arg, enum collect_verdict *verdict, size_t text, const uint32_t *ids,
                 size_t n, bool ended, struct err *err);
    /* Called whenever the stats have changed. May be NULL. */
    void (*progress)(void *arg, const struct collect_stats *stats);
    void *arg;
};

/* The parts are borrowed. The session's model is the edge, and texts are its, with the cloud and a
 * queue of TEXTS_SLOTS; NULL for match if all texts have references. No text is in flight. */
struct collect {
    struct session *session;
    const struct tokenizer *tok;
    const struct collect_options *o;
    struct collect_stats stats;
    struct err refusal; /* why the cloud refused a text last; "" before that */
    struct texts *texts;
    struct texts *large; /* of the cloud's model, if it may be asked past the port; or NULL */
};

/* Fill an empty shard with the samples of texts[s->ntexts], and count them. A text without a
 * reference gets the answer that the cloud writes. drawn: rollouts of all texts before. Texts that
 * are longer than the session's context, and those that the cloud refuses, are left out.
 * Errors of session_eval, of the cloud's calls (ERR_NET, ERR_REMOTE, ERR_STOP) and of judge;
 * ERR_NOMEM; ERR_ARG: a prompt is empty. */
int collect_shard(struct sample_shard *s, struct collect *c, struct collect_text *texts,
                  uint64_t drawn, struct err *err);
/* Compute the hidden states of a shard that lacks them, of the same texts. The edge alone reads
 * each text as far as its last sample. ERR_FORMAT: a sample is of another text, or of one
 * that the cloud wrote and of which tokens were left out; errors of session_eval; ERR_NOMEM. */
int collect_states(struct sample_shard *s, struct collect *c, const struct collect_text *texts,
                   struct err *err);

#endif
