/* pretrain_run.h - the demo models: what they are, and how one is trained, with progress. */
#ifndef TOOLS_LAB_DEMO_PRETRAIN_RUN_H
#define TOOLS_LAB_DEMO_PRETRAIN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/lab/demo/pretrain_data.h"

struct bpe_vocab;
struct err;
struct kernels;
struct pool;

struct pretrain_plan {
    const char *size; /* "0.1", "0.5", "1", "cloud" */
    const char *name; /* base name of its files: "edge-0.5" */
    size_t layers, hidden, heads, kv_heads, ffn;
    size_t steps;
    /* Up to step `easy` all texts are practice in its easiest form; up to step `mixed` most are
     * practice in any form; after that, few are. */
    size_t easy, mixed;
    size_t lists; /* of world_practice, after `easy` */
    float rate;   /* peak learning rate */
    struct world_reader reader;
};

enum { PRETRAIN_SIZES = 4 };

extern const struct pretrain_plan pretrain_plans[PRETRAIN_SIZES];

/* Return the plan with this size or file name, or NULL. */
const struct pretrain_plan *pretrain_plan_find(const char *name);

/* What the training of all models shares. */
struct pretrain_job {
    const struct kernels *kernels;
    struct pool *pool;
    const struct world *world;
    const struct tokenizer *tokenizer;
    const struct bpe_vocab *vocab;
    const char *out; /* output folder */
    uint64_t seed;
    bool quiet;
};

enum { PRETRAIN_PATH = 512 };

/* Set path to "OUT/NAME SUFFIX", without the blank; ERR_ARG if it is too long. */
int pretrain_path(char path[PRETRAIN_PATH], const char *out, const char *name, const char *suffix,
                  struct err *err);

/* Learn the vocabulary from texts of the world, save it in the folder `out`, and open the tokenizer
 * from the file. */
int pretrain_vocab(struct bpe_vocab **vocab, struct tokenizer **tokenizer, const struct world *w,
                   const char *out, struct err *err);

/* Train one model, write OUT/NAME.gguf and OUT/NAME.loss.csv, and print name, parameters, steps,
 * tokens, loss of the curve's last row and minutes. `number` is that of the plan and makes each
 * model start from other weights. ERR_STOP after an interrupt. */
int pretrain_run(const struct pretrain_job *job, const struct pretrain_plan *plan, uint64_t number,
                 struct err *err);

#endif
