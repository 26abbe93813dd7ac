/* cmd_fleet.c - `mizzle fleet`: how many devices a server carries and what they wait, computed with
 * clock/fleet.h; with --real, a small fleet as well, against which the simulated one is checked.
 *
 * The clients of --real are threads that call the stand-in server over HTTP. Each follows the
 * script of a simulated device: it sleeps while its small model would compute, and calls when the
 * script says so. The server holds no model. It computes in passes of up to `batch` calls, each of
 * which takes as long as fleet.h says, and spends that time asleep. So the two share the script and
 * the length of a pass; queues, batches, network and threads are real; chunk and kv are ignored. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "kernels/sys/os.h"
#include "model/text/tokenizer.h"
#include "net/cloud.h"
#include "tools/lab/bench/bench.h"
#include "tools/lab/bench/row.h"
#include "tools/lab/bench/synthetic_vocab.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/lab/clock/fleet.h"
#include "tools/command.h"
#include "tools/lab/stand_in/stand_in.h"

enum { CHUNK = 8192, MOST_TOKENS = 1 << 16, MOST_SECONDS = 3600, MOST_MS = 60000 };
enum { CLIENTS = 64, CLIENTS_BATCH = 8, VOCAB = 4096, TIMEOUT_MS = 60000, NAP_MS = 50, ANSWER = 7 };

static const char *devices = "1,10,100,1000,10000,100000", *format = "md";
static float idle = 60, routed = 0.07f, agree = 0.7f, edge_ms = 40;
static float prefill = 11146, decode = 1443, step_ms = 11.3f, p95_ms = 250;
static size_t prompt = 150, tokens = 100, latency = 50, batch, kv = 224000, real_seconds;
static bool no_cache;
static struct progress_count progress = { .what = "fleet: answers" };

static const struct option_group of_devices = {
    "Devices",
    (const struct option[]){
        { "--devices", "-N", OPTION_STR, &devices, "LIST",
          "Simulate fleets of these sizes (default: 1,10,100,1000,10000,100000)" },
        { "--idle", NULL, OPTION_FLOAT, &idle, "S",
          "Let a device rest S seconds between two answers, on average (default: 60)" },
        { "--n-prompt", "-p", OPTION_SIZE, &prompt, "N", "Begin with N tokens (default: 150)" },
        { "--n-gen", "-n", OPTION_SIZE, &tokens, "N", "Write answers of N tokens (default: 100)" },
        { "--routed", "-R", OPTION_FLOAT, &routed, "R",
          "Route this share of the tokens, 0.001 to 1; with 1 the cloud writes each answer alone, "
          "in one call (default: 0.07)" },
        { "--agree", NULL, OPTION_FLOAT, &agree, "A",
          "Let this share of the routed tokens be what the edge guessed (default: 0.7)" },
        { "--edge-ms", NULL, OPTION_FLOAT, &edge_ms, "T",
          "Take T milliseconds for each step of the edge (default: 40)" },
        { "--latency", "-L", OPTION_SIZE, &latency, "MS",
          "Spend MS milliseconds on the network, both ways together (default: 50)" },
        OPTION_END,
    },
};

static const struct option_group of_server = {
    "Server",
    (const struct option[]){
        { "--prefill", NULL, OPTION_FLOAT, &prefill, "RATE",
          "Read RATE tokens per second (default: 11146)" },
        { "--decode", NULL, OPTION_FLOAT, &decode, "RATE",
          "Write RATE tokens per second, of many answers at once (default: 1443)" },
        { "--step-ms", NULL, OPTION_FLOAT, &step_ms, "MS",
          "Take at least MS milliseconds for a pass (default: 11.3)" },
        { "--batch", NULL, OPTION_SIZE, &batch, "N",
          "Compute at most N calls at a time (default: 0, no limit)" },
        { "--kv", NULL, OPTION_SIZE, &kv, "N",
          "Have memory for the keys and values of N tokens (default: 224000; 0: no limit)" },
        { "--no-cache", NULL, OPTION_FLAG, &no_cache, NULL,
          "Read the whole text for each call (default: only what is new, while it is in memory)" },
        { "--p95-ms", NULL, OPTION_FLOAT, &p95_ms, "MS",
          "Count devices as carried while 95 % of the cloud tokens arrive within MS milliseconds "
          "(default: 250)" },
        OPTION_END,
    },
};

static const struct option_group of_output = {
    "Output",
    (const struct option[]){
        { "--output", "-o", OPTION_STR, &format, "FORM", "Print as md or csv (default: md)" },
        { "--real", NULL, OPTION_SIZE, &real_seconds, "S",
          "Run the devices as real clients of the stand-in server as well, for S seconds after a "
          "quarter of that (default: 0, no)" },
        OPTION_END,
    },
};

/* Check what real clients can do. */
static int cmd_fleet_check(const struct fleet_options *o, size_t most, struct err *err)
{
    if (most > CLIENTS)
        return err_set(err, ERR_ARG, "--real: expected up to %d devices, found %zu", CLIENTS, most);
    if (o->batch < 1 || o->batch > CLIENTS_BATCH || o->routed >= 1 || real_seconds > MOST_SECONDS)
        return err_set(err, ERR_ARG,
                       "--real: expected up to %d seconds, with --batch 1 to %d and --routed "
                       "below 1",
                       MOST_SECONDS, CLIENTS_BATCH);
    return OK;
}

