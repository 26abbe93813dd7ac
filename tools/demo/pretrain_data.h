/* pretrain_data.h - world text as batches of token ids, and a quick examination. */
#ifndef TOOLS_DEMO_PRETRAIN_DATA_H
#define TOOLS_DEMO_PRETRAIN_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/train/train.h"

struct err;
struct tokenizer;
struct world;

enum { PRETRAIN_DOC = 128 }; /* the longest document in tokens; the world's are below 110 */

struct pretrain_data {
    const struct world *world;
    const struct tokenizer *tokenizer;
    uint32_t eot;
    size_t tokens;   /* of a batch, at most */
    double practice; /* share of the texts that only practise finding letters; to be set */
    bool easy;       /* these in their easiest form; to be set */
    uint64_t next;   /* number of the next text of the training stream */
    uint64_t read;   /* tokens given out so far */
    uint32_t *ids, *target;
    size_t *ends;
    struct train_batch batch; /* the latest */
};

int pretrain_data_open(struct pretrain_data *d, const struct world *world,
                       const struct tokenizer *tokenizer, size_t tokens, struct err *err);
void pretrain_data_close(struct pretrain_data *d);

/* Fill d->batch with the next texts of the training stream. Targets are what they give to learn. */
int pretrain_data_next(struct pretrain_data *d, struct err *err);

/* Shares of answers in which a token is foreseen, the reference answer read so far: the first token
 * of the kind and of the place, and the letter; and the share of all other tokens that are. */
struct pretrain_score {
    double kind, place, letter, other;
};

/* On `questions` of a test stream. Uses and overwrites d->batch. */
int pretrain_examine(struct pretrain_score *out, struct pretrain_data *d, struct train *t,
                     uint64_t stream, size_t questions, struct err *err);

#endif
