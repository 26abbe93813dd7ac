/* bench_route.c - measures what a token costs where some of them come from the cloud, through the
 * decoding loop, the HTTP client and a server on the loopback, beside what it should cost. */
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/cloud_port.h"
#include "router/engine.h"
#include "tools/bench/bench_route_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "model/sample.h"
#include "net/answers/answers.h"
#include "net/cloud.h"
#include "tools/clock/ahead_model.h"
#include "tools/bench/synthetic_vocab.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/stand_in/stand_in.h"

enum { MAX_MS = 60000, MAX_CLOUD_MS = 10000, TIMEOUT_MS = 600000, PAPER_CLOUD_MS = 20 };
enum { PAPER_REPEAT = 3, PAPER_TRIPS = 2, FOR_PROMPT = 7, UNSET = 0x7fffffff };

static const char *routed = "0.07", *latency = "200", *ahead = "0,1,4", *at_once = "1";
static float agree = 0.7f, agree_next = 0.9f, loss, edge_ms;
static size_t bandwidth, cloud_ms = UNSET, trips = UNSET;
static uint64_t seed = 1;
static bool as_paper;
static const char *table;

const struct option_group bench_route_opts = {
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
        { "--cloud-tokens", NULL, OPTION_STR, &at_once, "LIST",
          "Ask for N tokens in a call; those after the first are a draft of the text that "
          "follows, which the edge verifies in one pass, as `run` does (default: 1)" },
        { "--agree-next", NULL, OPTION_FLOAT, &agree_next, "A",
          "Let this share of the tokens after a call's first be those of the text (default: 0.9)" },
        { "--edge-ms", NULL, OPTION_FLOAT, &edge_ms, "T",
          "Make each step of the edge take at least T milliseconds, and verify no drafts, which "
          "would then cost nothing (default: as long as it takes)" },
        { "--cloud-ms", NULL, OPTION_SIZE, &cloud_ms, "MS",
          "Let the cloud compute MS milliseconds per token, in addition to the latency "
          "(default: 0; --as-paper, --table: 20)" },
        { "--bandwidth", NULL, OPTION_SIZE, &bandwidth, "N",
          "Limit a connection to N bytes per second each way (default: no limit)" },
        { "--loss", NULL, OPTION_FLOAT, &loss, "P", "Lose this share of the packets (default: 0)" },
        { "--trips", NULL, OPTION_SIZE, &trips, "N",
          "Let a new connection take N round trips before its first call (default: 0; "
          "--as-paper, --table: 2)" },
        { "--seed", "-s", OPTION_U64, &seed, "N",
          "Seed for the prompt, the losses and the routed tokens; of the seeds from N on, "
          "routing uses the one that comes closest to the share asked for (default: 1)" },
        { "--as-paper", NULL, OPTION_FLAG, &as_paper, NULL,
          "Compare with the way of the paper's demo, habit by habit; with --table paper, write "
          "in that way" },
        { "--table", NULL, OPTION_STR, &table, "NAME",
          "paper: measure the columns of the paper's Table 1 at the shares that were routed "
          "there, beside the printed rows (default: one row for each --routed, --latency, "
          "--ahead and --cloud-tokens)" },
        OPTION_END,
    },
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
static int bench_route_read_options(struct bench_run *r, struct err *err)
{
    const struct bench_options *o = r->o;
    bool paper = as_paper || table;
    int rc = read_list(&r->shares, "--routed", routed, 1, false, err);
    if (rc == OK)
        rc = read_list(&r->latencies, "--latency", latency, MAX_MS, true, err);
    if (rc == OK)
        rc = read_list(&r->aheads, "--ahead", ahead, AHEAD_MODEL_MOST, true, err);
    if (rc == OK)
        rc = read_list(&r->at_once, "--cloud-tokens", at_once, CLOUD_MAX_TOKENS, true, err);
    if (rc)
        return rc;
    if (o->prompt < 1 || o->prompt > 1 << 16 || o->tokens < 2 || o->tokens > 1 << 16)
        return err_set(err, ERR_ARG,
                       "-p: expected 1 to 65536, found %zu; -n: 2 to 65536, found %zu", o->prompt,
                       o->tokens);
    if (!(agree >= 0 && agree <= 1 && agree_next >= 0 && agree_next <= 1) ||
        !(loss >= 0 && loss < 1))
        return err_set(err, ERR_ARG,
                       "--agree, --agree-next, --loss: expected 0 to 1, --loss below 1");
    for (size_t i = 0; i < r->at_once.n; i++)
        if (r->at_once.at[i] < 1)
            return err_set(err, ERR_ARG, "--cloud-tokens: expected 1 to %d, found 0",
                           CLOUD_MAX_TOKENS);
    if (!(edge_ms >= 0 && edge_ms <= MAX_MS) || (cloud_ms != UNSET && cloud_ms > MAX_CLOUD_MS) ||
        (trips != UNSET && trips > 10))
        return err_set(err, ERR_ARG,
                       "--edge-ms: expected 0 to %d; --cloud-ms: 0 to %d; --trips: 0 to 10", MAX_MS,
                       MAX_CLOUD_MS);
    if (table && strcmp(table, "paper") != 0)
        return err_set(err, ERR_ARG, "--table: expected paper, found %s", table);
    if (as_paper && edge_ms > 0)
        return err_set(err, ERR_ARG, "--as-paper measures the edge as it is: leave --edge-ms out");
    if (paper && !(r->at_once.n == 1 && r->at_once.at[0] <= 1))
        return err_set(err, ERR_ARG,
                       "--cloud-tokens: expected 1 with --as-paper or --table, found %s", at_once);
    if (table && o->plot)
        return err_set(err, ERR_ARG, "--plot: expected without --table");
    r->setting = (struct bench_route_setting){
        .model = o->model,
        .prompt = o->prompt,
        .tokens = o->tokens,
        .repeat = o->repeat,
        .agree = (double)agree,
        .agree_next = (double)agree_next,
        .loss = (double)loss,
        .no_drafts = edge_ms > 0,
        .cloud_ms = cloud_ms != UNSET ? cloud_ms
                    : paper           ? PAPER_CLOUD_MS
                                      : 0,
        .bandwidth = bandwidth,
        .trips = trips != UNSET ? trips
                 : paper        ? PAPER_TRIPS
                                : 0,
    };
    return OK;
}