/* Check the options, and fill *o and *sizes. */
static int cmd_fleet_read(struct fleet_options *o, struct bench_list *sizes, struct err *err)
{
    const float positive[] = { idle, edge_ms, step_ms, p95_ms };
    for (size_t i = 0; i < sizeof(positive) / sizeof(*positive); i++)
        if (!(positive[i] >= 0 && positive[i] <= 1e6f))
            return err_set(err, ERR_ARG,
                           "--idle, --edge-ms, --step-ms, --p95-ms: expected 0 to 1e6, found %g",
                           (double)positive[i]);
    if (!(prefill >= 1 && decode >= 1) || prefill > 1e9f || decode > 1e9f)
        return err_set(err, ERR_ARG, "--prefill, --decode: expected 1 to 1e9");
    if (!(routed >= 0.001f && routed <= 1) || !(agree >= 0 && agree <= 1))
        return err_set(err, ERR_ARG, "--routed: expected 0.001 to 1; --agree: 0 to 1");
    if (prompt < 1 || prompt > MOST_TOKENS || tokens < 1 || tokens > MOST_TOKENS)
        return err_set(err, ERR_ARG, "-p, -n: expected 1 to %d", MOST_TOKENS);
    if (latency > MOST_MS)
        return err_set(err, ERR_ARG, "--latency: expected 0 to %d, found %zu", MOST_MS, latency);
    int rc = bench_list(sizes, "--devices", devices, err);
    for (size_t i = 0; i < sizes->n && rc == OK; i++)
        if (sizes->at[i] < 1 || sizes->at[i] > FLEET_MOST)
            rc = err_set(err, ERR_ARG, "--devices: expected 1 to %d, found %zu", FLEET_MOST,
                         sizes->at[i]);
    *o = (struct fleet_options){ .idle_ms = 1000 * (double)idle,
                                 .edge_ms = (double)edge_ms,
                                 .routed = (double)routed,
                                 .agree = (double)agree,
                                 .prompt = prompt,
                                 .tokens = tokens,
                                 .latency_ms = (double)latency,
                                 .prefill = (double)prefill,
                                 .decode = (double)decode,
                                 .step_ms = (double)step_ms,
                                 .batch = batch,
                                 .chunk = CHUNK,
                                 .kv = kv,
                                 .cache = !no_cache };
    return rc || !real_seconds ? rc : cmd_fleet_check(o, bench_list_most(sizes), err);
}

/* A call that reached the server of --real is known by its number. Calls wait, and one of their
 * threads runs the next pass. */
struct passes {
    const struct fleet_options *o;
    pthread_mutex_t lock;
    pthread_cond_t change;
    size_t arrived, done; /* calls */
    size_t
        read[CLIENTS]; /* tokens that a call reads, by its number: a client makes one at a time */
    bool running;
    struct text {
        uint32_t answer;
        size_t read;
    } texts[CLIENTS]; /* what the cache holds of each client */
};

/* What all clients share, and one of them. */
struct crowd {
    const struct fleet_options *o;
    uint64_t start;  /* os_now_ns at the script's time 0 */
    double from, to; /* ms of the measurement */
    _Atomic int stop;
    pthread_mutex_t lock; /* of what is measured: */
    struct buf times;     /* of calls, in double */
    struct fleet_answers answers;
    struct client {
        pthread_t thread;
        struct crowd *crowd;
        struct fleet_device device;
        struct cloud *cloud;
        uint32_t *ids; /* [prompt + tokens] */
        int rc;
        struct err err;
    } clients[CLIENTS];
};

