/* reply.h - formats the model's text for each dialect, whole or event by event. */
#ifndef TOOLS_LAB_STAND_IN_REPLY_H
#define TOOLS_LAB_STAND_IN_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/buf.h"
#include "tools/lab/stand_in/question.h"
#include "router/texts/texts.h"

struct tokenizer;

/* A reply in progress. */
struct stand_in_reply {
    const struct stand_in_question *ask;
    const struct tokenizer *tokenizer;
    const char *model; /* display name */
    int64_t created;   /* seconds */
    uint64_t start;    /* os_now_ns() of the request */
    char id[40];
    struct buf raw; /* bytes of the tokens so far; stand_in_reply_end frees them */
    size_t spoken;  /* bytes of raw that earlier events have sent */
};

void stand_in_reply_begin(struct stand_in_reply *s, const struct stand_in_source *source,
                          const struct stand_in_question *ask, const char *model, int64_t created,
                          uint64_t key);
void stand_in_reply_end(struct stand_in_reply *s);

/* Return the reply to a request without "stream", once t is finished; NULL if there is no
 * memory. */
json_t *stand_in_reply_all(struct stand_in_reply *s, const struct text_view *t);
/* Return the event of token i; to be called once for each token, in order. last: no token follows.
 * An incomplete character waits for the next event. */
json_t *stand_in_reply_event(struct stand_in_reply *s, const struct text_view *t, size_t i,
                             bool last);
/* Return the event after those of the tokens, or NULL: the final object of llama.cpp, or the counts
 * of OpenAI if requested. */
json_t *stand_in_reply_closing(struct stand_in_reply *s, const struct text_view *t);

/* Return the text of ids as a JSON string, with U+FFFD for bytes that are not UTF-8; NULL if there
 * is no memory. control: include control tokens. */
json_t *stand_in_reply_text(const struct tokenizer *t, const uint32_t *ids, size_t n, bool control);

#endif
