/* serve_request.h - what a request for texts asks for, read from its JSON. */
#ifndef TOOLS_SERVE_SERVE_REQUEST_H
#define TOOLS_SERVE_SERVE_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/texts/texts.h"
#include "tools/serve/serve_field.h"

struct serve;
struct serve_form;

enum {
    SERVE_PROMPTS = 64,
    SERVE_CHOICES = 128, /* of each prompt, as OpenAI has it */
    SERVE_STOPS = 16,
    SERVE_STOP_IDS = 64,
    SERVE_BIASES = 300
};

struct serve_prompt {
    uint32_t *ids; /* [n], malloc'ed */
    size_t n;
};

struct serve_ask {
    bool chat, stream, usage, echo, return_ids;
    bool specials; /* control tokens appear in the text */
    bool logprobs, trace, events;
    bool plain;                    /* no "mizzle"; one event of a stream for each token */
    const struct serve_form *form; /* of an answer with one text; NULL: OpenAI's */
    bool draws;                    /* no seed was given, and one is needed */
    size_t top, trace_top;         /* alternatives in logprobs; in the trace */
    size_t n;                      /* choices of each prompt */
    struct serve_prompt *prompts;  /* [nprompts] */
    size_t nprompts;
    /* For all texts, apart from prompt, max and seed. It points into this struct. */
    struct text_wish wish;
    size_t max; /* SIZE_MAX: as many as fit */
    struct text_routing routing;
    const char *stops[SERVE_STOPS + 1]; /* NULL-ended; texts of `stop` */
    json_t *stop;
    uint32_t stop_ids[SERVE_STOP_IDS];
    struct sample_bias bias[SERVE_BIASES];
    char *patterns;
};

/* Read a request. False: *e is set; call serve_request_free in either case. */
bool serve_request_read(struct serve_ask *a, const struct serve *s, const json_t *in, bool chat,
                        struct serve_error *e);
void serve_request_free(struct serve_ask *a); /* it is all zero then */
/* Return the policy by which the answer is written: with one model alone, never or always. */
enum policy serve_ask_policy(const struct serve_ask *a);
/* Return how many bytes the answer may take until it is sent, about. One text counts as nothing
 * unless its prompt is scored, since slots and queue limit these. */
double serve_request_memory(const struct serve_ask *a, const struct serve *s);

/* Append an empty prompt; NULL without memory. */
struct serve_prompt *serve_prompt_add(struct serve_ask *a);
/* Read a prompt: a text or a list of ids, or a list of these. */
bool serve_prompt_read(struct serve_ask *a, const struct serve *s, const json_t *prompt,
                       struct serve_error *e);
/* Encode the messages of a request as the one prompt; chat_template_kwargs may hold
 * enable_thinking. */
bool serve_prompt_chat(struct serve_ask *a, const struct serve *s, const json_t *in,
                       struct serve_error *e);
/* Read ids that are in use into a new array; param is where they are. */
bool serve_prompt_ids(uint32_t **ids, size_t *n, const struct serve *s, const json_t *list,
                      const char *param, struct serve_error *e);

#endif
