/* routing.h - opens router, policy, cloud and limits together.
 *
 * Nothing is printed; what the user should know is kept for routing_note. */
#ifndef ROUTER_ROUTING_H
#define ROUTER_ROUTING_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/sys/base.h"
#include "net/cloud_port.h"
#include "router/decode/decode.h"
#include "router/engine.h"
#include "router/policy_kind.h"

struct answers;
struct cloud;
struct cloud_options;
struct local_cloud;
struct mizzle_state;
struct private_filter;
struct router;
struct tokenizer;
struct turn;

/* What decides and who is asked: X(type, name). Each means what struct mizzle_options says of its
 * name. Strings are borrowed until the routing is open. */
#define ROUTING_OPTIONS(X)          \
    X(const char *, router)         \
    X(const char *, routers)        \
    X(const char *, policy)         \
    X(const char *, place)          \
    X(double, threshold)            \
    X(double, max_routed)           \
    X(size_t, ahead)                \
    X(const char *, draft)          \
    X(const char *, cloud)          \
    X(const char *, cloud_url)      \
    X(const char *, cloud_api)      \
    X(const char *, cloud_model)    \
    X(const char *, cloud_key)      \
    X(const char *, cloud_key_file) \
    X(bool, cloud_key_env)          \
    X(const char *, cloud_ca)       \
    X(const char *, cloud_proxy)    \
    X(size_t, cloud_timeout)        \
    X(size_t, cloud_tokens)         \
    X(uint64_t, max_cloud_tokens)   \
    X(uint64_t, max_cloud_input)    \
    X(const char *, private_file)   \
    X(const char *, answers)        \
    X(size_t, answers_limit)        \
    X(bool, offline)
struct routing_options {
    struct engine_options engine; /* of the small model; a large one of this process shares isa,
                                     threads and kv */
#define X(type, name) type name;
    ROUTING_OPTIONS(X)
#undef X
    float (*on_score)(void *score_arg, const struct mizzle_state *state);
    void *score_arg;
};
/* Their defaults: no model, no router, no cloud. */
extern const struct routing_options routing_defaults;

struct routing {           /* must not move: the parts point to each other */
    struct router *router; /* NULL: the policy uses none */
    /* What it decides of every text: policy, threshold, place, max_routed, ahead,
     * gate, and where drafts come from. The rest is the caller's. */
    struct decode_options how;
    char *place;            /* that of how, or NULL */
    bool holds_router;      /* max_routed follows from the router's share, at its own threshold */
    struct cloud_port port; /* how decode_run asks the cloud; all zero: off */
    struct cloud *cloud;    /* the server behind it, or NULL; the port's, as the next two */
    struct local_cloud *local;       /* the model of this process behind it, or NULL */
    struct turn *turn;               /* which it shares with the edge's texts (turn.h); or NULL */
    struct gate gate;                /* limits and breaker, over all answers */
    struct answers *answers;         /* in memory and in a file */
    struct private_filter *patterns; /* of private_file; NULL: none */
    struct quota quota;              /* limits over all answers */
    double start_ms;                 /* time spent waiting for the cloud in routing_open */
    struct err notes[4]; /* pending notes, [unsaid]: on router and API key, why the cloud is off */
    size_t unsaid;
};

/* Open the routing of an open engine. stop, which may be NULL, is borrowed: when *stop is not zero,
 * this function and every call of the cloud give up. A cloud that does not answer is an error only
 * if it is required; policy "always" needs one, too. On error *r is all zero. ERR_ARG, ERR_IO,
 * ERR_FORMAT, ERR_NOMEM, ERR_NET, ERR_REMOTE, ERR_STOP. */
int routing_open(struct routing *r, const struct engine *e, const struct routing_options *o,
                 const _Atomic int *stop, struct err *err);
/* Close all parts; a routing that is all zero is fine. */
void routing_close(struct routing *r);

/* Return what scores tokens, for people: of policy mlp the router's own name, else the policy's. */
const char *routing_scorer(const struct routing *r);

enum { ROUTING_PATH = 4096 }; /* bytes of a path, with the final zero */
/* Find the router that belongs to a model, o->engine.model, any name that find_model takes: for a
 * network FILE.router.safetensors beside FILE.gguf or FILE-00001-of-0000N.gguf, or
 * router.safetensors in a folder; for the policies context and combined their name instead of
 * "router". For a model in Hugging Face's cache also models--ORG--NAME/router.safetensors, which
 * outlives its snapshots and suits all its types. Last, FINGERPRINT.router.safetensors in
 * o->routers, by the model that the engine has open; without an engine (NULL) it is not looked for.
 * False if there is none. */
bool routing_find_router(char out[ROUTING_PATH], const struct routing_options *o,
                         const struct engine *e, enum policy p);
/* Open a router and check that it was made for this engine's model. If only the type of the
 * model's weights is another, *note is one line for the user, else empty. A router of another model
 * is ERR_FORMAT, which names both; one that names no model is accepted. */
int routing_router(struct router **out, const struct engine *e, const char *path, struct err *note,
                   struct err *err);

/* Return what decode_run asks, or NULL if the cloud is off. */
const struct cloud_port *routing_port(const struct routing *r);
/* Take the next note for the user: true and one line, or false. */
bool routing_note(struct routing *r, struct err *note);

/* Fill *out with the options of the cloud client alone, without stored answers. *key is malloc'ed
 * or NULL; once the cloud is open, the caller passes it to wipe_text. *note is one line for the
 * user, or empty. t is the small model's tokenizer (borrowed), which the server's is compared with,
 * or NULL. ERR_ARG, ERR_IO, ERR_NOMEM. */
int routing_cloud_options(struct cloud_options *out, char **key, const struct routing_options *o,
                          const struct tokenizer *t, const _Atomic int *stop, struct err *note,
                          struct err *err);

#endif
