/* cloud.h - gets the next token from a large model behind HTTP; knows tokens and bytes, no model.
 *
 * Dialects: "openai" (/v1/completions with vLLM's return_token_ids), "sglang" (/generate with
 * input_ids) and "llamacpp" (/completion with return_tokens). Decoding is always greedy:
 * temperature 0, top_p 1, top_k 1, min_p 0 and repetition penalty 1 are sent explicitly. Token ids
 * go up, and token ids come down.
 *
 * Calls are asynchronous: cloud_ask hands a request to one network thread and returns, cloud_done
 * polls, cloud_take waits; then the call is committed (its answer is used) or dropped. Any number
 * of calls may be in flight. Connections are kept alive, HTTP/2 is used where TLS offers it, TLS is
 * verified, redirects are not followed, replies are capped while they arrive, and each call has one
 * deadline that includes its one retry. */
#ifndef NET_CLOUD_H
#define NET_CLOUD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/answers/answers.h"
#include "net/http/traffic.h"

struct err;
struct cloud;      /* used by one thread at a time; a forked child may only close it */
struct cloud_call; /* a request for the token after one prefix; used by its cloud's thread */

enum cloud_api { CLOUD_AUTO, CLOUD_OPENAI, CLOUD_LLAMACPP, CLOUD_SGLANG };

/* What cloud_peek knows about a token: nothing; its reply is on the way; *id is the token. */
enum cloud_sight { CLOUD_UNKNOWN, CLOUD_COMING, CLOUD_HERE };

enum { CLOUD_MAX_TOKENS = 64 }; /* most tokens of one reply */
/* The deadline of a call unless the options say another. A slow server has more time than the
 * first, but never more than the second: four times what the call would take if each token asked
 * for, and each part of the prefix as long as the test text, took as long as the probe's slowest
 * exchange. */
enum { CLOUD_TIMEOUT_MS = 10000, CLOUD_TIMEOUT_MOST_MS = 600000 };

/* A large model in this process, in place of a server: calls have no HTTP and no deadline, and move
 * no bytes. ask and look must not wait for the thread that calls news. */
struct cloud_local {
    void *arg;
    const char *name; /* of the model, as a server would give it; its ids are the caller's */
    const char *says; /* as in cloud_info */
    /* Begin to write up to `want` tokens after ids[n] (copied), and call news(news_arg) from
     * another thread, without a lock held, whenever look has more to tell. ERR_TEXT: not after
     * these ids; ERR_NOMEM, ERR_STOP. */
    int (*ask)(void *arg, void **text, const uint32_t *ids, size_t n, size_t want,
               void (*news)(void *news_arg), void *news_arg, struct err *err);
    /* Copy the tokens from number *n on behind ids[*n], and add their count to *n. True: no more
     * will come; *rc is OK, or says with err why. */
    bool (*look)(void *text, uint32_t *ids, size_t *n, int *rc, struct err *err);
    void (*drop)(void *text); /* write no more; may wait for a call of news, the last one */
};

struct cloud_options {
    const char *url;                 /* http[s]://host[:port][/base]; a /v1 at the end is ignored */
    const struct cloud_local *local; /* answers in place of a server; url may be NULL; or NULL */
    enum cloud_api api;              /* CLOUD_AUTO: found out from the server at cloud_open */
    const char *model;       /* name for the requests; NULL: the first one that /v1/models lists */
    const char *key;         /* API key or NULL; never printed */
    const char *ca;          /* PEM file of the only CAs to trust; NULL: the system's */
    const char *proxy;       /* URL; "": none; NULL: libcurl reads http_proxy and the like */
    unsigned timeout_ms;     /* deadline of one call; 0: see CLOUD_TIMEOUT_MS */
    size_t max_reply;        /* bytes; 0: 1 MiB */
    size_t vocab;            /* ids in a reply must be below this */
    const _Atomic int *stop; /* nonzero: give up with ERR_STOP; may be NULL */
    struct answers *answers; /* borrowed; NULL: no answers are kept */
    bool offline;            /* they are all that answers: no network, and url is not read */
    /* Tokens that may be asked for, or NULL. Who asks has taken those of a call; probes and
     * requests that are sent again take theirs, or are not sent. Borrowed. */
    struct quota *quota;
    size_t tokens;   /* most tokens requested in one call, 0: 1; those after the first are streamed
                        into memory */
    bool background; /* probe in a thread of its own, which cloud_open does not await */
    /* Cut text[n] into token ids, malloc'ed, as the local model does; called from any thread. With
     * it, the server's tokenizer is compared at the start, and a server that gives text alone can
     * be used. NULL: neither. */
    int (*encode)(void *arg, uint32_t **ids, size_t *count, const char *text, size_t n,
                  struct err *err);
    void *encode_arg; /* borrowed */
};

