/* loglik.h - scores choices by their log-likelihood after the prompt, without generating.
 *
 * Source: EleutherAI's lm-evaluation-harness, its multiple-choice tasks, as of August 2026. A
 * continuation is a blank and the choice: its letter for csqa, its text for arc. acc judges the
 * most likely choice, acc_norm the one that is most likely for its number of characters, without
 * the blank. Unlike there, a text longer than the context is not cut, but left out. */
#ifndef TOOLS_EVAL_LOGLIK_H
#define TOOLS_EVAL_LOGLIK_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/tasks/task.h"

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
    bool acc, acc_norm;        /* these are right */
    size_t tokens;             /* ids of all continuations */
    bool left_out;             /* at least one choice was; nothing else is set */
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
