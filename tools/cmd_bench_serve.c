/* cmd_bench_serve.c - `mizzle bench serve`: any server with OpenAI's API. */
#include "kernels/sys/base.h"
#include "tools/bench/subject.h"

static const struct option_group own_options = {
    "Options",
    (const struct option[]){
        BENCH_ROW_OUTPUT,
        BENCH_ROW_REPEAT("3"),
        { "--n-prompt", "-p", OPTION_STR, &bench_model_opts.prompt, "N",
          "Send prompts of N words (default: 32)" },
        { "--n-gen", "-n", OPTION_STR, &bench_model_opts.gen, "N",
          "Ask for N tokens (default: 128)" },
        OPTION_END,
    },
};

static int cmd_bench_serve_main(int argc, char **argv)
{
    struct err err = { "" };
    int nargs, status = bench_begin(&cmd_bench_serve, argc, argv, 0, &nargs, 3);
    if (status >= 0)
        return status;
    int rc = bench_lengths("32", "128", &err);
    if (rc == OK)
        rc = bench_serve(&bench_opts, &err);
    return command_fail("bench serve", rc, &err);
}

const struct command cmd_bench_serve = {
    .name = "bench serve",
    .summary = "measure any server with OpenAI's API",
    .args = "",
    .description =
        "Measures any server with OpenAI's API, such as mizzle serve, llama-server and "
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
        "  mizzle bench serve --url http://127.0.0.1:8080 --clients 1,4,8 -n 128\n"
        "  mizzle bench serve --url http://127.0.0.1:8080 --clients 1 --long 4000 -n 600",
    .groups = (const struct option_group *const[]){ &own_options, &bench_serve_opts, NULL },
    .run = cmd_bench_serve_main,
};
