/* model.h - a dense Qwen2 / Qwen2.5 model, bound to its weights and packed for the kernels.
 *
 * Source of the maths: Qwen2 technical report (arXiv 2407.10671) and the published config.json
 * keys: RMSNorm before attention and MLP, biases on q/k/v only, grouped-query attention, half-split
 * RoPE, SwiGLU, tied or separate output head. */
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

/* The shape of a model. */
struct model_config {
    size_t layers, hidden, heads, kv_heads, head_dim, ffn;
    size_t vocab;   /* rows of the embedding, padding rows included */
    size_t context; /* positions the model was made for */
    float eps, rope_theta;
    bool tied; /* the output head is the embedding */
};

struct model_layer {
    const float *attn_norm, *ffn_norm; /* [hidden] */
    struct panels q, k, v, o;     /* [heads*hd][hidden], [kv*hd][hidden] x 2, [hidden][heads*hd] */
    const float *bq, *bk, *bv;    /* [rows rounded up to 16], padding zero */
    struct panels gate, up, down; /* [ffn][hidden] x 2, [hidden][ffn] */
};

/* Read and check the shape keys alone ("qwen2.*", as GGUF names them). ERR_FORMAT names key,
 * expected and found; an architecture other than qwen2 is refused by its name. */
int model_config_read(struct model_config *out, const struct weights *w, struct err *err);

/* Bind all tensors of w, check every shape, and pack the matrices (in parallel on pool, which may
 * be NULL). w is not needed afterwards. k and pool are borrowed, k until model_close. */
int model_open(struct model **out, const struct weights *w, const struct kernels *k,
               struct pool *pool, struct err *err);

/* The same, and meanwhile call beside(arg) once, on any thread of the pool, as one piece of the
 * work: it must not use the pool. When an error is found before packing it is not called. */
int model_open_beside(struct model **out, const struct weights *w, const struct kernels *k,
                      struct pool *pool, void (*beside)(void *arg), void *arg, struct err *err);

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

/* Set *out to a published shape ("qwen2.5-0.5b", "qwen2.5-1.5b", ...); false for an unknown
 * name. */
bool model_shape(struct model_config *out, const char *name);

void model_close(struct model *m); /* NULL is fine */

const struct model_config *model_config(const struct model *m);
const struct kernels *model_kernels(const struct model *m);
const struct model_layer *model_layer(const struct model *m, size_t i);
const struct panels *model_embedding(const struct model *m); /* [vocab][hidden] */
const struct panels *model_head(const struct model *m); /* [vocab][hidden]; the embedding if tied */
const float *model_final_norm(const struct model *m);   /* [hidden] */
size_t model_bytes(const struct model *m);              /* bytes of packed weights */
size_t model_params(const struct model *m);             /* parameters, a tied head counted once */
const char *model_type_name(const struct model *m);     /* type of most weights: "q8_0", ... */

#endif
