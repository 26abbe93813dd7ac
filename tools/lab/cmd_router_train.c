/* cmd_router_train.c - `mizzle router train`: train a router. */
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/command.h"
#include "tools/cli/setup.h"
#include "tools/lab/learn/training.h"

static struct training_options options = { .repeats = 1 };
static struct option_list samples;
static const char *labels = "own";
static const char *head_name;
static size_t epochs = SIZE_MAX; /* not given */

static const struct option_group sample_opts = {
    "Samples",
    (const struct option[]){
        { "--samples", NULL, OPTION_LIST, &samples, "DIR",
          "Train on the samples in this folder, as router collect writes them; can be repeated "
          "(default: collect from the demo world)" },
        { "--cloud-model", NULL, OPTION_STR, &shared_options.cloud_model, "FILE",
          "Without --samples: ask this large model, which is served from this process; expected "
          "with -m (default: the demo's)" },
        { "--questions", NULL, OPTION_SIZE, &options.demo.questions, "N",
          "Without --samples: collect from N questions (default: 1000)" },
        OPTION_END,
    },
};

static const struct option_group train_opts = {
    "Training",
    (const struct option[]){
        { "--output", "-o", OPTION_STR, &options.out, "FILE",
          "Write the router to this file, as safetensors" },
        { "--head", NULL, OPTION_STR, &head_name, "NAME",
          "Train an mlp, CITER's network (citer), a linear score, a table over the last two ids "
          "(context), an mlp on that and on how sure the model is, without the hidden state "
          "(combined), one on all of these (mix), or an mlp that judges the whole answer at its "
          "first token (query); of labels gain one that weighs what a token mends and what it "
          "spoils (gain), or that without the hidden state (gain-none) (default: mlp)" },
        { "--share", NULL, OPTION_FLOAT, &options.fit.most, "X",
          "Route at most this share of the tokens (default: 0.05)" },
        { "--width", NULL, OPTION_COUNT, &options.fit.width, "N",
          "Give the hidden layer N units, but of linear and context (default: twice the number of "
          "its inputs)" },
        { "--tap", NULL, OPTION_STR, &options.tap, "LIST",
          "Read these hidden states, as router collect names them (default: final, or those of the "
          "samples)" },
        { "--seed", "-s", OPTION_U64, &options.fit.seed, "N",
          "Seed for the held-out split, the initial weights and the training order (default: 1)" },
        { "--repeats", NULL, OPTION_COUNT, &options.repeats, "N",
          "Train N routers, FILE.1 to FILE.N, with seeds from --seed on. Each draws its own "
          "subjects of the samples, as many as there are, with replacement; eval --repeats says "
          "how much depends on that (default: 1, FILE, on all)" },
        { "--members", NULL, OPTION_COUNT, &options.fit.members, "N",
          "Train N networks as one router, at most 16, whose score is their mean. Each draws its "
          "own subjects, as with --repeats; what is held out is held out of all. The file has at "
          "most 4 MB, so --width must be small (default: 1)" },
        { "--epochs", NULL, OPTION_SIZE, &epochs, "N",
          "Make at most N passes; training ends 5 passes after the best one (default: 40)" },
        { "--labels", NULL, OPTION_STR, &labels, "KIND",
          "Train on the samples' own labels, or shuffled as a control: the AUC must be near 0.5 "
          "(default: own)" },
        { "--json", NULL, OPTION_FLAG, &options.json, NULL, "Print the report as one JSON object" },
        OPTION_ROW_QUIET(&options.quiet),
        OPTION_END,
    },
};

static const struct option_group *const groups[] = { &train_opts, &sample_opts, &engine_option_rows,
                                                     NULL };

/* Return what is wrong with the options, or NULL. Reads the names that options have. */
static const char *cmd_router_train_check(void)
{
    struct fit_options *fit = &options.fit;
    if (!options.out)
        return "expected -o FILE";
    if (options.tap && !taps_parse(&options.demo.collect.taps, options.tap))
        return "--tap: " TAPS_EXPECTED;
    if (!(fit->most >= 0 && fit->most <= 1))
        return "--share: expected 0 to 1";
    if (head_name && !fit_head_parse(&fit->head, head_name))
        return "--head: expected mlp, citer, linear, context, combined, mix, query, gain or "
               "gain-none";
    if (fit->width && (fit->head == FIT_LINEAR || fit->head == FIT_CONTEXT))
        return "--width: expected another --head than linear and context";
    if (fit->members > ROUTER_MEMBERS || (fit->members > 1 && fit->head == FIT_CONTEXT))
        return "--members: expected 1 to 16, and another --head than context";
    if (fit_head_gains(fit->head) && !samples.n)
        return "--head gain, gain-none: expected --samples DIR of labels gain";
    if (strcmp(labels, "own") != 0 && strcmp(labels, "shuffled") != 0)
        return "--labels: expected own or shuffled";
    fit->shuffle_labels = strcmp(labels, "shuffled") == 0;
    if (!epochs)
        return "--epochs: expected at least 1, found 0";
    if (!options.demo.questions)
        return "--questions: expected at least 1, found 0";
    if (epochs != SIZE_MAX && fit->head == FIT_CONTEXT)
        return "--epochs: expected another --head than context, which is counted";
    fit->epochs = epochs != SIZE_MAX ? epochs : fit->epochs;
    if (!samples.n && (shared_options.engine.model != NULL) != (shared_options.cloud_model != NULL))
        return "expected -m and --cloud-model together, or --samples";
    if (samples.n && (shared_options.engine.model || shared_options.cloud_model ||
                      options.demo.questions != SIZE_MAX))
        return "-m, --cloud-model, --questions: expected no --samples, whose model and questions "
               "are known";
    return NULL;
}

static void cmd_router_train_begin(void)
{
    fit_defaults(&options.fit);
    collecting_defaults(&options.demo);
}

static int cmd_router_train_main(int n, char **args, struct err *err)
{
    const char *bad = cmd_router_train_check();
    (void)n, (void)args;
    int rc = bad ? err_set(err, ERR_ARG, "%s; see mizzle router train --help", bad) : OK;
    if (rc == OK) {
        options.samples = samples.n ? samples.at : NULL;
        options.demo.quiet = options.quiet;
        setup_catch_interrupts();
        rc = training_run(&options, err);
    }
    return rc;
}

const struct command cmd_router_train = {
    .name = "router train",
    .summary = "train a router for a small model",
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
    .begin = cmd_router_train_begin,
    .run = cmd_router_train_main,
};
