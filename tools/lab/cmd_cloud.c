/* cmd_cloud.c - `mizzle cloud`: run the stand-in server, or inspect a real one. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "kernels/sys/wipe.h"
#include "model/text/tokenizer.h"
#include "net/cloud.h"
#include "net/http/json_input.h"
#include "router/routing.h"
#include "tools/command.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/setup.h"
#include "tools/serve/listen.h"
#include "tools/lab/stand_in/stand_in.h"
#include "weights/find.h"
#include "weights/weights.h"

enum { ROUNDS = 5, NAME = 128, MAX_LATENCY_MS = 600000 };

static const char *check_url;
static struct stand_in_options opts;
static struct option_list fault_list;

static const struct option_group server_opts = {
    "Server",
    (const struct option[]){
        { "--cloud-api", NULL, OPTION_STR, &shared_options.cloud_api, "NAME",
          "Imitate openai (vLLM), sglang or llamacpp; with auto the path of a request decides. "
          "With --check, speak that API; auto asks the server (default: auto)" },
        { "--context", "-c", OPTION_COUNT, &opts.context, "N",
          "Accept texts of up to N tokens (default: the context of the model, at most 4096)" },
        { "--parallel", NULL, OPTION_COUNT, &opts.slots, "N",
          "Keep N texts, in progress or cached, at most 64 (default: as many as an eighth of the "
          "memory holds)" },
        { "--max-queue", NULL, OPTION_COUNT, &opts.queue, "N",
          "Let N requests wait for a slot; further ones get status 503 (default: 256)" },
        { "--check", NULL, OPTION_STR, &check_url, "URL",
          "Do not serve: ask the server at URL for one token and report what it supports; with -m, "
          "also whether its tokenizer is the same as the model's. The options of calls below go "
          "with it alone" },
        OPTION_END,
    },
};

static const struct option_group network_opts = {
    "Network and faults",
    (const struct option[]){
        { "--latency", NULL, OPTION_SIZE, &opts.latency_ms, "MS",
          "Delay each answer by a round trip of MS milliseconds (default: 0)" },
        { "--fault", NULL, OPTION_LIST, &fault_list, "NAME[:RATE]",
          "Apply this fault to completions, or to the given share of them; may be given 16 times, "
          "and the first fault drawn applies; `--fault help` lists the names (default: none)" },
        { "--seed", "-s", OPTION_U64, &opts.seed, "N", "Seed for faults (default: 0)" },
        OPTION_END,
    },
};

static const struct option_group *const groups[] = { &listen_option_rows,     &server_opts,
                                                     &network_opts,           &engine_option_rows,
                                                     &cloud_call_option_rows, NULL };

/* Serve until a signal arrives; return the exit status. */
static int cmd_cloud_serve(const struct stand_in_options *o, struct err *err)
{
    struct stand_in *s;
    struct sigaction act, old;
    setup_catch_interrupts();
    if (sigaction(SIGTERM, NULL, &act) == 0 && sigaction(SIGHUP, NULL, &old) == 0 &&
        old.sa_handler != SIG_IGN) /* as under nohup */
        sigaction(SIGHUP, &act, NULL);
    struct progress *progress = setup_open_begin("loading", o->model ? o->model : "the demo model");
    int rc = stand_in_open(&s, o, err);
    setup_open_end(progress);
    if (rc == ERR_NET) { /* concerns our own port, so not EXIT_NO_CLOUD */
        command_fail(&cmd_cloud, rc, err);
        return EXIT_FAILED;
    }
    if (rc)
        return rc;
    listen_wait(stand_in_url(s), &interrupted, NULL, NULL);
    stand_in_close(s);
    return interrupted == SIGINT ? EXIT_INTERRUPTED : EXIT_FINE;
}

/* The cost of one warm call. */
struct trip {
    uint64_t best_ns;
    size_t body, up, down; /* bytes: request body alone; whole call up, down */
};

/* Ask for the same prefix several times; the fastest call is the round trip with everything
 * warm. */
