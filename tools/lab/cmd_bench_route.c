/* cmd_bench_route.c - `mizzle bench route`: what an answer costs where some of its tokens come from
 * the cloud, through the decoding loop, the HTTP client and a server on the loopback, beside what
 * it should cost; and what the habits of the paper's demo cost, one by one.
 *
 * The server holds no model. A rehearsal writes the answer once, in step, and decides for each
 * routed token whether the cloud agrees with the edge's guess. Then the server says what was
 * written, and takes no processor time for it. All ways must write the same answer.
 *
 * Source of the habits: She et al., arXiv 2504.07878, and its demo. It evaluates the whole text for
 * each token. Each call opens a connection, requests 16 tokens and uses the first. Nothing happens
 * during a call. That it sends text in place of ids is left out: the text is cut into tokens in
 * less time than can be measured here. */
#include <jansson.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "model/model.h"
#include "model/sample.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "net/cloud.h"
#include "net/http/http.h"
#include "net/http/json_input.h"
#include "router/decode/decode.h"
#include "router/engine.h"
#include "router/policy.h"
#include "tools/lab/bench/oracle_cloud.h"
#include "tools/lab/bench/subject.h"
#include "tools/cli/progress.h"
#include "tools/lab/clock/ahead_model.h"

enum { MOST_TOKENS = 1 << 16, MOST_MS = 60000, SLICE_MS = 20, HABIT_TOKENS = 16 };
enum { REPEAT = 3, CLOUD_MS = 20, TRIPS = 2, SEED = 1, SEEDS = 1000 };

static const char *ahead = "0,1";
static double routed = (double)0.07f, agree = (double)0.7f;
static size_t latency = 200, prompt_tokens = 100, answer_tokens = 100;
static bool as_paper;

static const struct option_group own_options = {
    "Options",
    (const struct option[]){
        BENCH_ROW_OUTPUT,
        BENCH_ROW_REPEAT("3"),
        { "--n-prompt", "-p", OPTION_SIZE, &prompt_tokens, "N",
          "Begin with a random prompt of N tokens (default: 100)" },
        { "--n-predict", "-n", OPTION_SIZE, &answer_tokens, "N",
          "Generate N tokens (default: 100)" },
        { "--threads", "-t", OPTION_STR, &bench_threads, "N",
          "Compute with N threads (default: all processors)" },
        OPTION_ROW_ISA("the best"),
        { "--model", "-m", OPTION_STR, &shared_options.engine.model, "NAME",
          "Measure this model: PATH, ORG/NAME or NAME:TYPE, as for run (default: the demo pair)" },
        BENCH_ROW_SHAPE("none"),
        BENCH_ROW_TYPE,
        BENCH_ROW_KV,
        OPTION_END,
    },
};

static const struct option_group network_options = {
    "Routing and network",
    (const struct option[]){
        { "--share", "-R", OPTION_REAL, &routed, "R",
          "Route this share of the tokens (default: 0.07)" },
        { "--latency", "-L", OPTION_SIZE, &latency, "MS",
          "Delay each call by a round trip of MS milliseconds (default: 200)" },
        { "--ahead", "-W", OPTION_STR, &ahead, "LIST",
          "1: decode ahead; 0: wait for each call, that is, in step (default: 0,1)" },
        { "--agree", NULL, OPTION_REAL, &agree, "A",
          "Answer this share of the calls with the edge's guess (default: 0.7)" },
        { "--as-paper", NULL, OPTION_FLAG, &as_paper, NULL,
          "Compare with the way of the paper's demo, habit by habit" },
        OPTION_END,
    },
};

/* A way of writing the answer: through the decoding loop, or in step with habits of the demo. */
struct way {
    const char *name;
    bool ahead;
    bool loop;
    bool no_cache;             /* evaluate the whole text for each token */
    bool connect;              /* open a connection for each call */
    size_t want;               /* tokens requested by a call; the first is used */
    struct decode_stats stats; /* of the sample with the median time */
};

static const struct way habits[] = {
    { .name = "no KV cache", .no_cache = true, .want = 1 },
    { .name = "new connections", .connect = true, .want = 1 },
    { .name = "16 tokens", .want = HABIT_TOKENS },
    { .name = "as the paper", .no_cache = true, .connect = true, .want = HABIT_TOKENS },
};
enum { HABITS = sizeof(habits) / sizeof(*habits) };

