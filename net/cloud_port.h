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

/* What is known of a token without a call: nothing; its reply is on the way; memory has it; a file
 * has it from another run or process. */
enum cloud_sight { CLOUD_UNKNOWN, CLOUD_COMING, CLOUD_MEMO, CLOUD_STORE };

/* How a call ends: it was not needed and is cancelled; the text continues with its answer or its
 * fault, and further tokens of its reply may come. */
enum cloud_end { CLOUD_DROP, CLOUD_USE };

struct cloud_info {
    enum cloud_api api;    /* CLOUD_AUTO: not known yet, as all but tokens */
    const char *model;     /* its name, or NULL; owned by the port */
    char server[32];       /* what the server says it is, or "" */
    char version[64];      /* or "" */
    char says[256];        /* of the model's weights: members of its entry in /v1/models, as JSON */
    size_t context;        /* longest text in tokens; 0: unknown */
    const char *tokenizer; /* the path that confirmed that it is ours; NULL: not compared */
    size_t tokens;         /* most tokens of a call; may fall to 1 until the first answer */
    bool ids;              /* replies hold token ids; else text, which is cut into ids here */
    bool http2;            /* its latest reply came over HTTP/2 */
    bool healthy;          /* GET /health is 200 */
};

/* What the calls of one text have moved. All zero at first; another thread may write it. */
struct cloud_tally {
    struct traffic traffic;
    uint64_t limit; /* 1 + most tokens that are asked for, if calls are sent again; 0: none */
};

struct cloud_port {
    void *arg; /* argument of the functions that have one of this name */
    /* Look for the token after ids[n] without a call. used: the text continues with it, so it is
     * kept, and awaited while it is coming; else the look never waits. NULL: nothing is known. */
    enum cloud_sight (*known)(void *arg, const uint32_t *ids, size_t n, bool used, uint32_t *id);
    /* Return what is known of the model. Never waits. */
    struct cloud_info (*info)(void *arg);
    /* Ask for `tokens` tokens after ids[n] (copied), or as many as info allows; return at once.
     * What the call moves until `end` frees it is counted in *tally unless that is NULL. ERR_ARG,
     * ERR_NOMEM, ERR_STOP: nothing was asked. */
    int (*ask)(void *arg, const uint32_t *ids, size_t n, size_t tokens, struct cloud_tally *tally,
               void **call, struct err *err);
    /* True when take would not wait. at is the number of tokens asked for: the call has ended. */
    bool (*done)(const void *call, size_t at);
    /* Wait for token `at` of the answer. ERR_NET (also: it has fewer), ERR_REMOTE (will not work in
     * this run), ERR_TEXT (will not work with this text), ERR_STOP. A repeated call gives the
     * same. */
    int (*take)(void *call, size_t at, uint32_t *id, struct err *err);
    void (*end)(void *call, enum cloud_end how); /* free the call */
    /* Return what has been counted in *tally. last: count no more in it. */
    struct traffic (*traffic)(void *arg, struct cloud_tally *tally, bool last);
    /* Call f from now on, from any thread and perhaps with a lock held, whenever done or known may
     * say something else. NULL: no longer. */
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
