/* cmd_pretrain.c - `mizzle pretrain`: train the demo models from nothing but a seed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "kernels/sys/pool.h"
#include "model/train/bpe_train.h"
#include "model/text/tokenizer.h"
#include "tools/command.h"
#include "tools/lab/demo/pretrain_run.h"
#include "tools/cli/demo_files.h"
#include "tools/cli/output_file.h"
#include "tools/cli/setup.h"
#include "tools/lab/demo/world.h"

static struct pretrain_job job = { .seed = WORLD_SEED };
static const char *size;

static const struct option_group pretrain_opts = {
    "Pretraining",
    (const struct option[]){
        { "--output", "-o", OPTION_STR, &job.out, "DIR",
          "Write the files into this folder, which is created if necessary (required)" },
        { "--seed", "-s", OPTION_U64, &job.seed, "N",
          "Seed for the world, the weights and the texts (default: 1)" },
        OPTION_ROW_QUIET(&job.quiet),
        OPTION_ROW_THREADS,
        OPTION_ROW_ISA("the best"),
        OPTION_END,
    },
};

static const struct option_group *const groups[] = { &pretrain_opts, NULL };

/* Train all models, or the one that is named, and print a row for each. */
static int train_models(struct err *err)
{
    printf("%-9s %10s %6s %10s %8s %8s\n", "model", "parameters", "steps", "tokens", "loss",
           "minutes");
    int rc = OK;
    for (size_t i = 0; rc == OK && i < PRETRAIN_SIZES; i++)
        if (!size || pretrain_plan_find(size) == &pretrain_plans[i])
            rc = pretrain_run(&job, &pretrain_plans[i], i, err);
    return rc;
}

/* Write the questions of seed 1, which no text asks that trains. */
static int write_questions(const struct world *w, struct err *err)
{
    char path[PRETRAIN_PATH];
    struct output_file o;
    int rc = pretrain_path(path, job.out, DEMO_QUESTIONS, "", err);
    if (rc == OK)
        rc = output_file_open(&o, path, err);
    if (rc != OK)
        return rc;
    for (uint64_t i = 0; rc == OK && i < DEMO_QUESTIONS_COUNT; i++) {
        struct world_question q;
        world_question(&q, w, (struct world_filter){ WORLD_TOPICS, WORLD_WORDINGS },
                       world_test_stream(1), i);
        json_t *one = json_pack("{s:s, s:s}", "prompt", q.prompt, "answer", q.answer);
        /* Closing the file tells of what cannot be written. */
        if (!one || (json_dumpf(one, o.f, JSON_COMPACT) != 0 && !ferror(o.f)))
            rc = err_set(err, ERR_NOMEM, "%s: out of memory", path);
        putc('\n', o.f);
        json_decref(one);
    }
    int end = output_file_close(&o, rc == OK, err);
    return rc == OK ? end : rc;
}

/* Build the world, its questions and the vocabulary, then train the models. */
static int train_all(struct err *err)
{
    struct bpe_vocab *vocab = NULL;
    struct tokenizer *tokenizer = NULL;
    struct world *world = NULL;
    int rc = world_open(&world, job.seed, err);
    if (rc == OK)
        rc = write_questions(world, err);
    if (rc == OK)
        rc = pretrain_vocab(&vocab, &tokenizer, world, job.out, err);
    job.world = world;
    job.vocab = vocab;
    job.tokenizer = tokenizer;
    if (rc == OK)
        rc = train_models(err);
    tokenizer_close(tokenizer);
    bpe_vocab_free(vocab);
    world_close(world);
    return rc;
}

/* Check the options. */
static int cmd_pretrain_check(struct err *err)
{
    if (!job.out)
        return err_set(err, ERR_ARG, "--output: expected a folder");
    if (size && !pretrain_plan_find(size))
        return err_set(err, ERR_ARG, "expected the model 0.1, 0.5, 1 or cloud, found %s", size);
    return OK;
}

static int cmd_pretrain_main(int n, char **args, struct err *err)
{
    struct kernels kernels;
    char name[ATOMIC_FILE_NAME];
    size = n ? args[0] : NULL;
    setup_catch_interrupts();
    int rc = cmd_pretrain_check(err);
    if (rc == OK)
        rc = setup_kernels(&kernels, err);
    if (rc == OK)
        rc = pool_open(&job.pool, shared_options.engine.threads, err);
    if (rc == OK)
        rc = atomic_file_target(name, job.out, err);
    if (rc == OK && mkdir(name, 0777) && errno != EEXIST) /* only now, when no option is wrong */
        rc = err_set(err, ERR_IO, "%s: %s", job.out, strerror(errno));
    job.kernels = &kernels;
    if (rc == OK)
        rc = train_all(err);
    pool_close(job.pool);
    if (rc == ERR_STOP)
        fprintf(
            stderr,
            "mizzle pretrain: interrupted; 'mizzle pretrain NAME' trains one that is missing\n");
    return rc;
}

const struct command cmd_pretrain = {
    .name = "pretrain",
    .summary = "train the small demo models from scratch",
    .args = "[0.1 | 0.5 | 1 | cloud]",
    .description =
        "Trains models of Qwen2.5's architecture at a thousandth of its size, in f32, on texts "
        "about an invented world: facts about things, and questions with answers. The small models "
        "(edge) read about some of the things only; the large one (cloud) reads about all. All of "
        "them first practise finding a place in a list of choices.\n\n"
        "The same seed gives the same bits on every machine, with every kernel set and any number "
        "of threads.\n\n"
        "One line per model shows its parameters, steps, tokens read, last loss and minutes. "
        "`mizzle eval` scores answers, and `mizzle router` makes routers. With the name of a "
        "model, that one alone is trained, with its vocabulary.\n\n"
        "  mizzle pretrain -o demo\n"
        "  mizzle pretrain 0.1 -o demo",
    .groups = groups,
    .run = cmd_pretrain_main,
    .most = 1,
};
