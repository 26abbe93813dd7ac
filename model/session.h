/* session.h - one text in progress: its ids and its KV cache.
 *
 * Results are exact: logits and hidden states of a position depend only on the tokens up to it, bit
 * for bit, and not on threads, instruction set, chunk sizes, rewinds or the other rows of a pass
 * (kernels/README.md). A session is opened on a batch (batch.h), which does the computing; one
 * thread at a time may use a batch and its sessions. All memory is allocated at open. */
#ifndef MODEL_SESSION_H
#define MODEL_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kv.h"
#include "model/batch.h"

/* Open an empty session with room for `context` positions on b, which is borrowed and gets room for
 * such texts. ERR_ARG (more than the model was made for, among others) or ERR_NOMEM; on error *out
 * is NULL. */
int session_open(struct session **out, struct batch *b, size_t context, enum kvcache kv,
                 struct err *err);
void session_close(struct session *s); /* NULL is fine */

/* Set the bytes of such a session, the KV cache included, and those of the cache alone, without
 * opening one. ERR_ARG: a context that session_open refuses; ERR_NOMEM: the bytes do not fit into a
 * size_t. After an error both values are undefined. */
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
/* Rewind to what the session shares with ids[n]; return how many ids that are. */
size_t session_sync(struct session *s, const uint32_t *ids, size_t n);

/* Make dst hold the first n tokens of src (n <= session_length(src)), without their hidden states;
 * only what dst does not hold yet is copied. The two may belong to different batches of one model;
 * the thread that calls must be the only one that uses either batch. ERR_ARG, with nothing changed:
 * another model or KV type, or n is too large for one of them. */
int session_copy(struct session *dst, const struct session *src, size_t n, struct err *err);

const struct model *session_model(const struct session *s);
struct batch *session_batch(const struct session *s);
size_t session_length(const struct session *s);
size_t session_context(const struct session *s);
const uint32_t *session_ids(const struct session *s); /* [session_length] */

/* Set *row to the batch's row that the token after the first n ids comes from. False: none has it.
 */
bool session_row(size_t *row, const struct session *s, size_t n);
/* Return the hidden state [hidden] of the token `back` places before the last one (0: the last), or
 * NULL if the latest pass of the batch has not computed it, or it has been rewound. */
const float *session_hidden(const struct session *s, int tap, size_t back);

/* Return the logits [vocab] of that token, or NULL as above. The output head is read when they are
 * not there yet: for this row, and, if back is not 0, also for a few rows after it, as who asks for
 * one of several rows asks for the next. Valid until the next pass of the batch or the next reading
 * of the head. */
const float *session_logits(struct session *s, size_t back);

#endif
