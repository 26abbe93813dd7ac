/* cmd_bench_route.c - `mizzle bench route`: what a token costs where some of them come from the
 * cloud, through the decoding loop, the HTTP client and a server on the loopback, beside what it
 * should cost; and what the habits of the paper's demo cost, one by one. */
#include <math.h>
#include <stdlib.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "model/model.h"
#include "model/sample.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "net/cloud.h"
#include "router/cloud_port.h"
#include "router/decode/decode.h"
#include "router/engine.h"
#include "tools/lab/bench/paper_baseline.h"
#include "tools/lab/bench/route_report.h"
#include "tools/lab/bench/scripted_cloud.h"
#include "tools/lab/bench/subject.h"
#include "tools/lab/bench/synthetic_vocab.h"
#include "tools/cli/progress.h"
#include "tools/lab/clock/ahead_model.h"
#include "tools/lab/stand_in/stand_in.h"

enum { LIST = 16, MOST_TOKENS = 1 << 16, MAX_MS = 60000, TIMEOUT_MS = 600000 };
enum { PAPER_REPEAT = 3, PAPER_CLOUD_MS = 20, PAPER_TRIPS = 2, PAPER_TOKENS = 16, WAYS = 7 };
enum { SEED = 1, FOR_PROMPT = 7 };

static const char *routed = "0.07", *latency = "200", *ahead = "0,1,4";
static float agree = 0.7f, edge_ms;
static size_t prompt_tokens = 100, answer_tokens = 100;
static bool as_paper;

static const struct option_group own_options = {
    "Options",
    (const struct option[]){
        BENCH_ROW_OUTPUT,
        BENCH_ROW_REPEAT("1; with --as-paper: 3"),
        { "--n-prompt", "-p", OPTION_SIZE, &prompt_tokens, "N",
          "Begin with a random prompt of N tokens (default: 100)" },
        { "--n-gen", "-n", OPTION_SIZE, &answer_tokens, "N", "Generate N tokens (default: 100)" },
        { "--threads", "-t", OPTION_STR, &bench_threads, "N",
          "Compute with N threads (default: all processors)" },
        OPTION_ROW_ISA("the best"),
        BENCH_ROW_MODEL,
        BENCH_ROW_SHAPE("none"),
        BENCH_ROW_TYPE,
        BENCH_ROW_KV,
        OPTION_END,
    },
};

static const struct option_group network_options = {
    "Routing and network",
    (const struct option[]){
        { "--routed", "-R", OPTION_STR, &routed, "LIST",
          "Route these shares of the tokens (default: 0.07)" },
        { "--latency", "-L", OPTION_STR, &latency, "LIST",
          "Delay each call by these round trips, in whole milliseconds (default: 200)" },
        { "--ahead", "-W", OPTION_STR, &ahead, "LIST",
          "Allow W requests in flight at once; 0 waits for each call, that is, in step "
          "(default: 0,1,4)" },
        { "--agree", NULL, OPTION_FLOAT, &agree, "A",
          "Answer this share of the calls with the edge's guess (default: 0.7)" },
        { "--edge-ms", NULL, OPTION_FLOAT, &edge_ms, "T",
          "Make each step of the edge take at least T milliseconds (default: as long as it "
          "takes)" },
        { "--as-paper", NULL, OPTION_FLAG, &as_paper, NULL,
          "Compare with the way of the paper's demo, habit by habit" },
        OPTION_END,
    },
};

/* Parsed numbers of an option. */
struct list {
    double at[LIST];
    size_t n;
};

/* State of the benchmark. */
struct bench_run {
    struct route_setting setting;
    struct list shares, latencies, aheads;
    struct tokenizer *vocab;
    struct session *session;
    struct sampler *sampler;
    uint32_t *prompt;
    struct scripted_cloud truth;
    uint64_t seed; /* for the policy, for the present share */
    struct stand_in *server;
    struct cloud *cloud;
    struct progress *progress; /* to be ended before a table is printed */
};

