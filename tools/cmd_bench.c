/* cmd_bench.c - `mizzle bench`: model: tokens a second of a file or of a shape with random weights;
 * kernels: each operation alone; limits: what the machine can do at most; route: what routing to a
 * cloud costs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_model.h"
#include "tools/command.h"
#include "tools/cli/output.h"
#include "tools/cli/setup.h"

enum { UNSET = 0x7fffffff }; /* the default is the subject's */
static struct bench_options bench_opts = { .format = "md", .repeat = UNSET };
static struct bench_model_options model_opts = { .depth = "0", .type = "q8_0" };
static const char *threads;

#define END                                       \
    {                                             \
        NULL, NULL, OPTION_FLAG, NULL, NULL, NULL \
    }

/* Options stand in groups by the subjects that take them; with any other they are refused. */
static const struct option_group of_all = {
    "Every subject",
    (const struct option[]){
        { "--output", "-o", OPTION_STR, &bench_opts.format, "FORM",
          "print as md, csv, json or jsonl (default: md)" },
        END,
    },
};

static const struct option_group of_timed = {
    "model, kernels, route",
    (const struct option[]){
        { "--repeat", "-r", OPTION_SIZE, &bench_opts.repeat, "N",
          "take N samples of each test (default: 5; route: 1)" },
        { "--isa", NULL, OPTION_STR, &engine_options.isa, "NAME",
          "kernel set, one of `mizzle info`'s sets (default: MIZZLE_ISA, else the best; kernels: "
          "all, else this one beside scalar)" },
        END,
    },
};

static const struct option_group of_threads = {
    "model, limits, route",
    (const struct option[]){
        { "--threads", "-t", OPTION_STR, &threads, "N[,N...]",
          "threads to compute with (default: all processors)" },
        END,
    },
};

static const struct option_group of_engine = {
    "model, route",
    (const struct option[]){
        { "--model", "-m", OPTION_STR, &engine_options.model, "PATH",
          "GGUF file or Hugging Face folder (default: the demo pair)" },
        { "--shape", NULL, OPTION_STR, &model_opts.shape, "NAME",
          "random weights instead of a file: qwen2.5-0.5b, -1.5b, -3b, -7b" },
        { "--type", NULL, OPTION_STR, &model_opts.type, "TYPE",
          "type of every matrix of --shape: f32, bf16, q8_0, q4_0 (default: q8_0)" },
        { "--kv", NULL, OPTION_STR, &engine_options.kv, "TYPE",
          "keep keys and values in f32, f16 or q8 (default: f16)" },
        { "--n-prompt", "-p", OPTION_STR, &model_opts.prompt, "N[,N...]",
          "tokens of the prompt (default: 512; route: 100)" },
        { "--n-gen", "-n", OPTION_STR, &model_opts.gen, "N[,N...]",
          "tokens one at a time (default: 128; route: 100)" },
        END,
    },
};

static const struct option_group of_model = {
    "model",
    (const struct option[]){
        { "--n-depth", "-d", OPTION_STR, &model_opts.depth, "N[,N...]",
          "tokens that are there before (default: 0)" },
        END,
    },
};

static const struct option_group of_kernels = {
    "kernels",
    (const struct option[]){
        { "--only", NULL, OPTION_STR, &bench_opts.only, "OP", "time this operation alone" },
        END,
    },
};

static const struct option_group of_plot = {
    "kernels, route",
    (const struct option[]){
        { "--plot", NULL, OPTION_STR, &bench_opts.plot, "FILE",
          "draw as SVG: kernels a roofline, route the time a token" },
        END,
    },
};

static const struct option_group *const groups[] = { &of_all,    &of_timed,         &of_threads,
                                                     &of_engine, &of_model,         &of_kernels,
                                                     &of_plot,   &bench_route_opts, NULL };

/* For each subject its options. */
static const struct command subjects[] = {
    { .name = "bench model",
      .groups = (const struct option_group *const[]){ &of_all, &of_timed, &of_threads, &of_engine,
                                                      &of_model, NULL } },
    { .name = "bench kernels",
      .groups =
          (const struct option_group *const[]){ &of_all, &of_timed, &of_kernels, &of_plot, NULL } },
    { .name = "bench limits",
      .groups = (const struct option_group *const[]){ &of_all, &of_threads, NULL } },
    { .name = "bench route",
      .groups = (const struct option_group *const[]){ &of_all, &of_timed, &of_threads, &of_engine,
                                                      &of_plot, &bench_route_opts, NULL } },
};

/* As options_parse, and then once more with the options of the subject alone, so that any other is
 * refused. */
static int cmd_bench_parse(int argc, char **argv, int *nargs)
{
    char **copy = calloc((size_t)argc + 1, sizeof(*copy)); /* options_parse reorders its own */
    if (!copy)
        return EXIT_FAILED;
    memcpy(copy, argv, (size_t)argc * sizeof(*copy));
    int status = options_parse(&cmd_bench, argc, argv, nargs);
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]) && status < 0 && *nargs; i++)
        if (!strcmp(argv[1], subjects[i].name + sizeof("bench ") - 1))
            status = options_parse(&subjects[i], argc, copy, nargs);
    free(copy);
    return status;
}

/* What -p, -n and -r are where they are not said. */
static void defaults(bool route)
{
    if (!model_opts.prompt)
        model_opts.prompt = route ? "100" : "512";
    if (!model_opts.gen)
        model_opts.gen = route ? "100" : "128";
    if (bench_opts.repeat == UNSET)
        bench_opts.repeat = route ? 1 : 5;
}

