/* cloud.h - a large model behind HTTP, as a port (cloud_port.h); knows tokens and bytes, no model.
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

/* The deadline of a call unless the options say another. A slow server has more time than the
 * first, but never more than the second: four times what the call would take if each token asked
 * for, and each part of the prefix as long as the test text, took as long as the probe's slowest
 * exchange. */
enum { CLOUD_TIMEOUT_MS = 10000, CLOUD_TIMEOUT_MOST_MS = 600000 };

struct cloud_options {
    const char *url;         /* http[s]://host[:port][/base]; a /v1 at the end is ignored */
    enum cloud_api api;      /* CLOUD_AUTO: found out from the server at cloud_open */
    const char *model;       /* name for the requests; NULL: the first one that /v1/models lists */
    const char *key;         /* API key or NULL; never printed */
    const char *ca;          /* PEM file of the only CAs to trust; NULL: the system's */
    const char *proxy;       /* URL; "": none; NULL: libcurl reads http_proxy and the like */
    unsigned timeout_ms;     /* deadline of one call; 0: see CLOUD_TIMEOUT_MS */
    size_t max_reply;        /* bytes; 0: 1 MiB */
    size_t vocab;            /* ids in a reply must be below this */
    const _Atomic int *stop; /* nonzero: give up with ERR_STOP; may be NULL */
    /* Called by the probe, without a lock, when it has found the model's name (else its URL) and
     * what it says of its weights (cloud_info). An error is the probe's. May be NULL. */
    int (*found)(void *arg, const char *name, const char *says, struct err *err);
    void *found_arg; /* borrowed */
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

struct cloud_ledger {               /* counts since cloud_open */
    uint64_t calls, faults, tokens; /* calls made; those that failed; ids received */
    struct traffic traffic;
};

/* Parse "openai", "llamacpp", "sglang" or "auto". False: it is none of these. */
bool cloud_api_parse(enum cloud_api *out, const char *name);
const char *cloud_api_name(enum cloud_api api);

/* Check the URL of a server and write it without "/" and "/v1" at its end to *base, malloc'ed.
 * ERR_ARG, with a message about cloud_url; ERR_NOMEM. */
int cloud_url_check(char **base, const char *url, struct err *err);

/* Read the API key: text if given, else from the file if given, else MIZZLE_API_KEY, else, for
 * https, OPENAI_API_KEY, else there is none (*key = NULL). It is malloc'ed; free it with wipe_text.
 * url is the server it is for, or NULL; proxy as in cloud_options. *note is one line for a person,
 * or empty: a key goes over plain http to another machine or a proxy, or OPENAI_API_KEY does not.
 * ERR_IO, ERR_ARG (empty, or not one word of printable ASCII), ERR_NOMEM. */
int api_key_read(char **key, const char *text, const char *file, const char *url, const char *proxy,
                 struct err *note, struct err *err);

/* Read the key that the clients of a server must send, malloc'ed as above: from the file if given,
 * else from this variable of the environment, else there is none (*key = NULL). The variables of a
 * client are not used: theirs is a secret of the same shell, which the server would accept from
 * anyone. ERR_IO, ERR_ARG, ERR_NOMEM. */
int api_key_of_server(char **key, const char *file, const char *variable, struct err *err);

/* Check URL and options, and open the client. Some facts must be known before the first call: the
 * dialect for CLOUD_AUTO (a server that does not say is taken for openai), the model's name, with
 * encode whether the tokenizer is ours. For CLOUD_AUTO the server is asked here, with background by
 * a thread meanwhile, and otherwise at the first call. Options are copied, except *stop. ERR_ARG,
 * ERR_NOMEM, ERR_NET, ERR_STOP; ERR_REMOTE also when the tokenizer is another one. */
int cloud_open(struct cloud **out, const struct cloud_options *o, struct err *err);
/* Wait until the facts above are known; returns cloud_open's errors. All calls that wait for them,
 * too, fail with it; after ERR_NET the next call asks again. */
int cloud_ready(struct cloud *c, struct err *err);
/* Let the next call ask a server that turned out to be unusable once more. */
void cloud_forgive(struct cloud *c);
/* Give the line that a person should see, that the server gives text alone, once. False: there is
 * none. */
bool cloud_note(struct cloud *c, struct err *note);
/* Ask for everything there is to know, health and version included, for a person to read. Returns
 * cloud_ready's errors. */
int cloud_inspect(struct cloud *c, struct cloud_info *out, struct err *err);

/* The functions of the port, and the port: cloud is a struct cloud. An error is never a token: an
 * empty or malformed reply is ERR_NET, and end-of-text is an id like any other. ERR_NET: a retry
 * may help, or stay local (refused, timed out, truncated, not understood, 5xx, 408, 425, 429).
 * ERR_REMOTE: 401, 403, 404; a server that gives text without ids. ERR_TEXT: 400, 413, 422, other
 * 4xx, 301, 308; a prompt that was truncated. err never holds the key. */
struct cloud_info cloud_known_info(void *cloud); /* health and version are not asked for */
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