/* Parse numbers from 0 to most, separated by commas. */
static int read_list(struct list *out, const char *name, const char *text, double most, bool whole,
                     struct err *err)
{
    const char *p = text;
    for (out->n = 0; out->n < LIST; out->n++) {
        char *end;
        double v = strtod(p, &end);
        bool ends = *end == '\0';
        if (end == p || !(v >= 0 && v <= most) || (whole && rint(v) != v) || (!ends && *end != ','))
            break;
        out->at[out->n] = v;
        p = end + 1;
        if (ends) {
            out->n++;
            return OK;
        }
    }
    return err_set(err, ERR_ARG, "%s: expected 1 to %d %snumbers of 0 to %g with commas, found %s",
                   name, LIST, whole ? "whole " : "", most, text);
}

/* Parse and check the options and fill r->setting. */
static int cmd_bench_route_options(struct bench_run *r, struct err *err)
{
    const char *shape = bench_model_opts.shape, *model = shared_options.model;
    int rc = read_list(&r->shares, "--routed", routed, 1, false, err);
    if (rc == OK)
        rc = read_list(&r->latencies, "--latency", latency, MAX_MS, true, err);
    if (rc == OK)
        rc = read_list(&r->aheads, "--ahead", ahead, AHEAD_MODEL_MOST, true, err);
    if (rc)
        return rc;
    if (prompt_tokens < 1 || prompt_tokens > MOST_TOKENS || answer_tokens < 2 ||
        answer_tokens > MOST_TOKENS)
        return err_set(err, ERR_ARG, "-p: expected 1 to %d, found %zu; -n: 2 to %d, found %zu",
                       MOST_TOKENS, prompt_tokens, MOST_TOKENS, answer_tokens);
    if (!(agree >= 0 && agree <= 1) || !(edge_ms >= 0 && edge_ms <= MAX_MS))
        return err_set(err, ERR_ARG, "--agree: expected 0 to 1; --edge-ms: 0 to %d", MAX_MS);
    if (as_paper && edge_ms > 0)
        return err_set(err, ERR_ARG, "--as-paper measures the edge as it is: leave --edge-ms out");
    r->setting = (struct route_setting){ .model = shape   ? shape
                                                  : model ? model
                                                          : "demo",
                                         .prompt = prompt_tokens,
                                         .tokens = answer_tokens,
                                         .repeat = bench_opts.repeat ? bench_opts.repeat
                                                   : as_paper        ? PAPER_REPEAT
                                                                     : 1,
                                         .agree = (double)agree };
    r->truth.agree = r->setting.agree;
    r->truth.step_ms = as_paper ? PAPER_CLOUD_MS : 0;
    return OK;
}

/* Open vocabulary, session and sampler and draw the prompt. */
static int cmd_bench_route_open(struct bench_run *r, const struct engine *e, struct err *err)
{
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    enum kvcache kv;
    size_t n = r->setting.prompt, room = n + 2 * r->setting.tokens + PAPER_TOKENS;
    int rc = setup_kv(&kv, KVCACHE_F16, err);
    if (rc == OK)
        rc = synthetic_vocab_open(&r->vocab, model_config(e->model)->vocab, err);
    if (rc == OK)
        rc = session_open(&r->session, e->batch, room, kv, err);
    if (rc)
        return rc;
    size_t size = tokenizer_size(r->vocab);
    size_t from = size > 2 * SYNTHETIC_VOCAB_WORDS ? SYNTHETIC_VOCAB_WORDS : 0;
    rc = sampler_open(&r->sampler, &greedy, size, &e->kernels, err);
    r->prompt = rc == OK ? malloc(n * sizeof(*r->prompt)) : NULL;
    if (!r->prompt)
        return rc ? rc : err_set(err, ERR_NOMEM, "bench: out of memory");
    for (size_t i = 0; i < n; i++)
        r->prompt[i] = (uint32_t)(from + rand_below(rand_u64(SEED, FOR_PROMPT), i, size - from));
    r->truth.vocab = size;
    return OK;
}

static void cmd_bench_route_hang_up(struct bench_run *r)
{
    cloud_close(r->cloud);
    stand_in_close(r->server);
    r->cloud = NULL;
    r->server = NULL;
}

