/* serve_clients.c - the clients of `mizzle bench serve`. One thread drives all connections, because
 * the server that is measured often needs the processors of this machine. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/cloud.h"
#include "net/dialect/dialect.h"
#include "net/http/http.h"
#include "net/http/json_input.h"
#include "net/http/sse.h"
#include "tools/bench/bench_serve.h"
#include "tools/cli/setup.h"

enum { WORDS = 64, MAX_REPLY = 256 << 20, MAX_EVENT = 1 << 20, LONG_TOKENS = 2, WAIT_MS = 200 };
enum { NAME = 512, SAID = 200 };
static const uint64_t silence_ns = 300 * 1000000000ull; /* a server that sends nothing is dead */

/* Words that are one token in most vocabularies. */
static const char *const words[WORDS] = {
    "time",     "year",    "people",   "way",    "day",        "man",    "thing",   "woman",
    "life",     "child",   "world",    "school", "state",      "family", "student", "group",
    "country",  "problem", "hand",     "part",   "place",      "case",   "week",    "company",
    "system",   "program", "question", "work",   "government", "number", "night",   "point",
    "home",     "water",   "room",     "mother", "area",       "money",  "story",   "fact",
    "month",    "lot",     "right",    "study",  "book",       "eye",    "job",     "word",
    "business", "issue",   "side",     "kind",   "head",       "house",  "service", "friend",
    "father",   "power",   "hour",     "game",   "line",       "end",    "member",  "law",
};

struct serve_client {
    struct serve_clients *all;
    struct serve_row *row;
    struct http_try *try; /* NULL: not begun, or ended */
    struct sse sse;
    struct buf body;
    bool is_long, ended, done;  /* the transfer ended; "[DONE]" came */
    uint64_t sent, first, last; /* when; first and last piece of text, 0: none yet */
    json_int_t prompt, tokens;  /* as the server counts; -1: not told */
    int rc;                     /* why it failed */
    struct err err;
};

struct serve_clients {
    const struct serve_target *t;
    struct http *http;
    char *base, *path; /* path: URL of /v1/completions */
    char model[NAME];
    uint64_t seed, texts; /* texts: asked so far */
    uint64_t heard;       /* when anything came last */
    /* Of the round in progress: */
    struct serve_client *clients; /* [n]; the last is the long one if there is one */
    size_t n;
    double pause; /* ns, the longest gap of the others while the long prompt is read */
};

static int serve_clients_fail(struct serve_client *c, int rc, const char *why)
{
    if (!c->rc)
        c->rc = err_set(&c->err, rc, "%s: %s", c->all->t->url, why);
    return c->rc;
}

/* True while the long prompt is being read. */
static bool serve_clients_reading(const struct serve_clients *s)
{
    const struct serve_client *last = &s->clients[s->n - 1];
    return last->is_long && last->try && !last->first;
}

/* Note the time of a piece of text. */
static int serve_clients_piece(struct serve_client *c, struct err *err)
{
    struct serve_clients *s = c->all;
    uint64_t now = os_now_ns(), before = c->last;
    c->last = now;
    if (!c->first)
        c->first = now;
    if (!before || c->is_long)
        return OK;
    double gap = (double)(now - before);
    const struct serve_client *reader = &s->clients[s->n - 1];
    bool meanwhile = serve_clients_reading(s) || (reader->first && before < reader->first);
    if (reader->is_long && meanwhile && gap > s->pause)
        s->pause = gap;
    return series_add(&c->row->gap, gap / 1e6, err);
}

/* Handle an event of a stream: text, usage, an error, or the end. */
static int serve_clients_event(void *arg, const char *data, size_t n, struct err *err)
{
    struct serve_client *c = arg;
    json_t *root = NULL;
    struct err why;
    if (n == 6 && !memcmp(data, "[DONE]", 6)) {
        c->done = true;
        return OK;
    }
    if (json_input_parse(&root, data, n, &why) != OK)
        return err_set(err, ERR_NET, "an event is %s", why.msg);
    const char *said = json_object_get(root, "error") ? dialect_message(root) : NULL;
    const char *text = json_string_value(
        json_object_get(json_array_get(json_object_get(root, "choices"), 0), "text"));
    const json_t *usage = json_object_get(root, "usage");
    int rc = said ? err_set(err, ERR_NET, "the server says: %.*s", SAID, said) : OK;
    if (rc == OK && text && *text)
        rc = serve_clients_piece(c, err);
    if (json_is_object(usage)) {
        c->prompt = json_integer_value(json_object_get(usage, "prompt_tokens"));
        c->tokens = json_integer_value(json_object_get(usage, "completion_tokens"));
    }
    json_decref(root);
    return rc;
}

