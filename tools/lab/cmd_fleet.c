/* cmd_fleet.c - `mizzle fleet`: how many devices a server carries and what they wait, computed with
 * clock/fleet.h; with --real, a small fleet as well, against which the simulated one is checked.
 *
 * The devices of --real follow the script of the simulated ones in real time: their calls, many in
 * flight at once, go over HTTP to the stand-in server when the script says so. The server holds no
 * model. It computes in passes of up to `batch` calls, each of which takes as long as fleet.h says,
 * and spends that time asleep. So the two share the script and the length of a pass; queues,
 * batches and network are real; chunk and kv are ignored. */
#include <pthread.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/cloud.h"
#include "tools/lab/bench/oracle_cloud.h"
#include "tools/lab/bench/subject.h"
#include "tools/cli/progress.h"
#include "tools/lab/clock/fleet.h"

enum { CHUNK = 8192, MOST_TOKENS = 1 << 16, MOST_SECONDS = 3600, MOST_MS = 60000 };
enum { CLIENTS = 64, CLIENTS_BATCH = 8, VOCAB = 4096, NAP_NS = 200000, ANSWER = 7 };

static const char *devices = "1,10,100,1000,10000,100000";
static double p95_ms = 250;
static size_t seconds; /* of --real */
static struct fleet_options o = { .idle = 60,
                                  .routed = (double)0.07f,
                                  .agree = (double)0.7f,
                                  .edge_ms = 40,
                                  .prefill = 11146,
                                  .decode = 1443,
                                  .step_ms = (double)11.3f,
                                  .prompt = 150,
                                  .tokens = 100,
                                  .latency = 50,
                                  .chunk = CHUNK,
                                  .kv = 224000 };
static struct progress_count progress = { .what = "fleet: answers" };

static const struct option_group of_devices = {
    "Devices",
    (const struct option[]){
        { "--devices", "-N", OPTION_STR, &devices, "LIST",
          "Simulate fleets of these sizes (default: 1,10,100,1000,10000,100000)" },
        { "--idle", NULL, OPTION_AMOUNT, &o.idle, "S",
          "Let a device rest S seconds between two answers, on average (default: 60)" },
        { "--n-prompt", "-p", OPTION_SIZE, &o.prompt, "N", "Begin with N tokens (default: 150)" },
        { "--n-predict", "-n", OPTION_SIZE, &o.tokens, "N",
          "Write answers of N tokens (default: 100)" },
        { "--share", "-R", OPTION_REAL, &o.routed, "R",
          "Route this share of the tokens, 0.001 to 1; with 1 the cloud writes each answer alone, "
          "in one call (default: 0.07)" },
        { "--agree", NULL, OPTION_REAL, &o.agree, "A",
          "Let this share of the routed tokens be what the edge guessed (default: 0.7)" },
        { "--edge-ms", NULL, OPTION_AMOUNT, &o.edge_ms, "T",
          "Take T milliseconds for each step of the edge (default: 40)" },
        { "--latency", "-L", OPTION_SIZE, &o.latency, "MS",
          "Spend MS milliseconds on the network, both ways together (default: 50)" },
        OPTION_END,
    },
};

static const struct option_group of_server = {
    "Server",
    (const struct option[]){
        { "--prefill", NULL, OPTION_AMOUNT, &o.prefill, "RATE",
          "Read RATE tokens per second (default: 11146)" },
        { "--decode", NULL, OPTION_AMOUNT, &o.decode, "RATE",
          "Write RATE tokens per second, of many answers at once (default: 1443)" },
        { "--cloud-ms", NULL, OPTION_AMOUNT, &o.step_ms, "MS",
          "Take at least MS milliseconds for a pass (default: 11.3)" },
        { "--parallel", NULL, OPTION_SIZE, &o.batch, "N",
          "Compute at most N calls at a time (default: 0, no limit)" },
        { "--kv", NULL, OPTION_SIZE, &o.kv, "N",
          "Have memory for the keys and values of N tokens (default: 224000; 0: no limit)" },
        { "--no-cache", NULL, OPTION_FLAG, &o.no_cache, NULL,
          "Read the whole text for each call (default: only what is new, while it is in memory)" },
        { "--cloud-timeout", NULL, OPTION_AMOUNT, &p95_ms, "MS",
          "Count devices as carried while 95 % of the cloud tokens arrive within MS milliseconds "
          "(default: 250)" },
        OPTION_END,
    },
};

