/* paths.h - which paths the server that is played has, and its answers to all but
 * completions. Knows no sockets. Any thread. */
#ifndef TOOLS_STAND_IN_PATHS_H
#define TOOLS_STAND_IN_PATHS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/stand_in/question.h"
#include "tools/stand_in/refusal.h"

struct stand_in_engine;

struct stand_in_paths {
    struct stand_in_engine *engine;
    enum stand_in_server server;
    const char *name; /* of the model */
    int64_t created;  /* seconds, in replies */
};

struct stand_in_route {
    const char *methods, *path; /* "GET", "PUT, POST" */
    unsigned servers;           /* bit 1 << enum stand_in_server */
    enum stand_in_server as;    /* whose forms where all are played */
    bool open;                  /* without a key */
    /* *out: the reply. NULL: a completion of this form, or without form an empty reply. */
    enum stand_in_wrong (*answer)(const struct stand_in_paths *a, const json_t *in, json_t **out,
                                  struct stand_in_refusal *no);
    bool completion;
    enum stand_in_form form;
};

/* The route, or NULL with no->what WRONG_PATH or WRONG_METHOD (then no->why is what is allowed).
 * *server: whose forms to use in any case. */
const struct stand_in_route *stand_in_paths_find(const struct stand_in_paths *a, const char *method,
                                                 const char *path, enum stand_in_server *server,
                                                 struct stand_in_refusal *no);

/* "openai", "sglang", "llamacpp", "all". */
bool stand_in_paths_parse(enum stand_in_server *out, const char *name);

#endif
