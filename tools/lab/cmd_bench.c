/* cmd_bench.c - `mizzle bench`: the commands that measure, one for each subject. */
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/bench/bench.h"
#include "tools/lab/tuning/compare.h"
#include "tools/cli/setup.h"
#include "tools/command.h"

enum { UNSET = 0x7fffffff, REPEAT = 5, MOST_TOKENS = 1 << 20 }; /* UNSET: -r was not given */
static struct bench_options opts = { .format = "md",
                                     .repeat = UNSET,
                                     .prompt = "512",
                                     .gen = "128",
                                     .depth = "0",
                                     .texts = "1",
                                     .each_threads = "0",
                                     .context = "512,4096,32768",
                                     .type = "q8_0" };
static bool compare;

/* Rows of option tables. Each subject says its own default. */
#define ROW_OUTPUT                                          \
    {                                                       \
        "--output", "-o", OPTION_STR, &opts.format, "FORM", \
            "Print as md, csv, json or jsonl (default: md)" \
    }
#define ROW_REPEAT                                                                       \
    {                                                                                    \
        "--repeats", "-r", OPTION_SIZE, &opts.repeat, "N",                               \
            "Take N samples of each test and show the median, at most 1000 (default: 5)" \
    }
#define ROW_SHAPE(otherwise)                                                             \
    {                                                                                    \
        "--shape", NULL, OPTION_STR, &opts.shape, "NAME",                                \
            "Take random weights of this shape instead of a file: qwen2.5-0.5b, -1.5b, " \
            "-3b, -7b, qwen3-0.6b, -1.7b, -4b or -8b (default: " otherwise ")"           \
    }
#define ROW_TYPE                                                                          \
    {                                                                                     \
        "--type", NULL, OPTION_STR, &opts.type, "TYPE",                                   \
            "Give every matrix of --shape this type: f32, bf16, one of GGUF's from q8_0 " \
            "to q2_k and iq4_xs, or the mix q4_k_m (default: q8_0)"                       \
    }
#define ROW_KV                                                       \
    {                                                                \
        "--kv", NULL, OPTION_STR, &shared_options.engine.kv, "TYPE", \
            "Keep keys and values in f32, f16 or q8 (default: f16)"  \
    }

/* Run a subject: check the options that several subjects have, and catch interrupts. */
static int bench_run(int (*subject)(const struct bench_options *o, struct err *err),
                     struct err *err)
{
    const char *f = opts.format;
    bool given = opts.repeat != UNSET;
    setup_catch_interrupts();
    if (given && (opts.repeat < 1 || opts.repeat > BENCH_REPEAT))
        return err_set(err, ERR_ARG, "-r: expected 1 to %d, found %zu", BENCH_REPEAT, opts.repeat);
    if (strcmp(f, "md") && strcmp(f, "csv") && strcmp(f, "json") && strcmp(f, "jsonl"))
        return err_set(err, ERR_ARG, "-o: expected md, csv, json or jsonl, found %s", f);
    opts.repeat = given ? opts.repeat : (size_t)REPEAT;
    return subject(&opts, err);
}

int bench_list(struct bench_list *out, const char *option, const char *text, struct err *err)
{
    const char *p = text;
    for (out->n = 0; out->n < BENCH_LIST; p++) {
        size_t v = 0;
        const char *digits = p;
        for (; *p >= '0' && *p <= '9' && v <= MOST_TOKENS; p++)
            v = v * 10 + (size_t)(*p - '0');
        if (p == digits || v > MOST_TOKENS || (*p && *p != ','))
            break;
        out->at[out->n++] = v;
        if (!*p)
            return OK;
    }
    return err_set(err, ERR_ARG,
                   "%s: expected up to %d numbers of at most %d like 128,512, found %s", option,
                   BENCH_LIST, MOST_TOKENS, text);
}

size_t bench_list_most(const struct bench_list *l)
{
    size_t most = 0;
    for (size_t i = 0; i < l->n; i++)
        most = l->at[i] > most ? l->at[i] : most;
    return most;
}

static const struct option_group kernels_options = {
    "Options",
    (const struct option[]){
        ROW_OUTPUT,
        ROW_REPEAT,
        OPTION_ROW_ISA("all sets; a set that is named stands beside scalar"),
        { "--compare", NULL, OPTION_FLAG, &compare, NULL,
          "Measure nothing; compare the rows of two files of -o json or jsonl, the second with the "
          "first; FILE:SET takes the rows of one set, to compare two sets" },
        OPTION_END,
    },
};

static int cmd_bench_kernels_main(int n, char **args, struct err *err)
{
    const char *beside = opts.repeat != UNSET        ? "-r"
                         : shared_options.engine.isa ? "--isa"
                         : strcmp(opts.format, "md") ? "-o"
                                                     : NULL;
    if (compare && beside)
        return err_set(err, ERR_ARG, "--compare: expected no other option, found %s", beside);
    if (compare && n != 2)
        return err_set(err, ERR_ARG, "--compare: expected two files, found %d", n);
    if (compare)
        return compare_kernels(args[0], args[1], err);
    if (n > 1)
        return err_set(err, ERR_ARG, "unexpected argument %s", args[1]);
    opts.only = n ? args[0] : NULL;
    return bench_run(bench_kernels, err);
}

