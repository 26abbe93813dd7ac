/* model.h - a dense Qwen2, Qwen2.5 or Qwen3 model, bound to its weights and packed for the kernels.
 *
 * Source of the maths: Qwen2 technical report (arXiv 2407.10671) and the published config.json
 * keys: RMSNorm before attention and MLP, biases on q/k/v only, grouped-query attention, half-split
 * RoPE, SwiGLU, tied or separate output head. Qwen3 technical report (arXiv 2505.09388): an RMSNorm
 * on each head of q and k in place of the biases. YaRN: arXiv 2309.00071. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/panels.h"

struct err;
struct kernels;
struct pool;
struct weights;

/* How RoPE is stretched for texts longer than those of the first training. Linear divides every
 * frequency by the factor. YaRN divides only the frequencies that turn fewer than beta_slow times
 * in `original` positions, and leaves those that turn more than beta_fast times. It multiplies
 * cosine and sine by magnitude. */
enum rope_kind { ROPE_PLAIN, ROPE_LINEAR, ROPE_YARN };

struct rope_scaling {
    enum rope_kind kind;
    float factor;
    float magnitude, beta_fast, beta_slow; /* these and `original`: YaRN only */
    size_t original;                       /* positions that the factor multiplies */
};

/* The shape of a model. */
struct model_config {
    size_t layers, hidden, heads, kv_heads, head_dim, ffn;
    size_t vocab;   /* rows of the embedding, padding rows included */
    size_t context; /* maximum number of positions, with the RoPE scaling */
    float eps, rope_theta;
    bool tied;    /* the output head is the embedding */
    bool qk_norm; /* Qwen3: q and k have a norm and no biases; Qwen2: biases and no norm */
    struct rope_scaling rope;
};

struct model_layer {
    const float *attn_norm, *ffn_norm; /* [hidden] */
    struct panels q, k, v, o;     /* [heads*hd][hidden], [kv*hd][hidden] x 2, [hidden][heads*hd] */
    const float *bq, *bk, *bv;    /* [rows rounded up to 16], padding zero; NULL with qk_norm */
    const float *q_norm, *k_norm; /* [head_dim]; NULL without qk_norm */
    struct panels gate, up, down; /* [ffn][hidden] x 2, [hidden][ffn] */
};

/* An open model. Immutable, so sessions in several threads may share it. */
struct model {
    struct model_config config;
    const struct kernels *kernels;
    struct model_layer *layers;    /* [config.layers] */
    struct panels embedding, head; /* [vocab][hidden]; a tied head is the embedding */
    const float *final_norm;       /* [hidden] */
    unsigned char *arena;          /* the packed weights */
    size_t bytes;                  /* size of the packed weights, a multiple of 64 */
    size_t room;                   /* bytes of the arena; less than `bytes` in an outline */
    size_t params;                 /* number of parameters; a tied head counts once */
};

/* Read and check only the shape keys ("qwen2.*" or "qwen3.*", as GGUF names them). ERR_FORMAT names
 * key, expected and found, or the architecture if it is another one. */
int model_config_read(struct model_config *out, const struct weights *w, struct err *err);

/* Refuse a context beyond the model's (ERR_ARG): past it a model writes nonsense. session_open
 * calls this. */
int model_check_context(const struct model_config *c, size_t context, struct err *err);

/* Bind all tensors of w, check every shape, and pack the matrices (in parallel on pool, which may
 * be NULL). w is not needed afterwards. k and pool are borrowed, k until model_close. Unless beside
 * is NULL, one thread of the pool calls beside(arg) once during the packing; beside must not use
 * the pool. After an error before the packing, beside is not called. */
int model_open(struct model **out, const struct weights *w, const struct kernels *k,
               struct pool *pool, void (*beside)(void *arg), void *arg, struct err *err);

/* Check all that model_open checks, and open a model without matrices, for its config, bytes (of
 * the whole model), params and model_fingerprint. If the file is only a header, the values of
 * vectors are undefined. Errors of model_open. */
int model_outline(struct model **out, const struct weights *w, struct err *err);

/* Makes the matrices of a model without a file. Its norms are 1 and its biases 0. */
struct model_maker {
    /* Return the type of the matrix of this GGUF name ("blk.3.attn_v.weight"). */
    enum ptype (*type)(const struct model_maker *m, const char *name, size_t cols);
    /* Fill out[PANEL rows] with the rows of panel p of w, as a file would store them, and return
     * their number. `at` is the offset of w in the arena. Called from several threads. NULL: an
     * outline. */
    size_t (*rows)(const struct model_maker *m, unsigned char *out, const struct panels *w,
                   size_t at, size_t p);
};

/* Open a model of this shape with the matrices of `maker`. Errors of model_open. */
int model_make(struct model **out, const struct model_config *config,
               const struct model_maker *maker, const struct kernels *k, struct pool *pool,
               struct err *err);

void model_close(struct model *m); /* NULL is fine */

const char *model_type_name(const struct model *m); /* type of most weights: "q8_0", ... */

#endif