/* Start a server with this latency, and its client. */
static int cmd_bench_route_connect(struct bench_run *r, double ms, struct err *err)
{
    const struct stand_in_oracle oracle = { scripted_cloud_next, &r->truth, r->vocab };
    const struct stand_in_options s = { .oracle = &oracle,
                                        .server = CLOUD_SGLANG,
                                        .net.latency_ms = (unsigned)ms,
                                        .net.trips = as_paper ? PAPER_TRIPS : 0,
                                        .seed = SEED,
                                        .context = session_context(r->session) + 1 };
    int rc = stand_in_open(&r->server, &s, err);
    if (rc)
        return rc;
    const struct cloud_options c = { .url = stand_in_url(r->server),
                                     .vocab = r->truth.vocab,
                                     .tokens = 1,
                                     .timeout_ms = TIMEOUT_MS,
                                     .stop = &interrupted };
    return cloud_open(&r->cloud, &c, err);
}

/* Write the text in step, to learn what the edge guesses and how fast it is: twice, because caches
 * and clocks are cold at first. */
static int cmd_bench_route_rehearse(struct bench_run *r, double share, struct err *err)
{
    int rc = OK;
    r->seed = scripted_cloud_seed(SEED, (float)share, r->setting.prompt, r->setting.tokens);
    for (size_t i = 0; i < 2 && rc == OK; i++)
        rc =
            scripted_cloud_rehearse(&r->truth, r->session, r->sampler, r->prompt, r->setting.prompt,
                                    r->setting.tokens, (float)share, r->seed, &interrupted, err);
    return rc;
}

/* Callback of the decoding loop: add the token to the hash of the text. */
static bool cmd_bench_route_on_token(void *arg, const struct decode_token *t)
{
    uint64_t *text = arg;
    *text = scripted_cloud_hash(*text, t->id);
    return true;
}

/* Write one answer through loop, client and server; *text becomes its hash. */
static int cmd_bench_route_decode(struct bench_run *r, struct decode_stats *stats, uint64_t *text,
                                  double share, size_t window, struct err *err)
{
    const struct decode_options o = { .policy = POLICY_RANDOM,
                                      .threshold = (float)share,
                                      .max_tokens = r->setting.tokens,
                                      .seed = r->seed,
                                      .step_ns = (uint64_t)((double)edge_ms * 1e6),
                                      .ahead = window,
                                      .stop = &interrupted,
                                      .emit = cmd_bench_route_on_token,
                                      .arg = text };
    struct cloud_port port;
    cloud_port_cloud(&port, r->cloud);
    *text = 0;
    session_rewind(r->session, 0);
    return decode_run(stats, r->session, r->vocab, r->sampler, NULL, &port, r->prompt,
                      r->setting.prompt, &o, err);
}

/* Measure one row, `repeat` times. */
static int cmd_bench_route_measure(struct bench_run *r, struct route_row *row, struct err *err)
{
    const struct scripted_cloud *t = &r->truth;
    struct decode_stats s;
    double samples[BENCH_REPEAT];
    for (size_t i = 0; i < r->setting.repeat; i++) {
        int rc = cmd_bench_route_decode(r, &s, &row->text, row->share, row->ahead, err);
        if (rc)
            return rc;
        samples[i] = (s.total_ms - s.ttft_ms) / (double)(s.tokens - 1);
    }
    double cloud = s.cloud ? (double)s.cloud : 1;
    row->ms = bench_median(samples, r->setting.repeat);
    row->edge_ms = edge_ms > 0 ? (double)edge_ms : t->ms;
    row->formula =
        ahead_model_formula(row->edge_ms, row->share, t->agree, row->latency, row->ahead);
    row->model = ahead_model_text(t->marks, t->n, row->edge_ms, row->latency, row->ahead, NULL);
    row->cloud = s.cloud;
    row->fallback = s.fallback;
    row->agreed = t->agreed;
    row->calls = s.calls;
    row->wasted = s.wasted;
    row->up = (double)s.traffic.bytes_up / cloud;
    row->down = (double)s.traffic.bytes_down / cloud;
    return OK;
}

/* Wipe the line that shows progress. */
static void cmd_bench_route_quiet(struct bench_run *r)
{
    progress_end(r->progress);
    r->progress = NULL;
}

