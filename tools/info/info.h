/* info.h - what `mizzle info` reports on a file: its contents, and what the engine would make of
 * it. */
#ifndef TOOLS_INFO_INFO_H
#define TOOLS_INFO_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/base.h"
#include "router/routing.h"
#include "weights/weights.h"

/* Return the string under the key, empty if there is none. */
struct str info_text(const struct weights *w, const char *key);
/* True for a file that holds a header alone: a tensor has a size, but its data is missing. */
bool info_without_data(const struct weights *w);

/* The size of a router, and what it reads. CITER's checkpoints name no tap. */
struct info_router {
    size_t hidden, width; /* of a network; width: of each member */
    size_t members;       /* trainings whose mean is the score */
    size_t features;      /* that it reads besides (router/features.h) */
    size_t contexts;      /* rows of a table; 0 for a network */
    struct str tap;
    const char *name; /* of its head */
};

/* Fill *f and return true if the file is a router: Mizzle's own forms or CITER's checkpoint. */
bool info_is_router(struct info_router *f, const struct weights *w);

enum { INFO_CACHES = 3 }; /* types of the KV cache, as enum kvcache numbers them */

/* What the engine would make of a model. */
struct info_model {
    bool is;       /* a folder or GGUF file, and no router; all else is zero otherwise */
    bool runs;     /* the sizes below are known */
    bool has_sign; /* fingerprint is known: it runs, and its data is in the file */
    uint64_t fingerprint;
    char router[ROUTING_PATH];                /* that `mizzle run` would take; "": none */
    const char *type;                         /* of its matrices (model_file_type) */
    size_t context, threads;                  /* for which memory is computed */
    size_t weights, work, cache[INFO_CACHES]; /* bytes */
    size_t ids;                               /* of the tokenizer; 0: none can be used */
    size_t template;                          /* bytes of the chat template; 0: none */
    const char *chat;                         /* form of chats (chat.h); NULL: none */
    struct err no_model, no_text, no_chat;    /* what would be refused, and why; "": nothing */
};

/* Compute it, for sessions of `context` positions (0: what `mizzle run` takes). ERR_ARG: the model
 * does not have so many; ERR_NOMEM. */
int info_model_read(struct info_model *m, const struct weights *w, size_t context, struct err *err);

/* Print the report for people, or as one JSON object; with list, every tensor too. As JSON:
 * ERR_NOMEM, and nothing is printed. */
int info_print(const struct weights *w, const struct info_model *m, bool json, bool list,
               struct err *err);

#endif
