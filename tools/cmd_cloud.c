/* cmd_cloud.c - `mizzle cloud`: the stand-in server, and a look at a real one. */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/base.h"
#include "kernels/os.h"
#include "net/cloud.h"
#include "tools/cmd.h"
#include "tools/opt.h"
#include "tools/setting.h"
#include "tools/stand_in.h"

enum { MAX_DELAY_MS = 600000 };

static const char *host = "127.0.0.1", *key_file, *check_url;
static size_t port = 8080, latency, jitter, context;
static uint64_t seed;

static const struct opt_group server_opts = {
    "Server",
    (const struct opt[]){
        { "--port", NULL, OPT_SIZE, &port, "N",
          "port to listen on; 0: a free one (default: 8080)" },
        { "--host", NULL, OPT_STR, &host, "ADDR", "address to listen on (default: 127.0.0.1)" },
        { "--context", "-c", OPT_SIZE, &context, "N",
          "longest text in tokens (default: the model's, at most 4096)" },
        { "--api-key-file", NULL, OPT_STR, &key_file, "FILE",
          "ask for the key in this file (default: none)" },
        { "--latency", NULL, OPT_SIZE, &latency, "MS", "hold each answer back (default: 0)" },
        { "--jitter", NULL, OPT_SIZE, &jitter, "MS",
          "vary the latency by up to this, both ways (default: 0)" },
        { "--seed", "-s", OPT_U64, &seed, "N", "of the jitter (default: 0)" },
        { "--check", NULL, OPT_STR, &check_url, "URL",
          "serve nothing: ask the server at URL for one token and say what it speaks" },
        { NULL, NULL, OPT_FLAG, NULL, NULL, NULL },
    },
};

static const struct opt_group *const groups[] = { &server_opts, &opt_engine, &opt_cloud, NULL };

static _Atomic int terminated;

static void on_term(int sig)
{
    (void)sig;
    atomic_store(&terminated, 1);
}

static int check(void)
{
    struct err err = { "" };
    char *key = NULL;
    struct cloud_options o = { .url = check_url,
                               .model = cloud_opts.model,
                               .ca = cloud_opts.ca,
                               .timeout_ms = (unsigned)cloud_opts.timeout_ms,
                               .vocab = UINT32_MAX,
                               .stop = &interrupted };
    struct cloud *c = NULL;
    uint32_t id = 0;
    uint64_t best = UINT64_MAX;
    if (!cloud_api_parse(&o.api, cloud_opts.api))
        return cmd_fail(
            "cloud", err_set(&err, ERR_ARG, "--cloud-api: unknown name %s", cloud_opts.api), &err);
    int rc = cloud_key(&key, cloud_opts.key_file, &err);
    o.key = key;
    if (rc == OK)
        rc = cloud_open(&c, &o, &err);
    /* The same prefix three times: the best is the round trip with everything warm. */
    for (int i = 0; i < 3 && rc == OK; i++) {
        uint64_t start = os_now_ns();
        rc = cloud_next(c, (const uint32_t[]){ 1, 2, 3 }, 3, &id, &err);
        if (os_now_ns() - start < best)
            best = os_now_ns() - start;
    }
    if (rc == OK)
        printf("%s: dialect %s, model %s, token ids yes, round trip %.1f ms\n", check_url,
               cloud_api_name(cloud_dialect(c)), cloud_model(c) ? cloud_model(c) : "not named",
               (double)best / 1e6);
    cloud_close(c);
    free(key);
    return rc ? cmd_fail("cloud", rc, &err) : EXIT_FINE;
}

static int serve(const struct stand_in_options *o)
{
    struct err err = { "" };
    struct stand_in *s;
    struct sigaction term = { .sa_handler = on_term };
    sigaction(SIGTERM, &term, NULL);
    setting_catch_interrupts();
    int rc = stand_in_open(&s, o, &err);
    if (rc == ERR_NET) { /* our own port, not a cloud that does not answer */
        cmd_fail("cloud", rc, &err);
        return EXIT_FAILED;
    }
    if (rc)
        return cmd_fail("cloud", rc, &err);
    fprintf(stderr, "listening on %s\n", stand_in_url(s));
    fflush(stderr);
    while (!atomic_load(&terminated) && !atomic_load(&interrupted))
        poll(NULL, 0, 100);
    stand_in_close(s);
    return atomic_load(&interrupted) ? EXIT_INTERRUPTED : EXIT_FINE;
}

static int run(int argc, char **argv)
{
    struct err err = { "" };
    int nargs = 0, status = opt_parse(&cmd_cloud, argc, argv, &nargs);
    if (status >= 0)
        return status;
    if (nargs)
        return cmd_fail("cloud", err_set(&err, ERR_ARG, "unexpected argument %s", argv[1]), &err);
    if (port > 65535)
        return cmd_fail(
            "cloud", err_set(&err, ERR_ARG, "--port: expected 0 to 65535, found %zu", port), &err);
    if (latency > MAX_DELAY_MS || jitter > MAX_DELAY_MS)
        return cmd_fail(
            "cloud", err_set(&err, ERR_ARG, "--latency, --jitter: expected 0 to %d", MAX_DELAY_MS),
            &err);
    if (check_url)
        return check();
    char *key = NULL;
    int rc = key_file ? cloud_key(&key, key_file, &err) : OK;
    if (rc)
        return cmd_fail("cloud", rc, &err);
    const struct stand_in_options o = { .model = engine_opts.model,
                                        .isa = engine_opts.isa,
                                        .kv = engine_opts.kv,
                                        .threads = engine_opts.threads,
                                        .host = host,
                                        .key = key,
                                        .port = (unsigned)port,
                                        .latency_ms = (unsigned)latency,
                                        .jitter_ms = (unsigned)jitter,
                                        .seed = seed,
                                        .context = context };
    status = serve(&o);
    free(key);
    return status;
}

const struct command cmd_cloud = {
    .name = "cloud",
    .summary = "serve a local model as the cloud, or look at a real server",
    .args = "",
    .description =
        "A stand-in for the large model's server: any local model behind the forms of vLLM (POST\n"
        "/v1/completions with return_token_ids) and of llama.cpp (POST /completion with\n"
        "return_tokens), greedy only. It remembers the last few prefixes, so a growing one costs "
        "its\n"
        "new tokens. --latency and --jitter make a network of the loopback; the jitter of an "
        "answer\n"
        "depends on the seed, the prefix and how often it was asked for, not on the order of "
        "calls.\n"
        "It prints one line when it is ready and stops on SIGTERM (status 0) or SIGINT (130).\n"
        "\n"
        "  mizzle cloud --port 8080 --latency 100 --jitter 30\n"
        "  mizzle run -p \"...\" --cloud-url http://127.0.0.1:8080\n"
        "  mizzle cloud --check https://host/v1 --cloud-key-file key.txt",
    .groups = groups,
    .run = run,
};