struct cloud_info {
    enum cloud_api api;
    const char *model;     /* as sent in requests, or NULL; owned by the cloud */
    char server[32];       /* what the server says it is, or "" */
    char version[64];      /* or "" */
    char says[256];        /* what it says of the model's weights: members of its entry in
                              /v1/models, as JSON */
    size_t context;        /* longest text in tokens; 0: unknown */
    const char *tokenizer; /* the path that confirmed that it is ours; NULL: not compared */
    bool ids;              /* replies hold token ids; else text, which is cut into ids here */
    bool http2;            /* its latest reply came over HTTP/2 */
    bool healthy;          /* GET /health is 200 */
};

/* What the calls of one text have moved, while others use the cloud, too. All zero at first; the
 * cloud writes it from another thread, so read it with cloud_tally_read. */
struct cloud_tally {
    struct traffic traffic;
    uint64_t limit; /* 1 + most tokens that are asked for, if calls are sent again; 0: none */
    struct wire_call *calls; /* those that have not ended */
};

struct cloud_ledger {               /* counts since cloud_open */
    uint64_t calls, faults, tokens; /* calls made; those that failed; ids received */
    uint64_t committed;             /* calls committed with an answer */
    uint64_t memo, store;
    struct traffic traffic;
};

/* Parse "openai", "llamacpp", "sglang" or "auto". False: it is none of these. */
bool cloud_api_parse(enum cloud_api *out, const char *name);
const char *cloud_api_name(enum cloud_api api);

/* Check the URL of a server and write it without "/" and "/v1" at its end to *base, malloc'ed.
 * ERR_ARG, with a message about cloud_url; ERR_NOMEM. */
int cloud_url_check(char **base, const char *url, struct err *err);

/* Read the API key: from the file if given, else MIZZLE_API_KEY, else OPENAI_API_KEY, else there is
 * none (*key = NULL). It is malloc'ed; free it with wipe_text. url is the server it is for, or
 * NULL, and proxy as in cloud_options. For plain http to another machine or through a proxy
 * OPENAI_API_KEY is not used, and the others are noted:
 * *note is one line for a person, or empty. ERR_IO, ERR_ARG (empty, or not one word of printable
 * ASCII), ERR_NOMEM. */
int api_key_read(char **key, const char *file, const char *url, const char *proxy, struct err *note,
                 struct err *err);

/* Read the key that the clients of a server must send, malloc'ed as above: from the file if given,
 * else from this variable of the environment, else there is none (*key = NULL). The variables of a
 * client are not used: theirs is a secret of the same shell, which the server would accept from
 * anyone. ERR_IO, ERR_ARG, ERR_NOMEM. */
int api_key_of_server(char **key, const char *file, const char *variable, struct err *err);

/* Copy a key that the caller has; it is checked and noted like one from a file, and also freed with
 * wipe_text. ERR_ARG, ERR_NOMEM. */
int api_key_copy(char **key, const char *text, const char *url, const char *proxy, struct err *note,
                 struct err *err);

/* Check URL and options, and open the client. Some facts must be known before the first call: the
 * dialect for CLOUD_AUTO (a server that does not say is taken for openai), the model's name, with
 * encode whether the tokenizer is ours. For CLOUD_AUTO the
 * server is asked here, with background by a thread meanwhile, and otherwise at the first call;
 * this also makes the connection before it is needed. Options are copied, except *stop. ERR_ARG,
 * ERR_NOMEM, ERR_NET, ERR_STOP; ERR_REMOTE also when the tokenizer is another one. */
int cloud_open(struct cloud **out, const struct cloud_options *o, struct err *err);
/* Close it. Calls in flight are dropped, and their handles become invalid. */
void cloud_close(struct cloud *c);
/* Wait until the facts above are known; returns cloud_open's errors. All calls that wait for them,
 * too, fail with it; after ERR_NET the next call asks again. */
int cloud_ready(struct cloud *c, struct err *err);
/* Let the next call ask a server that turned out to be unusable once more. */
void cloud_forgive(struct cloud *c);
/* Return what is known of the server, or NULL if nothing is; waits as cloud_ready does. health and
 * version are not asked for. */
const struct cloud_info *cloud_known_info(struct cloud *c);
/* Give the line that a person should see, that the server gives text alone, once. False: there is
 * none. */
