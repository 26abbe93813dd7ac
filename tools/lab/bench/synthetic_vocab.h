/* synthetic_vocab.h - a synthetic vocabulary of any size, for models that are only a shape, so that
 * a benchmark can send text and split it into tokens again.
 *
 * It holds 256 bytes, then " a" to " z", " aa" ..., up to " zzzz". With the 151,936 ids of Qwen2.5
 * a token has about 5 bytes (English has about 4.5). Tokenizing its text gives the same ids again,
 * except for single bytes. No id ends a text. */
#ifndef TOOLS_LAB_BENCH_SYNTHETIC_VOCAB_H
#define TOOLS_LAB_BENCH_SYNTHETIC_VOCAB_H

#include <stddef.h>

struct err;
struct tokenizer;

enum { SYNTHETIC_VOCAB_WORDS = 256 }; /* the first id that is not a single byte */

/* Open a tokenizer with ids 0 to size - 1, at most 475,510. The caller closes it. ERR_ARG for fewer
 * than 256; ERR_NOMEM. */
int synthetic_vocab_open(struct tokenizer **out, size_t size, struct err *err);

#endif
