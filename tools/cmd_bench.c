/* cmd_bench.c - `mizzle bench`: measure one of six subjects. model: tokens per second, from a file
 * or from a shape with random weights; memory: the bytes of a shape, computed; kernels: each
 * operation alone; limits: the limits of the machine; route: the cost of routing to a cloud; serve:
 * any server with OpenAI's API. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_model.h"
#include "tools/command.h"
#include "tools/cli/output_file.h"
#include "tools/cli/setup.h"

enum { UNSET = 0x7fffffff }; /* not given: each subject has its own default */
enum { SERVE_REPEAT = 3 };
static struct bench_options bench_opts = { .format = "md", .repeat = UNSET };
static struct bench_model_options model_opts = { .texts = "1",
                                                 .context = "512,4096,32768",
                                                 .type = "q8_0" };
static const char *threads;

#define END                                       \
    {                                             \
        NULL, NULL, OPTION_FLAG, NULL, NULL, NULL \
    }

/* Options are grouped by the subjects that take them; cmd_bench_parse rejects them with any
 * other. */
static const struct option_group of_all = {
    "Every subject",
    (const struct option[]){
        { "--output", "-o", OPTION_STR, &bench_opts.format, "FORM",
          "Print as md, csv, json or jsonl (default: md)" },
        END,
    },
};

static const struct option_group of_repeat = {
    "model, kernels, route, serve",
    (const struct option[]){
        { "--repeat", "-r", OPTION_SIZE, &bench_opts.repeat, "N",
          "Take N samples of each test and show the median (default: 5; route: 1, with --as-paper: "
          "3; serve: 3)" },
        END,
    },
};

static const struct option_group of_lengths = {
    "model, route, serve",
    (const struct option[]){
        { "--n-prompt", "-p", OPTION_STR, &model_opts.prompt, "N[,N...]",
          "Evaluate a prompt of N tokens (default: 512; route: 100; serve: 32 words)" },
        { "--n-gen", "-n", OPTION_STR, &model_opts.gen, "N[,N...]",
          "Generate N tokens one at a time (default: 128, with --draft at most half of -d; route: "
          "100)" },
        END,
    },
};

static const struct option_group of_isa = {
    "model, kernels, route",
    (const struct option[]){
        { "--isa", NULL, OPTION_STR, &engine_options.isa, "NAME",
          "Use this kernel set, one of those that `mizzle info` lists (default: MIZZLE_ISA, "
          "else the best; kernels: all sets; a set that is named stands beside scalar)" },
        END,
    },
};

static const struct option_group of_threads = {
    "model, limits, route",
    (const struct option[]){
        { "--threads", "-t", OPTION_STR, &threads, "N[,N...]",
          "Compute with N threads; model: measure with each number (default: all processors)" },
        END,
    },
};

static const struct option_group of_shape = {
    "model, memory, route",
    (const struct option[]){
        { "--shape", NULL, OPTION_STR, &model_opts.shape, "NAME",
          "Take random weights of this shape instead of a file: qwen2.5-0.5b, -1.5b, -3b, -7b, "
          "qwen3-0.6b, -1.7b, -4b or -8b (default: none; memory: qwen2.5-0.5b)" },
        { "--type", NULL, OPTION_STR, &model_opts.type, "TYPE",
          "Give every matrix of --shape this type: f32, bf16, one of GGUF's from q8_0 to q2_k and "
          "iq4_xs, or the mix q4_k_m (default: q8_0)" },
        { "--kv", NULL, OPTION_STR, &engine_options.kv, "TYPE",
          "Keep keys and values in f32, f16 or q8 (default: f16)" },
        END,
    },
};

static const struct option_group of_memory = {
    "memory",
    (const struct option[]){
        { "--context", "-c", OPTION_STR, &model_opts.context, "N[,N...]",
          "Give the KV cache room for N tokens (default: 512,4096,32768)" },
        END,
    },
};

static const struct option_group of_engine = {
    "model, route",
    (const struct option[]){
        { "--model", "-m", OPTION_STR, &engine_options.model, "NAME",
          "Measure this model: PATH, ORG/NAME or NAME:TYPE, as for `mizzle run` (default: the demo "
          "pair)" },
        END,
    },
};

