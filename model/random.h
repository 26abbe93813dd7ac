/* random.h - random weights of any type, as a file would store them, and which types a model of a
 * known mix would have. For benchmarks and tests without a file. */
#ifndef MODEL_RANDOM_H
#define MODEL_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/panels.h"

/* Return the type that llama.cpp's quantize would give a matrix of `cols` columns whose GGUF name
 * is `name` ("blk.3.attn_v.weight"), in a file of this type (enum ptype or a mix of model.h) and
 * of so many layers. A type that cols does not suit is replaced as llama.cpp replaces it. */
enum ptype random_type(unsigned type, const char *name, size_t layers, size_t cols);

/* Fill out[panels_raw(type, cols)] with row `row` of uniform weights that have about the spread of
 * a trained matrix: values in [-s, s), s = 1.7 / sqrt(cols). */
void random_row(unsigned char *out, enum ptype type, size_t cols, uint64_t seed, size_t row);

#endif