static int cloud_check_measure(struct trip *t, struct cloud *c, struct err *err)
{
    static const uint32_t ids[] = { 1, 2, 3 };
    uint32_t id;
    int rc = OK;
    t->best_ns = UINT64_MAX;
    for (int i = 0; i < ROUNDS && rc == OK; i++) {
        struct traffic before = cloud_ledger(c)->traffic;
        uint64_t start = os_now_ns();
        void *call;
        if ((rc = cloud_ask(c, ids, 3, CLOUD_MAX_TOKENS, NULL, &call, err)) != OK)
            break;
        rc = cloud_take(call, 0, &id, err);
        cloud_end(call, CLOUD_USE);
        if (rc != OK && !cloud_known_info(c).ids)
            rc = OK; /* after these ids its text may be none, or a part of a character */
        uint64_t ns = os_now_ns() - start;
        t->best_ns = ns < t->best_ns ? ns : t->best_ns;
        struct traffic trip = traffic_since(&cloud_ledger(c)->traffic, &before);
        t->up = (size_t)trip.bytes_up;
        t->body = (size_t)(trip.bytes_up - trip.header_bytes_up);
        t->down = (size_t)trip.bytes_down;
    }
    return rc;
}

/* Print the report. Strings that the server sent are shown without control characters. */
static void cloud_check_show(const char *url, const struct cloud_info *info, const struct trip *t)
{
    const char *name = info->model ? info->model : "not named";
    char model[NAME]; /* printable: the server may have chosen the name */
    json_input_line(model, sizeof(model), name, strlen(name));
    printf("%s: dialect %s, model %s, token ids %s, round trip %.2f ms\n", url,
           cloud_api_name(info->api), model, info->ids ? "yes" : "no (text, cut into tokens here)",
           (double)t->best_ns / 1e6);
    printf("  server     %s, version %s, health %s\n", *info->server ? info->server : "not named",
           *info->version ? info->version : "not reported", info->healthy ? "ok" : "not ok");
    if (strlen(info->says) > strlen("{}"))
        printf("  weights    %s\n", info->says);
    if (info->context)
        printf("  context    %zu tokens\n", info->context);
    else
        printf("  context    not reported\n");
    if (info->tokenizer)
        printf("  tokenizer  the same as here (by %s)\n", info->tokenizer);
    else
        printf("  tokenizer  not compared%s\n", shared_options.engine.model
                                                    ? ": the server does not show its own"
                                                    : " (name the small model with -m)");
    printf("  connection HTTP/%s\n", info->http2 ? "2" : "1.1");
    printf("  a call     %zu bytes up (body %zu), %zu down, for a prefix of 3\n", t->up, t->body,
           t->down);
}

/* Ask the server at url, with the tokenizer of -m if there is one: settle the dialect, measure,
 * inspect and print. */
static int cloud_check(const char *url, struct err *err)
{
    char path[FIND_PATH], *key = NULL;
    struct weights *w = NULL;
    struct tokenizer *tokenizer = NULL;
    struct cloud_options o;
    struct cloud *c = NULL;
    struct cloud_info info;
    struct trip t = { 0 };
    struct routing_options all;
    struct err note = { "" };
    int rc = OK;
    setup_catch_interrupts();
    if (shared_options.engine.model &&
        (rc = find_model(path, shared_options.engine.model, err)) == OK &&
        (rc = weights_open(&w, path, err)) == OK)
        rc = tokenizer_open(&tokenizer, w, err);
    shared_options.cloud_url = url;
    if (rc == OK)
        rc = setup_options(&all, err);
    if (rc == OK)
        rc = routing_cloud_options(&o, &key, &all, tokenizer, &interrupted, &note, err);
    if (note.msg[0])
        fprintf(stderr, "mizzle: %s\n", note.msg);
    if (rc == OK && (rc = cloud_open(&c, &o, err)) == OK && (rc = cloud_ready(c, err)) == OK &&
        (rc = cloud_check_measure(&t, c, err)) == OK)
        rc = cloud_inspect(c, &info, err);
    while (c && cloud_note(c, &note))
        fprintf(stderr, "mizzle: %s\n", note.msg);
    if (rc == OK)
        cloud_check_show(url, &info, &t);
    cloud_close(c);
    wipe_text(key);
    tokenizer_close(tokenizer);
    weights_close(w);
    return rc;
}