static const struct option_group of_model = {
    "model",
    (const struct option[]){
        { "--n-depth", "-d", OPTION_STR, &model_opts.depth, "N[,N...]",
          "Fill the KV cache with N tokens before each test (default: 0; with --draft: 512)" },
        { "--texts", NULL, OPTION_STR, &model_opts.texts, "N[,N...]",
          "Generate -n tokens of each of N texts at once, one token of each in a pass "
          "(default: 1)" },
        { "--draft", NULL, OPTION_STR, &model_opts.drafts, "FROM[,FROM]",
          "Write -n tokens, at most half of -d, after the -d tokens through the decoding loop, "
          "with "
          "drafts from lookup or off, as two texts: one repeats the second half of what is there, "
          "one is new (default: leave the loop out)" },
        END,
    },
};

static const struct option_group of_kernels = {
    "kernels",
    (const struct option[]){
        { "--only", NULL, OPTION_STR, &bench_opts.only, "OP",
          "Time this operation alone (default: all)" },
        END,
    },
};

static const struct option_group of_plot = {
    "kernels, route",
    (const struct option[]){
        { "--plot", NULL, OPTION_STR, &bench_opts.plot, "FILE",
          "Draw an SVG picture: a roofline of the kernels, or the time per token of route "
          "(default: none)" },
        END,
    },
};

static const struct option_group *const groups[] = {
    &of_all,   &of_repeat, &of_lengths, &of_isa,  &of_threads,       &of_engine,        &of_shape,
    &of_model, &of_memory, &of_kernels, &of_plot, &bench_route_opts, &bench_serve_opts, NULL
};

/* The options of each subject, as commands of their own so that options_parse can check them. */
static const struct command subjects[] = {
    { .name = "bench model",
      .groups = (const struct option_group *const[]){ &of_all, &of_repeat, &of_lengths, &of_isa,
                                                      &of_threads, &of_engine, &of_shape, &of_model,
                                                      NULL } },
    { .name = "bench memory",
      .groups = (const struct option_group *const[]){ &of_all, &of_shape, &of_memory, NULL } },
    { .name = "bench kernels",
      .groups = (const struct option_group *const[]){ &of_all, &of_repeat, &of_isa, &of_kernels,
                                                      &of_plot, NULL } },
    { .name = "bench limits",
      .groups = (const struct option_group *const[]){ &of_all, &of_threads, NULL } },
    { .name = "bench route",
      .groups = (const struct option_group *const[]){ &of_all, &of_repeat, &of_lengths, &of_isa,
                                                      &of_threads, &of_engine, &of_shape, &of_plot,
                                                      &bench_route_opts, NULL } },
    { .name = "bench serve",
      .groups = (const struct option_group *const[]){ &of_all, &of_repeat, &of_lengths,
                                                      &bench_serve_opts, NULL } },
};

/* Parse like options_parse, then parse a copy with the options of the subject alone, which rejects
 * all others. */
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

/* Set -p, -n, -d and -r if they were not given; -n with --draft depends on -d. */
static void defaults(bool route, bool serve)
{
    if (!model_opts.prompt)
        model_opts.prompt = route ? "100" : serve ? "32" : "512";
    if (!model_opts.depth)
        model_opts.depth = model_opts.drafts ? "512" : "0";
    if (!model_opts.gen && !model_opts.drafts)
        model_opts.gen = route ? "100" : "128";
    if (bench_opts.repeat == UNSET)
        bench_opts.repeat = route ? bench_route_repeat() : serve ? SERVE_REPEAT : 5;
}

/* Parse a list that must hold one number, which is all that route and serve take. */
static int cmd_bench_first_of(size_t *out, const char *option, const char *text, struct err *err)
{
    struct bench_list list;
    int rc = bench_list(&list, option, text, err);
    if (!rc && list.n != 1)
        rc = err_set(err, ERR_ARG, "%s: expected one number, found %s", option, text);
    *out = rc ? 0 : list.at[0];
    return rc;
}

/* Read -p and -n as single numbers. */
static int cmd_bench_lengths(struct bench_options *o, struct err *err)
{
    int rc = cmd_bench_first_of(&o->prompt, "-p", model_opts.prompt, err);
    return rc ? rc : cmd_bench_first_of(&o->tokens, "-n", model_opts.gen, err);
}

