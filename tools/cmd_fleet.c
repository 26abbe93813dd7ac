/* cmd_fleet.c - `mizzle fleet`: how many devices a server carries, what they wait and what an
 * answer costs, computed with clock/fleet_model.h; with --real, measured as well. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "tools/bench/fleet_clients.h"
#include "tools/clock/fleet_model.h"
#include "tools/command.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"

enum { CHUNK = 8192, MOST_TOKENS = 1 << 16, MOST_SECONDS = 3600 };

static const char *devices = "1,10,100,1000,10000,100000", *format = "md";
static float idle = 60, routed = 0.07f, agree = 0.7f, edge_ms = 40, latency = 50;
static float prefill = 11146, decode = 1443, step_ms = 11.3f, usd = 4.59f, p95_ms = 250;
static size_t prompt = 150, tokens = 100, ahead = 1, batch, kv = 224000, real_seconds;
static bool no_cache;
static uint64_t seed = 1;
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
        { "--ahead", "-W", OPTION_SIZE, &ahead, "W",
          "Have up to W calls in flight, 0 or 1; 0 waits for each call (default: 1)" },
        { "--edge-ms", NULL, OPTION_FLOAT, &edge_ms, "T",
          "Take T milliseconds for each step of the edge (default: 40)" },
        { "--latency", "-L", OPTION_FLOAT, &latency, "MS",
          "Spend MS milliseconds on the network, both ways together (default: 50)" },
        { "--seed", "-s", OPTION_U64, &seed, "N", "Seed for everything drawn (default: 1)" },
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
        { "--usd", NULL, OPTION_FLOAT, &usd, "PRICE",
          "Let an hour of the server cost PRICE dollars (default: 4.59)" },
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

static const struct option_group *const groups[] = { &of_devices, &of_server, &of_output, NULL };

/* Check the options and fill both structs. */
static int cmd_fleet_read(struct fleet_habits *h, struct fleet_server *s, struct err *err)
{
    const float positive[] = { idle, edge_ms, latency, step_ms, usd, p95_ms };
    for (size_t i = 0; i < sizeof(positive) / sizeof(*positive); i++)
        if (!(positive[i] >= 0 && positive[i] <= 1e6f))
            return err_set(err, ERR_ARG,
                           "--idle, --edge-ms, --latency, --step-ms, --usd, --p95-ms: expected 0 "
                           "to 1e6, found %g",
                           (double)positive[i]);
    if (!(prefill >= 1 && decode >= 1) || prefill > 1e9f || decode > 1e9f)
        return err_set(err, ERR_ARG, "--prefill, --decode: expected 1 to 1e9");
    if (!(routed >= 0.001f && routed <= 1) || !(agree >= 0 && agree <= 1) || ahead > 1)
        return err_set(err, ERR_ARG,
                       "--routed: expected 0.001 to 1; --agree: 0 to 1; --ahead: 0 "
                       "or 1");
    if (prompt < 1 || prompt > MOST_TOKENS || tokens < 1 || tokens > MOST_TOKENS)
        return err_set(err, ERR_ARG, "-p, -n: expected 1 to %d", MOST_TOKENS);
    *h = (struct fleet_habits){ .idle_ms = 1000 * (double)idle,
                                .edge_ms = (double)edge_ms,
                                .routed = (double)routed,
                                .agree = (double)agree,
                                .prompt = prompt,
                                .tokens = tokens,
                                .ahead = ahead,
                                .seed = seed };
    *s = (struct fleet_server){ .prefill = (double)prefill,
                                .decode = (double)decode,
                                .step_ms = (double)step_ms,
                                .latency_ms = (double)latency,
                                .batch = batch,
                                .chunk = CHUNK,
                                .kv = kv,
                                .cache = !no_cache };
    return OK;
}

/* Return dollars per 1,000 answers. */
static double cmd_fleet_cost(const struct fleet_load *l)
{
    return l->answers > 0 ? 1000 * (double)usd / (3600 * l->answers) : 0;
}

/* A column of the table and its value in the present row. */
struct cell {
    const char *name;
    double value;
    int decimals;
};

