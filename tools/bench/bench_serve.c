/* bench_serve.c - `mizzle bench serve`: how fast a server answers several clients at the same
 * time. */
#include "tools/bench/bench_serve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "kernels/sys/wipe.h"
#include "net/cloud.h"
#include "tools/bench/bench.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"

enum { CLIENTS = 256, TOKENS = 1 << 16, WARM_UP = 4 };

static const char *url, *clients = "1,2,4,8", *model, *key_file;
static size_t long_prompt;

const struct option_group bench_serve_opts = {
    "Server",
    (const struct option[]){
        { "--url", NULL, OPTION_STR, &url, "URL",
          "Measure the server at this address (default: none, it must be given)" },
        { "--clients", NULL, OPTION_STR, &clients, "LIST",
          "Let N clients ask at the same time, at most 256 (default: 1,2,4,8)" },
        { "--long", NULL, OPTION_SIZE, &long_prompt, "N",
          "Send a prompt of N words while the others write, and show their longest gap until its "
          "first token (default: 0, send none)" },
        { "--name", NULL, OPTION_STR, &model, "NAME",
          "Ask for this model (default: the first that the server lists)" },
        { "--key-file", NULL, OPTION_STR, &key_file, "FILE",
          "Send the API key in this file (default: the key in MIZZLE_API_KEY, else in "
          "OPENAI_API_KEY, else none)" },
        OPTION_END,
    },
};

int series_add(struct series *s, double v, struct err *err)
{
    if (s->n == s->room) {
        size_t room = 2 * s->room + 64;
        double *more = realloc(s->at, room * sizeof(*more));
        if (!more)
            return err_set(err, ERR_NOMEM, "bench: out of memory");
        s->at = more;
        s->room = room;
    }
    s->at[s->n++] = v;
    return OK;
}

double series_share(struct series *s, double share)
{
    if (!s->n)
        return (double)NAN;
    double median = bench_median(s->at, s->n); /* sorts */
    size_t i = (size_t)(share * (double)s->n);
    return share > 0.5 ? s->at[i < s->n ? i : s->n - 1] : median;
}

void series_free(struct series *s)
{
    free(s->at);
    *s = (struct series){ .at = NULL };
}

static void bench_serve_free_row(struct serve_row *r)
{
    struct series *const all[] = { &r->prompt, &r->tokens, &r->rate,  &r->each,
                                   &r->ttft,   &r->gap,    &r->longs, &r->pauses };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        series_free(all[i]);
}

/* Answer all numbers of clients once, unmeasured, so that the server takes its memory; then
 * measure, round by round, so that what the machine does meanwhile meets all rows alike. */
static int bench_serve_measure(struct serve_clients *s, const struct serve_target *t,
                               struct serve_row *rows, size_t n, size_t repeat, struct err *err)
{
    struct serve_row warm = { .clients = 1 };
    for (size_t i = 0; i < n; i++)
        warm.clients = rows[i].clients > warm.clients ? rows[i].clients : warm.clients;
    int rc = serve_clients_round(s, &warm, WARM_UP, err);
    bench_serve_free_row(&warm);
    for (size_t r = 0; r < repeat && rc == OK; r++)
        for (size_t i = 0; i < n && rc == OK; i++)
            rc = serve_clients_round(s, &rows[i], t->tokens, err);
    return rc;
}

/* Check the options and read the list of clients. */
static int bench_serve_check(struct bench_list *list, const struct bench_options *o,
                             struct err *err)
{
    if (!url)
        return err_set(err, ERR_ARG, "expected --url, such as http://127.0.0.1:8080");
    int rc = bench_list(list, "--clients", clients, err);
    for (size_t i = 0; i < list->n && rc == OK; i++)
        if (list->at[i] < 1 || list->at[i] > CLIENTS)
            rc = err_set(err, ERR_ARG, "--clients: expected 1 to %d, found %zu", CLIENTS,
                         list->at[i]);
    if (rc == OK && (o->prompt < 1 || o->prompt > TOKENS || o->tokens < 2 || o->tokens > TOKENS))
        rc = err_set(err, ERR_ARG, "-p: expected 1 to %d, found %zu; -n: 2 to %d, found %zu",
                     TOKENS, o->prompt, TOKENS, o->tokens);
    if (rc == OK && long_prompt > TOKENS)
        rc = err_set(err, ERR_ARG, "--long: expected 0 to %d, found %zu", TOKENS, long_prompt);
    return rc;
}

int bench_serve(const struct bench_options *o, struct err *err)
{
    struct bench_list list = { .n = 0 };
    struct serve_row rows[BENCH_LIST] = { { .clients = 0 } };
    struct serve_clients *s = NULL;
    struct err note = { "" };
    char *key = NULL;
    int rc = bench_serve_check(&list, o, err);
    if (rc == OK)
        rc = api_key_read(&key, key_file, url, &note, err);
    if (rc == OK && note.msg[0])
        fprintf(stderr, "mizzle bench serve: %s\n", note.msg);
    const struct serve_target t = { .url = url,
                                    .key = key,
                                    .model = model,
                                    .tokens = o->tokens,
                                    .prompt = o->prompt,
                                    .long_prompt = long_prompt };
    struct progress *progress = rc == OK ? progress_begin("measuring", "the server") : NULL;
    for (size_t i = 0; i < list.n; i++)
        rows[i].clients = list.at[i];
    if (rc == OK)
        rc = serve_clients_open(&s, &t, err);
    if (rc == OK)
        rc = bench_serve_measure(s, &t, rows, list.n, o->repeat, err);
    progress_end(progress);
    if (rc == OK)
        rc = serve_report(o->format, &t, serve_clients_model(s), rows, list.n, err);
    for (size_t i = 0; i < list.n; i++)
        bench_serve_free_row(&rows[i]);
    serve_clients_close(s);
    wipe_text(key);
    return rc;
}
