/* subject.h - what the commands of `mizzle bench`, one for each subject, have in common. */
#ifndef TOOLS_LAB_BENCH_SUBJECT_H
#define TOOLS_LAB_BENCH_SUBJECT_H

#include "tools/lab/bench/bench.h"
#include "tools/lab/bench/bench_model.h"
#include "tools/cli/setup.h"
#include "tools/command.h"

/* The values of the options; lists of numbers are text until they are needed. */
extern struct bench_options bench_opts;
extern struct bench_model_options bench_model_opts;
extern const char *bench_threads;

/* Rows of option tables. Each subject says its own default. */
#define BENCH_ROW_OUTPUT                                          \
    {                                                             \
        "--output", "-o", OPTION_STR, &bench_opts.format, "FORM", \
            "Print as md, csv, json or jsonl (default: md)"       \
    }
#define BENCH_ROW_REPEAT(otherwise)                                                    \
    {                                                                                  \
        "--repeats", "-r", OPTION_SIZE, &bench_opts.repeat, "N",                       \
            "Take N samples of each test and show the median (default: " otherwise ")" \
    }
#define BENCH_ROW_SHAPE(otherwise)                                                       \
    {                                                                                    \
        "--shape", NULL, OPTION_STR, &bench_model_opts.shape, "NAME",                    \
            "Take random weights of this shape instead of a file: qwen2.5-0.5b, -1.5b, " \
            "-3b, -7b, qwen3-0.6b, -1.7b, -4b or -8b (default: " otherwise ")"           \
    }
#define BENCH_ROW_TYPE                                                                    \
    {                                                                                     \
        "--type", NULL, OPTION_STR, &bench_model_opts.type, "TYPE",                       \
            "Give every matrix of --shape this type: f32, bf16, one of GGUF's from q8_0 " \
            "to q2_k and iq4_xs, or the mix q4_k_m (default: q8_0)"                       \
    }
#define BENCH_ROW_KV                                                 \
    {                                                                \
        "--kv", NULL, OPTION_STR, &shared_options.engine.kv, "TYPE", \
            "Keep keys and values in f32, f16 or q8 (default: f16)"  \
    }

/* Begin a subject: check the options that several subjects have, and catch interrupts. repeat: -r
 * if it is not given. */
int bench_begin(size_t repeat, struct err *err);

/* Set bench_model_opts.threads to -t; many: it may be a list. ERR_ARG. */
int bench_threads_of(bool many, struct err *err);

#endif
