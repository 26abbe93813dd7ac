/* cmd_router_collect.c - `mizzle router collect`: make samples that a router is trained on. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "router/learn/sample_files.h"
#include "router/router.h"
#include "tools/command.h"
#include "tools/cli/setup.h"
#include "tools/lab/learn/collecting.h"
#include "tools/lab/tasks/task_options.h"

static struct collecting_options options;
static const char *labels_name = "citer", *tap_name = "final";

static const struct option_group collect_opts = {
    "Samples",
    (const struct option[]){
        { "--output", "-o", OPTION_STR, &options.out, "DIR",
          "Write the samples to this folder; a collection that was interrupted continues" },
        { "--questions", NULL, OPTION_SIZE, &options.questions, "N",
          "Use the first N questions (default: all; milli: 3000)" },
        { "--labels", NULL, OPTION_STR, &labels_name, "KIND",
          "Set what makes a token of the small model acceptable: match, citer, divergent or gain "
          "(default: citer)" },
        { "--rollouts", NULL, OPTION_U64, &options.collect.rollouts, "N",
          "Write the answer to its end for N tokens at most, drawn evenly from all texts; the "
          "other tokens that would need it are left out (default: no limit)" },
        { "--parallel", NULL, OPTION_SIZE, &options.collect.calls, "N",
          "Have up to N calls of the cloud in flight (default: 32)" },
        { "--n-predict", "-n", OPTION_SIZE, &options.collect.max_tokens, "N",
          "Limit what is written to the end of an answer to N tokens (default: 512; milli: 96)" },
        { "--router", NULL, OPTION_STR, &shared_options.router, "FILE",
          "Let answers be written with this router and the cloud, with labels citer and gain "
          "(default: by the small model alone)" },
        { "--threshold", NULL, OPTION_REAL, &shared_options.threshold, "T",
          "With --router, route at scores below T (default: the router's own, else 0.5)" },
        { "--tap", NULL, OPTION_STR, &tap_name, "LIST",
          "Keep these hidden states, one after another: up to 4 of final, post_attn and layers "
          "from "
          "1 on, as 12,16,final; 12 is the state after layer 12, before any norm (default: "
          "final)" },
        OPTION_ROW_QUIET(&options.quiet),
        OPTION_END,
    },
};

static const struct option_group *const groups[] = { &collect_opts,        &task_option_rows,
                                                     &chat_option_rows,    &engine_option_rows,
                                                     &cloud_option_rows,   &cloud_call_option_rows,
                                                     &answers_option_rows, NULL };

/* Return what is wrong with the options, or NULL. */
static const char *cmd_router_collect_check(void)
{
    options.task = shared_task;
    options.task.stream = TASK_TRAIN;
    if (!options.out)
        return "expected -o DIR";
    if (!collect_labels_parse(&options.collect.labels, labels_name))
        return "--labels: expected match, citer, divergent or gain";
    if (!taps_parse(&options.collect.taps, tap_name))
        return "--tap: " TAPS_EXPECTED;
    if (!options.questions || !options.collect.max_tokens || !options.collect.calls)
        return "--questions, --n-predict, --parallel: expected at least 1";
    if (shared_options.router && options.collect.labels != COLLECT_CITER &&
        options.collect.labels != COLLECT_GAIN)
        return "--router: expected --labels citer or gain";
    if (!shared_options.router && !isnan(shared_options.threshold))
        return "--threshold: expected only with --router";
    if (options.collect.labels == COLLECT_MATCH &&
        options.collect.rollouts != SAMPLE_FILES_NO_LIMIT)
        return "--rollouts: expected --labels citer, divergent or gain, as match writes no answers";
    if (strcmp(shared_options.cloud, "required") != 0 &&
        (strcmp(shared_options.cloud, "off") != 0 || options.collect.labels != COLLECT_MATCH))
        return "--cloud: expected required, or off with --labels match";
    return NULL;
}

static void cmd_router_collect_begin(void)
{
    collecting_defaults(&options);
    shared_options.cloud = "required";
    shared_options.cloud_tokens = 0; /* not given */
}

static int cmd_router_collect_main(int n, char **args, struct err *err)
{
    const char *bad = cmd_router_collect_check();
    (void)n, (void)args;
    if (bad)
        return err_set(err, ERR_ARG, "%s; see mizzle router collect --help", bad);
    int rc = task_form_parse(&options.task, options.task.prompt, err);
    if (rc != OK)
        return rc;
    setup_catch_interrupts();
    rc = collecting_run(&options, err);
    if (rc == ERR_STOP)
        fprintf(stderr, "mizzle router collect: interrupted; the same command continues\n");
    return rc;
}

const struct command cmd_router_collect = {
    .name = "router collect",
    .summary = "collect samples that a router is trained on, from any pair and task",
    .description =
        "Runs the small model over reference answers. Each token gives a sample: the hidden "
        "state before it, and a label, 1 if the small model's own token may stand there.\n\n"
        "Labels match: it may if it is the reference's. Labels citer: if both it and the cloud's "
        "token are wrong, the small model continues alone from it, and it may stand if the final "
        "answer is right. Labels divergent: where the two models differ, the cloud continues from "
        "the small model's token, and it may stand unless that spoils the final answer.\n\n"
        "Labels gain: the small model writes the answer itself, and where the two models differ it "
        "also writes on after the other token. Its token may stand unless the large model's mends "
        "the final answer. Each sample has what the large model's token gains: 1, 0 or -1. Of the "
        "tokens in which both models agree, one in ten is kept. Reference answers do not count.\n\n"
        "With reference answers, the cloud is asked only where the small model is wrong. There are "
        "--parallel in flight; where the cloud writes whole answers, a call asks for 64 tokens "
        "unless "
        "--cloud-tokens is given. An answer that is only judged ends where it runs on to another "
        "question. The samples are the same for any number of calls. "
        "An item without a reference answer gets the one that the cloud writes. Texts of more "
        "tokens than the model has positions, or 4096, are left out and counted.\n\n"
        "The folder holds one safetensors file for every 16 texts. An interrupted collection "
        "continues when the same command is run again, and ends with the same bytes.\n\n"
        "  mizzle router collect -o samples\n"
        "  mizzle router collect -m edge.gguf --task csqa --data train_mlp.json \\\n"
        "      --cloud-url http://server:30000 -o samples",
    .groups = groups,
    .begin = cmd_router_collect_begin,
    .run = cmd_router_collect_main,
};
