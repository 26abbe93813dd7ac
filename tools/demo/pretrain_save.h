/* pretrain_save.h - files of the pretraining: vocabulary, models, checkpoints, loss curves. */
#ifndef TOOLS_DEMO_PRETRAIN_SAVE_H
#define TOOLS_DEMO_PRETRAIN_SAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/demo/pretrain_plan.h"

struct bpe_vocab;
struct err;

struct pretrain_row { /* of the loss curve */
    float step, tokens, loss, rate;
};

/* Where a training stands, beside what struct train holds. */
struct pretrain_state {
    uint64_t seed, next, read; /* next text, tokens read */
    struct pretrain_row *rows;
    size_t nrows, room;
    double sum; /* of losses since the last row */
    size_t summed;
};

int pretrain_add_row(struct pretrain_state *s, const struct pretrain_row *row, struct err *err);

/* A GGUF file with the tokenizer's keys and nothing else. */
int pretrain_save_vocab(const char *path, const struct bpe_vocab *v, struct err *err);

/* The model for the engine: matrices in Q8_0, vectors in F32, with a checksum. */
int pretrain_save_model(const char *path, const struct train *t, const struct pretrain_plan *p,
                        const struct pretrain_state *s, const struct bpe_vocab *v, struct err *err);

/* Everything that is needed to go on: a GGUF file of F32 tensors, with a checksum. */
int pretrain_save_checkpoint(const char *path, const struct train *t, const struct pretrain_plan *p,
                             const struct pretrain_state *s, struct err *err);
/* ERR_ARG if the file is of another size, seed or length. */
int pretrain_load_checkpoint(const char *path, struct train *t, const struct pretrain_plan *p,
                             struct pretrain_state *s, struct err *err);

/* step,tokens,loss,lr */
int pretrain_save_curve(const char *path, const struct pretrain_state *s, struct err *err);

/* Steps and seed of a finished model; false if the file is no such thing. */
bool pretrain_finished(const char *path, const struct pretrain_plan *p, uint64_t seed);

#endif
