/* loglik.h - scores choices by their log-likelihood after the prompt, without generating.
 *
 * Source: EleutherAI's lm-evaluation-harness: the requests of a multiple-choice task in api/task.py
 * and their encoding in api/model.py. A continuation is a blank and the choice: its letter for
 * csqa, its text for arc. The pick is the most likely choice (acc), pick_norm the most likely a
 * character of the choice, without the blank (acc_norm). Unlike there, a text longer than the
 * context is not cut, but left out. */
#ifndef TOOLS_EVAL_LOGLIK_H
#define TOOLS_EVAL_LOGLIK_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/eval/task.h"

struct err;
struct session;
struct tokenizer;

struct loglik_text {
    double nats;   /* natural logarithm of the probability */
    size_t tokens; /* of the continuation */
    bool left_out; /* longer than the context; the others are 0 */
};

struct loglik {
    double nats[TASK_CHOICES]; /* [nchoices of the item] */
    size_t pick, pick_norm;    /* the first of equals */
    bool right, right_norm;
    size_t tokens; /* ids of all continuations */
    bool left_out; /* at least one choice was; nothing else is set */
};

/* Score a continuation of a prompt. Blanks at the end of the prompt (ASCII's) count as part of the
 * continuation, whose ids are those of both texts together beyond the number of ids of the prompt.
 * The softmax is over all rows of the head, padding included, in double. What the session has of
 * the prompt is not computed again. ERR_ARG: the prompt is empty; ERR_FORMAT: the logits are not
 * finite; ERR_STOP; ERR_NOMEM. */
int loglik_text(struct loglik_text *out, struct session *s, const struct tokenizer *tok,
                const char *prompt, const char *continuation, const _Atomic int *stop,
                struct err *err);

/* Score the choices of an item of csqa or arc in form lm-eval; ERR_ARG for another task or form. */
int loglik_item(struct loglik *out, struct session *s, const struct tokenizer *tok,
                const struct task *t, const struct task_item *item, const _Atomic int *stop,
                struct err *err);

#endif