bool cloud_note(struct cloud *c, struct err *note);
/* Ask for everything there is to know, health and version included, for a person to read. Returns
 * cloud_ready's errors. */
int cloud_inspect(struct cloud *c, struct cloud_info *out, struct err *err);

/* Call f from now on whenever something may have come that a caller waits for: an answer, a further
 * token of one, what is known of the server. Any thread may call it, with a lock held: it must not
 * block or use the cloud. NULL: no longer; once this has returned, the earlier one is not called.
 */
void cloud_notify(struct cloud *c, void (*f)(void *arg), void *arg);

/* True when cloud_known_info would not wait: what must be known before the first call is known, or
 * cannot be found out now. Else it is being found out, in a thread of its own. */
bool cloud_settled(struct cloud *c);

/* Return how many tokens a call may ask for as far as is known: options.tokens, or 1 once the
 * server has turned out to give text alone. */
size_t cloud_tokens(struct cloud *c);
/* Ask for `tokens` tokens after ids[n], or for as many as cloud_tokens allows, and return at once.
 * ids are copied. ERR_ARG: n is 0 or an id is not below vocab; ERR_NOMEM; ERR_STOP: interrupted. */
int cloud_ask(struct cloud *c, const uint32_t *ids, size_t n, size_t tokens,
              struct cloud_call **out, struct err *err);
/* Count what the next call moves, dropped or not, in *t as well, unless t is NULL. */
void cloud_tally(struct cloud *c, struct cloud_tally *t);
/* Return what has been counted in *t so far. */
struct traffic cloud_tally_read(struct cloud *c, const struct cloud_tally *t);
/* Count no more in *t, which may then go; call it before cloud_close. */
void cloud_tally_end(struct cloud *c, struct cloud_tally *t);
/* Return what the call has moved so far. */
struct traffic cloud_call_traffic(const struct cloud_call *call);
/* True when cloud_take would not wait. */
bool cloud_done(const struct cloud_call *call);
/* Wait for the token; a repeated call gives the same answer. *id is set only with OK. ERR_NET: a
 * retry may help, or stay local (refused, timed out, truncated, not understood, 5xx, 408, 425,
 * 429). ERR_REMOTE: this will not work in this run (401, 403, 404; a server that gives text without
 * ids). ERR_TEXT: not with this text, others may work (400, 413, 422, other 4xx, 301, 308; a prompt
 * that was truncated). ERR_STOP: interrupted. ERR_NOMEM. An error is never a token: an empty or
 * malformed reply is ERR_NET, and end-of-text is an id like any other. err never holds the key. */
int cloud_take(struct cloud_call *call, uint32_t *id, struct err *err);
/* Copy the tokens of the answer that have come after the first `from` ones, at most `room`, to ids,
 * and return how many. Never waits. *ended: there will be no more; a fault is given by cloud_take
 * alone. Leaves no trace. */
size_t cloud_look(const struct cloud_call *call, uint32_t *ids, size_t from, size_t room,
                  bool *ended);
/* Let the answer end with the tokens that have come, at least one, as the text needs no more. The
 * call is then committed or dropped like any other. */
void cloud_enough(struct cloud_call *call);
/* Use the answer: wait for it like cloud_take; a token is then kept. Frees the call. */
void cloud_commit(struct cloud_call *call);
/* Discard the call: its answer is not kept. Does not wait. Frees the call. */
void cloud_drop(struct cloud_call *call);
/* Return the size of the request's body for a call that has not been made, as a limit on bytes must
 * know it before. It depends on the prefix, the options and the server, but not on what happened. 0
 * when no body can be written (the server was never reached). Waits as cloud_ready does. */
size_t cloud_bytes(struct cloud *c, const uint32_t *ids, size_t n, size_t tokens);

/* Find the token after exactly ids[n] among the answers, and count the hit: ORIGIN_MEMO or
 * ORIGIN_STORE with *id set, else ORIGIN_NONE. Makes no call, but waits while the rest of a
 * committed call's reply may still bring it, so that what is requested never depends on timing. */
enum origin cloud_known(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *id);
/* Say whether cloud_known would find the token if no further call were committed. Never waits,
 * counts nothing and leaves no trace: for a token whose turn has not come. */
enum cloud_sight cloud_peek(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *id);

/* Do cloud_ask, cloud_take and cloud_commit in one; returns their errors. */
int cloud_next(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *out, struct err *err);

/* Return a copy of the current counts, valid until the next call of this function. */
const struct cloud_ledger *cloud_ledger(struct cloud *c);

#endif