/* Read the options of `bench route`, open the model and run it. */
static int route(struct bench_options *o, struct err *err)
{
    struct engine e = { .model = NULL };
    int rc = cmd_bench_lengths(o, err);
    if (!rc)
        rc = setup_kv(&o->kv, KVCACHE_F16, err);
    o->model = model_opts.shape       ? model_opts.shape
               : engine_options.model ? engine_options.model
                                      : "demo";
    engine_options.threads = model_opts.threads.at[0];
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
    defaults(!strcmp(subject, "route"), !strcmp(subject, "serve"));
    int rc;
    if (o->repeat < 1 || o->repeat > BENCH_REPEAT)
        rc = err_set(&err, ERR_ARG, "-r: expected 1 to %d, found %zu", BENCH_REPEAT, o->repeat);
    else if (strcmp(format, "md") && strcmp(format, "csv") && strcmp(format, "json") &&
             strcmp(format, "jsonl"))
        rc = err_set(&err, ERR_ARG, "-o: expected md, csv, json or jsonl, found %s", format);
    else if (threads && (rc = bench_list(&model_opts.threads, "-t", threads, &err)) != OK)
        return command_fail("bench", rc, &err);
    else if (model_opts.threads.n > 1 && strcmp(subject, "model") != 0)
        rc = err_set(&err, ERR_ARG, "-t: expected one number with %s, found %s", subject, threads);
    else if (o->plot && (rc = output_file_check(o->plot, &err)) != OK)
        return command_fail("bench", rc, &err);
    else if (!strcmp(subject, "model"))
        rc = bench_model(o, &model_opts, &err);
    else if (!strcmp(subject, "memory"))
        rc = bench_memory(o, &model_opts, &err);
    else if (!strcmp(subject, "kernels"))
        rc = bench_kernels(o, &err);
    else if (!strcmp(subject, "limits"))
        rc = bench_limits(o, model_opts.threads.at[0], &err);
    else if (!strcmp(subject, "route"))
        rc = route(o, &err);
    else if (!strcmp(subject, "serve"))
        rc = (rc = cmd_bench_lengths(o, &err)) ? rc : bench_serve(o, &err);
    else
        rc = err_set(&err, ERR_ARG,
                     "expected bench model, memory, kernels, limits, route or serve, found "
                     "%s",
                     nargs ? argv[1] : "nothing");
    return command_fail("bench", rc, &err);
}

