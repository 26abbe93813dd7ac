/* engine.h - opens kernels, threads, model and tokenizer together. */
#ifndef ROUTER_ENGINE_H
#define ROUTER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/kernels.h"
#include "kernels/kv.h"
#include "model/fingerprint.h"

struct batch;
struct chat;
struct err;
struct model;
struct pool;
struct tokenizer;

/* What to open: X(type, name), as documented in struct mizzle_options. Strings are borrowed until
 * the engine is open. Only model is required; the others may be zero. */
#define ENGINE_OPTIONS(X)          \
    X(const char *, model)         \
    X(const char *, isa)           \
    X(size_t, threads)             \
    X(const char *, kv)            \
    X(const char *, chat_template) \
    X(const char *, think)
struct engine_options {
#define X(type, name) type name;
    ENGINE_OPTIONS(X)
#undef X
};

struct engine { /* must not move: the model borrows the kernels */
    struct kernels kernels;
    struct pool *pool;
    struct model *model;
    struct batch *batch;         /* the passes of its sessions */
    struct tokenizer *tokenizer; /* NULL if the file has none */
    struct chat *chat;           /* the form of conversations; NULL without a tokenizer */
    char name[MODEL_NAME];       /* for people */
    const char *weights;         /* type of the file's matrices (model_file_type); NULL: no file */
};

/* Open an engine; kv is read by engine_kv alone. On error *e is all zero. ERR_ARG, ERR_IO,
 * ERR_FORMAT (also if a tokenizer is needed and the file has none that can be used), ERR_NOMEM. */
int engine_open(struct engine *e, const struct engine_options *o, bool need_tokenizer,
                struct err *err);
/* Open an engine that replaces a server, with tokenizer. If o->threads is 0 and the model fits into
 * a cache, it has one thread: a token takes less time than other threads would spin. */
int engine_open_alone(struct engine *e, const struct engine_options *o, struct err *err);
/* Close all parts; an engine that is all zero is fine. */
void engine_close(struct engine *e);

/* Select the kernel set named isa, or the fastest exact one if isa is NULL or "". ERR_ARG. */
int engine_kernels(struct kernels *out, const char *isa, struct err *err);
/* Set *out to the KV cache type of this name, or to `otherwise` if name is NULL. ERR_ARG. */
int engine_kv(enum kvcache *out, const char *name, enum kvcache otherwise, struct err *err);
/* Return the KV cache type that suits the model: f32 if its weights are f32, else f16. */
enum kvcache engine_best_kv(const struct engine *e);

#endif
