/* cloud_port.h - a large model as the decoding loop sees it: nine functions. A call asks for the
 * token after one prefix, and perhaps for some after that one.
 *
 * A server (cloud.h), a large model of this process (router/local_cloud.h), and kept answers in
 * front of either (answers/answers_port.h) fill in this table. One thread uses it. Answers are
 * greedy: an answer depends on the prefix alone. */
#ifndef NET_CLOUD_PORT_H
#define NET_CLOUD_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http/traffic.h"

struct err;

enum cloud_api { CLOUD_AUTO, CLOUD_OPENAI, CLOUD_LLAMACPP, CLOUD_SGLANG };

enum { CLOUD_MAX_TOKENS = 64 }; /* most tokens of one reply */

/* Where a token is without a new call: nowhere; in a reply on the way; in memory; in a file of
 * another run or process. */
enum cloud_sight { CLOUD_UNKNOWN, CLOUD_COMING, CLOUD_MEMO, CLOUD_STORE };

/* How a call ends: DROP cancels a call that is not needed. USE: the text continues with the call's
 * answer or fault, and further tokens of its reply may come. */
enum cloud_end { CLOUD_DROP, CLOUD_USE };

struct cloud_info {
    enum cloud_api api;    /* CLOUD_AUTO: unknown so far, as all members except tokens */
    const char *model;     /* its name, or NULL; owned by the port */
    char server[32];       /* the server's own name, or "" */
    char version[64];      /* or "" */
    char says[256];        /* the weights, as JSON members of the model's entry in /v1/models */
    size_t context;        /* longest text in tokens; 0: unknown */
    const char *tokenizer; /* path of the server that confirmed the tokenizer; NULL: not compared */
    size_t tokens;         /* maximum of tokens per call; may fall to 1 until the first answer */
    bool ids;              /* replies hold token ids; else text, which is tokenized here */
    bool http2;            /* its latest reply came over HTTP/2 */
    bool healthy;          /* GET /health is 200 */
};

/* Traffic of one text's calls. All zero at first; another thread may write it. */
struct cloud_tally {
    struct traffic traffic;
    uint64_t limit; /* 1 + maximum of tokens requested, repeated calls included; 0: no limit */
};

struct cloud_port {
    void *arg; /* first argument of the functions that take `arg` */
    /* Look for the token after ids[n] without a call. used: the text continues with this token, so
     * keep it, and wait if it is CLOUD_COMING; else never wait. NULL: no token is known. */
    enum cloud_sight (*known)(void *arg, const uint32_t *ids, size_t n, bool used, uint32_t *id);
    /* Return what is known of the model. Never waits. */
    struct cloud_info (*info)(void *arg);
    /* Ask for `tokens` tokens after ids[n] (copied), or as many as info allows; return at once.
     * Unless tally is NULL, the call's traffic is counted in *tally until `end` frees it. ERR_ARG,
     * ERR_NOMEM, ERR_STOP: nothing was sent. */
    int (*ask)(void *arg, const uint32_t *ids, size_t n, size_t tokens, struct cloud_tally *tally,
               void **call, struct err *err);
    /* True if take would not wait. With `at` the number of tokens requested: true if the call has
     * ended. */
    bool (*done)(const void *call, size_t at);
    /* Wait for token `at` of the answer. ERR_NET (also: the answer has fewer), ERR_REMOTE (fails
     * for the rest of the run), ERR_TEXT (fails for this text), ERR_STOP. A repeated call gives the
     * same. */
    int (*take)(void *call, size_t at, uint32_t *id, struct err *err);
    void (*end)(void *call, enum cloud_end how); /* free the call */
    /* Return the traffic counted in *tally. last: stop counting. */
    struct traffic (*traffic)(void *arg, struct cloud_tally *tally, bool last);
    /* From now on call f whenever the result of done or known may have changed, from any thread and
     * perhaps with a lock held. NULL: stop. */
    void (*notify)(void *arg, void (*f)(void *), void *f_arg);
    void (*close)(void *arg); /* calls in flight are dropped */
};

/* Do what known does; p may be NULL. */
static inline enum cloud_sight cloud_port_known(const struct cloud_port *p, const uint32_t *ids,
                                                size_t n, bool used, uint32_t *id)
{
    return p && p->known ? p->known(p->arg, ids, n, used, id) : CLOUD_UNKNOWN;
}

#endif
