/* pretrain_save.h - files of the pretraining: vocabulary, models, loss curves. */
#ifndef TOOLS_DEMO_PRETRAIN_SAVE_H
#define TOOLS_DEMO_PRETRAIN_SAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/demo/pretrain_run.h"

struct bpe_vocab;
struct err;

struct pretrain_row { /* one row of the loss curve */
    float step, tokens, loss, rate;
};

/* The state of a training that struct train does not hold. */
struct pretrain_state {
    uint64_t seed, read; /* read: tokens */
    struct pretrain_row *rows;
    size_t nrows, room;
    double sum; /* of losses since the last row */
    size_t summed;
};

/* Append a row to the curve; ERR_NOMEM. */
int pretrain_add_row(struct pretrain_state *s, const struct pretrain_row *row, struct err *err);

/* Write a GGUF file that holds only the tokenizer's keys. */
int pretrain_save_vocab(const char *path, const struct bpe_vocab *v, struct err *err);

/* Write the model for the engine: matrices in Q8_0, vectors in F32, with a checksum. */
int pretrain_save_model(const char *path, const struct train *t, const struct pretrain_plan *p,
                        const struct pretrain_state *s, const struct bpe_vocab *v, struct err *err);

/* Write the curve as CSV: step,tokens,loss,lr. */
int pretrain_save_curve(const char *path, const struct pretrain_state *s, struct err *err);

/* True if the file is a finished model of this plan and seed. */
bool pretrain_finished(const char *path, const struct pretrain_plan *p, uint64_t seed);

#endif
