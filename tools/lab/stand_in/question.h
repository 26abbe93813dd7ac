/* question.h - reads and checks what a completion request asks for, in every dialect. */
#ifndef TOOLS_LAB_STAND_IN_QUESTION_H
#define TOOLS_LAB_STAND_IN_QUESTION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/lab/stand_in/refusal.h"

struct stand_in_source;

/* Forms of completion requests. */
enum stand_in_form {
    FORM_VLLM,       /* /v1/completions with return_token_ids */
    FORM_TEXT,       /* /v1/completions without ids: SGLang, llama.cpp */
    FORM_GENERATE,   /* SGLang's /generate */
    FORM_COMPLETION, /* llama.cpp's /completion */
};

/* A checked request. */
struct stand_in_question {
    enum stand_in_form form;
    enum cloud_api server; /* never CLOUD_AUTO */
    uint32_t *ids;         /* [n], the prompt; malloc'ed */
    size_t n, max;         /* max: tokens to generate, at least 1; n + max <= context */
    bool return_ids;       /* return_token_ids or return_tokens */
    bool go_on;            /* ignore_eos */
    bool stream;
    bool usage; /* send a last event with token counts (stream_options.include_usage) */
    long slot;  /* id_slot, -1: any */
    char rid[65];
};

/* Read the request `in` into *out. model: the served name if the request must match it, else NULL.
 * Anything that asks for more than one greedy text (temperature, penalties, stop, n, ...) is
 * refused; missing fields mean greedy. The caller frees out->ids. out->stream is set even if
 * something else is wrong, because SGLang reports errors in the form that was requested. */
enum stand_in_wrong stand_in_question_read(struct stand_in_question *out,
                                           const struct stand_in_source *s, enum stand_in_form form,
                                           const char *model, const json_t *in,
                                           struct stand_in_refusal *no);

/* Read a list of at most `most` ids below vocab into *ids, malloc'ed. field is its name in
 * messages. */
enum stand_in_wrong stand_in_question_ids(uint32_t **ids, size_t *n, const char *field,
                                          const json_t *list, size_t vocab, size_t most,
                                          struct stand_in_refusal *no);

/* Refuse a field of the wrong type, in the words of no->server. */
enum stand_in_wrong stand_in_question_mistyped(struct stand_in_refusal *no, const char *field,
                                               const char *want, const json_t *found);

#endif
