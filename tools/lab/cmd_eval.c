/* cmd_eval.c - `mizzle eval`: measure how good the answers are and what they cost. */
#include <stdio.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "router/policy_kind.h"
#include "tools/command.h"
#include "tools/lab/eval/eval.h"
#include "tools/lab/tasks/extract.h"
#include "tools/lab/tasks/task_options.h"
#include "tools/cli/setup.h"

static const char *first;
static char default_policy[] = "mlp"; /* setup_check_policy may write to a list */
static struct eval_options options;

static const struct option_group question_opts = {
    "Questions",
    (const struct option[]){
        { "--questions", NULL, OPTION_COUNT, &options.questions, "N",
          "Ask N questions (default: milli: 1000; ppl: 200; files: all)" },
        { "--first", NULL, OPTION_STR, &first, "N[:M]",
          "Leave out the first N of these questions, as other processes ask them, and ask M of "
          "them at most: a part of a run, with the answers, thresholds and shares of the whole "
          "(default: 0, and all that are left)" },
        OPTION_ROW_PARALLEL,
        { "--n-predict", "-n", OPTION_COUNT, &options.max_tokens, "N",
          "Limit each answer to N tokens (default: 512; milli: 96)" },
        { "--context", "-c", OPTION_COUNT, &options.context, "N",
          "ppl: use windows of N tokens (default: 512, at most the context of the model)" },
        OPTION_END,
    },
};

static const struct option_group share_opts = {
    "Share of routed tokens",
    (const struct option[]){
        { "--target-routed", NULL, OPTION_STR, &options.target, "X",
          "Route this share of the tokens, 0 to 1, under every policy. Thresholds are found on "
          "other questions, with edge and cloud running together (default: routers use their own "
          "thresholds, and policies without one take the share that the first policy with one "
          "routed)" },
        { "--against", NULL, OPTION_STR, &options.against, "POLICY",
          "Compare all others with this one of the policies, question by question, at the same "
          "target or threshold of the paper (default: none)" },
        { "--calibration", NULL, OPTION_STR, &options.calibrate, "FILE",
          "Find thresholds on the items of this file (default: on a fifth of the items of --data, "
          "which is then not asked)" },
        OPTION_END,
    },
};

static const struct option_group output_opts = {
    "Output",
    (const struct option[]){
        { "--json", NULL, OPTION_FLAG, &options.json, NULL,
          "Print one JSON object per line instead of a table" },
        { "--as-paper", NULL, OPTION_FLAG, &options.as_paper, NULL,
          "Print the columns of the paper's Table 1, a row for each of its thresholds, unless a "
          "share or a threshold is given (default: a table with accuracies)" },
        { "--jsonl", NULL, OPTION_STR, &options.jsonl, "FILE",
          "Append every answer to FILE as a line of JSON. If it has answers of an interrupted run "
          "with the same settings, these are not asked again. The models keep their caches for the "
          "next policy, so only the first policy's times mean anything. tools/lab/study reads such "
          "files (default: none)" },
        OPTION_ROW_QUIET(&options.quiet),
        OPTION_END,
    },
};

static const struct option_brief brief[] = {
    { "--task", "milli (the demo's), csqa, arc, gsm8k or ppl" },
    { "--data", "The task's items, JSON lines" },
    { "--questions", "Ask N of them" },
    { "--prompt", "Form of the prompts: chat, citer, @FILE" },
    { "--n-predict", "Write at most N tokens per answer" },
    { "--policy", "Policies to compare: never,mlp,entropy,always" },
    { "--threshold", "Route tokens that score below T (the router's)" },
    { "--target-routed", "Find thresholds that route this share of tokens" },
    { "--against", "Print intervals of the difference to this policy" },
    OPTION_BRIEF_MODELS,
    { "--jsonl", "Keep each answer here; the same line continues" },
    { NULL, NULL },
};

/* Of the options that other commands share, those that change what is measured here. */
static const struct option_group pair_opts = {
    "Models and routing",
    (const struct option[]){
        { "--policy", NULL, OPTION_STR, &shared_options.policy, "LIST",
          "Decide by each of these policies, separated by commas. " POLICY_HELPS "0 is the first "
          "token of an answer. mlp=FILE names a router; a place ends the list (default: mlp)" },
        { "--threshold", NULL, OPTION_REAL, &shared_options.threshold, "T",
          "Route tokens with a score below T, 0 to 1, to the cloud (default: the router's own, "
          "else 0.5)" },
        { "--ahead", NULL, OPTION_SIZE, &shared_options.ahead, "W",
          "1: continue after the small model's tentative token while the cloud is asked; 0: wait "
          "for each answer. The text is the same (default: 1)" },
        { "--cloud-model", NULL, OPTION_STR, &shared_options.cloud_model, "NAME",
          "Request this model of the server; without a URL, load it, named as for --model" },
        { "--think", NULL, OPTION_STR, &shared_options.engine.think, "MODE",
          "Let the model think before its answers, on or off, where its template has that choice; "
          "auto leaves it to the template (default: auto)" },
        OPTION_END,
    },
};

