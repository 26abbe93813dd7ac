/* cloud.h - a large model behind HTTP, as a port (cloud_port.h). It handles tokens and bytes, no
 * model.
 *
 * Calls are asynchronous: cloud_ask hands a request to one network thread and returns. Any number
 * of calls may be in flight. Decoding is always greedy (dialect/). Each call has one deadline that
 * includes its one retry, and replies are capped while they arrive (http/http.h). */
#ifndef NET_CLOUD_H
#define NET_CLOUD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/cloud_port.h"

struct err;
struct cloud; /* used by one thread at a time; a forked child may only close it */

/* The default deadline of a call, and its maximum for slow servers. Within these bounds, a slow
 * server gets 4 s (1 + t + n / m), for n ids and t requested tokens, where s is the time of the
 * probe's slowest exchange and m the number of ids in the probe's test text. */
enum { CLOUD_TIMEOUT_MS = 10000, CLOUD_TIMEOUT_MOST_MS = 600000 };

struct cloud_options {
    const char *url;         /* http[s]://host[:port][/base]; a /v1 at the end is ignored */
    enum cloud_api api;      /* CLOUD_AUTO: asked from the server at cloud_open */
    const char *model;       /* name for the requests; NULL: the first one that /v1/models lists */
    const char *key;         /* API key or NULL; never printed */
    const char *ca;          /* PEM file of the only CAs to trust; NULL: the system's */
    const char *proxy;       /* URL; "": none; NULL: libcurl reads http_proxy and the like */
    unsigned timeout_ms;     /* deadline of one call; 0: see CLOUD_TIMEOUT_MS */
    size_t max_reply;        /* bytes; 0: 1 MiB */
    size_t vocab;            /* ids in a reply must be below this */
    const _Atomic int *stop; /* nonzero: give up with ERR_STOP; may be NULL */
    /* Called by the probe, without a lock, with the model's name (else the URL) and the server's
     * description of the weights (`says` of cloud_info). An error ends the probe. May be NULL. */
    int (*found)(void *arg, const char *name, const char *says, struct err *err);
    void *found_arg; /* borrowed */
    /* Tokens that may be requested, or NULL. The caller takes the tokens of a call; probes and
     * repeated requests take their own, or are not sent. Borrowed. */
    struct quota *quota;
    size_t tokens;   /* maximum of tokens per call, 0: 1; tokens after the first are streamed into
                        memory */
    bool background; /* probe in its own thread; cloud_open does not wait for it */
    /* Tokenize text[n] as the local model does; *ids is malloc'ed; called from any thread. Needed
     * to compare the server's tokenizer, and for servers that give only text. NULL: neither. */
    int (*encode)(void *arg, uint32_t **ids, size_t *count, const char *text, size_t n,
                  struct err *err);
    void *encode_arg; /* borrowed */
};

struct cloud_ledger {               /* counts since cloud_open */
    uint64_t calls, faults, tokens; /* calls made; those that failed; ids received */
    struct traffic traffic;
};

/* Parse "openai", "llamacpp", "sglang" or "auto". False: another name. */
bool cloud_api_parse(enum cloud_api *out, const char *name);
const char *cloud_api_name(enum cloud_api api);

/* Check a server's URL. *base is a malloc'ed copy without "/" and "/v1" at the end. ERR_ARG, with a
 * message about cloud_url; ERR_NOMEM. */
int cloud_url_check(char **base, const char *url, struct err *err);

/* Read the API key from the first of these: text; file; MIZZLE_API_KEY; for https, OPENAI_API_KEY.
 * Without any, *key is NULL. The key is malloc'ed; free it with wipe_text. url is the server it is
 * for, or NULL; proxy as in cloud_options. *note is one line for the user, or empty: the key goes
 * over plain http to another machine or a proxy, or OPENAI_API_KEY is withheld for this reason.
 * ERR_IO, ERR_ARG (empty, or not one word of printable ASCII), ERR_NOMEM. */
int api_key_read(char **key, const char *text, const char *file, const char *url, const char *proxy,
                 struct err *note, struct err *err);

/* Read the key that the clients of a server must send, malloc'ed as above: from the file if given,
 * else from this environment variable, else *key is NULL. The client's variables are not used: the
 * server would accept the user's own secret from anyone. ERR_IO, ERR_ARG, ERR_NOMEM. */
int api_key_of_server(char **key, const char *file, const char *variable, struct err *err);

/* Check URL and options, and open the client. A probe finds what the first call needs: the dialect
 * for CLOUD_AUTO (openai if the server does not say), the model's name, and with encode whether the
 * tokenizer is ours. It runs here for CLOUD_AUTO, in a thread with background, else at the first
 * call. Options are copied, except *stop. ERR_ARG, ERR_NOMEM, ERR_NET, ERR_STOP; ERR_REMOTE also
 * when the tokenizer is another one. */
int cloud_open(struct cloud **out, const struct cloud_options *o, struct err *err);
/* Wait for the probe; returns cloud_open's errors. All calls that wait for the probe fail with its
 * error; after ERR_NET the next call probes again. */
int cloud_ready(struct cloud *c, struct err *err);
/* Let the next call probe an unusable server once more. */
void cloud_forgive(struct cloud *c);
/* Set *note, once, to a line for the user: the server gives only text. False: there is none. */
bool cloud_note(struct cloud *c, struct err *note);
/* Ask the server for all facts of cloud_info, health and version included, for display. Returns
 * cloud_ready's errors. */
int cloud_inspect(struct cloud *c, struct cloud_info *out, struct err *err);

/* The functions of the port, and the port: cloud is a struct cloud. An error is never a token: an
 * empty or malformed reply is ERR_NET, and end-of-text is an id like any other. ERR_NET: a retry
 * may help (refused, timed out, truncated, not understood, 5xx, 408, 425, 429). ERR_REMOTE: 401,
 * 403, 404; a server that gives text without ids. ERR_TEXT: 400, 413, 422, other 4xx, 301, 308; a
 * prompt that was truncated. err never holds the key. */
struct cloud_info cloud_known_info(void *cloud); /* without health and version */
int cloud_ask(void *cloud, const uint32_t *ids, size_t n, size_t tokens, struct cloud_tally *tally,
              void **call, struct err *err);
bool cloud_done(const void *call, size_t at);
int cloud_take(void *call, size_t at, uint32_t *id, struct err *err);
void cloud_end(void *call, enum cloud_end how);
struct traffic cloud_traffic(void *cloud, struct cloud_tally *tally, bool last);
void cloud_notify(void *cloud, void (*f)(void *arg), void *arg);
void cloud_close(void *cloud);
void cloud_port(struct cloud_port *out, struct cloud *c);

/* Return a copy of the current counts, valid until the next call of this function. */
const struct cloud_ledger *cloud_ledger(struct cloud *c);

#endif