/* Open vocabulary, session and sampler and draw the prompt. */
static int bench_route_open_parts(struct bench_run *r, const struct engine *e, struct err *err)
{
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    size_t n = r->o->prompt, room = n + 2 * r->o->tokens + PAPER_TOKENS;
    int rc = synthetic_vocab_open(&r->vocab, model_config(e->model)->vocab, err);
    if (rc == OK)
        rc = session_open(&r->session, e->batch, room, r->o->kv, err);
    if (rc)
        return rc;
    size_t size = tokenizer_size(r->vocab);
    size_t from = size > 2 * SYNTHETIC_VOCAB_WORDS ? SYNTHETIC_VOCAB_WORDS : 0;
    rc = sampler_open(&r->sampler, &greedy, size, &e->kernels, err);
    r->prompt = rc == OK ? malloc(n * sizeof(*r->prompt)) : NULL;
    if (!r->prompt)
        return rc ? rc : err_set(err, ERR_NOMEM, "bench: out of memory");
    for (size_t i = 0; i < n; i++)
        r->prompt[i] = (uint32_t)(from + rand_below(rand_u64(seed, FOR_PROMPT), i, size - from));
    r->truth.vocab = size;
    r->truth.agree = r->setting.agree;
    r->truth.agree_next = r->setting.agree_next;
    r->truth.step_ms = (unsigned)r->setting.cloud_ms;
    return OK;
}

void bench_route_close_server(struct bench_run *r)
{
    cloud_close(r->cloud);
    answers_close(r->answers, NULL);
    stand_in_close(r->server);
    r->cloud = NULL;
    r->answers = NULL;
    r->server = NULL;
}

