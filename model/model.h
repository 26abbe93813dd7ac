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
struct model; /* immutable once open: sessions in several threads may share it */

/* How RoPE is stretched for texts longer than those that a model was first trained for. Linear
 * divides every frequency by the factor. YaRN does so only for those that turn fewer than beta_slow
 * times in `original` positions, leaves alone those that turn more than beta_fast times, and
 * multiplies cosine and sine by magnitude. */
enum rope_kind { ROPE_PLAIN, ROPE_LINEAR, ROPE_YARN };

struct rope_scaling {
    enum rope_kind kind;
    float factor;
    float magnitude, beta_fast, beta_slow; /* of YaRN alone, as is the next one */
    size_t original;                       /* positions that the factor multiplies */
};

/* The shape of a model. */
struct model_config {
    size_t layers, hidden, heads, kv_heads, head_dim, ffn;
    size_t vocab;   /* rows of the embedding, padding rows included */
    size_t context; /* positions the model was made for, with its RoPE scaling */
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

/* Read and check the shape keys alone ("qwen2.*" or "qwen3.*", as GGUF names them). ERR_FORMAT
 * names key, expected and found; another architecture is refused by its name. */
int model_config_read(struct model_config *out, const struct weights *w, struct err *err);

/* Check that the model was made for texts of so many positions: beyond them it would go on, and
 * write nonsense. Every session_open does so. ERR_ARG. */
int model_check_context(const struct model_config *c, size_t context, struct err *err);

/* Bind all tensors of w, check every shape, and pack the matrices (in parallel on pool, which may
 * be NULL). w is not needed afterwards. k and pool are borrowed, k until model_close. Meanwhile
 * beside(arg), unless it is NULL, is called once, on any thread of the pool, as one piece of the
 * work: it must not use the pool. When an error is found before packing it is not called. */
int model_open(struct model **out, const struct weights *w, const struct kernels *k,
               struct pool *pool, void (*beside)(void *arg), void *arg, struct err *err);

/* Check all that model_open checks, and open a model without matrices, for model_config,
 * model_bytes (those of the whole model), model_params and model_fingerprint. In a file that is a
 * header alone, vectors have values that mean nothing. Errors of model_open. */
int model_outline(struct model **out, const struct weights *w, struct err *err);
/* A mix of types, beside those of enum ptype: llama.cpp's Q4_K_M. */
enum { MODEL_Q4_K_M = P_TYPES, MODEL_TYPES };

/* Return the name of a type or mix: "q8_0", "q4_k_m". */
const char *model_random_type(unsigned type);

/* Make a model of this shape with random weights, for benchmarks without a file. type is the type
 * of the matrices, the embedding and head included; one that a matrix's columns do not suit is
 * replaced as llama.cpp does (Q4_K by Q5_0, Q5_K by Q5_1, Q6_K by Q8_0, others by IQ4_NL). */
int model_random(struct model **out, const struct model_config *config, unsigned type,
                 const struct kernels *k, struct pool *pool, uint64_t seed, struct err *err);

/* Set the bytes that such a model takes, without making it. ERR_FORMAT: type and shape do not fit
 * together; ERR_NOMEM. */
int model_random_size(size_t *bytes, const struct model_config *config, unsigned type,
                      struct err *err);

void model_close(struct model *m); /* NULL is fine */

const struct model_config *model_config(const struct model *m);
const struct kernels *model_kernels(const struct model *m);
const struct model_layer *model_layer(const struct model *m, size_t i);
const struct panels *model_embedding(const struct model *m); /* [vocab][hidden] */
const struct panels *model_head(const struct model *m); /* [vocab][hidden]; the embedding if tied */
const float *model_final_norm(const struct model *m);   /* [hidden] */
size_t model_bytes(const struct model *m);              /* bytes of packed weights */
const unsigned char *model_arena(const struct model *m); /* [model_bytes], a multiple of 64 */
size_t model_params(const struct model *m);              /* parameters, a tied head counted once */
const char *model_type_name(const struct model *m);      /* type of most weights: "q8_0", ... */

#endif