struct route {
    struct oracle_cloud net;
    size_t size; /* of its vocabulary */
    struct session *session;
    struct sampler *sampler;
    uint32_t *text;       /* [prompt_tokens + answer_tokens], as rehearsed */
    unsigned char *marks; /* [answer_tokens], as in ahead_model.h */
    double *calls, *at;   /* [answer_tokens], too */
    uint64_t seed;        /* of policy random */
    double edge_ms;       /* of a token of the edge alone, with its output head */
    bool other;           /* a token was another one than in the rehearsal */
    struct http *http;    /* of the habits */
};

/* Check the options. */
static int cmd_bench_route_check(struct bench_list *aheads, struct err *err)
{
    int rc = bench_list(aheads, "--ahead", ahead, err);
    if (rc == OK && bench_list_most(aheads) > 1)
        rc = err_set(err, ERR_ARG, "--ahead: expected 0, 1 or both, found %s", ahead);
    if (rc)
        return rc;
    if (prompt_tokens < 1 || prompt_tokens > MOST_TOKENS || answer_tokens < 2 ||
        answer_tokens > MOST_TOKENS)
        return err_set(err, ERR_ARG, "-p: expected 1 to %d, found %zu; -n: 2 to %d, found %zu",
                       MOST_TOKENS, prompt_tokens, MOST_TOKENS, answer_tokens);
    if (!(routed >= 0 && routed <= 1) || !(agree >= 0 && agree <= 1) || latency > MOST_MS)
        return err_set(err, ERR_ARG, "--share, --agree: expected 0 to 1; --latency: 0 to %d",
                       MOST_MS);
    return OK;
}

/* What the cloud answers: the token of the rehearsed answer, whatever comes before it, because
 * what was asked after a wrong guess is thrown away. */
static uint32_t cmd_bench_route_next(void *arg, const uint32_t *ids, size_t n)
{
    const struct route *r = arg;
    (void)ids;
    if (as_paper)
        os_nap(CLOUD_MS * UINT64_C(1000000));
    return r->text[n < prompt_tokens + answer_tokens ? n : 0];
}

/* Open what writes and the cloud, and draw the prompt. */
static int cmd_bench_route_open(struct route *r, const struct engine *e, struct err *err)
{
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    const struct oracle_cloud_answers answers = { .next = cmd_bench_route_next,
                                                  .arg = r,
                                                  .latency_ms = (unsigned)latency,
                                                  .trips = as_paper ? TRIPS : 0 };
    size_t room = prompt_tokens + answer_tokens;
    enum kvcache kv;
    r->text = calloc(room, sizeof(*r->text));
    r->marks = calloc(answer_tokens, 1);
    r->calls = calloc(2 * answer_tokens, sizeof(*r->calls));
    if (!r->text || !r->marks || !r->calls)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    int rc = setup_kv(&kv, KVCACHE_F16, err);
    if (rc == OK)
        rc = session_open(&r->session, e->batch, room + answer_tokens, kv, err);
    if (rc == OK)
        rc = oracle_cloud_open(&r->net, model_config(e->model)->vocab, &answers, err);
    if (rc)
        return rc;
    r->size = tokenizer_size(r->net.vocab);
    r->at = r->calls + answer_tokens;
    for (size_t i = 0; i < answer_tokens; i++)
        r->calls[i] = (double)(latency + (as_paper ? CLOUD_MS : 0));
    for (size_t i = 0; i < prompt_tokens; i++)
        r->text[i] = (uint32_t)rand_below(SEED, i, r->size);
    return sampler_open(&r->sampler, &greedy, r->size, &e->kernels, err);
}

static void cmd_bench_route_close(struct route *r)
{
    oracle_cloud_close(&r->net);
    sampler_close(r->sampler);
    session_close(r->session);
    free(r->calls);
    free(r->marks);
    free(r->text);
}

/* True if token i of the answer is routed. */
static bool cmd_bench_route_routed(const struct route *r, size_t i)
{
    return policy_score_random(r->seed, prompt_tokens + i) < (float)routed;
}

/* Choose the first seed with which as many tokens are routed as the share says. */
static void cmd_bench_route_draw(struct route *r)
{
    size_t want = (size_t)(routed * (double)answer_tokens + 0.5), n = want + 1;
    for (r->seed = 0; n != want && r->seed < SEEDS;) {
        r->seed++;
        n = 0;
        for (size_t i = 0; i < answer_tokens; i++)
            n += cmd_bench_route_routed(r, i);
    }
}