/* Callback of the transport: a piece of a reply. */
static bool serve_clients_data(struct http_try *t)
{
    struct serve_client *c = t->arg;
    struct err low;
    c->all->heard = os_now_ns();
    if (!c->row || t->status != 200 || !t->stream)
        return true; /* kept, to be read at the end */
    int rc = sse_feed(&c->sse, t->body.p, t->body.n, serve_clients_event, c, &low);
    t->body.n = 0;
    if (rc)
        serve_clients_fail(c, rc, low.msg);
    return rc == OK;
}

/* Say why a reply is not the one expected. The key must not be shown if the server repeats it. */
static int serve_clients_status(struct serve_client *c, const struct http_try *t)
{
    long s = t->status;
    const char *key = c->all->t->key, *said = NULL, *hint = "";
    struct err why;
    json_t *root = NULL;
    int code = s == 401 || s == 403 || s == 404   ? ERR_REMOTE
               : s == 400 || s == 413 || s == 422 ? ERR_TEXT
                                                  : ERR_NET;
    if (json_input_parse(&root, t->body.p, t->body.n, &why) == OK)
        said = dialect_message(root);
    if (said && key && strstr(said, key))
        said = NULL;
    if (s == 401 && !key)
        hint = " (no API key was sent: give one with --key-file or in MIZZLE_API_KEY)";
    err_set(&why, code, "status %ld%s%.*s%s", s, said ? ": " : "", SAID, said ? said : "", hint);
    json_decref(root);
    return serve_clients_fail(c, code, why.msg);
}

/* Take the result of a transfer that has ended. */
static void serve_clients_end(struct serve_client *c, const struct http_try *t)
{
    if (t->rc)
        serve_clients_fail(c, t->rc, t->err.msg);
    else if (t->status != 200)
        serve_clients_status(c, t);
    else if (c->row && !t->stream)
        serve_clients_fail(c, ERR_NET, "the reply is not a stream of events");
    else if (c->row && (!c->done || c->tokens < 1 || !c->first))
        serve_clients_fail(c, ERR_NET,
                           !c->done        ? "the stream ended early"
                           : c->tokens < 1 ? "the stream does not tell the usage"
                                           : "the stream has no text");
    else if (!c->row && !buf_add(&c->body, t->body.p, t->body.n))
        serve_clients_fail(c, ERR_NOMEM, "out of memory");
    c->ended = true;
}

/* Advance the transfers, waiting at most ms, and give back those that have ended. */
static int serve_clients_turn(struct serve_clients *s, int ms, struct err *err)
{
    int rc = http_perform(s->http, err);
    struct http_try *t;
    bool some = false;
    while (rc == OK && (t = http_ended(s->http))) {
        struct serve_client *c = t->arg;
        serve_clients_end(c, t);
        http_release(s->http, t);
        c->try = NULL;
        s->heard = os_now_ns();
        some = true;
    }
    if (rc == OK && interrupted)
        return err_set(err, ERR_STOP, "interrupted");
    if (rc == OK && os_now_ns() - s->heard > silence_ns)
        return err_set(err, ERR_NET, "%s: nothing came for 300 seconds", s->t->url);
    if (rc == OK && !some)
        http_wait(s->http, ms);
    return rc;
}