static const struct option_group of_output = {
    "Output",
    (const struct option[]){
        BENCH_ROW_OUTPUT,
        { "--real", NULL, OPTION_SIZE, &seconds, "S",
          "Run the devices as real clients of the stand-in server as well, for S seconds after a "
          "quarter of that (default: 0, no)" },
        OPTION_END,
    },
};

/* Check the options. */
static int cmd_fleet_check(const struct bench_list *sizes, struct err *err)
{
    bool real = seconds > 0;
    size_t least = sizes->at[0];
    for (size_t i = 1; i < sizes->n; i++)
        least = sizes->at[i] < least ? sizes->at[i] : least;
    const struct {
        const char *name;
        double value, least, most;
    } of[] = { { "--devices", (double)least, 1, FLEET_MOST },
               { "--devices", (double)bench_list_most(sizes), 1, real ? CLIENTS : FLEET_MOST },
               { "--n-prompt", (double)o.prompt, 1, MOST_TOKENS },
               { "--n-predict", (double)o.tokens, 1, MOST_TOKENS },
               { "--share", o.routed, (double)0.001f, real ? (double)0.999f : 1 },
               { "--agree", o.agree, 0, 1 },
               { "--latency", (double)o.latency, 0, MOST_MS },
               { "--parallel", (double)o.batch, real, real ? CLIENTS_BATCH : (double)FLEET_MOST },
               { "--kv", o.kv ? (double)o.kv : 1e9, (double)(o.prompt + o.tokens), 1e9 },
               { "--real", (double)seconds, 0, MOST_SECONDS } };
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
        if (!(of[i].value >= of[i].least && of[i].value <= of[i].most))
            return err_set(err, ERR_ARG, "%s%s: expected %.7g to %.7g, found %.7g", of[i].name,
                           real ? ", with --real" : "", of[i].least, of[i].most, of[i].value);
    return OK;
}

/* The server of --real. Its queue of calls is the heap of the fleet, as a ring. What it knows of a
 * device and what its passes count is in the fleet, under the lock. */
struct server {
    struct fleet *f;
    pthread_mutex_t lock;
    pthread_cond_t change;
    size_t arrived, done; /* calls */
    bool running;
};

/* Run a pass over the calls that have waited longest. Called with the lock, which it releases while
 * the pass takes its time. */
static void run_pass(struct server *s)
{
    size_t end = s->done, read = 0;
    for (; end < s->arrived && end - s->done < o.batch; end++)
        read += s->f->devices[s->f->heap[end % s->f->n]].left;
    double ms = fleet_work(s->f, end - s->done, read, 0);
    s->running = true;
    pthread_mutex_unlock(&s->lock);
    os_nap((uint64_t)(ms * 1e6));
    pthread_mutex_lock(&s->lock);
    s->running = false;
    s->done = end;
    pthread_cond_broadcast(&s->change);
}

/* The oracle of the stand-in: wait for a pass; one of those that wait runs it. ids[0] is the
 * device, ids[1] its answer. */
static uint32_t answer_call(void *arg, const uint32_t *ids, size_t n)
{
    struct server *s = arg;
    uint32_t device = (uint32_t)(ids[0] % s->f->n);
    struct fleet_device *d = &s->f->devices[device];
    uint64_t answer = n > 1 ? ids[1] : 0;
    pthread_mutex_lock(&s->lock);
    size_t mine = s->arrived++;
    d->left = n - (!o.no_cache && d->text == answer && d->read < n ? d->read : 0);
    d->text = answer;
    d->read = n;
    s->f->heap[mine % s->f->n] = device;
    s->f->count.read += d->left;
    while (s->done <= mine)
        if (s->running)
            pthread_cond_wait(&s->change, &s->lock);
        else
            run_pass(s);
    pthread_mutex_unlock(&s->lock);
    return ANSWER;
}

