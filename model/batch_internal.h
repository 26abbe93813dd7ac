/* batch_internal.h - struct session and struct batch, for batch.c, session.c, forward.c and
 * attention.c. */
#ifndef MODEL_BATCH_INTERNAL_H
#define MODEL_BATCH_INTERNAL_H

#include "kernels/kernels.h"
#include "model/batch.h"
#include "model/model.h"
#include "model/session.h"
#include "model/tuning.h"

enum {
    TILE = 16,            /* tokens whose attention one thread computes at a time */
    SPLIT_BLOCKS = 4,     /* key blocks from which on a tile's attention may be split by block */
    SPLIT_TILES = 4,      /* most tiles of full length that there is room to split */
    RUNS = 8,             /* runs of blocks for each thread */
    HEAD_ROWS = 8,        /* rows whose logits always have memory */
    CHUNK_WORK = 1 << 17, /* multiply-adds that are worth waking a thread for */
    FEW_ROWS = 24         /* products of no more rows walk one panel at a time */
};

struct session {
    struct batch *batch;
    size_t context, length;
    enum kvcache kv;
    uint64_t pass;    /* the batch's pass that evaluated it last */
    uint64_t claimed; /* the latest pass that it is part of, evaluated or not */
    size_t row, kept; /* first row in that pass; how many of its rows still stand */
    unsigned char *arena;
    size_t bytes;
    uint32_t *ids;        /* [context] */
    unsigned char *cache; /* keys, then values: [layers][kv_heads][context16] each, see kv.h */
    size_t cache_half;    /* bytes of the keys */
    size_t context16;     /* context rounded up to 16 */
    size_t keys_bytes, value_bytes; /* of 16 keys; of one value */
};

/* Rows [row, row + n) of a pass: n tokens of one session from position `start` on. */
struct segment {
    struct session *session;
    size_t row, n, start;
};

/* Up to TILE rows of one segment, [t0, t1) counted from its first. */
struct tile {
    size_t segment, t0, t1;
    size_t blocks; /* key blocks that its last row sees */
    size_t lead;   /* how many of them are one unit; the others are units of their own */
    size_t part;   /* where the rows of partial attention of a split tile (lead < blocks) begin */
};

struct batch {
    const struct model *m;
    struct pool *pool;
    size_t threads;                  /* of the pool */
    const struct batch_watch *watch; /* NULL, or who watches the passes */
    struct tuning tuning;            /* how products walk the weights */
    uint64_t pass;                   /* counts passes */
    size_t n;                        /* rows of the latest pass */
    struct segment segment[BATCH_ROWS];
    size_t nsegments;
    struct tile tile[BATCH_ROWS];
    size_t ntiles;
    size_t attn_run, attn_runs;     /* blocks after leads: in a run; runs (0: no tile is split) */
    size_t attn_grain, merge_grain; /* units that are worth handing to a thread */
    uint32_t ids[BATCH_ROWS];
    size_t pos[BATCH_ROWS];               /* position of each row in its text */
    struct session *of[BATCH_ROWS];       /* whose row it is */
    size_t hd16, per;                     /* head size rounded up to 16; query heads per KV head */
    size_t ld_h, ld_q, ld_kv, ld_f, ld_v; /* row lengths, rounded up to 16 */
    unsigned char *arena;
    size_t bytes;
    double *inv_freq; /* [head_dim / 2] */
    double magnitude; /* of cos and sin */
    float *cos, *sin; /* [BATCH_ROWS][head_dim / 2] */
    float *x, *xn;    /* [BATCH_ROWS][ld_h] residual stream; normed input of a product */
    float *q, *k, *v; /* [BATCH_ROWS][ld_q], [..][ld_kv] x 2 */
    float *heads;     /* [kv_heads][BATCH_ROWS * per][hd16] rotated queries */
    float *att;       /* [BATCH_ROWS][ld_q] */
    float *gate, *up; /* [BATCH_ROWS][ld_f] */
    float *out;       /* [BATCH_ROWS][ld_h] product that is added to x */
    float *final;     /* [BATCH_ROWS][ld_h] hidden states behind the last norm */
    struct qact act;  /* quantised input, wide enough for every product */
    float *row;       /* [threads][hd16], the end of each row zero */
    float *logits;    /* [logits_room][ld_v] */
    size_t logits_room, nlogits;
    size_t logits_row[BATCH_ROWS]; /* whose logits these are */
    /* Partial attention: [part_rows], [part_rows], [part_rows][hd16]; see attention.c. */
    float *part_max, *part_sum, *part_out;
    size_t part_rows;
    unsigned char *parts; /* their memory */
    size_t parts_bytes;
};

static inline size_t round16(size_t n)
{
    return (n + PANEL - 1) / PANEL * PANEL;
}

/* The arrays of an arena, taken one after another, twice: to count bytes (base NULL), then to place
 * them. */
struct layout {
    unsigned char *base;
    size_t at;
    bool overflow;
};

/* Take n elements from the arena, aligned to 64 bytes; NULL while only counting. */
void *layout_take(struct layout *l, size_t n, size_t each);

/* Say whether ids[n] can be appended. ERR_ARG. */
int session_check(const struct session *s, const uint32_t *ids, size_t n, struct err *err);

/* Make room for the partial attention of texts of up to `context` positions. ERR_NOMEM. */
int batch_reserve(struct batch *b, size_t context, struct err *err);

/* Set the angle per position of each pair of a head, [head_dim / 2], and what cosine and sine are
 * multiplied by. */
void rope_frequencies(double *inv_freq, double *magnitude, const struct model_config *c);

/* Multiply panels [p0, p1) of w for n tokens into y, whose rows are ldy apart, and time it while
 * ways to walk the weights are tried. x is the plain input, b->act the quantised one. Threads may
 * multiply other panels meanwhile. */
void batch_multiply(struct batch *b, float *y, size_t ldy, const struct panels *w, const float *x,
                    size_t ldx, size_t n, size_t p0, size_t p1);

/* Run the rows of b through the model; b->final then holds their hidden states. No
 * session's length moves. OK or ERR_STOP. */
int forward_pass(struct batch *b, const _Atomic int *stop);

/* Compute the logits of the rows b->logits_row[nlogits] into b->logits. */
void forward_head(struct batch *b);
/* Compute into b->logits what final norm and head make of n states. */
void forward_lens(struct batch *b, const float *x, size_t ld, size_t n);
/* Compute the logits of those rows of the head that share a panel with `id`, and return its own;
 * b->logits is used as scratch. */
float forward_head_row(struct batch *b, const float *hidden, size_t id);

/* Cut the segments of a pass into tiles. */
void attention_plan(struct batch *b);
/* Rotate queries and keys of a layer, store keys and values, and attend: b->att is then the output
 * of all heads. */
void attention_layer(struct batch *b, size_t layer);
/* Return the rows of partial attention that a batch with this many threads needs for texts of up to
 * `context` positions; false if they do not fit into a size_t. */
bool attention_rows(size_t *rows, const struct model_config *c, size_t threads, size_t context);

#endif
