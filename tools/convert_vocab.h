/* convert_vocab.h - writes the tokenizer of a folder as the GGUF keys that llama.cpp reads. */
#ifndef TOOLS_CONVERT_VOCAB_H
#define TOOLS_CONVERT_VOCAB_H

#include <stddef.h>

struct err;
struct ggufw;
struct weights;

/* Write the tokenizer.* keys for the folder that w was opened from: `rows` tokens, of which those
 * beyond the vocabulary are named [PADn] and have the type "unused". A folder with neither
 * tokenizer.json nor vocab.json gets tokenizer.ggml.model = no_vocab. */
int convert_vocab(struct ggufw *g, const struct weights *w, size_t rows, struct err *err);

#endif