/* Make the call of a device whose time has come, or hear the answer that is there. */
static int step_device(struct server *s, struct cloud *cloud, void **call, uint32_t *ids, size_t i,
                       struct err *err)
{
    struct fleet_device *d = &s->f->devices[i];
    double now = s->f->now;
    uint32_t id;
    if (!*call && d->asked <= now) {
        d->asked = d->told = now;
        ids[0] = (uint32_t)i;
        ids[1] = (uint32_t)(d->answer % VOCAB);
        return cloud_ask(cloud, ids, o.prompt + d->token, 1, NULL, call, err);
    }
    if (!*call || !cloud_done(*call, 0))
        return OK;
    int rc = cloud_take(*call, 0, &id, err);
    cloud_end(*call, CLOUD_USE);
    *call = NULL;
    if (rc)
        return rc;
    fleet_tell(s->f, d, 0, now);
    s->f->count.calls++;
    fleet_hear(s->f, d, now);
    return OK;
}

/* Let the devices run, and count what ends in so many seconds after a quarter of them. */
static int run_devices(struct server *s, struct cloud *cloud, uint32_t *ids, struct err *err)
{
    void *calls[CLIENTS] = { NULL };
    double from = 250 * (double)seconds, to = 1250 * (double)seconds;
    bool counts = false;
    int rc = OK;
    uint64_t start = os_now_ns();
    while (rc == OK && s->f->now < to) {
        s->f->now = (double)(os_now_ns() - start) / 1e6;
        pthread_mutex_lock(&s->lock);
        if (!counts && s->f->now >= from) {
            fleet_count(s->f);
            counts = true;
        }
        pthread_mutex_unlock(&s->lock);
        for (size_t i = 0; i < s->f->n && rc == OK; i++)
            rc = step_device(s, cloud, &calls[i], ids, i, err);
        if (rc == OK && interrupted)
            rc = err_set(err, ERR_STOP, "interrupted");
        os_nap(NAP_NS);
    }
    for (size_t i = 0; i < s->f->n; i++)
        if (calls[i])
            cloud_end(calls[i], CLOUD_DROP);
    if (rc == OK && !s->f->count.calls)
        rc = err_set(err, ERR_ARG, "--real: expected time for at least one call");
    return rc;
}

/* Run the fleet in real time. */
static int run_real(struct fleet *f, struct err *err)
{
    struct server s = { .f = f,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .change = PTHREAD_COND_INITIALIZER };
    const struct oracle_cloud_answers answers = { .next = answer_call,
                                                  .arg = &s,
                                                  .latency_ms = (unsigned)o.latency };
    struct oracle_cloud c = { .vocab = NULL };
    size_t n = o.prompt + o.tokens;
    uint32_t *ids = malloc(n * sizeof(*ids));
    for (size_t i = 0; ids && i < n; i++)
        ids[i] = (uint32_t)(i % VOCAB);
    int rc = ids ? oracle_cloud_open(&c, VOCAB, &answers, err)
                 : err_set(err, ERR_NOMEM, "fleet: out of memory");
    struct progress *shown = progress_begin("measuring", "the real fleet");
    if (rc == OK)
        rc = run_devices(&s, c.cloud, ids, err);
    progress_end(shown);
    oracle_cloud_close(&c);
    free(ids);
    return rc;
}

/* Find the largest fleet whose p95 is at most p95_ms, to within 1 %; 0 if one device is too many,
 * FLEET_MOST if that many or more are not. */
static int cmd_fleet_carries(size_t *carries, struct err *err)
{
    size_t low = 0, high = 0; /* low carries; high does not, and is 0 until that is found */
    int rc = OK;
    while (rc == OK && low < FLEET_MOST && (!high || high - low > 1 + low / 100)) {
        struct fleet *f;
        size_t doubled = 2 * low < FLEET_MOST ? 2 * low : FLEET_MOST;
        size_t n = high ? low + (high - low) / 2 : low ? doubled : 1;
        rc = fleet_open(&f, &o, n, err);
        if (rc == OK)
            rc = fleet_run(f, &progress, err);
        if (rc == OK && fleet_quantile(f, 0.95) <= p95_ms)
            low = n;
        else
            high = n;
        free(f);
    }
    *carries = low;
    return rc;
}

