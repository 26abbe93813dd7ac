/* session.h - one text in progress: its ids and its KV cache.
 *
 * Results are exact: logits and hidden states of a position depend only on the tokens up to it, bit
 * for bit, and not on threads, instruction set, chunk sizes, rewinds or the other rows of a pass
 * (kernels/README.md). A session is opened on a batch (batch.h), which computes its passes. Only
 * one thread at a time may use a batch and its sessions. All memory is allocated at open. */
#ifndef MODEL_SESSION_H
#define MODEL_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kv.h"
#include "model/batch.h"

/* Open an empty session with room for `context` positions on b. b is borrowed and grows as needed.
 * ERR_ARG (such as a context beyond the model's) or ERR_NOMEM; on error *out is NULL. */
int session_open(struct session **out, struct batch *b, size_t context, enum kvcache kv,
                 struct err *err);
void session_close(struct session *s); /* NULL is fine */

/* Set *bytes to the size of such a session, KV cache included, and *cache to the size of the cache
 * alone, without opening one. ERR_ARG: a context that session_open refuses; ERR_NOMEM: a size does
 * not fit into a size_t. After an error both values are undefined. */
int session_size(size_t *bytes, size_t *cache, const struct model_config *config, size_t context,
                 enum kvcache kv, struct err *err);

/* Append n >= 1 tokens and compute their hidden states, BATCH_ROWS at a time: batch_eval with one
 * part. ERR_ARG, with nothing changed, when an id is not below vocab or the context is full.
 * ERR_STOP once *stop is nonzero (stop may be NULL); the session then holds the same tokens as
 * before, but their hidden states and logits are gone. */
int session_eval(struct session *s, const uint32_t *ids, size_t n, const _Atomic int *stop,
                 struct err *err);

/* Roll the session back to its first n tokens (n <= session_length). The result is exact. */
void session_rewind(struct session *s, size_t n);
/* Rewind to the longest prefix that the session shares with ids[n]; return its length. */
size_t session_sync(struct session *s, const uint32_t *ids, size_t n);

/* Make dst hold the first n tokens of src (n <= session_length(src)), without their hidden states;
 * only what dst does not hold yet is copied. dst and src may belong to different batches of one
 * model; no other thread may use either batch meanwhile. ERR_ARG, with nothing changed: another
 * model or KV type, or n is too large for one of them. */
int session_copy(struct session *dst, const struct session *src, size_t n, struct err *err);

const struct model *session_model(const struct session *s);
struct batch *session_batch(const struct session *s);
size_t session_length(const struct session *s);
size_t session_context(const struct session *s);
const uint32_t *session_ids(const struct session *s); /* [session_length] */

/* Set *row to the batch's row that predicts the token after the first n ids. False: none does. */
bool session_row(size_t *row, const struct session *s, size_t n);
/* Return the hidden state [hidden] of the token `back` places before the last one (0: the last), or
 * NULL if the batch's latest pass did not compute the state or the token was rewound. */
const float *session_hidden(const struct session *s, size_t back);

/* Return the logits [vocab] of that token, or NULL as above. If the logits are not computed yet,
 * this runs the output head for the row and, if back is not 0, also for a few later rows, which
 * callers usually need next. Valid until the batch's next pass or the next run of the head. */
const float *session_logits(struct session *s, size_t back);

#endif
