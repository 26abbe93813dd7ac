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
    "Samples and machine",
    (const struct option[]){
        { "--samples", NULL, OPTION_LIST, &samples, "DIR",
          "Train on the samples in this folder, as router collect writes them; required, can be "
          "repeated" },
        OPTION_ROW_THREADS,
        OPTION_ROW_ISA("the best"),
        OPTION_END,
    },
};

static const struct option_group train_opts = {
    "Training",
    (const struct option[]){
        { "--output", "-o", OPTION_STR, &options.out, "FILE",
          "Write the router to this file, as safetensors" },
        { "--head", NULL, OPTION_STR, &head_name, "NAME",
          "Train an mlp, a table over the last two ids (context), an mlp on that and on how sure "
          "the "
          "model is, without the hidden state (combined), one on all of these (mix), or an mlp "
          "that judges the whole answer at its first token (query); of labels gain one that weighs "
          "what a token mends and what it spoils (gain), or that without the hidden state "
          "(gain-none) (default: mlp)" },
        { "--share", NULL, OPTION_FLOAT, &options.fit.most, "X",
          "Route at most this share of the tokens (default: 0.05)" },
        { "--width", NULL, OPTION_COUNT, &options.fit.width, "N",
          "Give the hidden layer N units, but of context (default: twice the number of its "
          "inputs)" },
        { "--seed", "-s", OPTION_U64, &options.fit.seed, "N",
          "Seed for the held-out split, the initial weights and the training order (default: 1)" },
        { "--repeats", NULL, OPTION_COUNT, &options.repeats, "N",
          "Train N routers, FILE.1 to FILE.N, with seeds from --seed on. Each draws its own "
          "subjects of the samples, as many as there are, with replacement. `mizzle eval` takes "
          "each by its name, tools/lab/study/table.py all (default: 1, FILE, on all)" },
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

static const struct option_group *const groups[] = { &train_opts, &sample_opts, NULL };

/* Return what is wrong with the options, or NULL. Reads the names that options have. */
static const char *cmd_router_train_check(void)
{
    struct fit_options *fit = &options.fit;
    if (!options.out || !samples.n)
        return "expected -o FILE and --samples DIR";
    if (!(fit->most >= 0 && fit->most <= 1))
        return "--share: expected 0 to 1";
    if (head_name && !fit_head_parse(&fit->head, head_name))
        return "--head: expected mlp, context, combined, mix, query, gain or gain-none";
    if (fit->width && fit->head == FIT_CONTEXT)
        return "--width: expected another --head than context";
    if (fit->members > ROUTER_MEMBERS || (fit->members > 1 && fit->head == FIT_CONTEXT))
        return "--members: expected 1 to 16, and another --head than context";
    if (strcmp(labels, "own") != 0 && strcmp(labels, "shuffled") != 0)
        return "--labels: expected own or shuffled";
    fit->shuffle_labels = strcmp(labels, "shuffled") == 0;
    if (!epochs)
        return "--epochs: expected at least 1, found 0";
    if (epochs != SIZE_MAX && fit->head == FIT_CONTEXT)
        return "--epochs: expected another --head than context, which is counted";
    fit->epochs = epochs != SIZE_MAX ? epochs : fit->epochs;
    return NULL;
}

static void cmd_router_train_begin(void)
{
    fit_defaults(&options.fit);
}

static int cmd_router_train_main(int n, char **args, struct err *err)
{
    const char *bad = cmd_router_train_check();
    (void)n, (void)args;
    int rc = bad ? err_set(err, ERR_ARG, "%s; see mizzle router train --help", bad) : OK;
    if (rc == OK) {
        options.samples = samples.at;
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
        "has written. One subject in five is held out. It prints losses; the AUC of the held-out "
        "tokens, and the same among tokens that share their last two ids; the "
        "expected calibration error (ECE) and a histogram of scores. The router names the model "
        "and the task of the samples. Its threshold is provisional: router calibrate sets it.\n\n"
        "The same samples and seed give the same bytes, with any number of threads.\n\n"
        "  mizzle router train --samples s -o edge.router.safetensors\n"
        "  mizzle router train --samples s --head context -o edge.context.safetensors",
    .groups = groups,
    .begin = cmd_router_train_begin,
    .run = cmd_router_train_main,
};
