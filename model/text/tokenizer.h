/* tokenizer.h - Qwen2's byte-level BPE, the same ids as Hugging Face's tokenizers.
 *
 * NFC, then the GPT-4-like split of Qwen2's pre-tokenizer, then BPE by merge rank on bytes mapped
 * to letters. Special (added) tokens are cut out of the raw text first, and NFC is not applied to
 * them. Immutable once open: threads may share it. */
#ifndef MODEL_TEXT_TOKENIZER_H
#define MODEL_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct weights;
struct tokenizer;

/* From the model's own files: GGUF metadata (tokenizer.ggml.model = gpt2), or beside the folder's
 * weights. ERR_FORMAT if w has no tokenizer or it is not Qwen2's kind; the line says which. */
int tokenizer_open(struct tokenizer **out, const struct weights *w, struct err *err);
/* From a folder with tokenizer.json, or vocab.json + merges.txt (+ tokenizer_config.json), or a
 * GGUF file. */
int tokenizer_open_path(struct tokenizer **out, const char *path, struct err *err);
void tokenizer_close(struct tokenizer *t);

/* Ids in use: every id is below this; rows beyond it are padding and are never picked. */
size_t tokenizer_size(const struct tokenizer *t);

/* text[n], any bytes (invalid UTF-8 is replaced by U+FFFD first, as Hugging Face does). special:
 * parse added tokens. *ids is malloc'ed, the caller frees it. ERR_NOMEM only. */
int tokenizer_encode(const struct tokenizer *t, uint32_t **ids, size_t *count, const char *text,
                     size_t n, bool special, struct err *err);

/* The bytes of one token, *n of them; not terminated, may be part of a UTF-8 character. Special
 * tokens give their text. NULL and *n = 0 for an id that is not in use. */
const char *tokenizer_bytes(const struct tokenizer *t, uint32_t id, size_t *n);

/* Added token of exactly this text; false if there is none. */
bool tokenizer_special(const struct tokenizer *t, const char *text, uint32_t *id);
/* True where id is an added token that is control (<|im_end|>, ...): its text is not shown. */
bool tokenizer_is_control(const struct tokenizer *t, uint32_t id);
/* True where id ends an answer: the file's eos, and <|im_end|> and <|endoftext|> where they exist.
 */
bool tokenizer_is_eog(const struct tokenizer *t, uint32_t id);
/* The file's eos id; false if it names none. */
bool tokenizer_eos(const struct tokenizer *t, uint32_t *id);

/* The chat template that the source holds, Jinja; NULL if it holds none. Borrowed. */
const char *tokenizer_template(const struct tokenizer *t);

/* 64-bit fingerprint of vocabulary and merges, to compare two tokenizers. */
uint64_t tokenizer_fingerprint(const struct tokenizer *t);

/* For writers of files (convert): piece as GGUF stores it (byte letters), its GGUF token type (1
 * normal, 3 control, 4 user defined, 5 unused), merges as "a b" lines. Borrowed. */
struct str;
size_t tokenizer_npieces(const struct tokenizer *t);
void tokenizer_piece(const struct tokenizer *t, uint32_t id, struct str *piece, int *type);
size_t tokenizer_nmerges(const struct tokenizer *t);
void tokenizer_merge(const struct tokenizer *t, size_t i, struct str *merge);

#endif
