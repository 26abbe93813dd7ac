/* random.h - models of random weights of any type, for benchmarks and tests without a file. */
#ifndef MODEL_TRAIN_RANDOM_H
#define MODEL_TRAIN_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/panels.h"

struct err;
struct kernels;
struct model;
struct model_config;
struct pool;

/* A mix of types, beside those of enum ptype: llama.cpp's Q4_K_M. */
enum { MODEL_Q4_K_M = P_TYPES, MODEL_TYPES };

/* Return the name of a type or mix: "q8_0", "q4_k_m". */
const char *model_random_type(unsigned type);

/* Make a model of this shape with random weights. type is the type of the matrices, the embedding
 * and head included; one that a matrix's columns do not suit is replaced as llama.cpp does (Q4_K by
 * Q5_0, Q5_K by Q5_1, Q6_K by Q8_0, others by IQ4_NL). */
int model_random(struct model **out, const struct model_config *config, unsigned type,
                 const struct kernels *k, struct pool *pool, uint64_t seed, struct err *err);

/* Set the bytes that such a model takes, without making it. ERR_FORMAT: type and shape do not fit
 * together; ERR_NOMEM. */
int model_random_size(size_t *bytes, const struct model_config *config, unsigned type,
                      struct err *err);

#endif
