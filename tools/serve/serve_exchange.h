/* serve_exchange.h - what the files of this folder share: the server and one exchange. */
#ifndef TOOLS_SERVE_SERVE_EXCHANGE_H
#define TOOLS_SERVE_SERVE_EXCHANGE_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>

#include "kernels/kv.h"
#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "net/server/server.h"
#include "router/engine.h"
#include "router/routing.h"
#include "router/texts/texts.h"
#include "tools/serve/serve.h"
#include "tools/serve/serve_field.h"
#include "tools/serve/serve_request.h"

enum {
    SERVE_NAME = 72,          /* bytes of a model's name here, with the final zero */
    SERVE_FINGERPRINT = 20,   /* of "mz-" and 16 digits */
    SERVE_ANSWERS = 256 << 20 /* most bytes of answers in memory */
};

struct serve { /* constant once `ready` is 1, apart from atomics and what texts.h guards */
    struct serve_options o;
    struct server *server;
    atomic_int ready;
    struct engine engine;
    struct routing routing;
    struct texts *texts;
    size_t context, vocab; /* of a text; ids in use */
    enum kvcache kv;
    char name[SERVE_NAME], fingerprint[SERVE_FINGERPRINT];
    int64_t created;
    const char *cloud_url;        /* or NULL */
    const char *cloud_api;        /* static; NULL: it is in this process */
    char cloud_model[256];        /* as json_input_line cuts it, or "" */
    struct err cloud_off;         /* why there is none although a URL was given, or "" */
    json_t *questions;            /* of the demo world; printed by any thread */
    uint64_t salt;                /* of seeds */
    atomic_uint_fast64_t streams; /* begun */
    bool lost;                    /* what serve_look has said of the cloud */
    bool unreached;               /* it did not answer when all was loaded */
    atomic_size_t held;           /* bytes of answers, as serve_routes_hold counts them */
};

struct serve_exchange;
struct serve_writing;

struct serve_route {
    const char *path;  /* one that ends in '/' stands for all that begin so, except "/" */
    bool post;         /* with a JSON body; else GET or HEAD */
    bool open, early;  /* needs no key; is answered while the model is loaded */
    bool any_type;     /* the body need not be declared as JSON */
    const char *field; /* of a reply with text; NULL: that of either server */
    void (*answer)(struct serve_exchange *x);
    bool (*room)(struct serve_exchange *x); /* or NULL; asked before the body is parsed */
};

/* What a server of texts shows: its routes, and how they are answered. */
struct serve_face {
    const char *name;                 /* Server header */
    const struct serve_route *routes; /* ends with a row without path */
    bool plain; /* the model alone: no notes, no "mizzle", one thread if it is small */
    /* Answer with an error; e->param of status 405 is the methods allowed. */
    void (*refuse)(struct serve_exchange *x, const struct serve_error *e);
    /* Answer as server_reply and server_stream do, which are called if these are NULL. */
    void (*send)(struct serve_exchange *x, unsigned status, const char *type, struct buf *text,
                 const char *const (*headers)[2]);
    void (*stream)(struct serve_exchange *x, const char *const (*headers)[2],
                   enum server_more (*more)(void *arg, struct buf *out), void *arg);
    /* The model is open, and no request has been let in; an exchange begins (false: out of memory)
     * and ends; NULL: nothing is to be done. */
    void (*loaded)(struct serve *s);
    bool (*begin)(struct serve_exchange *x);
    void (*end)(struct serve_exchange *x);
};

/* One request and its answer. */
struct serve_exchange {
    struct serve *s;
    struct server_request *r;
    const struct serve_route *route; /* NULL: none, for the reason in `error` */
    const char *rest;                /* of the path, after the route's; NULL: none has this path */
    struct serve_error error;
    uint64_t begun; /* os_now_ns() */
    json_t *in;     /* the body while it is needed, or NULL */
    struct serve_ask ask;
    struct serve_writing *writing;
    size_t held;          /* bytes of its answer, counted in s->held */
    uint64_t at;          /* os_now_ns() when the newest token it tells of was decided */
    void *own;            /* of the face */
    size_t tokens, cloud; /* of the texts that were dropped; those by the cloud */
};

/* serve_routes.c */
extern const struct serve_face serve_routes_face; /* serve's own */
/* Set the callbacks of the server. */
void serve_routes_serve(struct server_options *o, struct serve *s);
/* Answer with JSON, which is released; NULL: status 500. Without memory the connection closes. */
void serve_routes_json(struct serve_exchange *x, unsigned status, json_t *json);
/* Answer with text, which is taken and counted by serve_routes_hold; more: further headers, or
 * NULL. If there is no room for it, the answer is that of serve_routes_refuse_busy. */
void serve_routes_send(struct serve_exchange *x, unsigned status, const char *type,
                       struct buf *text, const char *const (*more)[2]);
void serve_routes_refuse(struct serve_exchange *x, const struct serve_error *e);
/* Refuse an answer for which there is no room at the moment. */
void serve_routes_refuse_busy(struct serve_exchange *x);
/* Free the body, of which nothing more is needed. To be called before any wait. */
void serve_routes_read(struct serve_exchange *x);
/* Count the answer as n bytes until the exchange ends or this is called again. False: with those of
 * all others there would be more than SERVE_ANSWERS, and nothing has changed. */
bool serve_routes_hold(struct serve_exchange *x, size_t n);
/* Append the JSON as text and release it; false without memory. */
bool serve_routes_print(struct buf *out, json_t *json);
/* Begin a stream of events. */
void serve_routes_stream(struct serve_exchange *x,
                         enum server_more (*more)(void *arg, struct buf *out), void *arg);

/* Answers to requests; x->in is the body of a POST. */
void serve_info_health(struct serve_exchange *x);
void serve_info_models(struct serve_exchange *x);
void serve_info_model(struct serve_exchange *x);
void serve_info_all(struct serve_exchange *x);
void serve_metrics(struct serve_exchange *x);
void serve_tokens_info(struct serve_exchange *x);
/* Make sure of room to read the body. False: the request is refused. */
bool serve_tokens_room(struct serve_exchange *x);
void serve_tokens_encode(struct serve_exchange *x);
void serve_tokens_decode(struct serve_exchange *x);
void serve_page(struct serve_exchange *x); /* the page and its files */
void serve_write(struct serve_exchange *x);
/* Write the texts that x->ask wants. */
void serve_write_texts(struct serve_exchange *x);

/* serve_info.c */
/* Return the name of who writes: NAME, NAME:edge or NAME:cloud. */
void serve_info_name(char out[SERVE_NAME + 8], const struct serve *s, enum text_model m);

/* serve_write.c */
/* Drop the texts, and count their tokens in the exchange. NULL is fine. */
void serve_write_drop(struct serve_writing *w);

#endif
