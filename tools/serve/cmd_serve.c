/* cmd_serve.c - `mizzle serve`: an OpenAI-compatible server of the routed model, with a page. */
#include <libgen.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/wipe.h"
#include "router/texts/texts.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/command.h"
#include "tools/serve/listen.h"
#include "tools/serve/sandbox.h"
#include "tools/serve/serve.h"
#include "tools/serve/serve_exchange.h"
#include "kernels/sys/atomic_file.h"
#include "weights/find.h"

enum { GRACE_MAX = 86400, QUEUE_MAX = 100000 };

static const char *origin;
static size_t parallel = 8, queue = 256, context, grace = 2;
static bool log_requests;
static struct option_list hosts;

static const struct option_group server_opts = {
    "Server",
    (const struct option[]){
        { "--parallel", NULL, OPTION_SIZE, &parallel, "N",
          "Write up to N texts at a time, 1 to 64; memory for each is allocated when first needed "
          "(default: 8)" },
        { "--max-queue", NULL, OPTION_SIZE, &queue, "N",
          "Let N texts wait for their turn; further requests get status 503 (default: 256)" },
        { "--context", "-c", OPTION_COUNT, &context, "N",
          "Keep a context of N tokens for each text, its prompt included (default: 4096, or the "
          "model's maximum if that is less)" },
        { "--allow-host", NULL, OPTION_LIST, &hosts, "NAME",
          "Accept requests to this host name besides IP addresses and localhost, such as "
          "host.docker.internal; may be given 16 times (default: none)" },
        { "--cors-origin", NULL, OPTION_STR, &origin, "ORIGIN",
          "Let pages of this site call, such as http://localhost:3000 (default: none)" },
        { "--log", NULL, OPTION_FLAG, &log_requests, NULL,
          "Print a line on stderr for each request: method, status, time, tokens, cloud tokens, "
          "client and path; never text" },
        { "--grace", NULL, OPTION_SIZE, &grace, "S",
          "Give requests in progress S seconds to finish after a signal (default: 2)" },
        OPTION_END,
    },
};

static const struct option_brief brief[] = {
    { "--port", "Listen on this port (8080)" },
    { "--host", "Listen on this address (127.0.0.1)" },
    { "--api-key-file", "Require the key in this file" },
    { "--parallel", "Write N texts at a time" },
    { "--context", "Context of each text, in tokens" },
    OPTION_BRIEF_MODELS,
    { "--router", "Router (the model's)" },
    { "--policy", "Source of the scores; --help all lists them" },
    { "--threshold", "Route tokens that score below T (the router's)" },
    { "--max-cloud-tokens", "Request at most N tokens in all" },
    { NULL, NULL },
};

static _Atomic int ended; /* the first signal's number */
static _Atomic int ready;

/* Handle SIGINT, SIGTERM and SIGHUP: the first one ends the server in order, or at once while
 * nothing is served yet, the second one always at once. */
static void cmd_serve_on_signal(int number)
{
    int none = 0;
    if (atomic_load(&ready) && atomic_compare_exchange_strong(&ended, &none, number))
        return;
    atomic_file_abandon_all();
    (void)!write(STDERR_FILENO, "\n", (size_t)isatty(STDERR_FILENO)); /* ends the progress line */
    _exit(number == SIGINT ? EXIT_INTERRUPTED : EXIT_FINE);
}

static void cmd_serve_catch_signals(void)
{
    struct sigaction act = { .sa_handler = cmd_serve_on_signal }, old;
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* as under nohup */
        sigaction(SIGHUP, &act, NULL);
}

/* Give up what is not needed. Only the file of answers is written. */
static void cmd_serve_confine(void)
{
    char path[FIND_PATH];
    const char *list[2] = { NULL };
    if (!shared_options.offline && shared_options.answers &&
        snprintf(path, sizeof(path), "%s", shared_options.answers) < FIND_PATH)
        list[0] = dirname(path);
    sandbox_enter(list);
}

/* True if the text is what a browser sends as Origin: a scheme, a host and maybe a port, which is
 * not the scheme's own; and a slash behind it, as addresses are copied. */
static bool cmd_serve_is_site(const char *text)
{
    const char *host = strstr(text, "://");
    if (!host || host == text || strpbrk(text, "*?#@,\\ "))
        return false;
    size_t n = strcspn(host += 3, "/");
    const char *usual = host[-4] == 's' ? ":443" : ":80";
    size_t port = strlen(usual);
    return n && !host[n + (host[n] == '/')] && (n < port || memcmp(host + n - port, usual, port));
}

