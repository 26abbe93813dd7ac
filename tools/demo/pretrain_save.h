/* pretrain_save.h - files of the pretraining: vocabulary and models. */
#ifndef TOOLS_DEMO_PRETRAIN_SAVE_H
#define TOOLS_DEMO_PRETRAIN_SAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/demo/pretrain_run.h"

struct bpe_vocab;
struct err;

/* Write a GGUF file that holds only the tokenizer's keys. */
int pretrain_save_vocab(const char *path, const struct bpe_vocab *v, struct err *err);

/* Write the model for the engine: matrices in Q8_0, vectors in F32, with a checksum. tokens: that
 * it has read. */
int pretrain_save_model(const char *path, const struct train *t, const struct pretrain_plan *p,
                        uint64_t seed, uint64_t tokens, const struct bpe_vocab *v, struct err *err);

/* True if the file is a finished model of this plan and seed. */
bool pretrain_finished(const char *path, const struct pretrain_plan *p, uint64_t seed);

#endif
