/* routing.h - opens router, policy, cloud and limits together.
 *
 * Nothing is printed; routing_note returns notes for the user. */
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

/* Policy, router, cloud and limits: X(type, name), as documented in struct mizzle_options. Strings
 * are borrowed until the routing is open. */
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
/* The defaults: no model, no router, no cloud. */
extern const struct routing_options routing_defaults;

struct routing {           /* must not move: the parts point to each other */
    struct router *router; /* NULL: the policy uses none */
    /* The options that routing sets for every text: policy, threshold, place, max_routed, ahead,
     * gate and draft source. The caller sets the others. */
    struct decode_options how;
    char *place;               /* that of how, or NULL */
    bool holds_router;         /* max_routed follows from the router's share and threshold */
    struct cloud_port port;    /* the cloud for decode_run; all zero: off */
    struct cloud *cloud;       /* the port's server, or NULL; the port owns it and the next two */
    struct local_cloud *local; /* the port's model in this process, or NULL */
    struct turn *turn;         /* local's, shared with the edge's texts (turn.h); or NULL */
    struct gate gate;          /* limits and breaker, over all answers */
    struct answers *answers;   /* in memory and in a file */
    struct private_filter *patterns; /* of private_file; NULL: none */
    struct quota quota;              /* limits over all answers */
    double start_ms;                 /* time spent waiting for the cloud in routing_open */
    struct err notes[4]; /* pending notes, [unsaid]: on router and API key, why the cloud is off */
    size_t unsaid;
};

/* Open the routing of an open engine. stop, which may be NULL, is borrowed: when *stop is not zero,
 * this function and every call of the cloud end with ERR_STOP. A cloud that does not answer is an
 * error only if it is required or the policy is "always". On error *r is all zero. ERR_ARG, ERR_IO,
 * ERR_FORMAT, ERR_NOMEM, ERR_NET, ERR_REMOTE, ERR_STOP. */
int routing_open(struct routing *r, const struct engine *e, const struct routing_options *o,
                 const _Atomic int *stop, struct err *err);
/* Close all parts; a routing that is all zero is fine. */
void routing_close(struct routing *r);

/* Return the scorer's name, for people: for policy mlp the router's name, else the policy's. */
const char *routing_scorer(const struct routing *r);

enum { ROUTING_PATH = 4096 }; /* bytes of a path, with the final zero */
/* Find the router of the model o->engine.model, any name that find_model takes. For a network:
 * FILE.router.safetensors beside FILE.gguf or FILE-00001-of-0000N.gguf, or router.safetensors in a
 * folder. For a model in Hugging Face's cache also models--ORG--NAME/router.safetensors, for all
 * snapshots and types. Last, unless e is NULL, FINGERPRINT.router.safetensors in o->routers, by the
 * model open in e. For the policies context and combined, their name replaces "router". False if
 * there is none. */
bool routing_find_router(char out[ROUTING_PATH], const struct routing_options *o,
                         const struct engine *e, enum policy p);
/* Open a router and check that it was made for this engine's model. If only the weight type
 * differs, *note is one line for the user, else empty. A router of another model is ERR_FORMAT,
 * which names both; a router that names no model is accepted. */
int routing_router(struct router **out, const struct engine *e, const char *path, struct err *note,
                   struct err *err);

/* Return the port for decode_run, or NULL if the cloud is off. */
const struct cloud_port *routing_port(const struct routing *r);
/* Take the next note for the user: true and one line, or false. */
bool routing_note(struct routing *r, struct err *note);

/* Fill *out with the options of the cloud client alone, without stored answers. *key is malloc'ed
 * or NULL; once the cloud is open, the caller passes it to wipe_text. *note is one line for the
 * user, or empty. t is the small model's tokenizer (borrowed), for comparison with the server's, or
 * NULL. ERR_ARG, ERR_IO, ERR_NOMEM. */
int routing_cloud_options(struct cloud_options *out, char **key, const struct routing_options *o,
                          const struct tokenizer *t, const _Atomic int *stop, struct err *note,
                          struct err *err);

#endif
