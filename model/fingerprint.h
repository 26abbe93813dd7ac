/* fingerprint.h - identifies a base model, whatever its weights are stored as, or its exact bits.
 */
#ifndef MODEL_FINGERPRINT_H
#define MODEL_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

struct model;
struct pool;
struct tokenizer;
struct weights;

enum { MODEL_NAME = 64 }; /* bytes of a model's name, with the final zero */

/* Return a 64-bit fingerprint of shape, RoPE scaling, tokenizer (NULL: none), norms and biases.
 * Every file form stores norms and biases unquantised, so an F32 folder and a Q4_0 file made from
 * it have the same fingerprint. Random models (model/train/random.h) of one shape share theirs:
 * their norms are all 1. */
uint64_t model_fingerprint(const struct model *m, const struct tokenizer *t);

/* Return a 64-bit hash of all weights as they are packed, and of their types. It is the same for
 * every file that gives these bits, wherever it lies; any other weights, including other types of
 * the same model, have another one, except with a chance of 2^-64. It takes as long as reading the
 * memory of all weights once, with the threads of pool (NULL: one). */
uint64_t model_exact_fingerprint(const struct model *m, struct pool *pool);

/* Write a name for people as one harmless line of valid UTF-8: the file's general.name, or else the
 * last part of its path without .gguf. */
void model_file_name(char out[MODEL_NAME], const struct weights *w);
/* Return the type in which a file stores its matrices, such as "Q8_0" or "Q4_K_M": what its key
 * general.file_type says, or else the type of most of their bytes. "" if there are none. Source of
 * the numbers: enum llama_ftype of llama.cpp. */
const char *model_file_type(const struct weights *w);

#endif
