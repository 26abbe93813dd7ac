/* pretrain_data.h - turns texts of the world into batches of token ids. */
#ifndef TOOLS_LAB_DEMO_PRETRAIN_DATA_H
#define TOOLS_LAB_DEMO_PRETRAIN_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/train/train.h"
#include "tools/lab/demo/world.h"

struct err;
struct tokenizer;

enum { PRETRAIN_DOC = 192 }; /* the longest document in tokens */

struct pretrain_data {
    const struct world *world;
    const struct world_reader *reader; /* of the training texts; set by the caller */
    const struct tokenizer *tokenizer;
    uint32_t eot;
    size_t tokens;   /* limit of a batch */
    double practice; /* share of practice texts; set by the caller */
    size_t lists;    /* of world_practice; set by the caller */
    uint64_t next;   /* number of the next text of the training stream */
    uint32_t *ids, *target;
    size_t *ends;
    struct train_batch batch; /* the latest batch, whose arrays are those above */
};

/* Allocate batches of up to `tokens` tokens. ERR_FORMAT, ERR_NOMEM; the caller closes *d after an
 * error, too. */
int pretrain_data_open(struct pretrain_data *d, const struct world *world,
                       const struct tokenizer *tokenizer, size_t tokens, struct err *err);
void pretrain_data_close(struct pretrain_data *d);

/* Fill d->batch with the next texts of the training stream, and count its tokens in *read. The
 * targets are the tokens that a text marks as to be learnt. */
int pretrain_data_next(struct pretrain_data *d, uint64_t *read, struct err *err);

#endif
