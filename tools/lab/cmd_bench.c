/* cmd_bench.c - `mizzle bench`: the commands that measure, one for each subject; here what they
 * share, and the two that need no model: limits and memory. */
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/bench/subject.h"

enum { UNSET = 0x7fffffff, MOST_TOKENS = 1 << 20 }; /* UNSET: -r was not given */
struct bench_options bench_opts = { .format = "md", .repeat = UNSET };
struct bench_model_options bench_model_opts = { .prompt = "512",
                                                .gen = "128",
                                                .depth = "0",
                                                .texts = "1",
                                                .context = "512,4096,32768",
                                                .type = "q8_0" };
const char *bench_threads;

int bench_begin(size_t repeat, struct err *err)
{
    struct bench_options *o = &bench_opts;
    const char *format = o->format;
    bool given = o->repeat != UNSET;
    int rc = OK;
    setup_catch_interrupts();
    if (given && (o->repeat < 1 || o->repeat > BENCH_REPEAT))
        rc = err_set(err, ERR_ARG, "-r: expected 1 to %d, found %zu", BENCH_REPEAT, o->repeat);
    else if (strcmp(format, "md") && strcmp(format, "csv") && strcmp(format, "json") &&
             strcmp(format, "jsonl"))
        rc = err_set(err, ERR_ARG, "-o: expected md, csv, json or jsonl, found %s", format);
    o->repeat = given ? o->repeat : repeat;
    return rc;
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

int bench_threads_of(bool many, struct err *err)
{
    struct bench_list *threads = &bench_model_opts.threads;
    int rc = bench_threads ? bench_list(threads, "-t", bench_threads, err) : OK;
    if (rc == OK && !many && threads->n > 1)
        rc = err_set(err, ERR_ARG, "-t: expected one number, found %s", bench_threads);
    return rc;
}

static const struct option_group limits_options = {
    "Options",
    (const struct option[]){
        BENCH_ROW_OUTPUT,
        { "--threads", "-t", OPTION_STR, &bench_threads, "N",
          "Measure with one thread and with N (default: all processors)" },
        OPTION_END,
    },
};

static int cmd_bench_limits_main(int n, char **args, struct err *err)
{
    int rc = bench_begin(1, err);
    (void)n, (void)args;
    if (rc == OK)
        rc = bench_threads_of(false, err);
    return rc == OK ? bench_limits(&bench_opts, bench_model_opts.threads.at[0], err) : rc;
}

const struct command cmd_bench_limits = {
    .name = "bench limits",
    .summary = "measure what the machine can do at most",
    .description =
        "Measures how fast memory and each level of cache are read and the peak of each "
        "kind of arithmetic, without the kernels, with one thread and with -t. Reading is timed "
        "as for model; of caches and arithmetic the best of several passes counts. L3 ends "
        "at the largest working set that is read a quarter faster than memory, whatever the "
        "system tells. A row in which the threads get what one gets is marked, and one during "
        "which "
        "other programs ran.\n\n"
        "  mizzle bench limits -o csv",
    .groups = (const struct option_group *const[]){ &limits_options, NULL },
    .run = cmd_bench_limits_main,
};

static const struct option_group memory_options = {
    "Options",
    (const struct option[]){
        BENCH_ROW_OUTPUT,
        BENCH_ROW_SHAPE("qwen2.5-0.5b"),
        BENCH_ROW_TYPE,
        BENCH_ROW_KV,
        { "--context", "-c", OPTION_STR, &bench_model_opts.context, "N[,N...]",
          "Give the KV cache room for N tokens (default: 512,4096,32768)" },
        OPTION_END,
    },
};

static int cmd_bench_memory_main(int n, char **args, struct err *err)
{
    int rc = bench_begin(1, err);
    (void)n, (void)args;
    return rc == OK ? bench_memory(&bench_opts, &bench_model_opts, err) : rc;
}

const struct command cmd_bench_memory = {
    .name = "bench memory",
    .summary = "compute the bytes that a model takes",
    .description =
        "Computes what a model of --shape takes in memory: its weights, the KV cache for "
        "each -c, the work memory of passes on one thread, and a router (an MLP with twice "
        "the hidden size). It allocates nothing, so the numbers are the same on every machine. "
        "What a process takes in fact is the last line of bench model.\n\n"
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