/* Measure and print all rows; each row has a server of its own. */
static int cmd_bench_route_rows(struct bench_run *r, struct err *err)
{
    size_t each = r->aheads.n, most = r->shares.n * r->latencies.n * each, n = 0;
    struct route_row *rows = calloc(most, sizeof(*rows));
    int rc = rows ? OK : err_set(err, ERR_NOMEM, "bench: out of memory");
    for (size_t i = 0; i < r->shares.n && rc == OK; i++) {
        rc = cmd_bench_route_rehearse(r, r->shares.at[i], err);
        for (size_t k = 0; k < r->latencies.n * each && rc == OK; k++) {
            rows[n] = (struct route_row){ .share = r->shares.at[i],
                                          .latency = r->latencies.at[k / each],
                                          .ahead = (size_t)r->aheads.at[k % each] };
            rc = cmd_bench_route_connect(r, rows[n].latency, err);
            if (rc == OK)
                rc = cmd_bench_route_measure(r, &rows[n++], err);
            cmd_bench_route_hang_up(r);
        }
    }
    cmd_bench_route_quiet(r);
    if (rc == OK)
        rc = route_report_rows(bench_opts.format, &r->setting, rows, n, err);
    free(rows);
    return rc;
}

/* Write one answer with the habits in p, or, if p is NULL, by the decoding loop. */
static int cmd_bench_route_way(struct bench_run *r, struct route_way *way, double share,
                               size_t window, const struct paper_baseline *p, struct err *err)
{
    struct decode_stats s;
    struct paper_baseline_cost c;
    int rc = p ? paper_baseline_run(&c, p, err)
               : cmd_bench_route_decode(r, &s, &way->text, share, window, err);
    if (rc)
        return rc;
    if (!p)
        c = (struct paper_baseline_cost){ .ms = s.total_ms,
                                          .edge_ms = s.edge_ms + s.router_ms,
                                          .cloud_ms = s.cloud_ms,
                                          .calls = s.calls,
                                          .up = s.traffic.bytes_up,
                                          .down = s.traffic.bytes_down,
                                          .text = way->text };
    double calls = c.calls ? (double)c.calls : 1;
    way->s = c.ms / 1e3;
    way->edge_s = c.edge_ms / 1e3;
    way->cloud_s = c.cloud_ms / 1e3;
    way->calls = c.calls;
    way->up = (double)c.up / calls;
    way->down = (double)c.down / calls;
    way->text = c.text;
    return OK;
}

/* Measure way i of cmd_bench_route_ways: the median sample. */
static int cmd_bench_route_median(struct bench_run *r, struct route_way *ways, size_t i,
                                  double share, size_t window, struct err *err)
{
    bool all = i == WAYS - 1;
    const struct paper_baseline p = { .session = r->session,
                                      .tok = r->vocab,
                                      .sampler = r->sampler,
                                      .prompt = r->prompt,
                                      .n = r->setting.prompt,
                                      .tokens = r->setting.tokens,
                                      .share = (float)share,
                                      .seed = r->seed,
                                      .url = stand_in_url(r->server),
                                      .stop = &interrupted,
                                      .no_cache = all || i == 2,
                                      .connect = all || i == 3,
                                      .text = all || i == 4,
                                      .want = all || i == 5 ? PAPER_TOKENS : 1 };
    size_t n = r->setting.repeat;
    struct route_way *samples = calloc(n, sizeof(*samples));
    int rc = samples ? OK : err_set(err, ERR_NOMEM, "bench: out of memory");
    for (size_t k = 0; k < n && rc == OK; k++) {
        samples[k] = ways[i];
        rc = cmd_bench_route_way(r, &samples[k], share, i ? 0 : window, i < 2 ? NULL : &p, err);
    }
    if (rc == OK)
        ways[i] = route_report_median(samples, n);
    free(samples);
    return rc;
}

