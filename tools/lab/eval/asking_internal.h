/* asking_internal.h - one answer in flight, for asking*.c alone. */
#ifndef TOOLS_LAB_EVAL_ASKING_INTERNAL_H
#define TOOLS_LAB_EVAL_ASKING_INTERNAL_H

#include "tools/lab/eval/asking.h"

struct text;

struct asking_sent {
    struct asking *a;
    struct task *task;
    size_t item;
    struct asking_how how;      /* of query, once its score is known: always or never */
    float score;                /* of query */
    struct decode_stats before; /* what that took, alone */
    const struct cloud_port *port;
    uint32_t *ids; /* [prompt] */
    size_t prompt;
    bool left_out;     /* longer than the context */
    struct text *text; /* NULL: written when it is taken */
    /* Set while its tokens are read. */
    size_t tokens; /* of the answer so far */
    size_t warm;   /* ids at the beginning that the cloud's prefix cache holds */
    size_t call;   /* prefix of the latest call, 0: none; `asks` tokens were asked for */
    size_t asks;
    bool unbroken; /* all tokens since that call are the cloud's */
    uint64_t hash;
    struct asked_work work;
    bool full; /* an allocation failed */
};

/* asking.c */

/* Callback of the decoding loop: keep text and trace of the answer, an asking_sent. Stops the loop
 * when memory is out. */
bool asking_take_token(void *sent, const struct decode_token *t);

/* True when the text goes on behind a guess. With policy always that would only tell what the small
 * model would have said: no call leaves before the one before it is answered. */
bool asking_ahead(const struct asking_sent *s);

/* asking_many.c */

/* Return the option with which answers must be written one after the other, or NULL. */
const char *asking_alone(const struct asking *a);
/* Open the texts for a->parallel answers of a->context positions. Errors of texts_open. */
int asking_many_open(struct asking *a, struct err *err);
/* Drop the texts in flight, and close. */
void asking_many_close(struct asking *a);
/* Queue the text; take it, token by token, once it is there. */
int asking_many_send(struct asking_sent *s, struct err *err);
/* Find the score of its first token. */
int asking_many_score(struct asking_sent *s, struct err *err);
int asking_many_take(struct decode_stats *stats, struct asking_sent *s, struct err *err);

#endif