/* Write a request with n words. The first words of texts that are asked together differ. */
static int serve_clients_request(struct serve_client *c, size_t n, size_t tokens, struct err *err)
{
    struct serve_clients *s = c->all;
    uint64_t text = s->texts++;
    struct buf prompt = { .max = 0 };
    bool fine = buf_str(&prompt, words[(s->seed + text) % WORDS]);
    for (size_t i = 1; i < n && fine; i++)
        fine =
            buf_str(&prompt, " ") && buf_str(&prompt, words[rand_below(s->seed + text, i, WORDS)]);
    json_t *o =
        !fine ? NULL
              : json_pack("{s:s,s:s%,s:I,s:i,s:b,s:b,s:{s:b}}", "model", s->model, "prompt",
                          prompt.p, prompt.n, "max_tokens", (json_int_t)tokens, "temperature", 0,
                          "ignore_eos", 1, "stream", 1, "stream_options", "include_usage", 1);
    char *line = o ? json_dumps(o, JSON_COMPACT) : NULL;
    fine = line && buf_str(&c->body, line);
    free(line);
    json_decref(o);
    buf_free(&prompt);
    return fine ? OK : err_set(err, ERR_NOMEM, "bench: out of memory");
}

static int serve_clients_start(struct serve_client *c, struct err *err)
{
    const struct http_request r = {
        .url = c->all->path, .body = c->body.p, .n = c->body.n, .once = true
    };
    c->sent = c->all->heard = os_now_ns();
    return http_start(c->all->http, &c->try, &r, c, serve_clients_data, err);
}

/* Add what was measured to the row. */
static int serve_clients_add(struct serve_clients *s, struct serve_row *row, uint64_t begin,
                             struct err *err)
{
    uint64_t end = begin;
    double tokens = 0;
    int rc = OK;
    for (size_t i = 0; i < s->n && rc == OK; i++) {
        const struct serve_client *c = &s->clients[i];
        double first = (double)(c->first - c->sent) / 1e6, rest = (double)(c->last - c->first);
        row->errors += c->rc != OK;
        if (!c->rc && c->is_long)
            rc = series_add(&row->longs, first, err);
        if (c->rc || c->is_long)
            continue;
        end = c->last > end ? c->last : end;
        tokens += (double)c->tokens;
        rc = series_add(&row->prompt, (double)c->prompt, err);
        if (rc == OK)
            rc = series_add(&row->tokens, (double)c->tokens, err);
        if (rc == OK)
            rc = series_add(&row->ttft, first, err);
        if (rc == OK && c->tokens > 1 && rest > 0)
            rc = series_add(&row->each, (double)(c->tokens - 1) / rest * 1e9, err);
    }
    if (rc == OK && end > begin)
        rc = series_add(&row->rate, tokens / (double)(end - begin) * 1e9, err);
    if (rc == OK && s->pause > 0)
        rc = series_add(&row->pauses, s->pause / 1e6, err);
    return rc;
}

/* Return the error of the round: that of the first client if none has an answer. */
static int serve_clients_verdict(const struct serve_clients *s, size_t others, struct err *err)
{
    size_t failed = 0;
    const struct serve_client *reader = &s->clients[s->n - 1];
    for (size_t i = 0; i < s->n; i++)
        failed += s->clients[i].rc != OK && !s->clients[i].is_long;
    if (failed == others || (reader->is_long && reader->rc)) {
        const struct serve_client *c = failed == others ? &s->clients[0] : reader;
        *err = c->err;
        return c->rc;
    }
    for (size_t i = 0; i < others && reader->is_long; i++)
        if (!s->clients[i].rc && s->clients[i].last < reader->first)
            return err_set(err, ERR_ARG,
                           "--long: expected answers that last until the long prompt is read: "
                           "raise -n");
    return OK;
}

/* Run the transfers of a round. The long prompt is sent once all others have begun to write. */
static int serve_clients_drive(struct serve_clients *s, size_t others, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; i < others && rc == OK; i++)
        rc = serve_clients_start(&s->clients[i], err);
    while (rc == OK) {
        size_t begun = 0, ended = 0;
        for (size_t i = 0; i < others; i++) {
            begun += s->clients[i].first || s->clients[i].ended;
            ended += s->clients[i].ended;
        }
        struct serve_client *reader = s->n > others ? &s->clients[others] : NULL;
        if (reader && begun == others && !reader->sent)
            rc = serve_clients_start(reader, err);
        if (ended == others && (!reader || reader->ended))
            break;
        if (rc == OK)
            rc = serve_clients_turn(s, WAIT_MS, err);
    }
    return rc;
}

