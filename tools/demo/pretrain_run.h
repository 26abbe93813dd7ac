/* pretrain_run.h - train one of the demo models, with progress, checkpoints and an examination. */
#ifndef TOOLS_DEMO_PRETRAIN_RUN_H
#define TOOLS_DEMO_PRETRAIN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/demo/pretrain_data.h"
#include "tools/demo/pretrain_plan.h"

struct bpe_vocab;
struct err;
struct kernels;
struct pool;

struct pretrain_job {
    const struct kernels *kernels;
    struct pool *pool;
    const struct world *world;
    const struct tokenizer *tokenizer;
    const struct bpe_vocab *vocab;
    const char *out; /* folder */
    uint64_t seed;
    bool resume, quiet;
    size_t save_every; /* steps between checkpoints */
};

struct pretrain_result {
    size_t params, steps;
    uint64_t tokens;
    double loss; /* mean over the last row of the curve */
    double minutes;
    bool skipped; /* was there already, finished */
    struct pretrain_score score;
};

enum { PRETRAIN_PATH = 512 };

/* "OUT/NAME SUFFIX"; ERR_ARG if it is too long. */
int pretrain_path(char path[PRETRAIN_PATH], const char *out, const char *name, const char *suffix,
                  struct err *err);

/* The vocabulary, learnt from the world's texts, as NAME of OUT, and the tokenizer from it. */
int pretrain_vocab(struct bpe_vocab **vocab, struct tokenizer **tokenizer, const struct world *w,
                   const char *out, struct err *err);

/* number: of the plan, so that no two models begin alike. Writes OUT/NAME.gguf and
 * OUT/NAME.loss.csv. ERR_STOP after an interrupt: the checkpoint OUT/NAME.checkpoint.gguf is there
 * then. */
int pretrain_run(struct pretrain_result *r, const struct pretrain_job *job,
                 const struct pretrain_plan *plan, uint64_t number, struct err *err);

#endif
