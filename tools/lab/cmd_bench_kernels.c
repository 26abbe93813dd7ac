/* cmd_bench_kernels.c - `mizzle bench kernels`: each operation alone, and two measurements
 * compared. */
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/tuning/compare.h"
#include "tools/lab/bench/subject.h"

enum { REPEAT = 5 }; /* -r if it is not given */
static bool compare;

static const struct option_group kernels_options = {
    "Options",
    (const struct option[]){
        BENCH_ROW_OUTPUT,
        BENCH_ROW_REPEAT("5"),
        OPTION_ROW_ISA("all sets; a set that is named stands beside scalar"),
        { "--only", NULL, OPTION_STR, &bench_opts.only, "OP",
          "Time this operation alone (default: all)" },
        { "--compare", NULL, OPTION_FLAG, &compare, NULL,
          "Measure nothing, but say how the rows of two files of -o json or jsonl differ, from "
          "the first to the second; FILE:SET takes those of one set, to compare two sets" },
        OPTION_END,
    },
};

/* Refuse the options that have no meaning beside --compare. repeat: -r, or 0. */
static int cmd_bench_kernels_lone(size_t repeat, struct err *err)
{
    const struct bench_options *o = &bench_opts;
    const char *beside = o->only                        ? "--only"
                         : repeat                       ? "-r"
                         : shared_options.engine.isa    ? "--isa"
                         : strcmp(o->format, "md") != 0 ? "-o"
                                                        : NULL;
    return beside ? err_set(err, ERR_ARG, "--compare: expected no other option, found %s", beside)
                  : OK;
}

static int cmd_bench_kernels_main(int n, char **args, struct err *err)
{
    struct bench_options *o = &bench_opts;
    int rc = bench_begin(0, err);
    if (rc == OK && compare)
        rc = cmd_bench_kernels_lone(o->repeat, err);
    o->repeat = o->repeat ? o->repeat : REPEAT;
    if (rc == OK && compare && n != 2)
        rc = err_set(err, ERR_ARG, "--compare: expected two files, found %d", n);
    else if (rc == OK && compare)
        rc = compare_kernels(args[0], args[1], err);
    else if (rc == OK && n)
        rc = err_set(err, ERR_ARG, "unexpected argument %s", args[0]);
    else if (rc == OK)
        rc = bench_kernels(o, err);
    return rc;
}

const struct command cmd_bench_kernels = {
    .name = "bench kernels",
    .summary = "time each operation alone, beside its limits",
    .args = "[--compare OLD NEW]",
    .description =
        "Times every operation of every kernel set at the shapes of Qwen2.5-0.5B, on one thread, "
        "products with 1 to 192 tokens. It holds each against two limits that it measures first: "
        "how fast the level of cache that holds the call's data (or the memory) is read, and the "
        "peak of the set's own instructions. Each operation has a table. Its columns are:\n\n"
        "  us         median time of a call (csv, json: ns)\n"
        "  GB/s       what a call has to read at least, in that time\n"
        "  data in    nearest level that holds the call's data: L1, L2, L3 or memory\n"
        "  of that    GB/s as a share of how fast this level is read (json: read_gb_s)\n"
        "  GOP/s      additions and multiplications in that time\n"
        "  of peak    GOP/s as a share of the peak (json: peak_gop_s)\n"
        "  x scalar   speed beside the scalar set with one token\n"
        "  doubtful   why the row is: it is over 100 % of a limit, or other programs ran\n"
        "             beside it, or while the levels were measured; then with the best of\n"
        "             many short windows, and the time that the thread ran\n"
        "             (json: best_ns, cpu_ns, on_cpu, others)\n\n"
        "A model reads all of its weights between two uses of a matrix, so caches keep none of "
        "them. Where a cache may hold the matrix of a row with 1 or 8 tokens, a second row, cold, "
        "takes another one each time: in turn from more memory than L3 has, as it was measured, "
        "but at most an eighth of the machine's.\n\n"
        "Where the processor counts events, cycles, instructions, their ratio (IPC), and misses of "
        "caches and of the TLB follow, each for one call. The scalar set is slow and takes each "
        "token by itself, so it is timed with one, and not cold.\n\n"
        "--compare says for each row of both files whether the second is faster, with an interval "
        "of 95 %, as text for a commit. Machines change their speed from minute to minute, so let "
        "two programs take turns, six times or more, and append the rows of each to one file; with "
        "nine rounds, one that was disturbed does no harm:\n\n"
        "  for i in 1 2 3 4 5 6 7 8 9; do\n"
        "      ./old bench kernels --only matmul_q8 -r 3 -o jsonl >>old.jsonl\n"
        "      ./new bench kernels --only matmul_q8 -r 3 -o jsonl >>new.jsonl\n"
        "  done\n"
        "  mizzle bench kernels --compare old.jsonl new.jsonl\n\n"
        "Is one set faster than another? Each run has the rows of both:\n\n"
        "  mizzle bench kernels --compare new.jsonl:avx2 new.jsonl:avx512vnni\n\n"
        "The interval is that of the sign test: it assumes nothing about how times are "
        "distributed.",
    .groups = (const struct option_group *const[]){ &kernels_options, NULL },
    .run = cmd_bench_kernels_main,
    .most = 2,
};
