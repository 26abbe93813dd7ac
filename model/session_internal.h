/* session_internal.h - struct session, shared by session.c and forward.c. */
#ifndef MODEL_SESSION_INTERNAL_H
#define MODEL_SESSION_INTERNAL_H

#include "kernels/kernels.h"
#include "model/model.h"
#include "model/session.h"

enum {
    TILE = 8,            /* tokens whose attention one thread computes at a time */
    SPLIT_BLOCKS = 4,    /* key blocks from which on one token's attention is split among threads */
    CHUNK_WORK = 1 << 17 /* multiply-adds that are worth handing to another thread */
};

struct session {
    const struct model *m;
    struct pool *pool;
    size_t context, length, kept; /* kept: hidden states kept from the latest eval */
    enum kvcache kv;
    size_t hd16, per;               /* head size rounded up to 16; query heads per KV head */
    size_t ld_h, ld_q, ld_kv, ld_f; /* row lengths, rounded up to 16 */
    unsigned char *arena;
    size_t bytes;
    uint32_t *ids;        /* [context] */
    double *inv_freq;     /* [head_dim / 2] */
    float *cos, *sin;     /* [SESSION_CHUNK][head_dim / 2] */
    float *x, *xn;        /* [SESSION_CHUNK][ld_h] residual stream; normed input of a product */
    float *q, *k, *v;     /* [SESSION_CHUNK][ld_q], [..][ld_kv] x 2 */
    float *heads;         /* [kv_heads][SESSION_CHUNK * per][hd16] rotated queries */
    float *att;           /* [SESSION_CHUNK][ld_q] */
    float *gate, *up;     /* [SESSION_CHUNK][ld_f] */
    float *out;           /* [SESSION_CHUNK][ld_h] product that is added to x */
    float *final, *post;  /* [SESSION_CHUNK][ld_h] the two taps */
    float *logits;        /* [vocab rounded up to 16] */
    size_t logits_of;     /* the `back` of these logits; SIZE_MAX: not computed */
    struct qact act;      /* quantised input, wide enough for every product */
    unsigned char *cache; /* keys, then values: [layers][kv_heads][context16] each, see kv.h */
    size_t cache_half;    /* bytes of the keys */
    size_t context16;     /* context rounded up to 16 */
    size_t keys_bytes, value_bytes;        /* of 16 keys; of one value */
    float *row;                            /* [threads][hd16], the end of each row zero */
    float *part_max, *part_sum, *part_out; /* partial attention, see forward.c */
    size_t part_rows;                      /* its rows for one tile */
};

/* Run n <= SESSION_CHUNK tokens at positions s->length.. through the model; s->final and s->post
 * then hold their hidden states. s->length does not move. OK or ERR_STOP. */
int forward_chunk(struct session *s, const uint32_t *ids, size_t n, const _Atomic int *stop);

/* Compute the logits of row `row` of s->final into s->logits. */
void forward_head(struct session *s, size_t row);

#endif
