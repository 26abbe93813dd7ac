/* tokenizer.h - Qwen2's byte-level BPE, with the same ids as Hugging Face's tokenizers.
 *
 * The text is brought to NFC, split by Qwen2's pre-tokenizer (similar to that of GPT-4), and merged
 * by rank (BPE) on bytes mapped to letters. Special (added) tokens are cut out of the raw text
 * first, and NFC is not applied to them; those that are marked as normalized are cut out of the NFC
 * of the rest. A tokenizer is immutable once open: threads may share
 * it. */
#ifndef MODEL_TEXT_TOKENIZER_H
#define MODEL_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct weights;
struct tokenizer;

/* Read the tokenizer of a model's own files: GGUF metadata (tokenizer.ggml.model = gpt2), or the
 * files beside a folder's weights. ERR_FORMAT when w has no tokenizer or another kind than Qwen2's;
 * the message says which. */
int tokenizer_open(struct tokenizer **out, const struct weights *w, struct err *err);
/* Read it from a folder with tokenizer.json, or vocab.json + merges.txt (+ tokenizer_config.json),
 * or from a GGUF file. */
int tokenizer_open_path(struct tokenizer **out, const char *path, struct err *err);
void tokenizer_close(struct tokenizer *t); /* NULL is fine */

/* Return the highest id in use plus one; rows beyond it are padding and are never picked. */
size_t tokenizer_size(const struct tokenizer *t);

/* Encode text[n], any bytes (invalid UTF-8 is replaced by U+FFFD first, as Hugging Face does). With
 * special, added tokens are recognised in the text. A BOS token comes first if the file wants it.
 * *ids is malloc'ed, and the caller frees it. ERR_NOMEM only. */
int tokenizer_encode(const struct tokenizer *t, uint32_t **ids, size_t *count, const char *text,
                     size_t n, bool special, struct err *err);
/* The same for a text that follows others, or a part of a conversation: without BOS. */
int tokenizer_encode_part(const struct tokenizer *t, uint32_t **ids, size_t *count,
                          const char *text, size_t n, bool special, struct err *err);

/* Return the length of the first word of p[n], valid and not empty. No piece crosses words. */
size_t tokenizer_word(const char *p, size_t n);

/* Return the *n bytes of one token. They are not terminated and may be part of a UTF-8 character. A
 * special token gives its text. Returns NULL, and *n = 0, for an id that is not in use. */
const char *tokenizer_bytes(const struct tokenizer *t, uint32_t id, size_t *n);

/* Find the added token with exactly this text; false when there is none. */
bool tokenizer_special(const struct tokenizer *t, const char *text, uint32_t *id);
/* True when id is an added control token (<|im_end|>, ...), whose text is not shown. */
bool tokenizer_is_control(const struct tokenizer *t, uint32_t id);
/* True when id ends an answer: the file's eos, and <|im_end|> and <|endoftext|> if they exist. */
bool tokenizer_is_eog(const struct tokenizer *t, uint32_t id);
/* Return the file's eos id; false when it names none. */
bool tokenizer_eos(const struct tokenizer *t, uint32_t *id);

/* Return the BOS token that the file wants in front of each text; false when it wants none. */
bool tokenizer_bos(const struct tokenizer *t, uint32_t *id);

/* Return the source's chat template (Jinja), or NULL when it has none. Borrowed. */
const char *tokenizer_template(const struct tokenizer *t);

/* Return a 64-bit fingerprint of vocabulary and merges, for comparing two tokenizers. */
uint64_t tokenizer_fingerprint(const struct tokenizer *t);

/* For programs that write files (convert): a piece as GGUF stores it (byte letters), its GGUF token
 * type (1 normal, 3 control, 4 user defined, 5 unused; ADDED_* besides), and the two pieces of a
 * merge. Borrowed. */
struct str;
size_t tokenizer_npieces(const struct tokenizer *t);
void tokenizer_piece(const struct tokenizer *t, uint32_t id, struct str *piece, int *type);
size_t tokenizer_nmerges(const struct tokenizer *t);
void tokenizer_merge(const struct tokenizer *t, size_t i, struct str *left, struct str *right);

#endif
