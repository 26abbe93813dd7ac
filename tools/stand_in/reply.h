/* reply.h - the model's text in the words of each dialect: whole, or event by event. */
#ifndef TOOLS_STAND_IN_REPLY_H
#define TOOLS_STAND_IN_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http/buf.h"
#include "tools/stand_in/question.h"
#include "tools/stand_in/engine.h"

struct tokenizer;

struct stand_in_reply {
    const struct stand_in_question *ask;
    const struct tokenizer *tokenizer;
    size_t context;
    const char *model; /* name */
    int64_t created;   /* seconds */
    uint64_t start;    /* os_now_ns() of the request */
    char id[40];
    struct buf raw; /* of the tokens so far; stand_in_reply_end frees it */
    size_t spoken;  /* bytes of raw in events before */
};

void stand_in_reply_begin(struct stand_in_reply *s, struct stand_in_engine *e,
                          const struct stand_in_question *ask, const char *model, int64_t created,
                          uint64_t key);
void stand_in_reply_end(struct stand_in_reply *s);

/* The reply to a request without "stream", once t is finished. NULL: no memory. */
json_t *stand_in_reply_all(struct stand_in_reply *s, const struct stand_in_text *t);
/* The event of token i, to be called for each in order; last: no token follows. Characters that
 * are not whole yet wait for the next event. */
json_t *stand_in_reply_event(struct stand_in_reply *s, const struct stand_in_text *t, size_t i,
                             bool last);
/* What follows the events of the tokens: llama.cpp's and (on request) OpenAI's counts, or NULL. */
json_t *stand_in_reply_closing(struct stand_in_reply *s, const struct stand_in_text *t);
/* True where the stream ends in "data: [DONE]". */
bool stand_in_reply_done(const struct stand_in_question *ask);

/* The text of ids as a JSON string; bytes that are no UTF-8 become U+FFFD; control: control tokens
 * too. NULL: no memory. */
json_t *stand_in_reply_text(const struct tokenizer *t, const uint32_t *ids, size_t n, bool control);
json_t *stand_in_reply_ids(const uint32_t *ids, size_t n);

#endif