/* Write the answer in step, to learn what the edge guesses and how fast it is. The tokens with
 * which the cloud agrees are spread evenly over the routed ones. */
static int cmd_bench_route_rehearse(struct route *r, struct err *err)
{
    struct session *s = r->session;
    size_t asked = 0;
    uint64_t start = 0;
    session_rewind(s, 0);
    int rc = session_eval(s, r->text, prompt_tokens, &interrupted, err);
    for (size_t i = 0; i < answer_tokens && rc == OK; i++) {
        size_t n = prompt_tokens + i;
        uint32_t *id = &r->text[n];
        *id = sampler_pick(r->sampler, session_logits(s, 0), r->text, n);
        r->marks[i] = 0;
        if (cmd_bench_route_routed(r, i)) {
            double before = agree * (double)asked++, after = agree * (double)asked;
            bool agrees = floor(after + 0.5) > floor(before + 0.5);
            r->marks[i] = AHEAD_MODEL_ROUTED | (agrees ? AHEAD_MODEL_AGREES : 0);
            *id = agrees ? *id : (uint32_t)((*id + (size_t)1) % r->size);
        }
        start = i ? start : os_now_ns();
        if (i + 1 < answer_tokens)
            rc = session_eval(s, id, 1, &interrupted, err);
    }
    r->edge_ms = (double)(os_now_ns() - start) / 1e6 / (double)(answer_tokens - 1);
    return rc;
}

/* Callback of the decoding loop. */
static bool cmd_bench_route_token(void *arg, const struct decode_token *t)
{
    struct route *r = arg;
    r->other = r->other || t->id != r->text[prompt_tokens + t->pos];
    return true;
}

/* Write the answer through loop and client. */
static int cmd_bench_route_loop(struct route *r, struct way *w, struct err *err)
{
    const struct decode_options o = { .policy = POLICY_RANDOM,
                                      .threshold = (float)routed,
                                      .max_tokens = answer_tokens,
                                      .seed = r->seed,
                                      .ahead = w->ahead,
                                      .stop = &interrupted,
                                      .emit = cmd_bench_route_token,
                                      .arg = r };
    struct cloud_port port;
    cloud_port(&port, r->net.cloud);
    session_rewind(r->session, 0);
    return decode_run(&w->stats, r->session, r->net.vocab, r->sampler, NULL, &port, r->text,
                      prompt_tokens, &o, err);
}

/* Callback of a transfer: count its bytes. */
static void cmd_bench_route_moved(struct http_try *t, const struct traffic *more)
{
    traffic_add(t->request.arg, more);
}

/* Run one transfer to its end; with body, set *id to the first token of its reply. */
static int cmd_bench_route_transfer(struct route *r, struct way *w, const char *path,
                                    const char *body, uint32_t *id, struct err *err)
{
    char url[64];
    struct http_try *t;
    json_t *reply = NULL;
    snprintf(url, sizeof(url), "%s%s", oracle_cloud_url(&r->net), path);
    const struct http_request request = { .url = url,
                                          .body = body,
                                          .n = body ? strlen(body) : 0,
                                          .fresh = w->connect,
                                          .arg = &w->stats.traffic,
                                          .moved = body ? cmd_bench_route_moved : NULL };
    int rc = http_start(r->http, &t, &request, err);
    if (rc)
        return rc;
    while ((rc = http_perform(r->http, err)) == OK && !t->over) {
        if (interrupted) {
            rc = err_set(err, ERR_STOP, "interrupted");
            break;
        }
        http_wait(r->http, SLICE_MS);
    }
    if (rc == OK && (t->rc || t->status != 200))
        rc = err_set(err, ERR_NET, "the server: status %ld %s", t->status, t->err.msg);
    if (rc == OK && body)
        rc = json_input_parse(&reply, t->body.p, t->body.n, err);
    if (rc == OK && body &&
        !json_input_id(id, json_array_get(json_object_get(reply, "output_ids"), 0), r->size))
        rc = err_set(err, ERR_NET, "the reply holds no token");
    json_decref(reply);
    http_release(r->http, t);
    return rc;
}