enum { SIZES = 16, NAMES = -1 };

/* Print a row, or with row NAMES the header. */
static void cmd_fleet_row(const struct cell *cells, size_t n, int row)
{
    bool csv = !strcmp(format, "csv");
    progress_wipe(&progress);
    for (size_t i = 0; i < n; i++) {
        fputs(csv ? i ? "," : "" : "| ", stdout);
        if (row == NAMES)
            fputs(cells[i].name, stdout);
        else
            printf("%.*f", cells[i].decimals, cells[i].value);
        fputs(csv ? "" : " ", stdout);
    }
    puts(csv ? "" : "|");
    for (size_t i = 0; i < n && row == NAMES && !csv; i++)
        fputs(i + 1 < n ? "|---" : "|---|\n", stdout);
}

/* Print a row for each size, the first with the names of the columns. */
static int cmd_fleet_table(const struct fleet_habits *h, const struct fleet_server *s,
                           const size_t *sizes, size_t n, struct err *err)
{
    struct fleet_load l;
    size_t carries;
    int rc = fleet_model_carries(&carries, &l, h, s, (double)p95_ms, &progress, err);
    double cost = cmd_fleet_cost(&l);
    for (size_t i = 0; i < n && rc == OK; i++) {
        rc = fleet_model_run(&l, h, s, sizes[i], &progress, err);
        const struct cell cells[] = { { "devices", (double)sizes[i], 0 },
                                      { "routed", h->routed, 3 },
                                      { "ahead", (double)h->ahead, 0 },
                                      { "cache", s->cache, 0 },
                                      { "load", l.load, 4 },
                                      { "busy", l.busy, 4 },
                                      { "calls_per_s", l.calls, 2 },
                                      { "calls_per_pass", l.batch, 2 },
                                      { "read_per_call", l.read, 1 },
                                      { "p50_ms", l.p50, 1 },
                                      { "p95_ms", l.p95, 1 },
                                      { "answer_s", l.answer_ms / 1000, 3 },
                                      { "answers_per_s", l.answers, 3 },
                                      { "usd_per_1000", cmd_fleet_cost(&l), 4 },
                                      { "carries", (double)carries, 0 },
                                      { "carries_usd_per_1000", cost, 4 } };
        for (int row = i ? 0 : NAMES; row <= 0 && rc == OK; row++)
            cmd_fleet_row(cells, sizeof(cells) / sizeof(*cells), row);
    }
    return rc;
}

/* Check what real clients can do. */
static int cmd_fleet_check(const struct fleet_server *s, const size_t *sizes, size_t n,
                           struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (sizes[i] > FLEET_CLIENTS)
            return err_set(err, ERR_ARG, "--real: expected up to %d devices, found %zu",
                           FLEET_CLIENTS, sizes[i]);
    if (s->batch < 1 || s->batch > FLEET_CLIENTS_BATCH || routed >= 1 ||
        real_seconds > MOST_SECONDS)
        return err_set(err, ERR_ARG,
                       "--real: expected up to %d seconds, with --batch 1 to %d and --routed "
                       "below 1",
                       MOST_SECONDS, FLEET_CLIENTS_BATCH);
    if (floor(s->latency_ms) < s->latency_ms)
        return err_set(err, ERR_ARG, "--real: expected a whole --latency, found %g", s->latency_ms);
    return OK;
}

