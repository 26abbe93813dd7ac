/* convert.h - the parts of `mizzle convert`: which type each tensor of the new file gets, and the
 * tokenizer of a folder as the GGUF keys that llama.cpp reads. */
#ifndef TOOLS_CONVERT_H
#define TOOLS_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct ggufw;
struct weights;

/* What --type asks for. */
#define CONVERT_TYPES "f32, f16, bf16, q8_0 or q4_0"
struct convert_target {
    const char *name;   /* "q8_0" */
    int type;           /* of the matrices */
    uint32_t file_type; /* general.file_type, as in llama.cpp's llama_ftype */
};

/* Return the target of this name, in any case, or NULL. */
const struct convert_target *convert_target(const char *name);

/* Return the type for a tensor when matrices become `type`. Norms, biases and other vectors are
 * F32, a matrix of one row among them, and so is what is not named "weight". The output head, whose
 * tensor has the name `head`, becomes Q8_0 instead of Q4_0. A matrix whose rows do not divide into
 * blocks becomes F16, and then *fell_back true. */
int convert_plan_type(int type, const char *head, const char *name, unsigned ndim,
                      const size_t *shape, bool *fell_back);
/* Write the tokenizer.* keys for the folder that w was opened from: `rows` tokens, of which those
 * beyond the vocabulary are named [PADn] and have the type "unused". A folder with neither
 * tokenizer.json nor vocab.json gets tokenizer.ggml.model = no_vocab. */
int convert_vocab(struct ggufw *g, const struct weights *w, size_t rows, struct err *err);

#endif
