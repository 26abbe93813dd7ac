/* paths.h - the routes of the imitated server, and its answers to all requests but completions.
 * Uses no sockets; any thread may call it. */
#ifndef TOOLS_LAB_STAND_IN_PATHS_H
#define TOOLS_LAB_STAND_IN_PATHS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/lab/stand_in/question.h"
#include "tools/lab/stand_in/refusal.h"

struct stand_in_source;

/* What the answers need. */
struct stand_in_paths {
    struct stand_in_source *source;
    enum cloud_api server;
    const char *name; /* display name of the model */
    int64_t created;  /* seconds, for replies */
};

/* One request to them. */
struct stand_in_query {
    const struct stand_in_paths *paths;
    const json_t *in; /* the body of a POST, else NULL */
    struct stand_in_refusal *no;
};

/* One route. */
struct stand_in_route {
    const char *methods, *path; /* "GET", "PUT, POST" */
    unsigned servers;           /* bit mask of 1 << enum cloud_api */
    enum cloud_api as;          /* whose forms to use with CLOUD_AUTO */
    bool open;                  /* needs no key */
    /* Returns the reply; NULL without memory, or if no->what is set. No function: a completion of
     * `form` or, unless `completion`, an empty reply. */
    json_t *(*answer)(const struct stand_in_query *q);
    bool completion;
    enum stand_in_form form;
};

/* Return the route, or NULL with no->what WRONG_PATH or WRONG_METHOD; no->why then lists the
 * allowed methods. no->server is always set. */
const struct stand_in_route *stand_in_paths_find(const struct stand_in_paths *a, const char *method,
                                                 const char *path, struct stand_in_refusal *no);

#endif
