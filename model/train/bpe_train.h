/* bpe_train.h - learn a byte-level BPE vocabulary in Qwen2's form.
 *
 * Source: Sennrich et al. (arXiv 1508.07909), on bytes as in GPT-2: Qwen2's pre-tokenizer splits
 * the text, then the most frequent pair of neighbours is merged into a new piece, repeatedly. Of
 * equally frequent pairs, the one with the lower ids wins, so the result depends only on the
 * text. */
#ifndef MODEL_TRAIN_BPE_TRAIN_H
#define MODEL_TRAIN_BPE_TRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "weights/weights.h"

struct err;

/* A vocabulary as GGUF stores it: pieces in byte letters, then the control pieces <|endoftext|>,
 * <|im_start|> and <|im_end|>; types 1 (normal) and 3 (control); merges as "a b". */
struct bpe_vocab {
    struct str *pieces, *merges;
    int32_t *types;
    size_t npieces, nmerges;
    uint32_t eot;  /* id of <|endoftext|> */
    char *letters; /* what the strings point into */
};

enum { BPE_MIN = 259, BPE_MAX = 2048 };

/* Learn from text[n], which must be ASCII without zero bytes (ERR_ARG otherwise). pieces is BPE_MIN
 * to BPE_MAX and includes the 256 bytes and the control pieces; fewer result when the text has no
 * more pairs. On error *out is NULL. */
int bpe_train(struct bpe_vocab **out, const char *text, size_t n, size_t pieces, struct err *err);
void bpe_vocab_free(struct bpe_vocab *v); /* NULL is fine */

#endif