const struct command cmd_bench = {
    .name = "bench",
    .summary = "measure models, kernels, routing, servers and the limits of the machine",
    .args = "model | memory | kernels | limits | route | serve",
    .description =
        "model measures the speed of a model. It evaluates a prompt of -p tokens at once, then "
        "-n tokens one at a time, with the output head; 0 leaves one out. A list of numbers gives "
        "one row for each. With --texts, -n tokens of each of several texts are generated; a pass "
        "evaluates one token of each. Every test is warmed up before its samples. The columns "
        "are:\n\n"
        "  test       pp512: a prompt of 512 tokens; tg128: 128 tokens generated; x 8: of\n"
        "             each of 8 texts; @ d4096: after 4096 tokens; repeats, new: the two\n"
        "             texts of --draft, and where drafts come from\n"
        "  t/s        tokens per second of all texts, the median of the samples (avg_ts),\n"
        "             and their standard deviation\n"
        "  each       tokens per second of each text (text_ts)\n"
        "  accepted   drafted tokens that stood, by pass (accepted_per_pass)\n"
        "  read       GB/s of weights read, once for all texts of a pass\n"
        "  probe      GB/s that the memory can be read, before and after the samples\n"
        "  of probe   read as a share of the larger of the two\n"
        "  J/token    joules of the whole machine's processors and memory by token, where\n"
        "             their counters (RAPL) can be read, often by root only\n"
        "  doubtful   why the row is, see below\n\n"
        "csv, json and jsonl have llama-bench's keys, these figures and every sample. avg_ts and "
        "avg_ns, as llama-bench calls them, are medians, too.\n\n"
        "Generating a token reads all weights, so the read bandwidth of the memory is its "
        "limit. It is probed with the same threads right before the samples and right after. "
        "Each thread times its own reading, as 1, 2 and 4 streams without prefetching; the time "
        "in which all threads were reading counts, and the best number of streams. A row is held "
        "against the better of its two probes. It is marked as doubtful if it is over 100 % of "
        "it, because a limit that is beaten is none (unless the weights fit into the last level of "
        "cache, for which memory is no limit); so is a row whose threads get what one "
        "thread got in the same command (less than 5 % more), because then the other processors "
        "were busy or have nothing to add; a row whose probes differ by more than a fifth; and one "
        "whose threads ran less than 90 % of the time, because other programs ran instead, or "
        "because there was not enough work for all of them.\n\n"
        "With the largest -n, a router with random weights (an MLP with twice the hidden size) "
        "shows what a score costs and what a routed token saves, because its output head is not "
        "evaluated.\n\n"
        "memory computes what a model of --shape takes in memory: its weights, the KV cache for "
        "each -c, the work memory of passes on one thread, and a router (an MLP with twice "
        "the hidden size). It allocates nothing, so the numbers are the same on every machine. "
        "What a process takes in fact is the last line of model.\n\n"
        "kernels times every operation of every kernel set at the shapes of Qwen2.5-0.5B, on "
        "one thread, products with 1 to 192 tokens. It holds each against two limits that it "
        "measures first: how fast the level of cache that holds the call's data (or the memory) "
        "is read, and the peak of the set's own instructions. Each operation has a table. Its "
        "columns are:\n\n"
        "  us         median time of a call (csv, json: ns)\n"
        "  GB/s       what a call has to read at least, in that time\n"
        "  data in    nearest level that holds the call's data: L1, L2, L3 or memory\n"
        "  of that    GB/s as a share of how fast this level is read (json: read_gb_s)\n"
        "  GOP/s      additions and multiplications in that time\n"
        "  of peak    GOP/s as a share of the peak (json: peak_gop_s)\n"
        "  x scalar   speed beside the scalar set with one token\n"
        "  doubtful   why the row is: it is over 100 % of a limit, or other programs took\n"
        "             more than a tenth of its time\n\n"
        "Where the processor counts events, cycles, instructions, their ratio and cache misses of "
        "a call follow. The scalar set is slow and takes each token by itself, so it is timed "
        "with one.\n\n"
        "limits measures how fast memory and each level of cache are read and the peak of each "
        "kind of arithmetic, without the kernels, with one thread and with -t. Reading is timed "
        "as for model; of caches and arithmetic the best of several passes counts. A row in "
        "which the threads get what one gets is marked.\n\n"
        "route measures routing to a cloud. It writes -n tokens after a random prompt of -p "
        "tokens, through the decoding loop, the HTTP client and a server on the loopback, once "
        "for each combination of --routed, --latency, --ahead and --cloud-tokens, which are "
        "lists such as 0.07,0.2. The routed tokens are drawn at random. The server holds no "
        "model and takes no processor time: it answers with the token that the edge would "
        "choose or with another one. The prefix decides which, so that in each ten routed "
        "tokens the share that agrees is --agree. The columns are:\n\n"
        "  r, L, W, N share of routed tokens, latency in ms, requests in flight,\n"
        "             tokens of a call\n"
        "  t          ms per token of the edge alone, with its output head\n"
        "  measured   ms per token after the first\n"
        "  formula    t + rL in step; t + r(1-a)L ahead, if the window is never full\n"
        "  model      an event model with W requests in flight, for a long text with\n"
        "             the same r and a\n"
        "  here       the same model for this text and the routed tokens drawn for it\n"
        "  hidden     share of the latency of the calls that the text did not wait for;\n"
        "             empty in step\n"
        "  passes     passes of the edge; with N above 1, in place of formula and here\n"
        "  accepted   drafted tokens that stood; shown with passes\n"
        "  calls      calls made, wasted ones included\n"
        "  wasted     calls made ahead for a text that turned out otherwise\n"
        "  up, down   bytes per cloud token, with headers and wasted calls\n\n"
        "Below stands a hash of the text, which depends on neither L, W nor N. The formulas "
        "ignore --bandwidth and --loss; the difference is what these cost. They hold for calls "
        "of one token: with N above 1, formula, model, here and hidden are empty (json: null), "
        "because a call then answers some of the next routed tokens, too, and drafts put several "
        "tokens into a pass. csv and json have all columns, and the ids that were drafted.\n\n"
        "--as-paper takes the first --routed, the first --latency and the first --ahead above "
        "0, and compares Mizzle with the way the paper's published demo works, and with each of "
        "that demo's habits alone: waiting for each call, evaluating the whole text for each "
        "token, opening a new connection for each call, sending text instead of ids, and "
        "requesting 16 tokens to use one. The text comes from a vocabulary made for the "
        "benchmark, with 5 bytes per token. Unless options say otherwise, the cloud takes 20 ms "
        "per token and a new connection two round trips (TCP and TLS 1.3). The habits have rows in "
        "this order. The columns are:\n\n"
        "  s          seconds of an answer: of -r samples the one with the median\n"
        "  edge       of these, in the small model\n"
        "  waiting    of these, for the cloud\n"
        "  rest       of these, elsewhere\n"
        "  extra s    more than the default, for \"in step\" and \"as the paper\"; more than\n"
        "             \"in step\" for the other habits\n"
        "  times      s as a multiple of the default's\n"
        "  calls      calls made\n"
        "  up, down   bytes per call, with headers\n\n"
        "Below stands by how much the extra times of the single habits miss that of all of them "
        "(json: missed_s).\n\n"
        "--table paper measures the columns of the paper's Table 1, one row for each of its "
        "thresholds, beside the printed rows. There are no scores here to compare with a "
        "threshold, so as many tokens are drawn as the paper routed. It takes the first "
        "--latency and the first --ahead, by default 0: in step, as the paper's system works. "
        "With --as-paper it writes with all habits of the paper's demo.\n\n"
        "serve measures any server with OpenAI's API, such as mizzle serve, llama-server and "
        "vLLM. As many clients as --clients says ask /v1/completions at the same time for a stream "
        "of -n tokens, at temperature 0 and with ignore_eos. A prompt is -p words, about as many "
        "tokens. It is text, which every server takes, and new for each answer, so that no cache "
        "has it. Tokens are counted by the server (usage). The numbers of clients take turns, -r "
        "times, after a round that does not count. One thread is all clients; where the server "
        "runs on the same machine, it takes a little of its time. The columns are:\n\n"
        "  clients    asking at the same time (--clients)\n"
        "  prompt, n  tokens of a prompt and of an answer\n"
        "  t/s        tokens of all answers of a round by the time from the first request\n"
        "             to the last text, prompts included\n"
        "  x one      t/s as a multiple of that of one client, if 1 is in the list\n"
        "  each       tokens per second of one answer after its first text\n"
        "  TTFT, p95  ms from the request to the first text\n"
        "  gap        ms between two pieces of text of an answer, mostly of one token\n"
        "             each: median, p95 and max\n"
        "  errors     answers that failed; if all of a round fail, the measurement ends\n"
        "  long       with --long: ms from the request to the first text of the long\n"
        "             prompt, which is sent when all others have begun to write\n"
        "  pause      with --long: the longest gap of the others in that time\n\n"
        "  mizzle bench model --shape qwen2.5-0.5b --type q8_0 -t 2\n"
        "  mizzle bench model -m model.gguf -p 128,512 -n 128 -d 0,4096 -t 1,2 -o json\n"
        "  mizzle bench model --shape qwen2.5-0.5b --texts 1,2,4,8 -p 0 -n 32\n"
        "  mizzle bench model --shape qwen2.5-0.5b --draft off,lookup -d 512 -p 0 -n 256\n"
        "  mizzle bench memory --shape qwen2.5-7b --type q4_0 --kv q8\n"
        "  mizzle bench kernels --only matmul_q8 --plot roofline.svg\n"
        "  mizzle bench limits\n"
        "  mizzle bench route --edge-ms 10 --latency 200 --ahead 0,1,4 -n 1000\n"
        "  mizzle bench route --shape qwen2.5-0.5b --latency 170 --as-paper\n"
        "  mizzle bench route --shape qwen2.5-0.5b --latency 170 --table paper\n"
        "  mizzle bench serve --url http://127.0.0.1:8080 --clients 1,4,8 -n 128\n"
        "  mizzle bench serve --url http://127.0.0.1:8080 --clients 1 --long 4000 -n 600",
    .groups = groups,
    .run = cmd_bench_main,
};