/* Print what clients measured beside the model. */
static int cmd_fleet_real(const struct fleet_habits *h, const struct fleet_server *s,
                          const size_t *sizes, size_t n, struct err *err)
{
    int rc = cmd_fleet_check(s, sizes, n, err);
    for (size_t i = 0; i < n && rc == OK; i++) {
        struct fleet_load m, r;
        rc = fleet_model_run(&m, h, s, sizes[i], &progress, err);
        if (rc == OK)
            rc = fleet_clients_run(&r, h, s, sizes[i], (double)real_seconds, err);
        if (rc)
            break;
        const struct cell cells[] = { { "devices", (double)sizes[i], 0 },
                                      { "routed", h->routed, 3 },
                                      { "ahead", (double)h->ahead, 0 },
                                      { "cache", s->cache, 0 },
                                      { "batch", (double)s->batch, 0 },
                                      { "seconds", (double)real_seconds, 0 },
                                      { "busy", m.busy, 4 },
                                      { "calls_per_s", m.calls, 1 },
                                      { "real_calls_per_s", r.calls, 1 },
                                      { "p50_ms", m.p50, 1 },
                                      { "real_p50_ms", r.p50, 1 },
                                      { "p95_ms", m.p95, 1 },
                                      { "real_p95_ms", r.p95, 1 },
                                      { "p95_ratio", m.p95 / r.p95, 3 },
                                      { "answer_s", m.answer_ms / 1000, 3 },
                                      { "real_answer_s", r.answer_ms / 1000, 3 } };
        for (int row = i ? 0 : NAMES; row <= 0; row++)
            cmd_fleet_row(cells, sizeof(cells) / sizeof(*cells), row);
    }
    return rc;
}

/* Parse --devices. */
static int cmd_fleet_sizes(size_t sizes[SIZES], size_t *n, struct err *err)
{
    const char *p = devices;
    for (*n = 0; *n < SIZES && *p >= '0' && *p <= '9'; p++) {
        char *end;
        unsigned long v = strtoul(p, &end, 10);
        if (v < 1 || v > FLEET_MOST)
            break;
        sizes[(*n)++] = v;
        p = end;
        if (!*p)
            return OK;
        if (*p != ',')
            break;
    }
    return err_set(err, ERR_ARG,
                   "--devices: expected up to %d numbers of 1 to %d with commas, found %s", SIZES,
                   FLEET_MOST, devices);
}

static int cmd_fleet_main(int argc, char **argv)
{
    struct err err = { "" };
    struct fleet_habits h;
    struct fleet_server s;
    size_t sizes[SIZES], n;
    int nargs = 0, status = options_parse(&cmd_fleet, argc, argv, &nargs);
    if (status >= 0)
        return status;
    setup_catch_interrupts();
    progress.since = os_now_ns();
    int rc = nargs ? err_set(&err, ERR_ARG, "expected no arguments") : OK;
    if (rc == OK && strcmp(format, "md") && strcmp(format, "csv"))
        rc = err_set(&err, ERR_ARG, "-o: expected md or csv, found %s", format);
    if (rc == OK)
        rc = cmd_fleet_read(&h, &s, &err);
    if (rc == OK)
        rc = cmd_fleet_sizes(sizes, &n, &err);
    if (rc == OK && real_seconds)
        rc = cmd_fleet_real(&h, &s, sizes, n, &err);
    else if (rc == OK)
        rc = cmd_fleet_table(&h, &s, sizes, n, &err);
    progress_wipe(&progress);
    return command_fail("fleet", rc, &err);
}

const struct command cmd_fleet = {
    .name = "fleet",
    .summary = "simulate many devices that share one server",
    .args = "",
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
        "  usd_per_1000    price of the server for the time of 1,000 answers of the fleet\n"
        "  carries         most devices, up to 1,000,000, whose p95_ms is at most\n"
        "                  --p95-ms\n\n"
        "The default server is Qwen3.5-27B in BF16 on one H200 with SGLang 0.5.16, from the speed "
        "table of SGLang's cookbook: 8,192 tokens are read in 735 ms, and at full load 6,380 "
        "tokens per second are read and written, 8 to 1. A pass takes at least as long as reading "
        "54 GB of weights at 4.8 TB/s. The price is RunPod's.\n\n"
        "--real also runs up to 64 devices as clients in threads, which call the stand-in server "
        "over HTTP. Its passes take the same time, but hold at most --batch calls, 1 to 8.\n\n"
        "  mizzle fleet --devices 100,1000,10000\n"
        "  mizzle fleet --routed 1\n"
        "  mizzle fleet --no-cache -o csv\n"
        "  mizzle fleet -N 64 --real 20 --idle 1 --edge-ms 20 -n 20 --batch 4",
    .groups = groups,
    .run = cmd_fleet_main,
};
