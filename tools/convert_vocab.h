/* convert_vocab.h - a folder's tokenizer as the GGUF keys that llama.cpp reads. */
#ifndef TOOLS_CONVERT_VOCAB_H
#define TOOLS_CONVERT_VOCAB_H

#include <stddef.h>

struct err;
struct ggufw;
struct weights;

/* Write tokenizer.* keys for the folder that w was opened from: rows tokens, those beyond the
 * vocabulary as [PADn] of type unused. A folder without tokenizer.json and vocab.json gets
 * tokenizer.ggml.model = no_vocab. */
int convert_vocab(struct ggufw *g, const struct weights *w, size_t rows, struct err *err);

#endif
