/* router.h - scores each token of the local model by a small network or a table.
 *
 * Source of the network: CITER (arXiv 2502.01976), conf_model: Linear(h, 2h), BatchNorm, ReLU,
 * Dropout, Linear(2h, h), Dropout, Linear(h, 1), sigmoid. At inference BatchNorm folds into the
 * first Linear and the last two Linears into one, so h -> width -> 1 remains. A gain router has two
 * outputs, P(mends) = sigmoid(w2[0] . h + b2[0]) and P(spoils) = sigmoid(w2[1] . h + b2[1]): the
 * chances that the large model's token mends a wrong answer, and that it spoils a right one. The
 * score is (1 - P(mends) + P(spoils)) / 2. A router may have several members, one per training. Its
 * score is their mean, summed in double in order and rounded once. A table is a baseline whose
 * score depends only on the last two ids. A network may also read the features of features.h, after
 * the hidden state (mix) or alone (combined, a baseline); the table behind FEATURE_CONTEXT is then
 * part of the router. A deep router has several layers and other inputs (deep.h). */
#ifndef ROUTER_ROUTER_H
#define ROUTER_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/session.h"
#include "router/features.h"

struct err;
struct pool;
struct panels;
struct kernels;
struct mizzle_state;
struct router; /* immutable once open, so threads may share it */

enum { ROUTER_MAX = 65536 };                 /* the most that dim and width may be */
enum { ROUTER_MEMBERS = 16 };                /* the most trainings in one router */
enum { ROUTER_MEMBERS_BYTES = 4000000 };     /* the most that the numbers of several may take */
enum { ROUTER_MAX_CONTEXTS = 1 << 24 };      /* the most rows of a table */
enum { ROUTER_NAME = 64, ROUTER_TYPE = 16 }; /* bytes of its strings, with the final zero */

/* The origin of a router; all zero: unknown. */
struct router_about {
    bool has_model, has_share;
    uint64_t model;            /* model_fingerprint of the edge */
    char name[ROUTER_NAME];    /* the edge's name, for people */
    char weights[ROUTER_TYPE]; /* the type of its matrices when the threshold was calibrated */
    char task[ROUTER_NAME];    /* source of its samples */
    float share;               /* 0..1, the share of tokens that the threshold routes */
};

/* One row of the table: the id before the last, the last id, the score of the next token. */
struct router_context {
    float before, last; /* ids are exact in a float */
    float score;        /* 0..1 */
};

/* The values of a router, row-major, as in files and training: a network, or, if dim is 0, a
 * table. */
struct router_form {
    size_t dim;     /* all inputs; with contexts, the last FEATURES are features.h's */
    size_t width;   /* units of all members */
    size_t members; /* networks of width / members units, one after the other; 1: no others */
    bool gain;      /* each has two outputs, P(mends) and P(spoils), instead of one */
    float *w1;      /* [width][dim] */
    float *b1;      /* [width] */
    float *w2;      /* [members][outputs][width / members] */
    float b2[2 * ROUTER_MEMBERS]; /* [members][outputs] */
    bool has_threshold;
    float threshold; /* calibrated, 0..1 */
    struct router_about about;
    /* [ncontexts], for the features or alone, ascending by before, then last. before -1: any id;
     * last also -1: the mean, a row of every table. */
    struct router_context *contexts;
    size_t ncontexts;
    struct weights *deep; /* instead of all numbers above: the tensors of deep.h; owned */
    bool high;            /* w2 and b2, or deep's values, are high for critical tokens */
    bool softmax;         /* of deep.h */
};

/* Allocate zeroed arrays of these sizes (1 to ROUTER_MAX) for one member; w2 has room for two
 * outputs, so members and gain may be set. After an error everything is NULL. */
int router_form_open(struct router_form *out, size_t dim, size_t width, struct err *err);
/* The same for a table of n rows (1 to ROUTER_MAX_CONTEXTS). */
int router_form_open_contexts(struct router_form *out, size_t n, struct err *err);
void router_form_close(struct router_form *f);
/* Read a file of any form. The metadata may hold "tap" ("final"), "threshold", "share",
 * "model", "model_name", "weights" and "task"; a deep router has R2R's names and values, and may
 * have "softmax": "1". "high": "critical", which every deep router has, says that high values mean
 * critical tokens. Values that are not finite, and a table out of order, are refused. ERR_FORMAT
 * names file, tensor, expected and found; after an error *out is all zero. */
int router_form_read(struct router_form *out, const char *path, struct err *err);

