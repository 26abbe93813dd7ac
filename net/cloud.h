/* cloud.h - the next token from a large model behind HTTP. Knows tokens and bytes, no model.
 *
 * Dialects: "openai" (/v1/completions with vLLM's return_token_ids), "sglang" (/generate with
 * input_ids) and "llamacpp" (/completion with return_tokens). Greedy always: temperature 0, top_p
 * 1, top_k 1, min_p 0 and repetition penalty 1 are sent explicitly. Token ids up, token ids down.
 *
 * Asynchronous: cloud_ask hands a request to one network thread and returns; cloud_done looks,
 * cloud_take waits; then the call is committed (its answer is used) or dropped. Any number of calls
 * may be out. Connections are kept alive, HTTP/2 is used where TLS offers it, TLS is verified,
 * redirects are not followed, replies are capped while they arrive, and each call has one deadline
 * for everything, its one retry included. */
#ifndef NET_CLOUD_H
#define NET_CLOUD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/answers/origin.h"
#include "net/http/traffic.h"

struct answers;
struct err;
struct cloud;      /* one thread at a time; not usable in a forked child, which may close it */
struct cloud_call; /* one token asked for after one prefix; its cloud's thread */

enum cloud_api { CLOUD_AUTO, CLOUD_OPENAI, CLOUD_LLAMACPP, CLOUD_SGLANG };

/* Of a token: not known; its reply is on the way; *id is it. */
enum cloud_sight { CLOUD_UNKNOWN, CLOUD_COMING, CLOUD_HERE };

enum { CLOUD_MAX_TOKENS = 64 }; /* of one reply */

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
    struct answers *answers; /* borrowed; NULL: nothing is kept. With a replay there is no network,
                              and url may be NULL */
    size_t tokens;     /* asked for in one call at most; 0: 1; more are streamed into caches */
    unsigned hedge_ms; /* the same request once more after this long; 0: never */
    bool compress;     /* gzip the request's body, where the server takes it */
    size_t slot;       /* llamacpp: 1 + id_slot; 0: the server's choice */
    bool background;   /* cloud_open asks the server from a thread of its own, and returns */
    /* Cut text[n] into token ids, malloc'ed, as the model here does; called from any thread. With
     * it the server's tokenizer is compared at the start, and a server that gives text alone can be
     * used. NULL: neither. */
    int (*encode)(void *arg, uint32_t **ids, size_t *count, const char *text, size_t n,
                  struct err *err);
    void *encode_arg; /* borrowed */
};

struct cloud_info {
    enum cloud_api api;
    const char *model;     /* as asked for, or NULL; the cloud's */
    char server[32];       /* who the server says it is, or "" */
    char version[64];      /* or "" */
    size_t context;        /* longest text in tokens; 0: it does not say */
    const char *tokenizer; /* the path that has shown it to be the same; NULL: not compared */
    bool ids;              /* replies hold token ids; else text, which is cut here */
    bool gzip;             /* it takes compressed requests, and gets them */
    bool http2;            /* its latest reply came over HTTP/2 */
    bool healthy;          /* GET /health is 200 */
};

struct cloud_ledger {               /* of the whole life of the client */
    uint64_t calls, faults, tokens; /* asked; those that failed; ids received */
    uint64_t committed, wasted;     /* calls committed with an answer; calls dropped */
    uint64_t memo_hits, store_hits;
    struct traffic traffic;
    uint64_t ns; /* time spent waiting in cloud_open and _take */
};

/* "openai", "llamacpp", "sglang", "auto". */
bool cloud_api_parse(enum cloud_api *out, const char *name);
const char *cloud_api_name(enum cloud_api api);

/* Key: from the file if given, else MIZZLE_API_KEY, else OPENAI_API_KEY, else none (*key = NULL).
 * malloc'ed, for wipe_text. url: of the server it is for, or NULL. Over plain http to another
 * machine OPENAI_API_KEY is none, and the others are noted: *note is one line for a person, or
 * empty. ERR_IO, ERR_ARG (empty, or not one word of printable ASCII), ERR_NOMEM. */
int api_key_read(char **key, const char *file, const char *url, struct err *note, struct err *err);