int bench_route_open_server(struct bench_run *r, double ms, size_t tokens, struct err *err)
{
    const struct stand_in_oracle oracle = { scripted_cloud_next, &r->truth, r->vocab };
    const struct stand_in_options s = { .oracle = &oracle,
                                        .server = STAND_IN_SGLANG,
                                        .latency_ms = (unsigned)ms,
                                        .up = r->setting.bandwidth,
                                        .down = r->setting.bandwidth,
                                        .loss = r->setting.loss,
                                        .trips = (unsigned)r->setting.trips,
                                        .seed = seed,
                                        .context = session_context(r->session) + 1 };
    int rc = stand_in_open(&r->server, &s, err);
    if (rc)
        return rc;
    const struct answers_options a = { .vocab = r->truth.vocab };
    rc = tokens > 1 ? answers_open(&r->answers, &a, err) : OK;
    if (rc)
        return rc;
    const struct cloud_options c = { .url = stand_in_url(r->server),
                                     .answers = r->answers,
                                     .vocab = r->truth.vocab,
                                     .tokens = tokens,
                                     .timeout_ms = TIMEOUT_MS,
                                     .stop = &interrupted };
    return cloud_open(&r->cloud, &c, err);
}

/* Return options of the decoding loop that route this share at random. */
static struct decode_options decoding(const struct bench_run *r, double share)
{
    return (struct decode_options){ .policy = POLICY_RANDOM,
                                    .threshold = (float)share,
                                    .max_tokens = r->o->tokens,
                                    .seed = r->seed,
                                    .step_ns = (uint64_t)((double)edge_ms * 1e6),
                                    .stop = &interrupted };
}

int bench_route_rehearse(struct bench_run *r, double share, bool cold, struct err *err)
{
    r->seed = scripted_cloud_seed(seed, (float)share, r->o->prompt, r->o->tokens);
    struct decode_options o = decoding(r, share);
    session_rewind(r->session, 0);
    int rc = scripted_cloud_rehearse(&r->truth, r->session, r->vocab, r->sampler, r->prompt,
                                     r->o->prompt, &o, err);
    session_rewind(r->session, 0);
    if (rc == OK && cold && !(edge_ms > 0))
        rc = scripted_cloud_rehearse(&r->truth, r->session, r->vocab, r->sampler, r->prompt,
                                     r->o->prompt, &o, err);
    return rc;
}

/* Callback of the decoding loop: add the token to the hash of the text. */
static bool bench_route_on_token(void *arg, const struct decode_token *t)
{
    uint64_t *text = arg;
    *text = scripted_cloud_hash(*text, t->id);
    return true;
}

int bench_route_decode(struct bench_run *r, struct decode_stats *stats, uint64_t *text,
                       double share, size_t window, struct err *err)
{
    struct decode_options o = decoding(r, share);
    struct cloud_port port;
    cloud_port_cloud(&port, r->cloud);
    *text = 0;
    o.ahead = window;
    o.emit = bench_route_on_token;
    o.arg = text;
    session_rewind(r->session, 0);
    if (r->answers) {
        answers_forget(r->answers);
        o.drafts = r->setting.no_drafts ? DRAFT_OFF : DRAFT_CLOUD; /* its rows would be free */
        o.draft_max = DRAFT_DEFAULT;
    }
    return decode_run(stats, r->session, r->vocab, r->sampler, NULL, &port, r->prompt, r->o->prompt,
                      &o, err);
}

/* Fill in what the row should have measured, and the share of the latency that was hidden. Nothing
 * is expected of calls for several tokens: how many calls there are then depends on the text. */
static void bench_route_expect(struct bench_route_row *row, const struct bench_run *r)
{
    const struct scripted_cloud *t = &r->truth;
    double a = r->setting.agree, call = row->latency + (double)t->step_ms;
    size_t later = t->routed - (t->marks[0] & AHEAD_MODEL_ROUTED ? 1 : 0);
    row->edge_ms = edge_ms > 0 ? (double)edge_ms : t->ms;
    row->agreed = t->agreed;
    row->formula = row->model = row->here = row->hidden = (double)NAN;
    if (row->cloud_tokens > 1)
        return;
    row->formula = ahead_model_formula(row->edge_ms, row->share, a, call, row->ahead);
    row->model = ahead_model_expected(row->edge_ms, row->share, a, call, row->ahead);
    row->here = ahead_model_text(t->marks, t->n, row->edge_ms, call, row->ahead, NULL);
    if (!later || !(call > 0) || !row->ahead)
        return;
    double hidden = 1 - (row->ms - row->edge_ms) * (double)(t->n - 1) / ((double)later * call);
    row->hidden = hidden > 0 ? hidden : 0;
}

