/* batch.h - one pass through the model, for rows of any mix: single tokens of several sessions and
 * pieces of prompts.
 *
 * A row is one token of one session. Its hidden states and logits are the bits it has alone; the
 * weights are read once for all rows. A batch owns the scratch memory of a pass and belongs to one
 * model; the sessions opened on it hold the texts. One thread at a time may use a batch and its
 * sessions. Several batches may share a model, each with its own pool. */
#ifndef MODEL_BATCH_H
#define MODEL_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sys/base.h"

struct batch;
struct model;
struct model_config;
struct pool;
struct session;
struct tuning;

enum { BATCH_ROWS = 192 }; /* most rows of a pass */

/* Open a batch. It borrows model and pool (NULL: one thread). ERR_NOMEM; on error *out is NULL. */
int batch_open(struct batch **out, const struct model *m, struct pool *pool, struct err *err);
/* Free it; its sessions must be closed. NULL is fine. */
void batch_close(struct batch *b);

/* Set the bytes of such a batch with sessions of up to `context` positions, without opening one.
 * ERR_NOMEM: they do not fit into a size_t. */
int batch_size(size_t *bytes, const struct model_config *config, size_t threads, size_t context,
               struct err *err);

/* The kinds of operation of a pass. Beginning and end of each are told once for all rows. */
enum batch_op {
    OP_EMBED,     /* embeddings, and sine and cosine of the positions; `layer` is 0 */
    OP_NORM,      /* add to the residual stream, RMSNorm, quantise: each where it is needed */
    OP_QKV,       /* attn_q, attn_k and attn_v, with their biases */
    OP_ATTENTION, /* norms of heads, RoPE, the KV cache, attention */
    OP_O,         /* attn_output */
    OP_FFN,       /* ffn_gate, ffn_up and SwiGLU */
    OP_DOWN,      /* ffn_down */
    OP_HEAD,      /* output head; only its own rows, and `layer` is the number of layers */
    BATCH_OPS     /* how many kinds there are */
};

/* What can be seen of a pass: the inputs of products, and the residual stream. */
enum batch_value {
    INPUT_QKV,  /* [hidden] of attn_q, attn_k and attn_v */
    INPUT_O,    /* [heads * head_dim] of attn_output */
    INPUT_FFN,  /* [hidden] of ffn_gate and ffn_up */
    INPUT_DOWN, /* [ffn] of ffn_down */
    INPUT_HEAD, /* [hidden] of the output head; `layer` is the number of layers */
    STREAM,     /* [hidden] that enters the layer; of `layer` = layers: that the last one leaves */
    STREAM_MIDDLE, /* [hidden] after what attention adds */
    ADDED_ATTN,    /* [hidden] what attention adds to the stream */
    ADDED_FFN      /* [hidden] what the MLP adds to it */
};

/* A watcher of the passes of a batch. Both functions are called from the thread that evaluates and
 * may be NULL. They must not use the batch, except for batch_attention. */
struct batch_watch {
    /* An operation on n rows begins or, with ends, has ended. */
    void (*op)(void *arg, enum batch_op op, size_t layer, size_t n, bool ends);
    /* Values of all n rows of the pass: each row has cols values, rows are ld apart. */
    void (*see)(void *arg, size_t layer, enum batch_value value, const float *x, size_t ld,
                size_t cols, size_t n);
    void *arg;
};

/* Show every pass from now on to w, which is borrowed. NULL, the default, ends it. No bit of any
 * result depends on it. */
void batch_watch(struct batch *b, const struct batch_watch *w);

/* Set weights[p], for each position p up to that of a row of this pass, to the share with which a
 * head of this layer looks at p. They add up to 1. They are computed anew, in double, from the
 * rotated query and the keys as the KV cache holds them. To be called from a watch, after
 * OP_ATTENTION of the layer has ended and before that of the next one begins; from several threads
 * at once if need be. */
void batch_attention(const struct batch *b, size_t layer, size_t head, size_t row, double *weights);

/* The piece of one session in a pass. */
struct batch_part {
    struct session *session;
    const uint32_t *ids; /* [n], appended to the session */
    size_t n;
    size_t row;     /* out: the row of ids[0]; the others follow */
    int rc;         /* out: OK, or ERR_ARG: this part was left out, its session is as before */
    struct err err; /* out: why */
};

/* Evaluate all parts in one pass. A part is left out, with an error of its own, if it is empty or
 * does not fit into its session's context, if an id is not below vocab, or if the session is not of
 * this batch or has an earlier part in this pass. ERR_ARG: more than BATCH_ROWS rows; then nothing
 * is changed, the results in parts neither. *stop, if stop is not NULL, is read before each layer:
 * once it is nonzero, the call returns ERR_STOP, and all sessions hold the same tokens as before;
 * the hidden states and logits of the pass before are gone, and the rc of a part tells, as without
 * the interrupt, whether it was left out. */
int batch_eval(struct batch *b, struct batch_part *parts, size_t count, const _Atomic int *stop,
               struct err *err);

/* Return how products are walked, and what other ways would take. */
const struct tuning *batch_tuning(const struct batch *b);

/* Return the number of rows of the latest pass. */
size_t batch_rows(const struct batch *b);

/* Return the hidden state [hidden] of a row of the latest pass, behind the last norm. Valid until
 * the next pass. */
const float *batch_hidden(const struct batch *b, size_t row);

/* Compute the logits of these n >= 1 rows of the latest pass, reading the output head once. Logits
 * of earlier calls become invalid, unless all of these rows are among them. ERR_NOMEM, only for
 * more rows than ever before. */
int batch_logits(struct batch *b, const size_t *rows, size_t n, struct err *err);
/* Return the logit of one id for a hidden state [hidden] of any earlier pass, the bits
 * that batch_logits gives. Makes all logits invalid. */
float batch_logit(struct batch *b, const float *hidden, uint32_t id);
/* Return the logits [vocab] of a row, or NULL if the latest pass has none for it. */
const float *batch_logits_at(const struct batch *b, size_t row);

/* Compute what the final norm and the output head make of these n states [hidden] of the residual
 * stream, 1 to BATCH_ROWS, ld apart: the logit lens (nostalgebraist, 2020). For what the last layer
 * leaves these are the logits, bit for bit. Makes all logits invalid, and is shown to no watch.
 * ERR_NOMEM, as above. */
int batch_lens(struct batch *b, const float *x, size_t ld, size_t n, struct err *err);
/* Return the lens [vocab] of state i, until logits or lens are computed again. */
const float *batch_lens_at(const struct batch *b, size_t i);

#endif
