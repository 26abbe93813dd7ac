/* vocabulary.h - the common form of every source of a tokenizer: GGUF, tokenizer.json, vocab.json
 * with merges.txt, and vocabularies that a program makes. */
#ifndef MODEL_TEXT_VOCABULARY_H
#define MODEL_TEXT_VOCABULARY_H

#include "weights/weights.h"

struct err;
struct tokenizer;

enum { PIECE_NORMAL = 1, PIECE_CONTROL = 3, PIECE_USER = 4, PIECE_UNUSED = 5 }; /* as in GGUF */

/* Flags of an added token, as in Hugging Face's AddedToken: it takes white space at its left, at
 * its right; it is looked for after NFC. */
enum { ADDED_LSTRIP = 16, ADDED_RSTRIP = 32, ADDED_NORMALIZED = 64 };

/* Strings and arrays are borrowed until tokenizer_build returns. */
struct vocabulary {
    const char *path;         /* for error messages */
    const struct str *pieces; /* [count]; p NULL: no piece has this id */
    const int *types;         /* [count], PIECE_* with ADDED_*; 0: no piece */
    size_t count;
    const struct str *merges; /* [nmerges] "a b" */
    size_t nmerges;
    uint32_t eog[16]; /* ids that end an answer, the file's eos first */
    size_t neog;
    struct str template; /* p NULL: the source has none */
    bool add_bos;        /* a text begins with bos */
    uint32_t bos;
};

/* Check v and build the tokenizer. ERR_FORMAT names v->path; ERR_NOMEM. On error *out is NULL. */
int tokenizer_build(struct tokenizer **out, const struct vocabulary *v, struct err *err);

#endif