/* Ask for the token after the first n. */
static int cmd_bench_route_call(struct route *r, struct way *w, size_t n, uint32_t *id,
                                struct err *err)
{
    uint64_t start = os_now_ns();
    json_t *ids = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(ids, json_integer(r->text[i]));
    json_t *root = json_pack("{s:o?,s:{s:I,s:i,s:i}}", "input_ids", ids, "sampling_params",
                             "max_new_tokens", (json_int_t)w->want, "temperature", 0, "top_k", 1);
    char *body = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    int rc = body ? cmd_bench_route_transfer(r, w, "/generate", body, id, err)
                  : err_set(err, ERR_NOMEM, "bench: out of memory");
    free(body);
    w->stats.calls++;
    w->stats.cloud_ms += (double)(os_now_ns() - start) / 1e6;
    return rc;
}

/* Write the answer with the habits of w. What opening the shared connection takes is not counted,
 * neither as time nor as bytes. */
static int cmd_bench_route_habit(struct route *r, struct way *w, struct err *err)
{
    struct session *s = r->session;
    uint32_t id = 0;
    w->stats = (struct decode_stats){ .tokens = 0 };
    int rc = w->connect ? OK : cmd_bench_route_transfer(r, w, "/health", NULL, NULL, err);
    uint64_t begun = os_now_ns();
    session_rewind(s, 0);
    for (size_t i = 0; i < answer_tokens && rc == OK; i++) {
        size_t n = prompt_tokens + i;
        uint64_t start = os_now_ns();
        if (w->no_cache)
            session_rewind(s, 0);
        size_t have = session_length(s);
        rc = session_eval(s, r->text + have, n - have, &interrupted, err);
        if (rc == OK && !r->marks[i])
            id = sampler_pick(r->sampler, session_logits(s, 0), r->text, n);
        w->stats.edge_ms += (double)(os_now_ns() - start) / 1e6;
        if (rc == OK && r->marks[i])
            rc = cmd_bench_route_call(r, w, n, &id, err);
        r->other = r->other || id != r->text[n];
        w->stats.total_ms = (double)(os_now_ns() - begun) / 1e6;
        w->stats.ttft_ms = i ? w->stats.ttft_ms : w->stats.total_ms;
    }
    return rc;
}

static int cmd_bench_route_ascending(const void *a, const void *b)
{
    const struct decode_stats *x = a, *y = b;
    return (x->total_ms > y->total_ms) - (x->total_ms < y->total_ms);
}

/* Measure a way. Of the samples the one with the median time is kept, so that its parts are those
 * of one answer. */
static int cmd_bench_route_measure(struct route *r, struct way *w, struct err *err)
{
    const struct http_options o = { .max_reply = 1 << 20 };
    size_t n = bench_opts.repeat;
    struct decode_stats *samples = calloc(n, sizeof(*samples));
    int rc = samples ? OK : err_set(err, ERR_NOMEM, "bench: out of memory");
    for (size_t i = 0; i < n && rc == OK; i++) {
        r->http = NULL;
        rc = w->loop ? cmd_bench_route_loop(r, w, err) : http_open(&r->http, &o, err);
        if (rc == OK && !w->loop)
            rc = cmd_bench_route_habit(r, w, err);
        http_close(r->http);
        if (rc == OK && (r->other || w->stats.fallback))
            rc = err_set(err, ERR_NET, "%s: another text than in the rehearsal", w->name);
        samples[i] = w->stats;
    }
    if (rc == OK) {
        qsort(samples, n, sizeof(*samples), cmd_bench_route_ascending);
        w->stats = samples[n / 2];
    }
    free(samples);
    return rc;
}

/* Print the row of a way. */
static int cmd_bench_route_row(struct row *row, const struct route *r, const struct way *w,
                               double first_ms, struct err *err)
{
    const struct decode_stats *s = &w->stats;
    double calls = s->calls ? (double)s->calls : 1, edge_ms = s->edge_ms + s->router_ms;
    double later = (double)(answer_tokens - 1);
    ahead_model_decisions(r->at, r->marks, r->calls, answer_tokens, r->edge_ms, w->ahead);
    row_text(row, "way", "way", w->name);
    row_named(row, "ahead", "W", (double)w->ahead, 0);
    row_named(row, "s", "s", s->total_ms / 1e3, 4);
    row_named(row, "edge_s", "edge", edge_ms / 1e3, 4);
    row_named(row, "cloud_s", "waiting", s->cloud_ms / 1e3, 4);
    row_named(row, "rest_s", "rest", (s->total_ms - edge_ms - s->cloud_ms) / 1e3, 4);
    row_named(row, "times", "times", s->total_ms / first_ms, 2);
    row_named(row, "ms", "ms/token", (s->total_ms - s->ttft_ms) / later, 3);
    row_named(row, "model_ms", "model",
              w->loop ? (r->at[answer_tokens - 1] - r->at[0]) / later : (double)NAN, 3);
    row_put(row, "calls", (double)s->calls, 0);
    row_named(row, "up_bytes", "up", (double)s->traffic.bytes_up / calls, 0);
    row_named(row, "down_bytes", "down", (double)s->traffic.bytes_down / calls, 0);
    return row_print(row, err);
}

