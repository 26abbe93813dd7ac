/* cmd_router_train.c - `mizzle router train`: train a router. */
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/command.h"
#include "tools/cli/setup.h"
#include "tools/learn/training.h"

static struct option_list samples;
static const char *out_path, *cloud_path, *tap_name, *head_name, *recipe_name;
static size_t epochs = SIZE_MAX; /* not given */
static bool shuffle_labels, json;
static size_t questions = SIZE_MAX, width; /* SIZE_MAX: not given */
static uint64_t seed = 1;
static size_t repeats = 1;
static bool quiet;
static float most = TRAINING_SHARE, cover = TRAINING_COVER;

static const struct option_group sample_opts = {
    "Samples",
    (const struct option[]){
        { "--samples", NULL, OPTION_LIST, &samples, "DIR",
          "Train on the samples in this folder, as router collect writes them; can be repeated "
          "(default: collect from the demo world)" },
        { "--cloud-model", NULL, OPTION_STR, &cloud_path, "FILE",
          "Without --samples: ask this large model, which is served from this process; expected "
          "with -m (default: the demo's)" },
        { "--questions", NULL, OPTION_SIZE, &questions, "N",
          "Without --samples: collect from N questions (default: 1000)" },
        OPTION_END,
    },
};

static const struct option_group train_opts = {
    "Training",
    (const struct option[]){
        { "--output", "-o", OPTION_STR, &out_path, "FILE",
          "Write the router to this file, as safetensors" },
        { "--head", NULL, OPTION_STR, &head_name, "NAME",
          "Train an mlp, CITER's network (citer), a linear score, a table over the last two ids "
          "(context), an mlp on that and on how sure the model is, without the hidden state "
          "(combined), one on all of these (mix), or an mlp that judges the whole answer at its "
          "first token (query) (default: mlp)" },
        { "--share", NULL, OPTION_FLOAT, &most, "X",
          "Route at most this share of the tokens (default: 0.05)" },
        { "--cover", NULL, OPTION_FLOAT, &cover, "X",
          "Route no more than needed to catch this share of the errors (default: 0.995)" },
        { "--width", NULL, OPTION_COUNT, &width, "N",
          "Give the hidden layer of mlp, citer, combined, mix or query N units (default: "
          "twice the number of its inputs)" },
        { "--tap", NULL, OPTION_STR, &tap_name, "NAME",
          "Read this hidden state: final or post_attn (default: final, or that of the samples)" },
        { "--seed", "-s", OPTION_U64, &seed, "N",
          "Seed for the held-out split, the initial weights and the training order (default: 1)" },
        { "--repeats", NULL, OPTION_COUNT, &repeats, "N",
          "Train N routers, FILE.1 to FILE.N, with seeds from --seed on. Each draws its own "
          "subjects "
          "of the samples, as many as there are, with replacement; eval --repeats says how much "
          "depends on that (default: 1, FILE, on all)" },
        { "--recipe", NULL, OPTION_STR, &recipe_name, "NAME",
          "Train as CITER's own script does (citer): batches of 80, rate 1e-7, one random order "
          "for all epochs, held-out tokens from all texts; takes hours (default: none)" },
        { "--epochs", NULL, OPTION_SIZE, &epochs, "N",
          "Make at most N passes; training ends 5 passes after the best one (default: 40; with "
          "--recipe 1000)" },
        { "--shuffle-labels", NULL, OPTION_FLAG, &shuffle_labels, NULL,
          "Train on shuffled labels as a control: the AUC must be near 0.5" },
        { "--json", NULL, OPTION_FLAG, &json, NULL, "Print the report as one JSON object" },
        OPTION_ROW_QUIET(&quiet),
        OPTION_END,
    },
};

static const struct option_group *const groups[] = { &train_opts, &sample_opts, &engine_option_rows,
                                                     NULL };

/* Report wrong usage and return the status. */
static int cmd_router_train_usage(const char *what)
{
    struct err err;
    return command_fail("router train",
                        err_set(&err, ERR_ARG, "%s; see mizzle router train --help", what), &err);
}

