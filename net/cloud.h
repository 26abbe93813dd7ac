/* cloud.h - the next token from a large model behind HTTP. Knows tokens and bytes, no model.
 *
 * Dialects: "openai" (/v1/completions with vLLM's return_token_ids) and "llamacpp" (/completion
 * with return_tokens). Greedy always: temperature 0, top_p 1, top_k, min_p, repetition_penalty are
 * sent explicitly. Token ids up, token ids down. One kept-alive connection, TCP_NODELAY, TLS
 * verified, no redirects, the reply capped while it arrives, one deadline for the whole call. */
#ifndef NET_CLOUD_H
#define NET_CLOUD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct cloud; /* one thread at a time */

enum cloud_api { CLOUD_AUTO, CLOUD_OPENAI, CLOUD_LLAMACPP };

struct cloud_options {
    const char *url;         /* http[s]://host[:port][/base]; a /v1 at the end is left out */
    enum cloud_api api;      /* CLOUD_AUTO: asked from the server at cloud_open */
    const char *model;       /* name for the request, or NULL: the first one /v1/models lists */
    const char *key;         /* or NULL; never printed */
    const char *ca;          /* PEM file: the only CAs then trusted; NULL: the system's */
    unsigned timeout_ms;     /* deadline of one call; 0: 10,000 */
    size_t max_reply;        /* bytes; 0: 1 MiB */
    size_t vocab;            /* ids in a reply must be below this */
    const _Atomic int *stop; /* not zero: give up with ERR_STOP; may be NULL */
};

struct cloud_ledger { /* of the whole life of the client */
    uint64_t calls, faults, tokens;
    uint64_t bytes_up, bytes_down; /* bodies and headers */
    uint64_t ns;                   /* time spent waiting */
};

/* "openai", "llamacpp", "auto". */
bool cloud_api_parse(enum cloud_api *out, const char *name);
const char *cloud_api_name(enum cloud_api api);

/* Key: from the file if given, else MIZZLE_API_KEY, else OPENAI_API_KEY, else none (*key = NULL).
 * malloc'ed. ERR_IO, ERR_ARG (empty, or not one word of printable ASCII), ERR_NOMEM. */
int cloud_key(char **key, const char *file, struct err *err);

/* Checks the URL and options and, for CLOUD_AUTO, asks the server what it speaks (one that does not
 * say is taken for openai). Options are copied, but *stop is borrowed. ERR_ARG, ERR_NOMEM, ERR_NET,
 * ERR_REMOTE, ERR_STOP. */
int cloud_open(struct cloud **out, const struct cloud_options *o, struct err *err);
void cloud_close(struct cloud *c);
enum cloud_api cloud_dialect(const struct cloud *c);
/* The model's name as the server is asked for it, or NULL where none is named. */
const char *cloud_model(const struct cloud *c);

/* The next token after ids[n], greedily. *out is set only with OK. ERR_NET: try again or stay local
 * (refused, timed out, cut, not understood, 5xx, 408, 429). ERR_REMOTE: will not work in this run
 * (401, 403, 404, other 4xx, 301, 308; a server that gives text without ids). ERR_STOP:
 * interrupted. ERR_ARG: n is 0 or an id is not below vocab. An error is never a token: an empty or
 * malformed reply is ERR_NET, and end-of-text is an id like any other. err never holds the key. */
int cloud_next(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *out, struct err *err);

const struct cloud_ledger *cloud_ledger(const struct cloud *c);

#endif
