/* stand_in_internal.h - what the files of this folder share. One exchange passes through them so:
 * routes.c finds the answer, ask.c reads what is asked for, line.c draws what becomes of it, serve
 * writes it in a form of form.c or refuses it in that of refusal.c, and line.c sends it. */
#ifndef TOOLS_LAB_STAND_IN_STAND_IN_INTERNAL_H
#define TOOLS_LAB_STAND_IN_STAND_IN_INTERNAL_H

#include "tools/lab/stand_in/stand_in.h"
#include "tools/serve/serve_choice.h"
#include "tools/serve/serve_exchange.h"

enum { STAND_IN_ROUTES = 24 };

struct stand_in { /* constant once open, apart from latency */
    struct serve *serve;
    enum cloud_api server;
    struct serve_face face;
    struct serve_route routes[STAND_IN_ROUTES + 1];
    enum cloud_api as[STAND_IN_ROUTES]; /* whose words and forms a route has */
    char fingerprint[17];               /* of the weights' bits, in hex */
    struct stand_in_chance *draw;
    _Atomic uint64_t latency; /* ns of a round trip */
    struct stand_in_faults faults;
};

/* What an exchange has besides serve's, as its `own`. */
struct stand_in_call {
    struct serve_exchange *x;
    const struct stand_in_fault *fault;
    bool drawn;
    /* The body on its way. */
    struct buf bytes;
    size_t at, blanks; /* of bytes: sent; blanks still to be sent before them */
    size_t sent, cut;  /* bytes sent, and those after which to stop */
    enum server_more (*more)(void *arg, struct buf *out); /* appends the next; NULL: none */
    /* The stream that serve makes, and the events that have come of it. */
    enum server_more (*feed)(void *arg, struct buf *out);
    void *arg;
    size_t events;
};

/* Return the server of an exchange, and the one whose words and forms it has, never CLOUD_AUTO. */
struct stand_in *stand_in_of(const struct serve_exchange *x);
enum cloud_api stand_in_dialect(const struct serve_exchange *x);
/* routes.c: set the routes of s->server. */
void stand_in_routes(struct stand_in *s);

/* ask.c: completions of OpenAI's API, SGLang and llama.cpp. */
void stand_in_ask_openai(struct serve_exchange *x); /* vLLM's alone have ids */
void stand_in_ask_sglang(struct serve_exchange *x);
void stand_in_ask_llamacpp(struct serve_exchange *x);

/* form.c */
extern const struct serve_form stand_in_form_sglang, stand_in_form_llamacpp;
/* Return the text of ids as JSON, with control tokens. */
json_t *stand_in_form_text(const struct serve *s, const uint32_t *ids, size_t n);

/* refusal.c: answer with an error, in the words of the server. */
void stand_in_refuse(struct serve_exchange *x, const struct serve_error *e);
/* Append an error with this status as something in front of the model would send it. */
bool stand_in_refusal_print(struct buf *out, enum cloud_api server, unsigned status,
                            const char *why);

/* line.c */
bool stand_in_line_begin(struct serve_exchange *x);
void stand_in_line_end(struct serve_exchange *x);
/* Let the completion arrive, and draw what becomes of it. False: nothing is to be written. */
bool stand_in_line_draw(struct serve_exchange *x);
void stand_in_line_send(struct serve_exchange *x, unsigned status, const char *type,
                        struct buf *text, const char *const (*headers)[2]);
void stand_in_line_stream(struct serve_exchange *x, const char *const (*headers)[2],
                          enum server_more (*more)(void *arg, struct buf *out), void *arg);

#endif
