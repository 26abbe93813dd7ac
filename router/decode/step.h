/* step.h - the decoding loop as a machine that never waits: it says what it wants.
 *
 * The caller evaluates, reads the head, scores, and waits for the cloud, for one text (decode_run)
 * or for many, whose rows it may put into one pass:
 *
 *     while ((want = step_next(s)) != STEP_DONE)
 *         STEP_ROWS:  append the ids of step_ids to the session; step_give_rows
 *         STEP_SCORE: score the hidden states of step_rows; step_give_score for each
 *         STEP_HEAD:  read the head for step_rows; step_give_head for each
 *         STEP_CLOUD: do something else and ask again, or step_wait
 *
 * A row is counted from the first id of the latest pass, the ids last given. Only that pass's rows
 * are wanted. When they can no longer be read, because the pass of another text has followed, say
 * so with step_lose_rows; if one is still needed, its token is evaluated again. A score or a head
 * may be given for a part of what is wanted; the first row must be among it. */
#ifndef ROUTER_DECODE_STEP_H
#define ROUTER_DECODE_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "router/decode/decode.h"

struct step;

enum step_want {
    STEP_ROWS = 1,
    STEP_SCORE, /* the router's, of the policies that read a network */
    STEP_HEAD,
    STEP_CLOUD, /* there is nothing to do but to wait: for an answer, or a moment for a draft */
    STEP_DONE   /* the text has ended, or an error has ended it */
};

struct step_text { /* what a text is made with; all borrowed until step_close */
    struct session *session;
    const struct tokenizer *tok;
    struct sampler *sampler;
    const struct router *router;    /* as in decode_run */
    const struct cloud_port *cloud; /* or NULL */
    const uint32_t *prompt;         /* [n] */
    size_t n;
    size_t answer; /* the answer's first id, for the features' position; 0: n */
};

/* Begin a text, with the options, errors and stats of decode_run; o, t and stats are borrowed.
 * Steps that share a gate or a cloud must be used by one thread. After an error *out is NULL, and
 * stats say so. */
int step_open(struct step **out, const struct step_text *t, const struct decode_options *o,
              struct decode_stats *stats, struct err *err);
/* True for a text of which nothing may ever be evaluated. */
bool step_is_lazy(const struct step *s);
/* Go on as far as possible, and return what is wanted. */
enum step_want step_next(struct step *s);

/* STEP_ROWS: return the ids to append to the session. At least the first must be appended. */
const uint32_t *step_ids(const struct step *s, size_t *n);
/* STEP_SCORE, STEP_HEAD: return the rows, ascending. */
const size_t *step_rows(const struct step *s, size_t *n);

/* Say that the session has the first n ids, after an evaluation of these alone. */
void step_give_rows(struct step *s, size_t n);
/* Return what router_look has found for a row whose score is wanted, for router_inputs; NULL if the
 * router reads the hidden state alone. */
const float *step_extra(struct step *s, size_t row);
/* Give router_score of a row. */
void step_give_score(struct step *s, size_t row, float score);
/* Give the logits of a row, which are not needed afterwards. */
void step_give_head(struct step *s, size_t row, const float *logits);
/* Say that what was wanted cannot be had: the text ends with this error. */
void step_fail(struct step *s, int code, const struct err *why);
/* Say that the rows of the latest pass can no longer be read. */
void step_lose_rows(struct step *s);
/* STEP_CLOUD: true when it is the draft that is awaited: after a moment, step_next goes on. */
bool step_awaits_draft(const struct step *s);
/* STEP_CLOUD: wait for the answer, or a little for the draft. */
void step_wait(struct step *s);

/* End the text: drop its calls, rewind the session to what was shown, complete the stats. Returns
 * the result of decode_run; err is set if it is an error. NULL is fine. */
int step_close(struct step *s, struct err *err);

#endif
