/* cmd_cloud.c - `mizzle cloud`: the stand-in server, and a look at a real one. */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/wipe.h"
#include "net/cloud.h"
#include "tools/cloud_check.h"
#include "tools/command.h"
#include "tools/cli/options.h"
#include "tools/cli/setup.h"
#include "tools/stand_in/stand_in.h"
#include "tools/stand_in/paths.h"

enum { MAX_DELAY_MS = 600000 };

static const char *host = "127.0.0.1", *key_file, *check_url, *api = "all", *bandwidth;
static const char *tls_cert, *tls_key;
static size_t port = 8080, latency, jitter, context, workers, slots, queue;
static uint64_t seed;
static float loss;
static struct option_list fault_list;

static const struct option_group server_opts = {
    "Server",
    (const struct option[]){
        { "--port", NULL, OPTION_SIZE, &port, "N",
          "port to listen on; 0: a free one (default: 8080)" },
        { "--host", NULL, OPTION_STR, &host, "ADDR",
          "address to listen on; one that others reach needs a key (default: 127.0.0.1)" },
        { "--api", NULL, OPTION_STR, &api, "NAME",
          "server to play: openai (vLLM), sglang, llamacpp, or all, where the path decides "
          "(default: all)" },
        { "--context", "-c", OPTION_SIZE, &context, "N",
          "longest text in tokens (default: the model's, at most 4096)" },
        { "--slots", NULL, OPTION_SIZE, &slots, "N",
          "texts in progress or remembered, at most 64 (default: what fits into 512 MB, at least "
          "4)" },
        { "--workers", NULL, OPTION_SIZE, &workers, "N",
          "requests computed at a time, by one thread each; 1: one by all threads (default: 1 for "
          "a model of more than 64 MB, else one a thread)" },
        { "--queue", NULL, OPTION_SIZE, &queue, "N",
          "requests that may wait for a slot; one more gets status 503 (default: 256)" },
        { "--api-key-file", NULL, OPTION_STR, &key_file, "FILE",
          "ask for the key in this file (default: the one in MIZZLE_SERVER_KEY, else none)" },
        { "--tls-cert", NULL, OPTION_STR, &tls_cert, "FILE",
          "serve https with this PEM certificate" },
        { "--tls-key", NULL, OPTION_STR, &tls_key, "FILE", "its private key, PEM" },
        { "--check", NULL, OPTION_STR, &check_url, "URL",
          "serve nothing: ask the server at URL for one token and say what it speaks; with -m, "
          "whether "
          "its tokenizer is that model's" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

static const struct option_group network_opts = {
    "Network and faults",
    (const struct option[]){
        { "--latency", NULL, OPTION_SIZE, &latency, "MS",
          "a round trip: each answer comes so much later (default: 0)" },
        { "--jitter", NULL, OPTION_SIZE, &jitter, "MS",
          "vary the latency by up to this, both ways (default: 0)" },
        { "--bandwidth", NULL, OPTION_STR, &bandwidth, "N[,N]",
          "bytes a second of each connection, or UP,DOWN; 0: no limit (default: 0)" },
        { "--loss", NULL, OPTION_FLOAT, &loss, "RATE",
          "share of packets lost; each costs a retransmission timeout of 200 ms and the latency, "
          "doubled if it is lost again (default: 0)" },
        { "--fault", NULL, OPTION_LIST, &fault_list, "NAME[:RATE]",
          "do this to completions, or to that share of them; may be given 16 times, the first that "
          "is drawn counts; `--fault help` lists the names" },
        { "--seed", "-s", OPTION_U64, &seed, "N", "of jitter, loss and faults (default: 0)" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

static const struct option_group *const groups[] = { &server_opts, &network_opts,
                                                     &engine_option_rows, &opt_check, NULL };

static _Atomic int terminated;

static void on_term(int sig)
{
    (void)sig;
    atomic_store(&terminated, 1);
}

static int cmd_cloud_serve(const struct stand_in_options *o)
{
    struct err err = { "" };
    struct stand_in *s;
    struct sigaction term = { .sa_handler = on_term };
    setup_catch_interrupts();
    sigaction(SIGTERM, &term, NULL);
    int rc = stand_in_open(&s, o, &err);
    if (rc == ERR_NET) { /* our own port, not a cloud that does not answer */
        command_fail("cloud", rc, &err);
        return EXIT_FAILED;
    }
    if (rc)
        return command_fail("cloud", rc, &err);
    fprintf(stderr, "listening on %s\n", stand_in_url(s));
    fflush(stderr);
    while (!atomic_load(&terminated) && !atomic_load(&interrupted))
        poll(NULL, 0, 100);
    stand_in_close(s);
    return atomic_load(&interrupted) ? EXIT_INTERRUPTED : EXIT_FINE;
}

/* "1000" or "1000,2000". */
static int read_bandwidth(struct stand_in_options *o, struct err *err)
{
    uint64_t n[2] = { 0, 0 };
    const char *p = bandwidth;
    for (size_t i = 0; i < 2; i++, p++) {
        size_t digits = strspn(p, "0123456789");
        for (; digits && n[i] < UINT64_C(1000000000000); digits--)
            n[i] = n[i] * 10 + (uint64_t)(*p++ - '0');
        if (p == bandwidth || p[-1] == ',' || digits || (*p && (*p != ',' || i)))
            return err_set(err, ERR_ARG, "--bandwidth: expected N or UP,DOWN, found %s", bandwidth);
        if (!*p) {
            n[1] = i ? n[1] : n[0];
            break;
        }
    }
    o->up = n[0];
    o->down = n[1];
    return OK;
}

/* The first option of a client that is given, or NULL: a server would not heed it, and whoever
 * gives --cloud-key-file for --api-key-file would have one without a key. */
static const char *cloud_client_option(void)
{
    const struct cloud_option_values *c = &cloud_option_values;
    return c->key_file                   ? "--cloud-key-file"
           : c->ca                       ? "--cloud-ca"
           : c->model                    ? "--cloud-model"
           : strcmp(c->api, "auto") != 0 ? "--cloud-api"
           : c->timeout_ms               ? "--cloud-timeout"
           : c->tokens != 1              ? "--cloud-tokens"
           : c->hedge_ms                 ? "--hedge-ms"
           : c->compress                 ? "--compress"
           : c->slot != SIZE_MAX         ? "--cloud-slot"
                                         : NULL;
}

/* What the options say beyond their types. */
static int cmd_cloud_read_options(struct stand_in_options *o, struct err *err)
{
    const char *client = check_url ? NULL : cloud_client_option();
    if (client)
        return err_set(err, ERR_ARG, "%s goes with --check%s", client,
                       cloud_option_values.key_file ? "; a server's key is in --api-key-file" : "");
    if (port > 65535)
        return err_set(err, ERR_ARG, "--port: expected 0 to 65535, found %zu", port);
    if (latency > MAX_DELAY_MS || jitter > MAX_DELAY_MS)
        return err_set(err, ERR_ARG, "--latency, --jitter: expected 0 to %d", MAX_DELAY_MS);
    if (!(loss >= 0 && loss < 1))
        return err_set(err, ERR_ARG, "--loss: expected 0 or more, below 1");
    if (!stand_in_paths_parse(&o->server, api))
        return err_set(err, ERR_ARG, "--api: expected openai, sglang, llamacpp or all, found %s",
                       api);
    int rc = bandwidth ? read_bandwidth(o, err) : OK;
    for (size_t i = 0; i < fault_list.n && rc == OK; i++)
        rc = stand_in_fault_add(&o->faults, fault_list.at[i], err);
    return rc;
}

static bool asks_for_faults(void)
{
    for (size_t i = 0; i < fault_list.n; i++)
        if (strcmp(fault_list.at[i], "help") == 0)
            return true;
    return false;
}

/* The key that clients must send; NULL: none. Not a client's MIZZLE_API_KEY: a server in the same
 * shell would hand it to whoever knows it. */
static int cmd_cloud_read_key(char **key, struct err *err)
{
    const char *env = getenv("MIZZLE_SERVER_KEY");
    struct err note;
    *key = NULL;
    if (key_file)
        return api_key_read(key, key_file, NULL, &note, err);
    if (!env || !*env)
        return OK;
    size_t n = strlen(env);
    *key = malloc(n + 1);
    if (!*key)
        return err_set(err, ERR_NOMEM, "out of memory");
    memcpy(*key, env, n + 1);
    return OK;
}

static int cmd_cloud_main(int argc, char **argv)
{
    struct err err = { "" };
    int nargs = 0, status = options_parse(&cmd_cloud, argc, argv, &nargs);
    if (status >= 0)
        return status;
    if (nargs)
        return command_fail("cloud", err_set(&err, ERR_ARG, "unexpected argument %s", argv[1]),
                            &err);
    if (asks_for_faults()) {
        for (const struct stand_in_fault *f = stand_in_fault_table; f->name; f++)
            printf("%-16s %s\n", f->name, f->help);
        return EXIT_FINE;
    }
    struct stand_in_options o = { .model = engine_options.model,
                                  .isa = engine_options.isa,
                                  .kv = engine_options.kv,
                                  .threads = engine_options.threads,
                                  .workers = workers,
                                  .slots = slots,
                                  .queue = queue,
                                  .host = host,
                                  .tls_cert = tls_cert,
                                  .tls_key = tls_key,
                                  .port = (unsigned)port,
                                  .latency_ms = (unsigned)latency,
                                  .jitter_ms = (unsigned)jitter,
                                  .loss = (double)loss,
                                  .seed = seed,
                                  .context = context };
    int rc = cmd_cloud_read_options(&o, &err);
    if (rc)
        return command_fail("cloud", rc, &err);
    if (check_url)
        return cloud_check(check_url);
    char *key;
    rc = cmd_cloud_read_key(&key, &err);
    if (rc)
        return command_fail("cloud", rc, &err);
    o.key = key;
    status = cmd_cloud_serve(&o);
    wipe_text(key);
    return status;
}

const struct command cmd_cloud = {
    .name = "cloud",
    .summary = "serve a local model as the cloud, or look at a real server",
    .args = "",
    .description =
        "A stand-in for the large model's server: any local model in the words of vLLM (POST\n"
        "/v1/completions with return_token_ids), SGLang (POST /generate) and llama.cpp (POST\n"
        "/completion), whole or streamed, with their errors, their /health, model lists and\n"
        "tokenizers. Greedy only; settings that are left out are taken as greedy. Many clients "
        "may\n"
        "ask at once: a growing prefix costs its new tokens only, long answers take turns, and\n"
        "each answer is the same whatever else is asked.\n"
        "\n"
        "The network options make a network of the loopback. What happens to a request depends on\n"
        "the seed, its prefix and how often that prefix was asked for, not on the order in which\n"
        "requests arrive.\n"
        "\n"
        "The key comes from a file or the environment and there is no option for the key itself:\n"
        "every user of the machine can read the arguments of a running program. Request bodies "
        "may\n"
        "be compressed (Content-Encoding: gzip or deflate), at most 4 MB unpacked; replies say so\n"
        "in Accept-Encoding.\n"
        "\n"
        "It prints one line when it is ready and stops on SIGTERM (status 0) or SIGINT (130);\n"
        "requests in progress have two seconds to finish.\n"
        "\n"
        "  mizzle cloud --port 8080 --latency 100 --jitter 30 --fault 503:0.1\n"
        "  mizzle run -p \"...\" --cloud-url http://127.0.0.1:8080\n"
        "  mizzle cloud --api sglang --tls-cert server.pem --tls-key server.key\n"
        "  mizzle cloud --check https://host/v1 --cloud-key-file key.txt",
    .groups = groups,
    .run = cmd_cloud_main,
};