/* Return what is wrong with the options, or NULL. */
static const char *cmd_router_train_check(void)
{
    enum fit_head head = FIT_MLP;
    enum tap tap;
    if (!out_path)
        return "expected -o FILE";
    if (tap_name && !router_tap_parse(&tap, tap_name))
        return "--tap: expected final or post_attn";
    if (!(most >= 0 && most <= 1 && cover >= 0 && cover <= 1))
        return "--share, --cover: expected 0 to 1";
    if (head_name && !fit_head_parse(&head, head_name))
        return "--head: expected mlp, citer, linear, context, combined, mix or query";
    if (width && (head == FIT_LINEAR || head == FIT_CONTEXT))
        return "--width: expected --head mlp, citer, combined, mix or query";
    if (!epochs)
        return "--epochs: expected at least 1";
    if (epochs != SIZE_MAX && head == FIT_CONTEXT)
        return "--epochs: expected another --head than context, which is counted";
    if (!samples.n && (engine_options.model != NULL) != (cloud_path != NULL))
        return "expected -m and --cloud-model together, or --samples";
    if (samples.n && (engine_options.model || cloud_path || questions != SIZE_MAX))
        return "-m, --cloud-model, --questions: expected no --samples, whose model and questions "
               "are known";
    if (recipe_name && strcmp(recipe_name, "citer") != 0)
        return "--recipe: expected citer";
    if (recipe_name && head_name && head != FIT_CITER)
        return "--recipe citer: expected --head citer";
    return NULL;
}

/* Train with checked options. */
static int cmd_router_train_run(void)
{
    struct err err = { "" };
    struct training_options o = { .samples = samples.n ? samples.at : NULL,
                                  .tap = tap_name,
                                  .out = out_path,
                                  .repeats = repeats,
                                  .json = json,
                                  .quiet = quiet };
    router_training_defaults(&o.demo);
    o.demo.cloud = cloud_path;
    o.demo.questions = questions != SIZE_MAX ? questions : o.demo.questions;
    o.demo.quiet = quiet;
    if (tap_name)
        router_tap_parse(&o.demo.tap, tap_name);
    fit_defaults(&o.fit);
    if (recipe_name)
        fit_recipe_citer(&o.fit);
    if (head_name)
        fit_head_parse(&o.fit.head, head_name);
    o.fit.epochs = epochs != SIZE_MAX ? epochs : o.fit.epochs;
    o.fit.shuffle_labels = shuffle_labels;
    o.fit.width = width;
    o.fit.most = (double)most;
    o.fit.cover = (double)cover;
    o.fit.seed = seed;
    return command_fail("router train", training_run(&o, &err), &err);
}

static int cmd_router_train_main(int argc, char **argv)
{
    int nargs = 0, status = options_parse(&cmd_router_train, argc, argv, &nargs);
    if (status >= 0)
        return status;
    const char *bad = nargs ? "expected no arguments" : cmd_router_train_check();
    if (bad)
        return cmd_router_train_usage(bad);
    setup_catch_interrupts();
    return cmd_router_train_run();
}

const struct command cmd_router_train = {
    .name = "router train",
    .summary = "train a router for a small model",
    .args = "",
    .description =
        "Learns where the small model's own next token may not stand, from what router collect "
        "has written, or else from samples that it collects: with labels divergent, from training "
        "questions of the demo world. One subject in five is held out. It prints losses; the AUC "
        "of the held-out tokens, and the same among tokens that share their last two ids; the "
        "expected calibration error (ECE) and a histogram of scores. The router names the model "
        "and the task of the samples. Its threshold is provisional: router calibrate sets it.\n\n"
        "Without --samples, -m and --cloud-model it trains for the demo pair.\n\n"
        "The same samples and seed give the same bytes, with any number of threads.\n\n"
        "  mizzle router train --samples s -o edge.router.safetensors\n"
        "  mizzle router train --samples s --head context -o edge.context.safetensors\n"
        "  mizzle router train -m edge.gguf --cloud-model cloud.gguf -o r.safetensors",
    .groups = groups,
    .run = cmd_router_train_main,
};