/* Measure and print --as-paper. */
static int cmd_bench_route_ways(struct bench_run *r, struct err *err)
{
    struct route_way ways[WAYS] = {
        { .name = "default" },
        { .name = "in step" },         /* waits for each call */
        { .name = "no KV cache" },     /* evaluates the whole text for each token */
        { .name = "new connections" }, /* connects for each call */
        { .name = "text" },            /* sends text and cuts it into tokens again */
        { .name = "16 tokens" },       /* asks for 16 tokens and uses one */
        { .name = "as the paper" },    /* all of these */
    };
    double share = r->shares.at[0];
    size_t window = 1;
    for (size_t i = r->aheads.n; i-- > 0;)
        window = r->aheads.at[i] > 0 ? (size_t)r->aheads.at[i] : window;
    int rc = cmd_bench_route_rehearse(r, share, err);
    if (rc == OK)
        rc = cmd_bench_route_connect(r, r->latencies.at[0], err);
    for (size_t i = 0; i < WAYS && rc == OK; i++)
        rc = cmd_bench_route_median(r, ways, i, share, window, err);
    cmd_bench_route_hang_up(r);
    route_report_extra(ways, WAYS);
    cmd_bench_route_quiet(r);
    if (rc == OK)
        rc = route_report_ways(bench_opts.format, &r->setting, ways, WAYS, err);
    return rc;
}

/* Open the model and measure. */
static int cmd_bench_route_run(struct err *err)
{
    struct bench_run r = { .progress = NULL };
    struct engine e = { .model = NULL };
    int rc = bench_threads_of(false, err);
    if (rc == OK)
        rc = cmd_bench_route_options(&r, err);
    shared_options.threads = bench_model_opts.threads.at[0];
    if (rc == OK)
        rc = bench_model_open(&e, &bench_model_opts, err);
    r.progress = rc == OK ? progress_begin("measuring", "routing") : NULL;
    if (rc == OK)
        rc = cmd_bench_route_open(&r, &e, err);
    if (rc == OK)
        rc = as_paper ? cmd_bench_route_ways(&r, err) : cmd_bench_route_rows(&r, err);
    cmd_bench_route_quiet(&r);
    scripted_cloud_close(&r.truth);
    free(r.prompt);
    sampler_close(r.sampler);
    session_close(r.session);
    tokenizer_close(r.vocab);
    if (e.model || e.pool)
        engine_close(&e);
    return rc;
}

static int cmd_bench_route_main(int n, char **args, struct err *err)
{
    int rc = bench_begin(0, err);
    (void)n, (void)args;
    return rc == OK ? cmd_bench_route_run(err) : rc;
}

const struct command cmd_bench_route = {
    .name = "bench route",
    .summary = "measure what routing to a cloud costs",
    .description =
        "Measures routing to a cloud. It writes -n tokens after a random prompt of -p "
        "tokens, through the decoding loop, the HTTP client and a server on the loopback, once "
        "for each combination of --routed, --latency and --ahead, which are lists such as "
        "0.07,0.2. The routed tokens are drawn at random. The server holds no "
        "model and takes no processor time: it answers with the token that the edge would "
        "choose or with another one. The prefix decides which, so that in each ten routed "
        "tokens the share that agrees is --agree. The columns are:\n\n"
        "  r, L, W    share of routed tokens, latency in ms, requests in flight\n"
        "  t          ms per token of the edge alone, with its output head\n"
        "  measured   ms per token after the first\n"
        "  formula    t + rL in step; t + r(1-a)L ahead, if the window is never full\n"
        "  model      an event model with W requests in flight, for this text and the\n"
        "             routed tokens drawn for it\n"
        "  calls      calls made, wasted ones included\n"
        "  wasted     calls made ahead for a text that turned out otherwise\n"
        "  up, down   bytes per cloud token, with headers and wasted calls\n"
        "  text       a hash of the text, which depends on neither L nor W\n\n"
        "csv and json have all columns. --as-paper takes the first --routed, the first --latency "
        "and the first --ahead above "
        "0, and compares Mizzle with the way the paper's published demo works, and with each of "
        "that demo's habits alone: waiting for each call, evaluating the whole text for each "
        "token, opening a new connection for each call, sending text instead of ids, and "
        "requesting 16 tokens to use one. The text comes from a vocabulary made for the "
        "benchmark, with 5 bytes per token. The cloud takes 20 ms "
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
        "Below stands by how much the extra times of the single habits miss that of all of "
        "them.\n\n"
        "  mizzle bench route --edge-ms 10 --latency 200 --ahead 0,1,4 -n 1000\n"
        "  mizzle bench route --shape qwen2.5-0.5b --latency 170 --as-paper",
    .groups = (const struct option_group *const[]){ &own_options, &network_options, NULL },
    .run = cmd_bench_route_main,
};