static const struct option_group machine_opts = {
    "Machine",
    (const struct option[]){
        { "--model", "-m", OPTION_STR, &shared_options.engine.model, "NAME",
          "Load PATH, ORG/NAME or NAME:TYPE, as `mizzle run` does (default: the demo pair)" },
        OPTION_ROW_THREADS,
        { "--kv", NULL, OPTION_STR, &shared_options.engine.kv, "TYPE",
          "Keep keys and values, those of a large model in this process, too, in f32, f16 or q8 "
          "(default: f32 for models whose weights are f32, else f16)" },
        OPTION_END,
    },
};

static const struct option_group *const groups[] = { &task_option_rows, &question_opts,
                                                     &share_opts,       &output_opts,
                                                     &pair_opts,        &cloud_option_rows,
                                                     &machine_opts,     NULL };

/* Tasks that ask nothing, and the options that they read. */
static const struct other_task {
    const char *name, *reads;
} others[] = {
    { "ppl", "--task, --data, --json, --quiet, --model, --threads, --kv, --context, --questions, "
             "--seed" },
    { "extract", "--task, --data, --json, --quiet" },
};

/* Refuse an option that the task does not read: a result that looks as if it had counted would
 * mislead. NULL: a task that asks. */
static int eval_check(const struct other_task *other, struct err *err)
{
    for (size_t g = 0; groups[g]; g++)
        for (const struct option *o = groups[g]->opts; o->name; o++) {
            bool reads = other ? text_among(o->name, other->reads) : strcmp(o->name, "--context");
            if (!reads && options_given(o->name))
                return err_set(err, ERR_ARG, "%s: expected without --task %s", o->name,
                               options.task.name);
        }
    if (other == &others[1] && !options.task.data)
        return err_set(err, ERR_ARG, "--task extract: expected --data FILE");
    int end = 0;
    if (!first || (sscanf(first, "%zu%n:%zu%n", &options.first, &end, &options.count, &end) > 0 &&
                   *first >= '0' && *first <= '9' && !first[end]))
        return OK;
    return err_set(err, ERR_ARG, "--first: expected N or N:M, found %s", first);
}

static void cmd_eval_begin(void)
{
    shared_options.cloud = "required";
    shared_options.policy = default_policy;
}

static int cmd_eval_main(int n, char **args, struct err *err)
{
    const struct other_task *other = NULL;
    (void)n;
    (void)args;
    setup_catch_interrupts();
    options.policies = shared_options.policy;
    options.task = shared_task;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        other = strcmp(options.task.name, others[i].name) == 0 ? &others[i] : other;
    int rc = eval_check(other, err);
    if (rc == OK)
        rc = other == &others[0] ? eval_ppl(&options, err)
             : other             ? extract_file(options.task.data, options.json, err)
                                 : eval_answers(&options, err);
    if (rc == ERR_STOP && options.jsonl)
        fprintf(stderr, "mizzle eval: interrupted; the same command continues\n");
    return rc;
}

const struct command cmd_eval = {
    .name = "eval",
    .summary = "measure accuracy and share of routed tokens, or perplexity",
    .description =
        "Answers a task's questions: the small model writes, the policy decides, and the cloud is "
        "asked. Without -m and a URL, eval asks the demo world's test questions of the demo pair, "
        "whose large model answers in this process. It prints the accuracy with its 95 % interval "
        "(Wilson's, as if questions of one subject were independent; tools/lab/study draws them "
        "together), the share of generated tokens from the cloud, calls, the ids that the cloud "
        "computed per id of prompt "
        "and answer (work), and times. --policy never measures the small model alone, always the "
        "cloud alone; several policies, separated by commas, run one after the other on the same "
        "questions. mlp=FILE and context=FILE name a router. query decides for the whole answer by "
        "the score of its first token. position routes a given place, and has no threshold. "
        "slot=TEXT leaves the small model out: the answer is TEXT and the cloud's next token.\n\n"
        "Accuracy uses the answer that a reader would take from the text. For csqa, arc and gsm8k, "
        "a column has the accuracy by CITER's own rule, that of its published scores.\n\n"
        "PGR, the performance gap recovered, is (routed - small) / (large - small), in accuracy. "
        "It needs never and always among the policies. tools/lab/study has sweeps, trainings of "
        "one router, equal shares, parts of a run, networks and pictures, from journals.\n\n"
        "ppl measures the perplexity of a text, in windows of -c tokens that overlap by half; each "
        "token is scored once. Without --data, the text is the answers to the test questions. "
        "extract needs no model: it finds final answers by the reader's and by CITER's rule. Its "
        "data are lines of JSON with a text and, unless the answer is a number, labels and "
        "choices.\n\n"
        "  mizzle eval --questions 200 --policy never,mlp,random,always\n"
        "  mizzle eval --policy never,mlp,always --target-routed 0.05 --jsonl a.jsonl\n"
        "  mizzle eval --as-paper --ahead 0\n"
        "  mizzle eval --task csqa --data test.jsonl -m edge.gguf --target-routed 0.05\n"
        "  mizzle eval --task ppl -m model.gguf --data text.txt --json\n"
        "  mizzle eval --task extract --data answers.jsonl --json",
    .brief = brief,
    .groups = groups,
    .begin = cmd_eval_begin,
    .run = cmd_eval_main,
};
