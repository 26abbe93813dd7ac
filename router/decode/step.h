/* step.h - the decoding loop as a machine that never waits: it says what it needs.
 *
 * The caller evaluates, reads the head, and waits for the cloud, for one text (decode_run) or for
 * many, whose rows it may put into one pass:
 *
 *     while ((need = step_next(s))->want != STEP_DONE)
 *         STEP_ROWS:   append need->ids[n] to the session; step_give_rows
 *         STEP_HEAD:   read the head for the rows need->at[n]; step_give_head for each
 *         STEP_CLOUD,
 *         STEP_MOMENT: do something else and ask again, or step_wait
 *
 * A row is named by how many ids of the text stand before the token that it gives. Rows of the
 * batch's latest pass alone can be read (session_row); when another text has had a pass since, the
 * ids of a row that is needed are wanted again. A head may be given for a part of what is wanted;
 * the first row must be among it. */
#ifndef ROUTER_DECODE_STEP_H
#define ROUTER_DECODE_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "router/decode/decode.h"

struct step;

enum { STEP_HEADS = 1 + DRAFT_MOST }; /* most rows of which the head is wanted */

enum step_want {
    STEP_ROWS = 1,
    STEP_HEAD,
    STEP_CLOUD,  /* there is nothing to do but to wait for an answer, */
    STEP_MOMENT, /* or a moment for a draft that is coming */
    STEP_DONE    /* the text has ended, or an error or a stop has ended it */
};

struct step_need {
    enum step_want want;
    const uint32_t *ids;   /* STEP_ROWS: [n]; at least the first must be appended */
    size_t at[STEP_HEADS]; /* STEP_HEAD: [n], ascending */
    size_t n;
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
/* Go on as far as possible, and return what is needed, which is valid until the next call. */
const struct step_need *step_next(struct step *s);
/* Say that the session has the first n of the ids, after an evaluation of these alone. */
void step_give_rows(struct step *s, size_t n);
/* Give the logits of a row, which are not needed afterwards. */
void step_give_head(struct step *s, size_t at, const float *logits);
/* Say that what was wanted cannot be had: the text ends with this error. */
void step_fail(struct step *s, int code, const struct err *why);
/* Wait for the answer, or a little for the draft. */
void step_wait(struct step *s);
/* End the text: drop its call, rewind the session to what was shown, complete the stats. Returns
 * the result of decode_run; err is set if it is an error. NULL is fine. */
int step_close(struct step *s, struct err *err);

#endif