static void sleep_for(double ms)
{
    uint64_t ns = ms > 0 ? (uint64_t)(ms * 1e6) : 0;
    const struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    nanosleep(&t, NULL);
}

/* Run a pass over the calls that have waited longest. Called with the lock, which it releases while
 * the pass takes its time. */
static void run_pass(struct passes *p)
{
    size_t end = p->done, read = 0;
    for (; end < p->arrived && end - p->done < p->o->batch; end++)
        read += p->read[end % CLIENTS];
    double ms = 1000 * (double)read / p->o->prefill;
    p->running = true;
    pthread_mutex_unlock(&p->lock);
    sleep_for(ms > p->o->step_ms ? ms : p->o->step_ms);
    pthread_mutex_lock(&p->lock);
    p->running = false;
    p->done = end;
    pthread_cond_broadcast(&p->change);
}

/* The oracle of the stand-in: wait for a pass. ids[0] is the client, ids[1] its answer. */
static uint32_t answer_call(void *arg, const uint32_t *ids, size_t n)
{
    struct passes *p = arg;
    struct text *t = &p->texts[ids[0] % CLIENTS];
    pthread_mutex_lock(&p->lock);
    size_t mine = p->arrived++;
    bool kept = p->o->cache && t->answer == ids[1] && t->read < n;
    p->read[mine % CLIENTS] = kept ? n - t->read : n;
    *t = (struct text){ ids[1], n };
    while (p->done <= mine)
        if (p->running)
            pthread_cond_wait(&p->change, &p->lock);
        else
            run_pass(p);
    pthread_mutex_unlock(&p->lock);
    return ANSWER;
}

/* Return the script's time. */
static double script_ms(const struct crowd *c)
{
    return (double)(os_now_ns() - c->start) / 1e6;
}

/* Sleep until then, in naps, so that an interrupt is noticed. False: the run is over. */
static bool sleep_until(struct crowd *c, double then)
{
    for (;;) {
        double now = script_ms(c);
        if (interrupted || atomic_load(&c->stop) || now > c->to)
            return false;
        if (now >= then)
            return true;
        sleep_for(then - now < NAP_MS ? then - now : NAP_MS);
    }
}

/* Thread of a client. What ends within the measurement is noted. */
static void *run_client(void *arg)
{
    struct client *w = arg;
    struct crowd *c = w->crowd;
    struct fleet_answers early = { 0 };
    while (w->rc == OK && sleep_until(c, w->device.asked)) {
        uint32_t id;
        double asked = script_ms(c);
        w->ids[1] = (uint32_t)(w->device.answer % VOCAB);
        w->rc = cloud_next(w->cloud, w->ids, c->o->prompt + w->device.token, &id, &w->err);
        double now = script_ms(c), ms = now - asked;
        bool counts = now >= c->from && now <= c->to;
        w->device.asked = asked;
        pthread_mutex_lock(&c->lock);
        if (w->rc == OK && counts && !buf_add(&c->times, &ms, sizeof(ms)))
            w->rc = err_set(&w->err, ERR_NOMEM, "fleet: out of memory");
        fleet_hear(&w->device, c->o, now, counts ? &c->answers : &early);
        pthread_mutex_unlock(&c->lock);
    }
    if (w->rc)
        atomic_store(&c->stop, 1);
    return NULL;
}

/* Make the clients and their connections. */
static int open_clients(struct crowd *c, size_t n, const char *url, struct err *err)
{
    const struct cloud_options o = { .url = url,
                                     .api = CLOUD_SGLANG,
                                     .vocab = VOCAB,
                                     .timeout_ms = TIMEOUT_MS,
                                     .stop = &interrupted };
    size_t room = c->o->prompt + c->o->tokens;
    int rc = OK;
    for (size_t i = 0; i < n && rc == OK; i++) {
        struct client *w = &c->clients[i];
        struct fleet_answers none = { 0 };
        w->crowd = c;
        w->ids = calloc(room, sizeof(*w->ids));
        if (!w->ids)
            return err_set(err, ERR_NOMEM, "fleet: out of memory");
        for (size_t k = 1; k < room; k++)
            w->ids[k] = SYNTHETIC_VOCAB_WORDS + (uint32_t)(k % (VOCAB - SYNTHETIC_VOCAB_WORDS));
        w->ids[0] = (uint32_t)i;
        fleet_device(&w->device, c->o, i, &none);
        rc = cloud_open(&w->cloud, &o, err);
        if (rc == OK)
            rc = cloud_ready(w->cloud, err);
    }
    return rc;
}

