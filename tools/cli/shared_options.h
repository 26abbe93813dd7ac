/* shared_options.h - the options that several commands share, and the values that they set.
 *
 * A command lists the groups that it takes after its own. setup.h adds what the environment says.
 */
#ifndef TOOLS_CLI_SHARED_OPTIONS_H
#define TOOLS_CLI_SHARED_OPTIONS_H

#include <stddef.h>

#include "router/routing.h"
#include "tools/cli/options.h"

extern const struct option_group engine_option_rows;      /* --model --threads --isa --kv */
extern const struct option_group chat_option_rows;        /* --chat-template --think */
extern const struct option_group route_option_rows;       /* --router --policy --threshold ... */
extern const struct option_group ahead_option_rows;       /* --ahead --draft ... */
extern const struct option_group cloud_option_rows;       /* --cloud-url --cloud --cloud-api */
extern const struct option_group cloud_call_option_rows;  /* --cloud-model --cloud-timeout ... */
extern const struct option_group cloud_limit_option_rows; /* --max-cloud-tokens ... */
extern const struct option_group answers_option_rows;     /* --answers ... */
/* Those of a command that writes routed texts. */
#define ROUTED_OPTION_ROWS                                                          \
    &chat_option_rows, &engine_option_rows, &route_option_rows, &ahead_option_rows, \
        &cloud_option_rows, &cloud_call_option_rows, &cloud_limit_option_rows,      \
        &answers_option_rows

/* What the shared rows set; command_run sets its defaults first. */
extern struct routing_options shared_options;
extern size_t shared_parallel; /* answers in flight; 0: cores and memory decide */

/* Rows of engine_option_rows for commands that have no use for the others, and one that several
 * have of their own. otherwise: the set without --isa and MIZZLE_ISA. */
#define OPTION_ROW_THREADS                                                     \
    {                                                                          \
        "--threads", "-t", OPTION_SIZE, &shared_options.engine.threads, "N",   \
            "Compute with N threads, at most 64 (0: one per processor, or as " \
            "many as a CPU quota allows; default: 0)"                          \
    }
#define OPTION_ROW_ISA(otherwise)                                                   \
    {                                                                               \
        "--isa", NULL, OPTION_STR, &shared_options.engine.isa, "NAME",              \
            "Use this kernel set, one of those that `mizzle info` lists (default: " \
            "MIZZLE_ISA, else " otherwise ")"                                       \
    }
/* For the short help (options.h). */
#define OPTION_BRIEF_MODELS                                               \
    { "--model", "GGUF file, folder, or ORG/NAME of a download (demo)" }, \
        { "--cloud-url", "Server of the large model" },                   \
    {                                                                     \
        "--cloud-model", "Its name there; without a URL, a local model"   \
    }
#define OPTION_ROW_QUIET(to)                                                 \
    {                                                                        \
        "--quiet", "-q", OPTION_FLAG, to, NULL, "Show no progress on stderr" \
    }
/* For commands that write many answers. */
#define OPTION_ROW_PARALLEL                                                                      \
    {                                                                                            \
        "--parallel", NULL, OPTION_COUNT, &shared_parallel, "N",                                 \
            "Write N answers at once, at most 64; they do not change each other; 1 to measure "  \
            "times (default: 8 per thread, at most 32, and at most an eighth of the memory for " \
            "keys and values; a large model in this process has another eighth)"                 \
    }

#endif
