/* synthetic_vocab.h - a made-up vocabulary of any size, where a model's shape comes without one: so
 * that a benchmark can send text, and cut it into tokens again.
 *
 * 256 bytes, then " a" to " z", " aa" ..., up to " zzzz". A token of Qwen2.5's 151,936 is 5 bytes
 * long (English is about 4.5 a token), and text cut again gives the same ids, but for the bytes. No
 * id ends a text. */
#ifndef TOOLS_BENCH_SYNTHETIC_VOCAB_H
#define TOOLS_BENCH_SYNTHETIC_VOCAB_H

#include <stddef.h>

struct err;
struct tokenizer;

enum { SYNTHETIC_VOCAB_WORDS = 256 }; /* the first id that is not a single byte */

/* Ids 0 to size - 1, at most 475,510. ERR_ARG: fewer than 256; ERR_NOMEM. The caller closes it. */
int synthetic_vocab_open(struct tokenizer **out, size_t size, struct err *err);

#endif