const struct command cmd_bench_kernels = {
    .name = "bench kernels",
    .summary = "time each operation alone, beside its limits",
    .args = "[OPERATION | --compare OLD NEW]",
    .description =
        "Times one operation, or all, of every kernel set at the shapes of Qwen2.5-0.5B, on one "
        "thread, products with 1 to 192 tokens. Each is compared with two limits, measured first: "
        "the read speed of the cache level (or memory) that holds the call's data, and the peak of "
        "the set's own instructions. Each operation has a table. Its columns are:\n\n"
        "  us         median time of a call (csv, json: ns)\n"
        "  GB/s       what a call has to read at least, in that time\n"
        "  data in    nearest level that holds the call's data: L1, L2, L3 or memory\n"
        "  of that    GB/s as a share of how fast this level is read (json: read_gb_s)\n"
        "  GOP/s      additions and multiplications in that time\n"
        "  of peak    GOP/s as a share of the peak (json: peak_gop_s)\n"
        "  x scalar   speed beside the scalar set with one token\n"
        "  doubtful   why the row is: over 100 % of a limit, or other programs ran; then\n"
        "             with the best of many short windows, and the time that the thread\n"
        "             ran (json: best_ns, cpu_ns, on_cpu, others)\n\n"
        "A model reads all of its weights between two uses of a matrix, so caches keep none of "
        "them. If a cache may hold the matrix of a row with 1 or 8 tokens, a second row, cold, "
        "takes another matrix each time: in turn from more memory than L3 has, but at most an "
        "eighth of the machine's. Scalar is slow, so it is timed with one token.\n\n"
        "--compare says for each row of both files whether the second is faster, with an interval "
        "of 95 % (sign test). Machines change their speed from minute to minute, so let two "
        "programs take turns, six times or more, and append the rows of each to one file:\n\n"
        "  for i in 1 2 3 4 5 6 7 8 9; do\n"
        "      ./old bench kernels matmul_q8 -r 3 -o jsonl >>old.jsonl\n"
        "      ./new bench kernels matmul_q8 -r 3 -o jsonl >>new.jsonl\n"
        "  done\n"
        "  mizzle bench kernels --compare old.jsonl new.jsonl\n\n"
        "Each run has the rows of all sets, so two sets can be compared, too:\n\n"
        "  mizzle bench kernels --compare new.jsonl:avx2 new.jsonl:avx512vnni",
    .groups = (const struct option_group *const[]){ &kernels_options, NULL },
    .run = cmd_bench_kernels_main,
    .most = 2,
};

static const struct option_group model_options = {
    "Options",
    (const struct option[]){
        ROW_OUTPUT,
        ROW_REPEAT,
        { "--prompt", "-p", OPTION_STR, &opts.prompt, "N[,N...]",
          "Evaluate a prompt of N tokens (default: 512)" },
        { "--n-predict", "-n", OPTION_STR, &opts.gen, "N[,N...]",
          "Generate N tokens one at a time (default: 128)" },
        { "--context", "-d", OPTION_STR, &opts.depth, "N[,N...]",
          "Fill the KV cache with N tokens before each test (default: 0)" },
        { "--threads", "-t", OPTION_STR, &opts.each_threads, "N[,N...]",
          "Measure with each number of threads (default: all processors)" },
        OPTION_ROW_ISA("the best"),
        { "--model", "-m", OPTION_STR, &shared_options.engine.model, "NAME",
          "Measure this model: PATH, ORG/NAME or NAME:TYPE, as for run (default: the demo pair)" },
        ROW_SHAPE("none"),
        ROW_TYPE,
        ROW_KV,
        { "--parallel", NULL, OPTION_STR, &opts.texts, "N[,N...]",
          "Generate -n tokens of each of N texts at once, one token of each in a pass "
          "(default: 1)" },
        { "--by-op", NULL, OPTION_FLAG, &opts.by_op, NULL,
          "Show where the time of a token, or of a prompt, goes, by kind of operation" },
        OPTION_END,
    },
};

static int cmd_bench_model_main(int n, char **args, struct err *err)
{
    (void)n, (void)args;
    return bench_run(bench_model, err);
}

