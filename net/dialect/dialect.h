/* dialect.h - the API of a server: how a request is written and how its reply is read. Pure
 * functions on bytes and JSON without connection, clock or state between calls; one file for each
 * dialect. The transport (http.h) knows none of them. */
#ifndef NET_DIALECT_DIALECT_H
#define NET_DIALECT_DIALECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/cloud_port.h"

struct buf;
struct err;

struct ask {
    const char *model; /* JSON string with its quotes; NULL: the request names no model */
    const uint32_t *ids;
    size_t n;
    size_t vocab; /* ids in the reply must be below this */
    size_t want;  /* tokens to ask for, 1 to CLOUD_MAX_TOKENS */
    bool stream;  /* ask for server-sent events */
    /* For openai without stream and with one token: cuts text into ids (see cloud_options.encode)
     * when the server gives text alone. NULL: the reply must have ids. */
    int (*encode)(void *arg, uint32_t **ids, size_t *count, const char *text, size_t n,
                  struct err *err);
    void *encode_arg;
};

struct reply { /* the tokens that have come so far */
    uint32_t ids[CLOUD_MAX_TOKENS];
    size_t n;
    bool ended; /* the server has said that no more will come */
};

struct dialect {
    enum cloud_api api;
    const char *path; /* path of the POST, after the base URL */
    /* Append the request's body: greedy, with ids asked back. False: out of memory. */
    bool (*request)(struct buf *out, const struct ask *a);
    /* Read one event of a stream, or a whole reply with status 200, and append the new ids, which
     * may be none. ERR_NET: not usable; ERR_REMOTE: this server will never give ids (it answers in
     * text alone); ERR_TEXT: not after this prompt, which it has truncated. err says why, without
     * the URL. */
    int (*read)(struct reply *io, const json_t *root, const struct ask *a, struct err *err);
};

extern const struct dialect dialect_openai, dialect_llamacpp, dialect_sglang;

const struct dialect *dialect_of(enum cloud_api api); /* api is not CLOUD_AUTO */

/* Append the new ids of a list. made is the server's count of all ids since the prompt, 0 if it
 * gives none; the list holds those that io does not have, or all of them. Some servers put the end
 * of the prompt in front; that is accepted only when it equals the end of our prompt. field is for
 * messages. */
int dialect_ids(struct reply *io, const json_t *ids, size_t made, const char *field,
                const struct ask *a, struct err *err);

/* Find our choice among those of an OpenAI reply or event: the one with index 0 or without one.
 * NULL: there are only others. ERR_NET: no list of objects, or two that are ours. */
int dialect_choice(const json_t **choice, const json_t *root, struct err *err);

/* Say that a reply has text, but no ids, and why. Returns ERR_REMOTE. */
int dialect_text_alone(const char *why, struct err *err);

/* Check a finish_reason: ERR_NET when it is a string other than "stop" and "length". */
int dialect_reason(const json_t *reason, struct err *err);

/* Return the server's own error text in any of the known forms (vLLM, SGLang, llama.cpp, FastAPI),
 * or NULL. Borrowed from root. */
const char *dialect_message(const json_t *root);

#endif