/* Let the clients run, and describe what they measured. */
static int measure_clients(struct fleet_load *out, struct crowd *c, size_t n, struct err *err)
{
    double seconds = (double)real_seconds;
    size_t started = 0;
    int rc = OK;
    c->from = 250 * seconds;
    c->to = 1250 * seconds;
    c->start = os_now_ns();
    while (started < n &&
           !pthread_create(&c->clients[started].thread, NULL, run_client, &c->clients[started]))
        started++;
    if (started < n) {
        atomic_store(&c->stop, 1);
        rc = err_set(err, ERR_IO, "fleet: threads cannot be made");
    }
    for (size_t i = 0; i < started; i++) {
        const struct client *w = &c->clients[i];
        pthread_join(w->thread, NULL);
        if (w->rc && rc == OK) {
            rc = w->rc;
            *err = w->err;
        }
    }
    if (rc == OK && interrupted)
        rc = err_set(err, ERR_STOP, "interrupted");
    double *times = (double *)(void *)c->times.p;
    size_t calls = c->times.n / sizeof(*times), answers = c->answers.n;
    if (rc == OK && !calls)
        rc = err_set(err, ERR_ARG, "--real: expected time for at least one call");
    if (rc)
        return rc;
    bench_median(times, calls); /* sorts */
    *out = (struct fleet_load){ .calls = (double)calls / seconds,
                                .p50 = times[calls / 2],
                                .p95 = times[(size_t)(0.95 * (double)calls)],
                                .answers = (double)answers / seconds,
                                .answer_ms = answers ? c->answers.ms / (double)answers : 0 };
    return OK;
}

/* Measure n clients. */
static int run_clients(struct fleet_load *out, const struct fleet_options *o, size_t n,
                       struct err *err)
{
    struct passes passes = { .o = o,
                             .lock = PTHREAD_MUTEX_INITIALIZER,
                             .change = PTHREAD_COND_INITIALIZER };
    struct crowd c = { .o = o, .lock = PTHREAD_MUTEX_INITIALIZER };
    struct tokenizer *vocab;
    struct stand_in *server = NULL;
    int rc = synthetic_vocab_open(&vocab, VOCAB, err);
    const struct stand_in_oracle oracle = { answer_call, &passes, vocab };
    const struct stand_in_options s = { .oracle = &oracle,
                                        .server = CLOUD_SGLANG,
                                        .slots = CLIENTS,
                                        .net.latency_ms = (unsigned)o->latency_ms,
                                        .context = o->prompt + o->tokens };
    if (rc == OK)
        rc = stand_in_open(&server, &s, err);
    if (rc == OK)
        rc = open_clients(&c, n, stand_in_url(server), err);
    if (rc == OK)
        rc = measure_clients(out, &c, n, err);
    for (size_t i = 0; i < n; i++) {
        cloud_close(c.clients[i].cloud);
        free(c.clients[i].ids);
    }
    buf_free(&c.times);
    stand_in_close(server);
    tokenizer_close(vocab);
    return rc;
}

/* Add what clients measured to a row, beside what the model says of them. */
static int cmd_fleet_real(struct row *r, const struct fleet_options *o, size_t n,
                          const struct fleet_load *model, struct err *err)
{
    struct fleet_load l = { 0 };
    int rc = run_clients(&l, o, n, err);
    if (rc)
        return rc;
    row_put(r, "seconds", (double)real_seconds, 0);
    row_put(r, "real_calls_per_s", l.calls, 2);
    row_put(r, "real_p50_ms", l.p50, 1);
    row_put(r, "real_p95_ms", l.p95, 1);
    row_put(r, "real_answer_s", l.answer_ms / 1000, 3);
    row_put(r, "p95_ratio", model->p95 / l.p95, 3);
    return OK;
}