const struct command cmd_bench_model = {
    .name = "bench model",
    .summary = "measure the speed of a model",
    .description =
        "Measures tokens per second. It evaluates a prompt of -p tokens at once, then -n tokens "
        "one at a time, with the output head; 0 leaves one out. A list of numbers gives one row "
        "for each. Every test is warmed up before its samples. The columns are:\n\n"
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
        "avg_ns, as llama-bench calls them, are medians, too. n_products: parameters but those of "
        "embedding and head, which a token of a prompt multiplies by.\n\n"
        "Generating a token reads all weights, so the read bandwidth of the memory is its limit. "
        "The same threads probe it right before the samples and right after. A row is doubtful if "
        "it is over 100 % of the better probe, unless the last level of cache holds the weights; "
        "if its probes differ by more than a fifth; if its threads are less than 5 % faster than "
        "one; if they ran less than 90 % of the time; or if other programs kept more than a "
        "quarter of a processor busy. On a busy machine, two more figures follow: the speed of the "
        "shortest pass, or of a prompt's shortest sample, and the speed by the threads' own time "
        "(json: best_ts, cpu_ts, others).\n\n"
        "The first tokens of a model try several walks over the weights of each type "
        "(kernels/README.md, One token). The samples begin when a walk is chosen. The times of the "
        "walks are below the table, in json under tuning.\n\n"
        "--by-op takes as many samples again, every second one with timed operations. Below each "
        "row it shows each kind of operation: calls, milliseconds, share of the sum, the least "
        "bytes to read (MB, GB/s), the least operations to compute (Mop, GOP/s), and the share of "
        "their limit. Attention and norms need few of both, so their share of the limit is low. "
        "The last line has the time of a token, or of the prompt, without this timing.\n\n"
        "  mizzle bench model --shape qwen2.5-0.5b --type q8_0 -t 2\n"
        "  mizzle bench model -m model.gguf -p 128,512 -n 128 -d 0,4096 -t 1,2 -o json\n"
        "  mizzle bench model --shape qwen2.5-0.5b --by-op -p 192 -n 32\n"
        "  mizzle bench model --shape qwen2.5-0.5b --parallel 1,2,4,8 -p 0 -n 32",
    .groups = (const struct option_group *const[]){ &model_options, NULL },
    .run = cmd_bench_model_main,
};

static const struct option_group limits_options = {
    "Options",
    (const struct option[]){
        ROW_OUTPUT,
        { "--threads", "-t", OPTION_SIZE, &opts.threads, "N",
          "Measure with one thread and with N (default: all processors)" },
        OPTION_END,
    },
};

static int cmd_bench_limits_main(int n, char **args, struct err *err)
{
    (void)n, (void)args;
    return bench_run(bench_limits, err);
}

const struct command cmd_bench_limits = {
    .name = "bench limits",
    .summary = "measure what the machine can do at most",
    .description = "Measures how fast memory and each level of cache are read and the peak of each "
                   "kind of arithmetic, without the kernels, with one thread and with -t. Reading "
                   "is timed as for model; for caches and arithmetic the best of several passes "
                   "counts. L3 ends at the largest working set that is read a quarter faster than "
                   "memory, whatever size the system reports. A row is marked if the threads are "
                   "no faster than one, or if other programs ran.\n\n"
                   "  mizzle bench limits -o csv",
    .groups = (const struct option_group *const[]){ &limits_options, NULL },
    .run = cmd_bench_limits_main,
};

static const struct option_group memory_options = {
    "Options",
    (const struct option[]){
        ROW_OUTPUT,
        ROW_SHAPE("qwen2.5-0.5b"),
        ROW_TYPE,
        ROW_KV,
        { "--context", "-c", OPTION_STR, &opts.context, "N[,N...]",
          "Give the KV cache room for N tokens (default: 512,4096,32768)" },
        OPTION_END,
    },
};

static int cmd_bench_memory_main(int n, char **args, struct err *err)
{
    (void)n, (void)args;
    return bench_run(bench_memory, err);
}

const struct command cmd_bench_memory = {
    .name = "bench memory",
    .summary = "compute the bytes that a model takes",
    .description =
        "Computes what a model of --shape takes in memory: its weights, the KV cache for each -c, "
        "the work memory of passes on one thread, and a router (an MLP with twice the hidden "
        "size). It allocates nothing, so the numbers are the same on every machine. The last line "
        "of bench model has the memory that a process really takes.\n\n"
        "  mizzle bench memory --shape qwen2.5-7b --type q4_0 --kv q8",
    .groups = (const struct option_group *const[]){ &memory_options, NULL },
    .run = cmd_bench_memory_main,
};

static int cmd_bench_main(int n, char **args, struct err *err)
{
    (void)n, (void)args;
    return err_set(err, ERR_ARG, "expected a subject; see mizzle bench --help");
}

const struct command cmd_bench = {
    .name = "bench",
    .summary = "measure models, kernels and the limits of the machine",
    .args = "SUBJECT",
    .description = "Measures one of these subjects, each with its own --help:\n\n"
                   "  mizzle bench model    tokens per second of a file or a shape\n"
                   "  mizzle bench memory   bytes that a model takes, computed\n"
                   "  mizzle bench kernels  each operation alone, beside its limits\n"
                   "  mizzle bench limits   what the machine can do at most",
    .groups = (const struct option_group *const[]){ NULL },
    .run = cmd_bench_main,
    .most = COMMAND_ANY,
};
