/* serving.h - a server of the demo pair in this process, and requests to it. */
#ifndef TESTS_SUPPORT_SERVING_H
#define TESTS_SUPPORT_SERVING_H

#include "tools/serve/serve.h"

struct routing_options;
struct stand_in;

struct serving {
    struct serve *serve;
    struct stand_in *cloud; /* or NULL */
    char cloud_url[64];
    unsigned port;
    int status;      /* of the latest reply */
    char head[2048]; /* its headers, cut */
    json_t *replies; /* all that were given, freed with the server */
};

#define RAW  "/v1/completions"
#define CHAT "/v1/chat/completions"

extern const char serving_model[]; /* path of the small model */
/* Prompts as JSON has them, with and without a newline and letters beyond ASCII. */
enum { PROMPTS = 4 };
extern const char *const serving_prompts[PROMPTS];

/* The demo's large model: not there, a stand-in whose network a test may change, or in the server's
 * own process. */
enum serving_cloud { SERVING_ALONE, SERVING_CLOUD, SERVING_LOCAL };

extern uint64_t serving_limit; /* --max-cloud-tokens of servers from now on; UINT64_MAX: none */
/* Start the server. Says SKIP and ends the process if there is no demo pair. */
void serving_open(struct serving *s, const struct serve_options *o, enum serving_cloud cloud);
/* The same with a cloud that listens on a port of this machine (0: none) and a type of keys and
 * values (as --kv; NULL: the default). The demo pair must be there. */
void serving_open_with(struct serving *s, const struct serve_options *o, unsigned cloud,
                       const char *kv);
/* The same with just these options of the model and the cloud. */
void serving_open_for(struct serving *s, const struct serve_options *o,
                      const struct routing_options *mo);
/* Say SKIP and end the process if there is no demo pair. */
void serving_need_pair(void);
void serving_close(struct serving *s);
/* Ask and return the JSON of the reply, or NULL if it is none; it lives as long as the server.
 * headers: each with CRLF, or NULL; body: NULL for none. */
json_t *serving_ask(struct serving *s, const char *method, const char *path, const char *headers,
                    const char *body);
json_t *serving_post(struct serving *s, const char *path, const char *body);
/* The same with a JSON body, which it takes over. */
json_t *serving_send(struct serving *s, const char *path, json_t *body);
/* The same with a body that is written as printf does. */
__attribute__((format(printf, 3, 4))) json_t *serving_postf(struct serving *s, const char *path,
                                                            const char *form, ...);
/* Ask for 40 tokens after a prompt; more: further fields, with a comma in front. A list of events
 * if that asks for a stream. */
json_t *serving_complete(struct serving *s, const char *path, const char *prompt, const char *more);
/* Ask for a stream and return the list of its events; CHECKs that it ends with [DONE]. */
json_t *serving_events(struct serving *s, const char *path, const char *body);
/* Return the events of a stream, whose bytes are changed, and whether it ends with [DONE]. The
 * caller releases them. */
json_t *serving_stream(char *body, bool *done);
/* Return the member at a path such as "choices.0.text"; NULL if there is none. */
json_t *serving_at(const json_t *in, const char *path);
/* Return the text or the number there; NULL or 0 if there is none. */
const char *serving_text(const json_t *in, const char *path);
json_int_t serving_number(const json_t *in, const char *path);

#endif