/* Return the first client option that was given, or NULL. The server would ignore it, and someone
 * who confuses --cloud-key-file with --api-key-file would run a server without a key. */
static const char *cloud_client_option(void)
{
    const struct routing_options *c = &shared_options;
    return c->cloud_key_file      ? "--cloud-key-file"
           : c->cloud_proxy       ? "--cloud-proxy"
           : c->cloud_model       ? "--cloud-model"
           : c->cloud_timeout     ? "--cloud-timeout"
           : c->cloud_tokens != 1 ? "--cloud-tokens"
                                  : NULL;
}

/* Check ranges and combinations of the options, and parse those that have a form of their own. */
static int cmd_cloud_read_options(struct err *err)
{
    const char *client = check_url ? NULL : cloud_client_option();
    if (client)
        return err_set(err, ERR_ARG, "%s goes with --check%s", client,
                       shared_options.cloud_key_file ? "; a server's key is in --api-key-file"
                                                     : "");
    if (!cloud_api_parse(&opts.server, shared_options.cloud_api))
        return err_set(err, ERR_ARG,
                       "--cloud-api: expected openai, sglang, llamacpp or auto, found %s",
                       shared_options.cloud_api);
    if (opts.latency_ms > MAX_LATENCY_MS)
        return err_set(err, ERR_ARG, "--latency: expected 0 to %d, found %zu", MAX_LATENCY_MS,
                       opts.latency_ms);
    int rc = OK;
    for (size_t i = 0; i < fault_list.n && rc == OK; i++)
        rc = stand_in_fault_add(&opts.faults, fault_list.at[i], err);
    return rc;
}

static int cmd_cloud_main(int n, char **args, struct err *err)
{
    (void)n, (void)args;
    for (size_t i = 0; i < fault_list.n; i++)
        if (!strcmp(fault_list.at[i], "help")) {
            for (const struct stand_in_fault *f = stand_in_fault_table; f->name; f++)
                printf("%-16s %s\n", f->name, f->help);
            return EXIT_FINE;
        }
    char *key;
    int rc = cmd_cloud_read_options(err);
    if (rc)
        return rc;
    if (check_url)
        return cloud_check(check_url, err);
    opts.model = shared_options.engine.model;
    opts.isa = shared_options.engine.isa;
    opts.kv = shared_options.engine.kv;
    opts.threads = shared_options.engine.threads;
    rc = listen_read(&opts.listen, &key, err);
    if (rc)
        return rc;
    rc = cmd_cloud_serve(&opts, err);
    wipe_text(key);
    return rc;
}

const struct command cmd_cloud = {
    .name = "cloud",
    .summary = "serve a local model as the cloud, or inspect a real server",
    .description =
        "Stands in for the server of the large model. It serves any local model through the "
        "APIs of vLLM (POST /v1/completions with return_token_ids), SGLang (POST /generate) and "
        "llama.cpp (POST /completion), whole or streamed, with their error replies, /health, "
        "model lists and tokenizer endpoints. It is the server of `serve` with other routes; "
        "missing sampling settings mean greedy.\n\n"
        "Which fault a request meets depends on the seed, on its prefix and on how often that "
        "prefix was requested, not on the order in which requests arrive.\n\n"
        "The server prints one line when it is ready. It stops on SIGTERM or SIGHUP (status 0) "
        "or SIGINT (status 130) and gives requests in progress two seconds to finish.\n\n"
        "  mizzle cloud --port 8080 --latency 100 --fault 503:0.1\n"
        "  mizzle run -p \"...\" --cloud-url http://127.0.0.1:8080\n"
        "  mizzle cloud --cloud-api sglang --tls-cert server.pem\n"
        "  mizzle cloud --check https://host/v1 --cloud-key-file key.txt",
    .groups = groups,
    .run = cmd_cloud_main,
};
