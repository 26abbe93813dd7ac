/* cmd_bench_model.c - `mizzle bench model`: tokens per second, from a file or from a shape with
 * random weights. */
#include "kernels/sys/base.h"
#include "tools/lab/bench/subject.h"

static const struct option_group model_options = {
    "Options",
    (const struct option[]){
        BENCH_ROW_OUTPUT,
        BENCH_ROW_REPEAT("5"),
        { "--n-prompt", "-p", OPTION_STR, &bench_model_opts.prompt, "N[,N...]",
          "Evaluate a prompt of N tokens (default: 512)" },
        { "--n-predict", "-n", OPTION_STR, &bench_model_opts.gen, "N[,N...]",
          "Generate N tokens one at a time (default: 128)" },
        { "--context", "-d", OPTION_STR, &bench_model_opts.depth, "N[,N...]",
          "Fill the KV cache with N tokens before each test (default: 0)" },
        { "--threads", "-t", OPTION_STR, &bench_threads, "N[,N...]",
          "Measure with each number of threads (default: all processors)" },
        OPTION_ROW_ISA("the best"),
        { "--model", "-m", OPTION_STR, &shared_options.engine.model, "NAME",
          "Measure this model: PATH, ORG/NAME or NAME:TYPE, as for run (default: the demo pair)" },
        BENCH_ROW_SHAPE("none"),
        BENCH_ROW_TYPE,
        BENCH_ROW_KV,
        { "--parallel", NULL, OPTION_STR, &bench_model_opts.texts, "N[,N...]",
          "Generate -n tokens of each of N texts at once, one token of each in a pass "
          "(default: 1)" },
        { "--by-op", NULL, OPTION_FLAG, &bench_model_opts.by_op, NULL,
          "Show where the time of a token, or of a prompt, goes, by kind of operation" },
        OPTION_END,
    },
};

static int cmd_bench_model_main(int n, char **args, struct err *err)
{
    int rc = bench_begin(5, err);
    (void)n, (void)args;
    if (rc == OK)
        rc = bench_threads_of(true, err);
    return rc == OK ? bench_model(&bench_opts, &bench_model_opts, err) : rc;
}

const struct command cmd_bench_model = {
    .name = "bench model",
    .summary = "measure the speed of a model",
    .description =
        "Measures tokens per second. It evaluates a prompt of -p tokens at once, then -n tokens "
        "one at a time, with the output head; 0 leaves one out. A list of numbers gives one row "
        "for each. With --parallel, -n tokens of each of several texts are generated; a pass "
        "evaluates one token of each. Every test is warmed up before its samples. The columns "
        "are:\n\n"
        "  test       pp512: a prompt of 512 tokens; tg128: 128 tokens generated; x 8: of\n"
        "             each of 8 texts; @ d4096: after 4096 tokens\n"
        "  t/s        tokens per second of all texts, the median of the samples (avg_ts),\n"
        "             and their standard deviation\n"
        "  each       tokens per second of each text (text_ts)\n"
        "  read       GB/s of weights read, once for all texts of a pass\n"
        "  probe      GB/s that the memory can be read, before and after the samples\n"
        "  of probe   read as a share of the larger of the two\n"
        "  x 1 thread speed beside one thread, with several numbers in -t, of which 1 is\n"
        "             the first\n"
        "  waiting    share of the time of all threads in which they wait for each other,\n"
        "             in a part of the test that is timed for this alone\n"
        "  doubtful   why the row is, see below\n\n"
        "csv, json and jsonl have llama-bench's keys, these figures and every sample. avg_ts and "
        "avg_ns, as llama-bench calls them, are medians, too.\n\n"
        "Generating a token reads all weights, so the read bandwidth of the memory is its limit. "
        "It is probed with the same threads right before the samples and right after. Each thread "
        "times its own reading, as 1, 2 and 4 streams without prefetching; the time in which all "
        "threads were reading counts, and the best number of streams. A row is held against the "
        "better of its two probes. It is marked as doubtful if it is over 100 % of it, because "
        "nothing is faster than its limit, so the probe was too slow (unless the weights fit into "
        "the last level of cache, for which memory is no limit); so is a row whose threads get "
        "what one thread got in the same command (less than 5 % more), because then the other "
        "processors were busy or have nothing to add; a row whose probes differ by more than a "
        "fifth; and one whose threads ran less than 90 % of the time, because other programs ran "
        "instead, or because there was not enough work for all of them. So is one during which "
        "other "
        "programs kept more than a quarter of a processor busy; then the speed of the shortest "
        "pass "
        "follows, or of the shortest sample of a prompt, and that by the time in which the threads "
        "ran (json: best_ts, cpu_ts, others).\n\n"
        "The first tokens of a model try ways to walk the weights, for each type "
        "(kernels/README.md, "
        "One token). The samples begin when a way is chosen. Below the table, or as tuning in "
        "json, "
        "stands what each way took.\n\n"
        "With the largest -n, a router with random weights (an MLP with twice the hidden size) "
        "shows what a score costs and what a routed token saves, because its output head is not "
        "evaluated.\n\n"
        "--by-op takes as many samples again, every other one timed inside, and shows below each "
        "row which kinds of operation its time goes to: calls, milliseconds, share of the sum, "
        "what they read at least (MB, GB/s) and compute at least (Mop, GOP/s), and how near they "
        "come to the limit that holds for them: reading from where the weights lie, or the peak of "
        "the kernel set's instructions. Attention and norms need little of both, so their share is "
        "low. Last is what a token, or the prompt, took without being watched.\n\n"
        "  mizzle bench model --shape qwen2.5-0.5b --type q8_0 -t 2\n"
        "  mizzle bench model -m model.gguf -p 128,512 -n 128 -d 0,4096 -t 1,2 -o json\n"
        "  mizzle bench model --shape qwen2.5-0.5b --by-op -p 192 -n 32\n"
        "  mizzle bench model --shape qwen2.5-0.5b --parallel 1,2,4,8 -p 0 -n 32",
    .groups = (const struct option_group *const[]){ &model_options, NULL },
    .run = cmd_bench_model_main,
};
