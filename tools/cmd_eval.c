/* cmd_eval.c - `mizzle eval`: measure how good the answers are and what they cost. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/command.h"
#include "tools/eval/eval.h"
#include "tools/cli/setup.h"
#include "tools/demo/world.h"

static const char *task = "milli";
static size_t questions = SIZE_MAX; /* SIZE_MAX: not given */
static struct eval_options options = {
    .max_tokens = 64, .seed = 1, .world = WORLD_SEED, .share = NAN, .target = NAN
};

static const struct option_group task_opts = {
    "Task",
    (const struct option[]){
        { "--task", NULL, OPTION_STR, &task, "NAME",
          "Choose the task: milli asks the questions of the demo world, ppl measures perplexity "
          "(default: milli)" },
        { "--questions", NULL, OPTION_SIZE, &questions, "N",
          "Ask N questions (default: 1000; ppl: 200)" },
        { "--seed", "-s", OPTION_U64, &options.seed, "N",
          "Seed for the questions, which training never sees, and for policy random (default: "
          "1)" },
        { "--share", NULL, OPTION_FLOAT, &options.share, "X",
          "Route this share of the tokens under policies that have no threshold; the threshold "
          "for it is measured while the small model writes alone (default: the share that the "
          "first policy with a threshold routed)" },
        { "--n-predict", "-n", OPTION_SIZE, &options.max_tokens, "N",
          "Limit each answer to N tokens (default: 64)" },
        { "--file", "-f", OPTION_STR, &options.file, "FILE",
          "ppl: measure on this text (default: answers of the demo world)" },
        { "--data", NULL, OPTION_STR, &options.data, "FILE", "agree: read lines of token ids" },
        { "--target-routed", NULL, OPTION_FLOAT, &options.target, "X", "agree: route this share" },
        { "--context", "-c", OPTION_SIZE, &options.context, "N",
          "ppl: use windows of N tokens (default: 512, at most the context of the model)" },
        { "--world", NULL, OPTION_U64, &options.world, "N",
          "Build the demo world from this seed, for models trained on another world (default: "
          "1)" },
        { "--json", NULL, OPTION_FLAG, &options.json, NULL,
          "Print one JSON object per line instead of a table" },
        { "--quiet", "-q", OPTION_FLAG, &options.quiet, NULL, "Show no progress on the terminal" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

static const struct option_group *const groups[] = {
    &task_opts,         &engine_option_rows,      &route_option_rows,
    &cloud_option_rows, &cloud_limit_option_rows, NULL
};

static int cmd_eval_main(int argc, char **argv)
{
    struct err err = { "" };
    int nargs = 0, status = options_parse(&cmd_eval, argc, argv, &nargs);
    if (status >= 0)
        return status;
    int rc;
    setup_catch_interrupts();
    options.policies = route_options.policy;
    options.questions = questions == SIZE_MAX ? 0 : questions;
    if (nargs)
        rc = err_set(&err, ERR_ARG, "unexpected argument %s", argv[1]);
    else if (!isnan(options.share) && !(options.share >= 0 && options.share <= 1))
        rc = err_set(&err, ERR_ARG, "--share: expected 0 to 1, found %g", (double)options.share);
    else if (!questions)
        rc = err_set(&err, ERR_ARG, "--questions: expected at least 1");
    else if (!options.max_tokens)
        rc = err_set(&err, ERR_ARG, "-n: expected at least 1");
    else if (!strcmp(task, "milli"))
        rc = eval_milli(&options, &err);
    else if (!strcmp(task, "ppl"))
        rc = eval_ppl(&options, &err);
    else if (!strcmp(task, "agree"))
        rc = eval_agree(&options, &err);
    else
        rc = err_set(&err, ERR_ARG, "--task: expected milli or ppl, found %s", task);
    return rc == OK ? EXIT_FINE : command_fail("eval", rc, &err);
}

const struct command cmd_eval = {
    .name = "eval",
    .summary = "measure accuracy and share of routed tokens, or perplexity",
    .args = "",
    .description =
        "milli asks the test questions of the demo world end to end: the small model writes, "
        "the policy decides, and the cloud is asked over HTTP. Without -m and a URL it uses the "
        "demo pair and its stand-in cloud. It prints the accuracy with its 95 % interval "
        "(Wilson), the share of generated tokens that came from the cloud, and the speed. "
        "--policy never measures the small model alone, always the cloud alone; several names, "
        "separated by commas, run one after the other on the same questions.\n\n"
        "ppl measures the perplexity of a text, in windows of -c tokens that overlap by half; "
        "each token is scored once. Without -f, the text is the answers to the test questions.\n\n"
        "  mizzle eval --questions 200 --policy never,mlp,random,always\n"
        "  mizzle eval --task ppl -m model.gguf -f text.txt --json",
    .groups = groups,
    .run = cmd_eval_main,
};
