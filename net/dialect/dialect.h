/* dialect.h - what a server speaks: how a question is written and how an answer is read.
 *
 * Pure functions on bytes and JSON; no connection, no clock, no memory between calls. One file a
 * dialect. The transport (http.h) knows nothing of them. */
#ifndef NET_DIALECT_DIALECT_H
#define NET_DIALECT_DIALECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/cloud.h"

struct buf;
struct err;

struct ask {
    const char *model; /* as a JSON string, quotes included; NULL: not named */
    const uint32_t *ids;
    size_t n;
    size_t vocab; /* ids in the reply must be below this */
    size_t want;  /* tokens, 1 to CLOUD_MAX_TOKENS */
    size_t slot;  /* llamacpp: 1 + id_slot; 0: the server's choice */
    bool stream;  /* as server-sent events */
    /* openai, plain, one token: the server gives text alone, which is cut into ids again by this
     * (as cloud_options.encode); NULL: ids are insisted on. */
    int (*encode)(void *arg, uint32_t **ids, size_t *count, const char *text, size_t n,
                  struct err *err);
    void *encode_arg;
};

struct reply { /* the tokens that have come so far */
    uint32_t ids[CLOUD_MAX_TOKENS];
    size_t n;
    bool ended; /* the server has said that there are no more */
};

struct dialect {
    enum cloud_api api;
    const char *path; /* of the POST, after the base URL */
    /* Append the request's body: greedily, with ids asked back. list: a->ids as a JSON array.
     * False: no memory. */
    bool (*request)(struct buf *out, const struct ask *a, const struct buf *list);
    /* The tokens, at least one, of a whole reply with status 200. ERR_NET: no usable token;
     * ERR_REMOTE: this server will never give one (it answers in text alone); ERR_TEXT: not after
     * this prompt, which it has cut. err says why, without the URL. */
    int (*reply)(struct reply *out, const json_t *root, const struct ask *a, struct err *err);
    /* One event of a stream: appends what is new, which may be nothing. The same errors. */
    int (*event)(struct reply *io, const json_t *root, const struct ask *a, struct err *err);
};

extern const struct dialect dialect_openai, dialect_llamacpp, dialect_sglang;

const struct dialect *dialect_of(enum cloud_api api); /* not CLOUD_AUTO */

/* A whole body: the list is written here. */
bool dialect_body(const struct dialect *d, struct buf *out, const struct ask *a);

/* The new ids of a whole reply: the last `made` of the list `ids` of the field named; made is what
 * the server says, 0 if it does not say. Some servers put the end of the prompt in front: that is
 * accepted only where it equals the prompt's end. */
int dialect_ids(struct reply *out, const json_t *ids, size_t made, const char *field,
                const struct ask *a, struct err *err);
/* Append all ids of a list of new ones. */
int dialect_append(struct reply *io, const json_t *ids, const char *field, const struct ask *a,
                   struct err *err);

/* ERR_NET unless reason, where it is a string, is "stop" or "length". */
int dialect_reason(const json_t *reason, struct err *err);

/* The server's own words in any of the error forms (vLLM, SGLang, llama.cpp, FastAPI), or NULL.
 * Borrowed from root. */
const char *dialect_message(const json_t *root);

#endif