/* Print a row for each size. */
static int cmd_fleet_table(const struct fleet_options *o, const struct bench_list *sizes,
                           struct err *err)
{
    struct row r = { .format = format };
    struct fleet_load l;
    size_t carries;
    int rc = fleet_carries(&carries, o, (double)p95_ms, &progress, err);
    for (size_t i = 0; i < sizes->n && rc == OK; i++) {
        rc = fleet_run(&l, o, sizes->at[i], &progress, err);
        progress_wipe(&progress);
        if (rc)
            break;
        row_put(&r, "devices", (double)sizes->at[i], 0);
        row_put(&r, "routed", o->routed, 3);
        row_put(&r, "cache", o->cache, 0);
        row_put(&r, "load", l.load, 4);
        row_put(&r, "busy", l.busy, 4);
        row_put(&r, "calls_per_s", l.calls, 2);
        row_put(&r, "calls_per_pass", l.batch, 2);
        row_put(&r, "read_per_call", l.read, 1);
        row_put(&r, "p50_ms", l.p50, 1);
        row_put(&r, "p95_ms", l.p95, 1);
        row_put(&r, "answer_s", l.answer_ms / 1000, 3);
        row_put(&r, "answers_per_s", l.answers, 3);
        row_put(&r, "carries", (double)carries, 0);
        if (real_seconds)
            rc = cmd_fleet_real(&r, o, sizes->at[i], &l, err);
        if (rc == OK)
            rc = row_print(&r, err);
    }
    return rc;
}

static int cmd_fleet_main(int n, char **args, struct err *err)
{
    struct fleet_options o;
    struct bench_list sizes;
    setup_catch_interrupts();
    progress.since = os_now_ns();
    int rc = OK;
    (void)n, (void)args;
    if (strcmp(format, "md") && strcmp(format, "csv"))
        rc = err_set(err, ERR_ARG, "-o: expected md or csv, found %s", format);
    if (rc == OK)
        rc = cmd_fleet_read(&o, &sizes, err);
    if (rc == OK)
        rc = cmd_fleet_table(&o, &sizes, err);
    progress_wipe(&progress);
    return rc;
}

const struct command cmd_fleet = {
    .name = "fleet",
    .summary = "simulate many devices that share one server",
    .description =
        "fleet simulates devices that write answers with a small model and ask one server for "
        "some of the tokens, under a virtual clock, and prints for each number of devices what "
        "the server does and how long its tokens take. The same options give the same bytes on "
        "every machine.\n\n"
        "A device rests, writes an answer, and rests again. The server computes in passes: a pass "
        "serves all calls that wait, reads their new tokens and takes as long as the rates say, "
        "but never less than --step-ms. With the cache a call reads only what was written since "
        "the last call for the same answer, unless its text had to make room. Each device writes "
        "about four answers before counting begins, and four that count. The columns are:\n\n"
        "  load            share of the server's rates that is used\n"
        "  busy            share of the time in which it computes\n"
        "  calls_per_pass  calls that share a pass\n"
        "  read_per_call   tokens that the server reads for a call\n"
        "  p50_ms, p95_ms  from a call to its first token; of whole answers the larger\n"
        "                  of that and the time between later tokens\n"
        "  calls_per_s     calls of the whole fleet; answers_per_s are its answers\n"
        "  answer_s        time of an answer\n"
        "  carries         most devices, up to 1,000,000, whose p95_ms is at most\n"
        "                  --p95-ms\n\n"
        "The default server is Qwen3.5-27B in BF16 on one H200 with SGLang 0.5.16, from the speed "
        "table of SGLang's cookbook: 8,192 tokens are read in 735 ms, and at full load 6,380 "
        "tokens per second are read and written, 8 to 1. A pass takes at least as long as reading "
        "54 GB of weights at 4.8 TB/s.\n\n"
        "--real also runs up to 64 devices as clients in threads, which call the stand-in server "
        "over HTTP. Its passes take the same time, but hold at most --batch calls, 1 to 8.\n\n"
        "  mizzle fleet --devices 100,1000,10000\n"
        "  mizzle fleet --routed 1\n"
        "  mizzle fleet --no-cache -o csv\n"
        "  mizzle fleet -N 64 --real 20 --idle 1 --edge-ms 20 -n 20 --batch 4",
    .groups = (const struct option_group *const[]){ &of_devices, &of_server, &of_output, NULL },
    .run = cmd_fleet_main,
};
