/* prompt_cache.h - keeps an evaluated prompt in a file from run to run (model/session_file.h): when
 * it is loaded, when it is replaced, and what the user is told.
 *
 * A file that cannot be used costs time, not the answer: it is ignored and replaced. A path that
 * cannot be meant is an error before anything is evaluated: a folder that does not exist, or a file
 * that is not a prompt cache, because it would be replaced. */
#ifndef ROUTER_PROMPT_CACHE_H
#define ROUTER_PROMPT_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/base.h"

struct pool;
struct session;

struct prompt_cache { /* all zero: nothing has been asked yet */
    bool knows_weights;
    uint64_t weights;          /* model_exact_fingerprint */
    bool outdated;             /* the file does not begin with the latest prompt */
    struct err unused, unkept; /* notes: why a file was ignored; why it was not written */
};

/* Before a prompt ids[n], which fits into the context, is evaluated: load from the file what it
 * has of the prompt and s has not. *cached: how many tokens, 0 to n - 1, come from the file. pool
 * is that of s. ERR_ARG, ERR_IO, ERR_NOMEM: the path cannot be meant. */
int prompt_cache_load(struct prompt_cache *c, size_t *cached, struct session *s, const char *path,
                      const uint32_t *ids, size_t n, struct pool *pool, struct err *err);
/* Afterwards, also if writing the answer has failed: if the file does not begin with the prompt and
 * s does, replace it. */
void prompt_cache_save(struct prompt_cache *c, const struct session *s, const char *path,
                       const uint32_t *ids, size_t n);
/* Take the next note for the user; false: there is none. */
bool prompt_cache_note(struct prompt_cache *c, struct err *note);

#endif