/* The first number of a list, for route takes one. */
static int cmd_bench_first_of(size_t *out, const char *option, const char *text, struct err *err)
{
    struct bench_list list;
    int rc = bench_list(&list, option, text, err);
    if (!rc && list.n != 1)
        rc = err_set(err, ERR_ARG, "%s: expected one number, found %s", option, text);
    *out = rc ? 0 : list.at[0];
    return rc;
}

static int route(struct bench_options *o, struct err *err)
{
    struct engine e = { .model = NULL };
    int rc = cmd_bench_first_of(&o->prompt, "-p", model_opts.prompt, err);
    if (!rc)
        rc = cmd_bench_first_of(&o->tokens, "-n", model_opts.gen, err);
    if (!rc)
        rc = setting_kv(&o->kv, KVCACHE_F16, err);
    o->model = model_opts.shape       ? model_opts.shape
               : engine_options.model ? engine_options.model
                                      : "demo";
    engine_options.threads = model_opts.threads.n ? model_opts.threads.at[0] : 0;
    if (!rc)
        rc = bench_model_open(&e, &model_opts, err);
    if (!rc)
        rc = bench_route(o, &e, err);
    if (e.model || e.pool)
        engine_close(&e);
    return rc;
}

static int cmd_bench_main(int argc, char **argv)
{
    struct err err = { "" };
    int nargs = 0, status = cmd_bench_parse(argc, argv, &nargs);
    if (status >= 0)
        return status;
    setup_catch_interrupts();
    struct bench_options *o = &bench_opts;
    const char *format = o->format, *subject = nargs == 1 ? argv[1] : "";
    defaults(!strcmp(subject, "route"));
    int rc;
    if (o->repeat < 1 || o->repeat > BENCH_REPEAT)
        rc = err_set(&err, ERR_ARG, "-r: expected 1 to %d, found %zu", BENCH_REPEAT, o->repeat);
    else if (strcmp(format, "md") && strcmp(format, "csv") && strcmp(format, "json") &&
             strcmp(format, "jsonl"))
        rc = err_set(&err, ERR_ARG, "-o: expected md, csv, json or jsonl, found %s", format);
    else if (threads && (rc = bench_list(&model_opts.threads, "-t", threads, &err)) != OK)
        return command_fail("bench", rc, &err);
    else if (o->plot && (rc = output_check(o->plot, &err)) != OK)
        return command_fail("bench", rc, &err);
    else if (!strcmp(subject, "model"))
        rc = bench_model(o, &model_opts, &err);
    else if (!strcmp(subject, "kernels"))
        rc = bench_kernels(o, &err);
    else if (!strcmp(subject, "limits"))
        rc = bench_limits(o, model_opts.threads.at[0], &err);
    else if (!strcmp(subject, "route"))
        rc = route(o, &err);
    else
        rc = err_set(&err, ERR_ARG, "expected bench model, kernels, limits or route, found %s",
                     nargs ? argv[1] : "nothing");
    return command_fail("bench", rc, &err);
}

const struct command cmd_bench = {
    .name = "bench",
    .summary = "speed of a model, of each kernel, of routing, and limits of the machine",
    .args = "model | kernels | limits | route",
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
        "route writes a text of -n tokens after a random prompt of -p, through the decoding loop, "
        "the HTTP client and a server on the loopback, once for each --routed, --latency and "
        "--ahead (lists, as 0.07,0.2). Which tokens go to the cloud is drawn at random. The server "
        "holds no model and takes no processor time: it says what the edge would say, or another "
        "token; the prefix decides which, and of each ten routed tokens as many agree as --agree "
        "asks. Shown: t, the edge alone with "
        "its head; measured, milliseconds a token after the first; formula, t + rL in step and "
        "t + r(1-a)L ahead, where the window is never full; model, an event model of W requests "
        "out for a long text of the same r and a; here, that model for the text at hand, whose few "
        "routed tokens are drawn; hidden, the share of the calls' latency that the text did not "
        "wait for; calls, and those in vain; bytes of a cloud token with headers and calls in "
        "vain; and a hash of the text, which does not depend on W. The formulas know of no "
        "--bandwidth and --loss: what these cost is the difference.\n\n"
        "--as-paper compares the first --routed, --latency and --ahead above 0 with the way of "
        "the paper's published demo, and each of its habits alone: waiting for each call, the "
        "whole text evaluated for each token, a new connection for each call, text in place of "
        "ids, 16 tokens asked for and one used. Text is made of a vocabulary of the benchmark's "
        "own, 5 bytes a token. There the cloud takes 20 ms a token and a new connection two round "
        "trips (TCP and TLS 1.3), if not said otherwise. Of -r samples the fastest is shown here, "
        "in the other table the median.\n\n"
        "  mizzle bench model --shape qwen2.5-0.5b --type q8_0 -t 2\n"
        "  mizzle bench model -m model.gguf -p 128,512 -n 128 -d 0,4096 -t 1,2 -o json\n"
        "  mizzle bench kernels --only matmul_q8 --plot roofline.svg\n"
        "  mizzle bench limits\n"
        "  mizzle bench route --edge-ms 10 --latency 200 --ahead 0,1,4 -n 1000\n"
        "  mizzle bench route --shape qwen2.5-0.5b --latency 170 --as-paper",
    .groups = groups,
    .run = cmd_bench_main,
};
