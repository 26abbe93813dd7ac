/* dialect.h - what a server speaks: how a question is written and how an answer is read.
 *
 * Pure functions on bytes and JSON; no connection, no clock, no memory between calls. One file a
 * dialect. The transport (http.h) knows nothing of them. */
#ifndef NET_DIALECT_H
#define NET_DIALECT_H

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
};

struct dialect {
    enum cloud_api api;
    const char *path; /* of the POST, after the base URL */
    /* Append the request's body: one token, greedily, with ids asked back. False: no memory. */
    bool (*request)(struct buf *out, const struct ask *a);
    /* The one id of a reply with status 200. ERR_NET: no usable token; ERR_REMOTE: this server will
     * never give one (it answers in text alone, or has cut the prompt). err says why, without the
     * URL. */
    int (*reply)(uint32_t *out, const json_t *root, const struct ask *a, struct err *err);
};

extern const struct dialect dialect_openai, dialect_llamacpp;

const struct dialect *dialect_of(enum cloud_api api); /* not CLOUD_AUTO */

/* The only new id in the list `ids` of the field named. generated: how many the server says it
 * made, 0 if it does not say. Some servers put the end of the prompt in front: that is accepted
 * only where exactly one was generated and what is in front equals the prompt's end. */
int dialect_one_id(uint32_t *out, const json_t *ids, size_t generated, const char *field,
                   const struct ask *a, struct err *err);

/* The server's own words in any of the error forms (vLLM, SGLang, llama.cpp, FastAPI), or NULL.
 * Borrowed from root. */
const char *dialect_message(const json_t *root);

#endif