/* Run a fleet, simulated or real, and print its row. */
static int cmd_fleet_row(struct row *r, size_t n, bool real, size_t carries, struct err *err)
{
    struct fleet *f;
    int rc = fleet_open(&f, &o, n, err);
    if (rc == OK)
        rc = real ? run_real(f, err) : fleet_run(f, &progress, err);
    progress_wipe(&progress);
    if (rc == OK) {
        double s = (f->now - f->since) / 1000, calls = (double)f->count.calls;
        double answers = (double)f->count.answers;
        row_put(r, "devices", (double)n, 0);
        row_put(r, "routed", o.routed, 3);
        row_put(r, "cache", !o.no_cache, 0);
        if (seconds)
            row_text(r, "source", "source", real ? "real" : "model");
        row_put(r, "load", f->count.work / (1000 * s), 4);
        row_put(r, "busy", f->count.busy / (1000 * s), 4);
        row_put(r, "calls_per_s", calls / s, 2);
        row_put(r, "calls_per_pass", (double)f->count.joined / (double)f->count.passes, 2);
        row_put(r, "read_per_call", (double)f->count.read / calls, 1);
        row_put(r, "p50_ms", fleet_quantile(f, 0.5), 1);
        row_put(r, "p95_ms", fleet_quantile(f, 0.95), 1);
        row_put(r, "answer_s", answers > 0 ? f->count.answers_ms / answers / 1000 : 0, 3);
        row_put(r, "answers_per_s", answers / s, 3);
        row_put(r, "carries", (double)carries, 0);
        rc = row_print(r, err);
    }
    free(f);
    return rc;
}

static int cmd_fleet_main(int n, char **args, struct err *err)
{
    struct row r = { .format = bench_opts.format };
    struct bench_list sizes;
    size_t carries;
    (void)n, (void)args;
    progress.since = os_now_ns();
    int rc = bench_begin(1, err);
    if (rc == OK)
        rc = bench_list(&sizes, "--devices", devices, err);
    if (rc == OK)
        rc = cmd_fleet_check(&sizes, err);
    if (rc == OK)
        rc = cmd_fleet_carries(&carries, err);
    for (size_t i = 0; rc == OK && i < sizes.n; i++) {
        rc = cmd_fleet_row(&r, sizes.at[i], false, carries, err);
        if (rc == OK && seconds)
            rc = cmd_fleet_row(&r, sizes.at[i], true, carries, err);
    }
    progress_wipe(&progress);
    if (rc == OK)
        row_end(&r);
    return rc;
}

const struct command cmd_fleet = {
    .name = "fleet",
    .summary = "simulate many devices that share one server",
    .description =
        "fleet simulates devices that write answers with a small model and ask one server for some "
        "of the tokens, under a virtual clock, and prints for each number of devices what the "
        "server does and how long its tokens take. The same options give the same bytes on every "
        "machine.\n\n"
        "A device rests, writes an answer, and rests again. The server computes in passes: a pass "
        "serves all calls that wait, reads their new tokens and takes as long as the rates say, "
        "but never less than --cloud-ms. With the cache a call reads only what was written since "
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
        "                  --cloud-timeout\n\n"
        "The default server is Qwen3.5-27B in BF16 on one H200 with SGLang 0.5.16, from the speed "
        "table of SGLang's cookbook: 8,192 tokens are read in 735 ms, and at full load 6,380 "
        "tokens per second are read and written, 8 to 1. A pass takes at least as long as reading "
        "54 GB of weights at 4.8 TB/s.\n\n"
        "--real also lets up to 64 devices call the stand-in server over HTTP, in a row of its "
        "own. Its passes take the same time, but hold at most --parallel calls, 1 to 8.\n\n"
        "  mizzle fleet --devices 100,1000,10000\n"
        "  mizzle fleet --share 1\n"
        "  mizzle fleet --no-cache -o csv\n"
        "  mizzle fleet -N 64 --real 20 --idle 1 --edge-ms 20 -n 20 --parallel 4",
    .groups = (const struct option_group *const[]){ &of_devices, &of_server, &of_output, NULL },
    .run = cmd_fleet_main,
};
