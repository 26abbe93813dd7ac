/* cmd_bench.c - `mizzle bench`: model: tokens a second of a file or of a shape with random weights;
 * kernels: each operation alone; limits: what the machine can do at most. */
#include <stdio.h>
#include <string.h>

#include "kernels/base.h"
#include "tools/bench.h"
#include "tools/bench_model.h"
#include "tools/cmd.h"
#include "tools/setting.h"

static struct bench_options bench_opts = { .format = "md", .repeat = 5 };
static struct bench_model_options model_opts = {
    .prompt = "512", .gen = "128", .depth = "0", .type = "q8_0"
};
static const char *threads;

static const struct opt_group own = {
    "Bench",
    (const struct opt[]){
        { "--n-prompt", "-p", OPT_STR, &model_opts.prompt, "N[,N...]",
          "tokens of the prompt (default: 512)" },
        { "--n-gen", "-n", OPT_STR, &model_opts.gen, "N[,N...]",
          "tokens one at a time (default: 128)" },
        { "--n-depth", "-d", OPT_STR, &model_opts.depth, "N[,N...]",
          "tokens there before (default: 0)" },
        { "--repeat", "-r", OPT_SIZE, &bench_opts.repeat, "N",
          "samples of each test (default: 5)" },
        { "--output", "-o", OPT_STR, &bench_opts.format, "FORM",
          "md, csv, json or jsonl (default: md)" },
        { "--shape", NULL, OPT_STR, &model_opts.shape, "NAME",
          "qwen2.5-0.5b, -1.5b, -3b, -7b; needs no file" },
        { "--type", NULL, OPT_STR, &model_opts.type, "TYPE",
          "of --shape, every matrix: f32, bf16, q8_0, q4_0 (default: q8_0)" },
        { "--only", NULL, OPT_STR, &bench_opts.only, "OP", "kernels: this operation alone" },
        { "--plot", NULL, OPT_STR, &bench_opts.plot, "FILE", "kernels: a roofline as SVG" },
        { NULL, NULL, OPT_FLAG, NULL, NULL, NULL },
    },
};

/* As opt_engine has them, but for the list of threads. */
static const struct opt_group machine = {
    "Model and machine",
    (const struct opt[]){
        { "--model", "-m", OPT_STR, &engine_opts.model, "PATH",
          "GGUF file or Hugging Face folder (default: the demo pair)" },
        { "--threads", "-t", OPT_STR, &threads, "N[,N...]",
          "threads to compute with (default: all processors)" },
        { "--isa", NULL, OPT_STR, &engine_opts.isa, "NAME",
          "kernel set, one of `mizzle info`'s sets (default: MIZZLE_ISA, else the best)" },
        { "--kv", NULL, OPT_STR, &engine_opts.kv, "TYPE",
          "keys and values in f32, f16 or q8 (default: f16)" },
        { NULL, NULL, OPT_FLAG, NULL, NULL, NULL },
    },
};

static const struct opt_group *const groups[] = { &own, &machine, NULL };

static int run(int argc, char **argv)
{
    struct err err = { "" };
    int nargs = 0, status = opt_parse(&cmd_bench, argc, argv, &nargs);
    if (status >= 0)
        return status;
    setting_catch_interrupts();
    const struct bench_options *o = &bench_opts;
    const char *format = o->format;
    const char *subject = nargs == 1 ? argv[1] : "";
    int rc;
    if (o->repeat < 1 || o->repeat > BENCH_REPEAT)
        rc = err_set(&err, ERR_ARG, "-r: expected 1 to %d, found %zu", BENCH_REPEAT, o->repeat);
    else if (strcmp(format, "md") && strcmp(format, "csv") && strcmp(format, "json") &&
             strcmp(format, "jsonl"))
        rc = err_set(&err, ERR_ARG, "-o: expected md, csv, json or jsonl, found %s", format);
    else if (threads && (rc = bench_list(&model_opts.threads, "-t", threads, &err)) != OK)
        return cmd_fail("bench", rc, &err);
    else if (!strcmp(subject, "model"))
        rc = bench_model(o, &model_opts, &err);
    else if (!strcmp(subject, "kernels"))
        rc = bench_kernels(o, &err);
    else if (!strcmp(subject, "limits"))
        rc = bench_limits(o, model_opts.threads.at[0], &err);
    else
        rc = err_set(&err, ERR_ARG, "expected bench model, kernels or limits, found %s",
                     nargs ? argv[1] : "nothing");
    return cmd_fail("bench", rc, &err);
}

const struct command cmd_bench = {
    .name = "bench",
    .summary = "speed of a model, of each kernel, and limits of the machine",
    .args = "model | kernels | limits",
    .description =
        "model evaluates a prompt of -p tokens at once, then -n tokens one at a time with the "
        "output head, and prints tokens a second, in llama-bench's columns; a list gives a row for "
        "each number. Before each test the read bandwidth of the memory is probed on the same "
        "threads: one token reads all weights, so that is its limit. With the largest -n, a router "
        "with "
        "random weights (an MLP with twice the hidden size, once) shows what a score costs and "
        "what a routed token saves, whose head is not read. csv, json and jsonl hold every sample. "
        "kernels "
        "times every operation of every set at the shapes of Qwen2.5-0.5B on one thread, beside "
        "what reading and the set's own instructions reach at most; scalar, which is slow, with 6 "
        "tokens where the others have 192. limits shows what reading and each kind of arithmetic "
        "reach at most, kernels aside.\n\n"
        "  mizzle bench model --shape qwen2.5-0.5b --type q8_0 -t 2\n"
        "  mizzle bench model -m model.gguf -p 128,512 -n 128 -d 0,4096 -t 1,2 -o json\n"
        "  mizzle bench kernels --only matmul_q8 --plot roofline.svg\n"
        "  mizzle bench limits",
    .groups = groups,
    .run = run,
};
