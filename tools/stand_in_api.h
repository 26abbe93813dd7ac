/* stand_in_api.h - the stand-in's two dialects: a request's path and body in, status and JSON out.
 * Knows no sockets. Any thread. */
#ifndef TOOLS_STAND_IN_API_H
#define TOOLS_STAND_IN_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stand_in_delay;
struct stand_in_engine;

struct stand_in_api {
    struct stand_in_engine *engine;
    struct stand_in_delay *delay;
    const char *name; /* of the model */
    int64_t created;  /* seconds, in replies */
};

struct stand_in_answer {
    unsigned status;
    json_t *json;      /* the caller drops it; NULL: no memory */
    uint64_t delay_us; /* to be slept before it is sent */
};

/* "openai" error forms under /v1, llama.cpp's elsewhere. code: HTTP status. */
struct stand_in_answer stand_in_api_error(const char *path, unsigned status, const char *type,
                                          const char *message);
/* True where the path exists; *allowed: for this method. */
bool stand_in_api_route(const char *method, const char *path, bool *allowed);
/* path and method as stand_in_api_route allowed them. body[n]: of a POST. */
struct stand_in_answer stand_in_api_answer(const struct stand_in_api *a, const char *path,
                                           const char *body, size_t n);

#endif
