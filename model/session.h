/* session.h - one text in progress: the forward pass and its KV cache.
 *
 * Exact: logits and hidden states of a position depend on the tokens up to it alone, bit for
 * bit; not on threads, instruction set, chunk sizes or rewinds (kernels/README.md). One thread at a
 * time may use a session; several sessions may share a model, each with its own pool. Everything is
 * allocated at open. */
#ifndef MODEL_SESSION_H
#define MODEL_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kv.h"

struct err;
struct model;
struct pool;
struct session;

enum tap { TAP_FINAL, TAP_POST_ATTN };

enum { SESSION_CHUNK = 192 }; /* tokens whose hidden states are kept after an eval */

/* context: positions to make room for; at most what fits in memory. The session borrows model and
 * pool (NULL: one thread). On error *out is NULL. */
int session_open(struct session **out, const struct model *m, struct pool *pool, size_t context,
                 enum kvcache kv, struct err *err);
void session_close(struct session *s);

/* Append n >= 1 tokens. ERR_ARG, with nothing changed, if an id is not below vocab or the context
 * is full. *stop, if not NULL, is looked at between layers: once it is not zero the call gives up
 * with ERR_STOP and the session is as before. */
int session_eval(struct session *s, const uint32_t *ids, size_t n, const _Atomic int *stop,
                 struct err *err);

/* Forget everything from position n on (n <= session_length). Exact. */
void session_rewind(struct session *s, size_t n);

const struct model *session_model(const struct session *s);
size_t session_length(const struct session *s);
size_t session_context(const struct session *s);
const uint32_t *session_ids(const struct session *s); /* [session_length] */
size_t session_bytes(const struct session *s);        /* memory of the arena */

/* Hidden state [hidden] of the token `back` places before the last one of the latest eval (0: the
 * last), back < min(n of that eval, SESSION_CHUNK). final: after the last RMSNorm; post_attn: the
 * last layer's post-attention RMSNorm output. Valid until the next eval or rewind. */
const float *session_hidden(const struct session *s, enum tap tap, size_t back);

/* Logits [vocab] of that token. The head is read at the first call for a `back` and the result kept
 * until the next eval or rewind or a call with another `back`. */
const float *session_logits(struct session *s, size_t back);
/* True where session_logits(s, 0) has been computed for the present state. */
int session_has_logits(const struct session *s);

#endif