/* Measure all ways, then print them. */
static int cmd_bench_route_ways(struct route *r, const struct bench_list *aheads,
                                struct progress *progress, struct err *err)
{
    struct way ways[BENCH_LIST + HABITS];
    struct row row = { .format = bench_opts.format };
    size_t n = 0;
    for (; n < aheads->n; n++)
        ways[n] = (struct way){ .name = "the loop", .loop = true, .ahead = aheads->at[n] > 0 };
    for (size_t i = 0; as_paper && i < HABITS; i++)
        ways[n++] = habits[i];
    cmd_bench_route_draw(r);
    int rc = cmd_bench_route_rehearse(r, err); /* once more: caches and clocks are cold at first */
    if (rc == OK)
        rc = cmd_bench_route_rehearse(r, err);
    for (size_t i = 0; i < n && rc == OK; i++)
        rc = cmd_bench_route_measure(r, &ways[i], err);
    progress_end(progress);
    for (size_t i = 0; i < n && rc == OK; i++)
        rc = cmd_bench_route_row(&row, r, &ways[i], ways[0].stats.total_ms, err);
    if (rc == OK)
        row_end(&row);
    return rc;
}

static int cmd_bench_route_main(int n, char **args, struct err *err)
{
    struct route r = { .size = 0 };
    struct engine e = { .model = NULL };
    struct bench_list aheads;
    (void)n, (void)args;
    int rc = bench_begin(REPEAT, err);
    if (rc == OK)
        rc = bench_threads_of(false, err);
    if (rc == OK)
        rc = cmd_bench_route_check(&aheads, err);
    shared_options.engine.threads = bench_model_opts.threads.at[0];
    if (rc == OK)
        rc = bench_model_open(&e, &bench_model_opts, err);
    if (rc == OK)
        rc = cmd_bench_route_open(&r, &e, err);
    if (rc == OK)
        rc = cmd_bench_route_ways(&r, &aheads, progress_begin("measuring", "routing"), err);
    cmd_bench_route_close(&r);
    if (e.model || e.pool)
        engine_close(&e);
    return rc;
}

const struct command cmd_bench_route = {
    .name = "bench route",
    .summary = "measure what routing to a cloud costs",
    .description =
        "Measures routing to a cloud. It writes -n tokens after a random prompt of -p tokens, "
        "through the decoding loop, the HTTP client and a server on the loopback, once for each "
        "value of --ahead. The routed tokens are drawn at random. The "
        "server holds no model and takes no processor time: it answers with the token that the "
        "edge would choose, or with another one, so that the share that agrees is --agree. The "
        "columns are:\n\n"
        "  W          1: ahead; 0: in step\n"
        "  s          seconds of an answer: of -r samples the one with the median\n"
        "  edge       of these, in the small model\n"
        "  waiting    of these, for the cloud\n"
        "  rest       of these, elsewhere\n"
        "  times      s as a multiple of the first row's\n"
        "  ms/token   after the first one\n"
        "  model      the same by an event model, for this text and its routed tokens\n"
        "  calls      calls made\n"
        "  up, down   bytes per call, with headers\n\n"
        "--as-paper adds the way the paper's published demo works, and each of that demo's habits "
        "alone: evaluating the whole text for each token, opening a new connection for each call, "
        "and requesting 16 tokens to use one. All of them wait for each call, so what a habit "
        "costs is its time less that of W 0. The cloud then takes 20 ms per token and a new "
        "connection two round trips (TCP and TLS 1.3).\n\n"
        "  mizzle bench route --shape qwen2.5-0.5b\n"
        "  mizzle bench route --shape qwen2.5-0.5b --latency 170 --as-paper",
    .groups = (const struct option_group *const[]){ &own_options, &network_options, NULL },
    .run = cmd_bench_route_main,
};
