/* cmd_bench_route.c - `mizzle bench route`: what routing to a cloud costs. */
#include "kernels/sys/base.h"
#include "tools/bench/subject.h"
#include "router/engine.h"

static const struct option_group own_options = {
    "Options",
    (const struct option[]){
        BENCH_ROW_OUTPUT,
        BENCH_ROW_REPEAT("1; with --as-paper: 3"),
        { "--n-prompt", "-p", OPTION_STR, &bench_model_opts.prompt, "N",
          "Begin with a random prompt of N tokens (default: 100)" },
        { "--n-gen", "-n", OPTION_STR, &bench_model_opts.gen, "N",
          "Generate N tokens (default: 100)" },
        { "--threads", "-t", OPTION_STR, &bench_threads, "N",
          "Compute with N threads (default: all processors)" },
        OPTION_ROW_ISA("the best"),
        BENCH_ROW_MODEL,
        BENCH_ROW_SHAPE("none"),
        BENCH_ROW_TYPE,
        BENCH_ROW_KV,
        BENCH_ROW_PLOT("the time per token"),
        OPTION_END,
    },
};

/* Read the options of `bench route`, open the model and run it. */
static int cmd_bench_route_run(struct err *err)
{
    struct engine e = { .model = NULL };
    struct bench_options *o = &bench_opts;
    const char *shape = bench_model_opts.shape, *model = engine_options.model;
    int rc = bench_threads_of(false, err);
    if (!rc)
        rc = bench_lengths("100", "100", err);
    if (!rc)
        rc = setup_kv(&o->kv, KVCACHE_F16, err);
    o->repeat = o->repeat ? o->repeat : bench_route_repeat();
    o->model = shape ? shape : model ? model : "demo";
    engine_options.threads = bench_model_opts.threads.at[0];
    if (!rc)
        rc = bench_model_open(&e, &bench_model_opts, err);
    if (!rc)
        rc = bench_route(o, &e, err);
    if (e.model || e.pool)
        engine_close(&e);
    return rc;
}

static int cmd_bench_route_main(int argc, char **argv)
{
    struct err err = { "" };
    int nargs, status = bench_begin(&cmd_bench_route, argc, argv, 0, &nargs, 0);
    if (status >= 0)
        return status;
    return command_fail("bench route", cmd_bench_route_run(&err), &err);
}

const struct command cmd_bench_route = {
    .name = "bench route",
    .summary = "measure what routing to a cloud costs",
    .args = "",
    .description =
        "Measures routing to a cloud. It writes -n tokens after a random prompt of -p "
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
        "  mizzle bench route --edge-ms 10 --latency 200 --ahead 0,1,4 -n 1000\n"
        "  mizzle bench route --shape qwen2.5-0.5b --latency 170 --as-paper\n"
        "  mizzle bench route --shape qwen2.5-0.5b --latency 170 --table paper",
    .groups = (const struct option_group *const[]){ &own_options, &bench_route_opts, NULL },
    .run = cmd_bench_route_main,
};