/* Checks the URL and options. What must be known of the server (for CLOUD_AUTO what it speaks, one
 * that does not say is taken for openai; the model's name; whether its tokenizer is ours, with
 * encode; whether it takes gzip, with compress) is asked here for CLOUD_AUTO, with background by a
 * thread meanwhile, and else at the first call; so the connection is there before it is needed.
 * Options are copied, but *stop is borrowed. ERR_ARG, ERR_NOMEM, ERR_NET, ERR_STOP; ERR_REMOTE also
 * where the tokenizer is another one. */
int cloud_open(struct cloud **out, const struct cloud_options *o, struct err *err);
/* Calls still out are dropped; their handles are gone with it. */
void cloud_close(struct cloud *c);
/* Wait until all that is known; cloud_open's errors. After ERR_NET, the next call asks again. Where
 * calls wait for this, too, one fails with it, the oldest, and it is asked again once that one is
 * ended: the same calls fail whether they are made one after the other or together. */
int cloud_ready(struct cloud *c, struct err *err);
/* These wait, too. CLOUD_AUTO where it is not known. */
enum cloud_api cloud_dialect(struct cloud *c);
/* The model's name as the server is asked for it, or NULL where none is named. */
const char *cloud_model(struct cloud *c);
/* What a person should know and was not told yet (the server gives text alone, it does not take
 * gzip): one line, or false. */
bool cloud_note(struct cloud *c, struct err *note);
/* All there is to know, for a person; asks for health and version as well. cloud_ready's errors. */
int cloud_inspect(struct cloud *c, struct cloud_info *out, struct err *err);

/* How many tokens a call may ask for, as far as is known: options.tokens, and 1 once the server has
 * turned out to give text alone. */
size_t cloud_tokens(struct cloud *c);
/* Ask for `tokens` tokens after ids[n], greedily, or for as many as cloud_tokens allows; returns at
 * once. ids are copied. ERR_ARG: n is 0 or an id is not below vocab; ERR_NOMEM; ERR_STOP:
 * interrupted. */
int cloud_ask(struct cloud *c, const uint32_t *ids, size_t n, size_t tokens,
              struct cloud_call **out, struct err *err);
/* True where cloud_take would not wait. */
bool cloud_done(const struct cloud_call *call);
/* Wait for the token; may be called again, with the same answer. *id is set only with OK. ERR_NET:
 * try again or stay local (refused, timed out, cut, not understood, 5xx, 408, 425, 429).
 * ERR_REMOTE: will not work in this run (401, 403, 404; a server that gives text without ids).
 * ERR_TEXT: not with this text, others may do (400, 413, 422, other 4xx, 301, 308; a prompt that
 * was cut). ERR_STOP: interrupted. ERR_NOMEM. An error is never a token: an empty or malformed
 * reply is ERR_NET, and end-of-text is an id like any other. err never holds the key. */
int cloud_take(struct cloud_call *call, uint32_t *id, struct err *err);
/* The answer is used: waits for it like cloud_take, then a token enters memo and store. Frees. */
void cloud_commit(struct cloud_call *call);
/* Not wanted any more: counted as wasted, forgotten, never in memo or store. Never waits. Frees. */
void cloud_drop(struct cloud_call *call);
/* Bytes of one request's body: a function of the prefix, the options and the server, not of what
 * happened. 0 where no body can be written (the server was never reached). Waits for cloud_ready.
 */
size_t cloud_call_bytes(const struct cloud_call *call);
/* The same of a call that was not made yet: what a limit on bytes must know before. */
size_t cloud_bytes(struct cloud *c, const uint32_t *ids, size_t n, size_t tokens);

/* Find the token after exactly ids[n] in memo or store, and count the hit: ORIGIN_MEMO or
 * ORIGIN_STORE with *id set, else ORIGIN_NONE. Makes no call, but waits while the rest of a
 * committed call's reply may still bring it, so that what is asked for never depends on timing. */
enum origin cloud_known(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *id);
/* Would cloud_known find it, were the calls committed so far all there will be? Never waits, counts
 * nothing and leaves memo and store as they are: for a token whose turn has not come. */
enum cloud_sight cloud_peek(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *id);

/* cloud_ask, cloud_take and cloud_commit in one; their errors. */
int cloud_next(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *out, struct err *err);

/* A copy as of now; until the next call of this function. */
const struct cloud_ledger *cloud_ledger(struct cloud *c);

#endif