int serve_clients_round(struct serve_clients *s, struct serve_row *row, size_t tokens,
                        struct err *err)
{
    size_t others = row->clients;
    bool has_long = s->t->long_prompt && tokens >= s->t->tokens; /* not while warming up */
    int rc = OK;
    s->n = others + has_long;
    s->pause = 0;
    s->clients = calloc(s->n, sizeof(*s->clients));
    if (!s->clients)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    for (size_t i = 0; i < s->n && rc == OK; i++) {
        struct serve_client *c = &s->clients[i];
        *c = (struct serve_client){ .all = s,
                                    .row = row,
                                    .sse = { .line = { .max = MAX_EVENT },
                                             .data = { .max = MAX_EVENT } },
                                    .is_long = i == others,
                                    .tokens = -1 };
        rc = serve_clients_request(c, c->is_long ? s->t->long_prompt : s->t->prompt,
                                   c->is_long ? LONG_TOKENS : tokens, err);
    }
    uint64_t begin = os_now_ns();
    if (rc == OK)
        rc = serve_clients_drive(s, others, err);
    if (rc == OK)
        rc = serve_clients_verdict(s, others, err);
    if (rc == OK)
        rc = serve_clients_add(s, row, begin, err);
    for (size_t i = 0; i < s->n; i++) {
        http_release(s->http, s->clients[i].try);
        sse_free(&s->clients[i].sse);
        buf_free(&s->clients[i].body);
    }
    free(s->clients);
    s->clients = NULL;
    return rc;
}

/* Ask for the list of models, and take the name of the first unless one is given. */
static int serve_clients_ask(struct serve_clients *s, struct err *err)
{
    char url[4096];
    struct serve_client c = { .all = s };
    struct err why;
    json_t *root = NULL;
    snprintf(url, sizeof(url), "%s/v1/models", s->base);
    const struct http_request r = { .url = url };
    s->heard = os_now_ns();
    int rc = http_start(s->http, &c.try, &r, &c, serve_clients_data, err);
    while (rc == OK && !c.ended)
        rc = serve_clients_turn(s, WAIT_MS, err);
    if (rc == OK && c.rc) {
        *err = c.err;
        rc = c.rc;
    }
    if (rc == OK && json_input_parse(&root, c.body.p ? c.body.p : "", c.body.n, &why) != OK)
        rc = err_set(err, ERR_NET, "%s: the list of models is %s", s->t->url, why.msg);
    const char *name = s->t->model ? s->t->model
                                   : json_string_value(json_object_get(
                                         json_array_get(json_object_get(root, "data"), 0), "id"));
    if (rc == OK && (!name || strlen(name) >= sizeof(s->model)))
        rc = err_set(err, ERR_NET, "%s: the server lists no model: give its name with --name",
                     s->t->url);
    if (rc == OK)
        snprintf(s->model, sizeof(s->model), "%s", name);
    json_decref(root);
    http_release(s->http, c.try);
    buf_free(&c.body);
    return rc;
}

int serve_clients_open(struct serve_clients **out, const struct serve_target *t, struct err *err)
{
    struct serve_clients *s = *out = calloc(1, sizeof(*s));
    const struct http_options o = { .key = t->key, .max_reply = MAX_REPLY };
    if (!s)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    s->t = t;
    s->seed = (uint64_t)time(NULL) << 20; /* new words each time */
    struct err why;
    int rc = cloud_url_check(&s->base, t->url, &why);
    if (rc != OK)
        err_set(err, rc, "%s%s", rc == ERR_ARG ? "--url: " : "",
                why.msg + (strncmp(why.msg, "cloud_url: ", 11) ? 0 : 11));
    if (rc == OK) {
        size_t room = strlen(s->base) + sizeof("/v1/completions");
        s->path = malloc(room);
        if (!s->path)
            return err_set(err, ERR_NOMEM, "bench: out of memory");
        snprintf(s->path, room, "%s/v1/completions", s->base);
        rc = http_open(&s->http, &o, err);
    }
    return rc == OK ? serve_clients_ask(s, err) : rc;
}

void serve_clients_close(struct serve_clients *s)
{
    if (!s)
        return;
    http_close(s->http);
    free(s->base);
    free(s->path);
    free(s);
}

const char *serve_clients_model(const struct serve_clients *s)
{
    return s->model;
}