/* Measure one row, `repeat` times. */
static int bench_route_measure(struct bench_run *r, struct bench_route_row *row, struct err *err)
{
    struct decode_stats s;
    size_t repeat = r->o->repeat;
    row->samples = calloc(repeat, sizeof(*row->samples));
    int rc = row->samples ? OK : err_set(err, ERR_NOMEM, "bench: out of memory");
    for (size_t i = 0; i < repeat && rc == OK; i++) {
        rc = bench_route_decode(r, &s, &row->text, row->share, row->ahead, err);
        if (rc == OK)
            row->samples[i] = (s.total_ms - s.ttft_ms) / (double)(s.tokens - 1);
    }
    if (rc)
        return rc;
    double cloud = s.cloud ? (double)s.cloud : 1;
    row->ms = bench_median(row->samples, repeat);
    row->cloud = s.cloud;
    row->fallback = s.fallback;
    row->calls = s.calls;
    row->wasted = s.wasted;
    row->passes = s.passes;
    row->drafted = s.drafted;
    row->accepted = s.accepted;
    row->up = (double)s.traffic.bytes_up / cloud;
    row->down = (double)s.traffic.bytes_down / cloud;
    row->header_up = (double)s.traffic.header_bytes_up / cloud;
    row->header_down = (double)s.traffic.header_bytes_down / cloud;
    bench_route_expect(row, r);
    return OK;
}

/* Measure and print all rows; each row has a server of its own. */
static int bench_route_table(struct bench_run *r, struct err *err)
{
    size_t each = r->aheads.n * r->at_once.n, most = r->shares.n * r->latencies.n * each, n = 0;
    struct bench_route_row *rows = calloc(most, sizeof(*rows));
    int rc = rows ? OK : err_set(err, ERR_NOMEM, "bench: out of memory");
    for (size_t i = 0; i < r->shares.n && rc == OK; i++) {
        rc = bench_route_rehearse(r, r->shares.at[i], true, err);
        for (size_t k = 0; k < r->latencies.n * each && rc == OK; k++) {
            rows[n] = (struct bench_route_row){
                .share = r->shares.at[i],
                .latency = r->latencies.at[k / each],
                .ahead = (size_t)r->aheads.at[k % each / r->at_once.n],
                .cloud_tokens = (size_t)r->at_once.at[k % r->at_once.n],
            };
            rc = bench_route_open_server(r, rows[n].latency, rows[n].cloud_tokens, err);
            if (rc == OK)
                rc = bench_route_measure(r, &rows[n++], err);
            bench_route_close_server(r);
        }
    }
    bench_route_quiet(r);
    if (rc == OK)
        rc = route_report(r->o->format, &r->setting, rows, n, err);
    if (rc == OK && r->o->plot)
        rc = route_plot(r->o->plot, rows, n, err);
    for (size_t i = 0; i < n; i++)
        free(rows[i].samples);
    free(rows);
    return rc;
}

void bench_route_quiet(struct bench_run *r)
{
    progress_end(r->progress);
    r->progress = NULL;
}

size_t bench_route_repeat(void)
{
    return as_paper ? PAPER_REPEAT : 1;
}

int bench_route(const struct bench_options *o, struct engine *e, struct err *err)
{
    struct bench_run r = { .o = o, .as_paper = as_paper };
    int rc = bench_route_read_options(&r, err);
    r.progress = rc == OK ? progress_begin("measuring", "routing") : NULL;
    if (rc == OK)
        rc = bench_route_open_parts(&r, e, err);
    if (rc == OK)
        rc = table      ? bench_route_paper(&r, err)
             : as_paper ? bench_route_ways(&r, err)
                        : bench_route_table(&r, err);
    bench_route_quiet(&r);
    bench_route_close_server(&r);
    scripted_cloud_close(&r.truth);
    free(r.prompt);
    sampler_close(r.sampler);
    session_close(r.session);
    tokenizer_close(r.vocab);
    return rc;
}
