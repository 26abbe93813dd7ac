/* source.h - what the stand-in's answers come from: a model or an oracle. Both are written by
 * router/texts, greedily. */
#ifndef TOOLS_LAB_STAND_IN_SOURCE_H
#define TOOLS_LAB_STAND_IN_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "router/engine.h"
#include "router/texts/texts.h"
#include "tools/lab/stand_in/stand_in.h"

struct err;
struct stand_in_question;

struct stand_in_source { /* constant once open, so any thread may use it */
    struct texts *texts;
    const struct tokenizer *tokenizer;
    size_t vocab, context, trained; /* trained: context of the model */
    char fingerprint[17];           /* of the weights' bits, in hex; "": there are none */
    enum kvcache kv;                /* of keys and values */
    /* For source.c alone. */
    struct engine engine;          /* all zero with an oracle */
    struct stand_in_oracle oracle; /* next is NULL if there is none */
};

/* Open the model, and start to take questions. Of o, isa, kv, threads, slots, queue, context and
 * oracle are used. ERR_FORMAT if the model has no tokenizer. */
int stand_in_source_open(struct stand_in_source **out, const char *path,
                         const struct stand_in_options *o, struct err *err);
/* Free it; all texts must have been dropped. NULL is fine. */
void stand_in_source_close(struct stand_in_source *s);
/* Queue a question; returns the errors of texts_ask. */
int stand_in_source_ask(struct stand_in_source *s, struct text **out,
                        const struct stand_in_question *q, struct err *err);

#endif