/* Open a file that router_form_read reads. k is borrowed. */
int router_open(struct router **out, const char *path, const struct kernels *k, struct err *err);
/* Refuse a form with values that are not finite, members that do not fit, or a table out of order.
 * router_make checks deep forms. ERR_FORMAT names file, tensor, expected and found. */
int router_form_check(const struct router_form *f, const char *file, struct err *err);
/* Set members and gain from the shapes of router.w1 [w1_rows][..] and router.w2. False: they do not
 * fit. */
bool router_form_shape(struct router_form *f, size_t w1_rows, size_t w2_rows, size_t w2_cols);
/* Refuse values of a tensor that are not finite. */
int router_finite(const float *v, size_t n, const char *file, const char *tensor, struct err *err);
/* Make a router from a form, which is copied; name stands for the file in errors. */
int router_make(struct router **out, const struct router_form *f, const char *name,
                const struct kernels *k, struct err *err);
/* Make a network without layers: its score is on_score's result, clamped to 0 to 1. */
int router_make_own(struct router **out,
                    float (*on_score)(void *arg, const struct mizzle_state *state), void *arg,
                    const struct kernels *k, struct err *err);
void router_close(struct router *r); /* NULL is fine */

/* True for a table, which router_score_ids reads; false for a network, for router_score. */
bool router_is_table(const struct router *r);
size_t router_dim(const struct router *r); /* all inputs; 0 for a table */
/* Return the number of inputs besides the hidden state: features or, of a deep router, the largest
 * logits and the embedding of the local model's token. */
size_t router_extra(const struct router *r);
/* Return the number of largest logits that a deep router reads, else 0. */
size_t router_logits(const struct router *r);
/* Return the router's kind. PLAIN: a network without hidden states. */
enum router_kind { ROUTER_NONE, ROUTER_TABLE, ROUTER_PLAIN, ROUTER_NETWORK };
enum router_kind router_kind(const struct router *r);
const char *router_kind_name(enum router_kind k); /* for people */
/* router_head: return the head of a router with these numbers of inputs: "mlp", "mix", "combined"
 * or "context" (none); "gain" or, without a hidden state, "gain-none". router_name: return the
 * router's head, also "deep" and "on_score". */
const char *router_head(size_t hidden, size_t besides, bool gain);
const char *router_name(const struct router *r);
const struct router_about *router_about(const struct router *r);
/* Return the calibrated threshold. False: the file has none. */
bool router_threshold(const struct router *r, float *threshold);

/* The data of a token: its position, logits[size], the local model's id for it, that model's
 * embedding, and the final hidden state [embedding->cols]. */
struct router_token {
    struct features_text text;
    const float *logits, *hidden;
    size_t size;
    uint32_t id;
    const struct panels *embedding;
};
/* Set extra[router_extra]: the inputs besides the hidden state. */
void router_look(const struct router *r, float *extra, const struct router_token *t);
/* Return the inputs of router_score [router_dim], f32: hidden itself or, if the router reads more,
 * a copy in scratch, followed by extra[router_extra]. */
const float *router_inputs(const struct router *r, const float *hidden, const float *extra,
                           float *scratch);
/* Return the score, 0 to 1, of the local model's next token. A network with one output gives the
 * probability that the token is good enough: sigmoid(w2 . relu(w1 . x + b1) + b2). A deep router
 * gives 1 - its value. x: [dim] f32. scratch: [router_scratch] floats. It cannot fail: if a sum
 * overflows to NaN, the score is 0, and the cloud is asked. */
size_t router_scratch(const struct router *r);
float router_score(const struct router *r, const float *x, float *scratch);
/* The structure of a network. */
struct router_net {
    size_t width, members; /* units of the last hidden layer, those of all members; 0: a table */
    bool gain;             /* two outputs */
    bool deep;             /* deep.h */
    bool high;             /* its own values are high where a token is critical: 1 - score */
};
struct router_net router_net(const struct router *r);
/* After router_score with this scratch: set parts[width] to each unit's part of the sum inside the
 * sigmoid, w2[i] * relu(..)[i], and return b2. For a gain router, the sum is that of P(spoils)
 * minus that of P(mends). For several members it is their mean. */
float router_parts(const struct router *r, const float *scratch, float *parts);

/* Return the score of a table, or of a network's own table, for the token after ids[n], as
 * features_context does. n may be 0. */
float router_score_ids(const struct router *r, const uint32_t *ids, size_t n);

/* From now on compute each score with the threads of this pool; the score stays the same. The pool
 * is borrowed and must not be in use elsewhere during router_score. */
void router_threads(struct router *r, struct pool *pool);

#endif
