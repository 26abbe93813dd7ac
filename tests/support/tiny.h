/* tiny.h - a model small enough to be made in a test: a Hugging Face folder with one layer of
 * random weights and a byte-level vocabulary of 256 bytes and two special tokens. */
#ifndef TESTS_SUPPORT_TINY_H
#define TESTS_SUPPORT_TINY_H

enum { TINY_VOCAB = 272, TINY_IM_END = 256, TINY_EOS = 257, TINY_CONTEXT = 256 };

/* Write the model into a temporary folder, in place of the one before, and return its path (static
 * storage). Ends the test when that fails. It is removed at the end of the program. */
const char *tiny_make(void);
/* The same with other random weights; tiny_make has seed 1. */
const char *tiny_make_seed(unsigned seed);
/* The same as a Qwen3 model: norms of queries and keys, heads together wider than the hidden state,
 * and RoPE stretched by YaRN to 1,024 places. */
const char *tiny_make_qwen3(void);

/* Another one without a file, for model_random. */
extern const struct model_config tiny_shape;

#endif