/* Check the ranges of the options. */
static int cmd_serve_check(struct err *err)
{
    if (!parallel || parallel > TEXTS_SLOTS)
        return err_set(err, ERR_ARG, "--parallel: expected 1 to %d, found %zu", TEXTS_SLOTS,
                       parallel);
    if (origin && !cmd_serve_is_site(origin))
        return err_set(err, ERR_ARG,
                       "--cors-origin: expected a site without a path and its usual port, such "
                       "as http://localhost:3000, found %s",
                       origin);
    if (grace > GRACE_MAX)
        return err_set(err, ERR_ARG, "--grace: expected 0 to %d, found %zu", GRACE_MAX, grace);
    if (queue > QUEUE_MAX)
        return err_set(err, ERR_ARG, "--max-queue: expected 0 to %d, found %zu", QUEUE_MAX, queue);
    return OK;
}

/* Open the model and what belongs to it. */
static int cmd_serve_load(struct serve *s, struct err *err)
{
    struct routing_options o;
    int rc = setup_check_policy(err);
    if (rc == OK)
        rc = setup_options(&o, err);
    if (rc == OK)
        rc = setup_large_model(&o, err);
    if (rc != OK)
        return rc;
    struct progress *progress = progress_begin("loading", o.engine.model);
    rc = serve_load(s, &o, err);
    progress_end(progress);
    if (rc == OK)
        setup_blas_hint(&s->engine.kernels);
    return rc;
}

/* Serve until a signal arrives; return the exit status. */
static int cmd_serve_run(const struct serve_options *o, struct err *err)
{
    struct serve *s = NULL;
    int rc = serve_open(&s, o, err);
    if (rc == ERR_NET) { /* concerns our own port, so not EXIT_NO_CLOUD */
        command_fail(&cmd_serve, rc, err);
        return EXIT_FAILED;
    }
    if (rc == OK)
        rc = cmd_serve_load(s, err);
    atomic_store(&ready, 1);
    if (rc == OK)
        listen_wait(serve_url(s), &ended, serve_look, s);
    serve_close(s, rc == OK ? (unsigned)grace * 1000 : 0);
    if (rc != OK)
        return rc;
    return atomic_load(&ended) == SIGINT ? EXIT_INTERRUPTED : EXIT_FINE;
}

static int cmd_serve_main(int n, char **args, struct err *err)
{
    char *key = NULL;
    (void)n, (void)args;
    struct server_options listen;
    int rc = cmd_serve_check(err);
    if (rc == OK)
        rc = listen_read(&listen, &key, err);
    if (rc != OK)
        return rc;
    listen.hosts = hosts.n ? hosts.at : NULL;
    listen.origin = origin;
    const struct serve_options o = { .listen = listen,
                                     .demo = !shared_options.engine.model,
                                     .parallel = parallel,
                                     .queue = queue,
                                     .log = log_requests,
                                     .context = context };
    cmd_serve_catch_signals();
    cmd_serve_confine();
    rc = cmd_serve_run(&o, err);
    wipe_text(key);
    return rc;
}

const struct command cmd_serve = {
    .name = "serve",
    .summary = "serve the routed model through OpenAI's API, with a page",
    .description =
        "Answers the requests of OpenAI's clients (/v1/chat/completions, /v1/completions, "
        "/v1/models), whole or streamed, and shows a page at / with each token's writer, reason "
        "and cost. Many texts are written at a time; other requests never change a text.\n\n"
        "The routed model has the name of its file. If :edge follows the name, the small model "
        "writes alone; if :cloud follows, only the large model writes, and its failure is an "
        "error. Names without these endings mean the routed model.\n\n"
        "A missing temperature means 0. An object \"mizzle\" in a request may hold policy, "
        "threshold, ahead, cloud (auto, required or off), max_cloud_tokens, private (patterns, "
        "added to those of --private-file) and trace. The reply has such an object, too, with the "
        "cost of the text.\n\n"
        "echo with logprobs scores a prompt, as lm-evaluation-harness does; the small model is "
        "scored, and nothing is sent to the cloud.\n\n"
        "Without -m, the demo pair is served, both models in this process. The server prints "
        "\"listening on URL\" on stderr when it is ready; until then requests get status 503. It "
        "stops on SIGTERM or SIGHUP (status 0) or SIGINT (status 130) and gives requests in "
        "progress two seconds (--grace) to finish. It says on stderr when the cloud is lost and "
        "when it is back. If the system can guarantee this, the server can write no file except "
        "that of --answers. /health and the page's own files need no key; the page asks for the "
        "key.\n\n"
        "  mizzle serve\n"
        "  mizzle serve -m qwen2.5-0.5b.gguf --cloud-url http://server:8080\n"
        "  curl http://127.0.0.1:8080/v1/completions --json '{\"prompt\":\"Hello\"}'",
    .brief = brief,
    .groups = (const struct option_group *const[]){ &listen_option_rows, &server_opts,
                                                    ROUTED_OPTION_ROWS, NULL },
    .run = cmd_serve_main,
};
