/* session.h - one text in progress: the forward pass and its KV cache.
 *
 * Results are exact: logits and hidden states of a position depend only on the tokens up to it, bit
 * for bit, and not on threads, instruction set, chunk sizes or rewinds (kernels/README.md). One
 * thread at a time may use a session; several sessions may share a model, each with its own pool.
 * All memory is allocated at open. */
#ifndef MODEL_SESSION_H
#define MODEL_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kv.h"

struct err;
struct model;
struct model_config;
struct pool;
struct session;

/* Which hidden state session_hidden returns. */
enum tap { TAP_FINAL, TAP_POST_ATTN };

enum { SESSION_CHUNK = 192 }; /* tokens whose hidden states are kept after an eval */

/* Open an empty session with room for `context` positions. It borrows model and pool (NULL: one
 * thread). ERR_ARG or ERR_NOMEM; on error *out is NULL. */
int session_open(struct session **out, const struct model *m, struct pool *pool, size_t context,
                 enum kvcache kv, struct err *err);
void session_close(struct session *s); /* NULL is fine */

/* Set the bytes of such a session, the KV cache included, and those of the cache alone, without
 * opening one. ERR_ARG: a context that session_open refuses;
 * ERR_NOMEM: the bytes do not fit into a size_t. After an error both values are undefined. */
int session_size(size_t *bytes, size_t *cache, const struct model_config *config, size_t threads,
                 size_t context, enum kvcache kv, struct err *err);

/* Append n >= 1 tokens and compute their hidden states. ERR_ARG, with nothing changed, when an id
 * is not below vocab or the context is full. *stop, if stop is not NULL, is read between layers:
 * once it is nonzero the call returns ERR_STOP and the session is as before. */
int session_eval(struct session *s, const uint32_t *ids, size_t n, const _Atomic int *stop,
                 struct err *err);

/* Roll the session back to its first n tokens (n <= session_length). The result is exact. */
void session_rewind(struct session *s, size_t n);

const struct model *session_model(const struct session *s);
size_t session_length(const struct session *s);
size_t session_context(const struct session *s);
const uint32_t *session_ids(const struct session *s); /* [session_length] */
size_t session_bytes(const struct session *s);        /* memory of the arena */

/* Return the hidden state [hidden] of the token `back` places before the last one of the latest
 * eval (0: the last); NULL unless back < min(n of that eval, SESSION_CHUNK). TAP_FINAL is the state
 * after the last RMSNorm, TAP_POST_ATTN the output of the last layer's post-attention RMSNorm.
 * Valid until the next eval or rewind. */
const float *session_hidden(const struct session *s, enum tap tap, size_t back);

/* Return the logits [vocab] of that token, or NULL as above. The output head is read at the first
 * call for a `back`; the result is kept until the next eval or rewind or a call with another
 * `back`. */
const float *session_logits(struct session *s, size_t back);
/* True when session_logits(s, 0) has been computed for the present state. */
int session_has_logits(const struct session *s);

#endif
