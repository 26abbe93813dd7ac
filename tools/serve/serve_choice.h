/* serve_choice.h - one text of an answer: what of it can be shown, and its parts as JSON. */
#ifndef TOOLS_SERVE_SERVE_CHOICE_H
#define TOOLS_SERVE_SERVE_CHOICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/buf.h"
#include "router/decode/stops.h"
#include "router/texts/texts.h"
#include "tools/serve/serve_request.h"

struct serve_exchange;
struct tokenizer;

struct serve_choice {
    const struct serve_ask *ask;
    const struct tokenizer *tokenizer;
    const struct serve_prompt *prompt;
    size_t index;
    uint64_t seed, begun; /* os_now_ns() of the request */
    struct text *text;    /* NULL: not asked for yet */
    struct text_view view;
    struct buf raw; /* the text: with echo the prompt's, then that of the tokens */
    struct stops stops;
    size_t taken;        /* tokens of the view that are in raw */
    size_t shown, told;  /* bytes and tokens that were sent; with echo, told counts the prompt's */
    size_t events;       /* sent */
    struct buf part;     /* of a character that the next traced token may complete */
    size_t chars;        /* of the text before token `told`, complete ones */
    struct buf counted;  /* of a character after these that is not complete */
    bool opened, closed; /* its first and its last event were sent */
};

/* Another form than OpenAI's for an answer with one text. What returns JSON returns NULL without
 * memory. */
struct serve_form {
    json_t *(*whole)(struct serve_exchange *x, struct serve_choice *c);
    /* The event of the newest token; text[n] is what it adds. last: it finishes the text. */
    json_t *(*event)(struct serve_exchange *x, struct serve_choice *c, const char *text, size_t n,
                     bool last);
    json_t *(*closing)(struct serve_exchange *x, struct serve_choice *c); /* in place of [DONE] */
};

/* Begin before the text is asked for. False without memory. */
bool serve_choice_begin(struct serve_choice *c);
/* Look at the text and take what is new; one token of a plain stream. False without
 * memory. */
bool serve_choice_look(struct serve_choice *c);
/* Return how many bytes of raw may be shown: all when finished, else those before an incomplete
 * character or what may become a stop string. */
size_t serve_choice_ready(const struct serve_choice *c);
/* Return how many tokens there are to tell of: with echo the prompt's too. */
size_t serve_choice_tokens(const struct serve_choice *c);
size_t serve_choice_from(const struct serve_choice *c); /* tokens of the answer that were told */
void serve_choice_end(struct serve_choice *c);

/* Remove the first n bytes. */
void serve_choice_forget(struct buf *b, size_t n);
/* Return the text of a token; if it is no whole characters "bytes:\xe2\x82", or "" if `quiet`. */
json_t *serve_choice_token(const struct tokenizer *t, uint32_t id, bool quiet);
/* Return the bytes of a token, as numbers. */
json_t *serve_choice_bytes(const struct tokenizer *t, uint32_t id);

/* What returns JSON from here on returns NULL without memory, never less than it should. */

/* serve_logprobs.c: the logprobs of tokens from `told` on as each API wants them; c->chars is moved
 * on. */
json_t *serve_logprobs_raw(struct serve_choice *c);
json_t *serve_logprobs_chat(const struct serve_choice *c);

/* serve_mizzle.c: the object "mizzle" for the tokens from `from` on and for new events; with `last`
 * also the ledger. Empty: there is nothing to say. */
json_t *serve_mizzle(struct serve_choice *c, size_t from, bool last);

#endif
