/* engine.h - kernels, threads, model and tokenizer, opened together from plain options. */
#ifndef ROUTER_ENGINE_H
#define ROUTER_ENGINE_H

#include <stdbool.h>

#include "kernels/kernels.h"
#include "kernels/kv.h"

struct err;
struct mizzle_options;
struct model;
struct pool;
struct tokenizer;

struct engine { /* must stay where it is: the model borrows the kernels */
    struct kernels kernels;
    struct pool *pool;
    struct model *model;
    struct tokenizer *tokenizer; /* NULL if the file has none */
};

/* o's model, isa and threads count. On error *e is all zero. ERR_ARG, ERR_IO, ERR_FORMAT (also
 * where a tokenizer is needed and the file has none that can be used), ERR_NOMEM. */
int engine_open(struct engine *e, const struct mizzle_options *o, bool need_tokenizer,
                struct err *err);
void engine_close(struct engine *e); /* all zero is fine */

/* The kernel set called isa; NULL or "": the fastest exact one. ERR_ARG. */
int engine_kernels(struct kernels *out, const char *isa, struct err *err);
/* The type called name; NULL: `otherwise`. ERR_ARG. */
int engine_kv(enum kvcache *out, const char *name, enum kvcache otherwise, struct err *err);
/* What is fastest for this model: f32 where its weights are f32, else f16. */
enum kvcache engine_best_kv(const struct engine *e);
/* True, and a line that says what helps, where OpenBLAS is among the kernels and takes this
 * processor for an older one. */
bool engine_note(const struct kernels *k, struct err *note);

#endif
