#include "tools/lab/bench/paper_baseline.h"

#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "kernels/sys/os.h"
#include "model/sample.h"
#include "model/session.h"
#include "model/text/tokenizer.h"
#include "model/text/unicode.h"
#include "net/http/http.h"
#include "net/http/json_input.h"
#include "router/policy.h"
#include "tools/lab/bench/scripted_cloud.h"

enum { SLICE_MS = 20, MAX_REPLY = 1 << 20, URL_SIZE = 400 };

/* An answer in progress. */
struct writer {
    const struct paper_baseline *p;
    struct paper_baseline_cost *cost;
    struct http *http; /* NULL: not connected */
    uint32_t *ids;     /* [n], the text so far */
    size_t n, cap;
    struct err *err;
};

static double paper_baseline_ms_since(uint64_t start)
{
    return (double)(os_now_ns() - start) / 1e6;
}

/* Return the text so far as a JSON string, with U+FFFD for what is not UTF-8; NULL if there is no
 * memory. */
static json_t *text_of(const struct writer *w)
{
    struct buf raw = { 0 };
    bool fine = true;
    for (size_t i = 0; i < w->n && fine; i++) {
        size_t n;
        const char *p = tokenizer_bytes(w->p->tok, w->ids[i], &n);
        fine = !p || buf_add(&raw, p, n);
    }
    char *valid = NULL;
    size_t len;
    if (fine && unicode_repair(&valid, &len, raw.p ? raw.p : "", raw.n, NULL) != OK)
        fine = false;
    json_t *text = fine ? json_stringn(valid, len) : NULL;
    free(valid);
    buf_free(&raw);
    return text;
}

/* Return the ids so far as a JSON array. */
static json_t *list_of(const struct writer *w)
{
    json_t *list = json_array();
    for (size_t i = 0; i < w->n; i++)
        json_array_append_new(list, json_integer(w->ids[i]));
    return list;
}

/* Return the malloc'ed request body of one call; NULL if there is no memory. */
static char *body_of(const struct writer *w)
{
    json_t *root =
        json_pack("{s:o?,s:{s:I,s:i,s:i}}", w->p->text ? "text" : "input_ids",
                  w->p->text ? text_of(w) : list_of(w), "sampling_params", "max_new_tokens",
                  (json_int_t)w->p->want, "temperature", 0, "top_k", 1);
    char *body = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return body;
}

/* Set *id to the first token of the reply. */
static int paper_baseline_first_of(const struct writer *w, const struct http_try *t, uint32_t *id)
{
    json_t *root = NULL;
    uint32_t *ids = NULL;
    size_t n = 0;
    int rc = t->rc ? err_set(w->err, t->rc, "%s", t->err.msg)
             : t->status != 200
                 ? err_set(w->err, ERR_NET, "status: expected 200, found %ld", t->status)
                 : json_input_parse(&root, t->body.p ? t->body.p : "", t->body.n, w->err);
    if (rc)
        return rc;
    const json_t *text = json_object_get(root, "text");
    bool found = false;
    if (!w->p->text)
        found = json_input_id(id, json_array_get(json_object_get(root, "output_ids"), 0),
                              tokenizer_size(w->p->tok));
    else
        rc = tokenizer_encode(w->p->tok, &ids, &n, text ? json_string_value(text) : "",
                              json_string_length(text), true, w->err);
    if (rc == OK && n) {
        *id = ids[0];
        found = true;
    }
    if (rc == OK && !found)
        rc = err_set(w->err, ERR_NET, "the reply holds no token");
    free(ids);
    json_decref(root);
    return rc;
}

/* Run one transfer to its end. Where id is NULL, the reply is ignored. */
static int transfer(struct writer *w, const char *path, const char *body, uint32_t *id)
{
    char url[URL_SIZE];
    struct http_try *t, *ended = NULL;
    snprintf(url, sizeof(url), "%s%s", w->p->url, path);
    const struct http_request r = { .url = url, .body = body, .n = body ? strlen(body) : 0 };
    int rc = http_start(w->http, &t, &r, NULL, NULL, w->err);
    if (rc)
        return rc;
    while (rc == OK && !ended) {
        rc = http_perform(w->http, w->err);
        ended = http_ended(w->http);
        if (rc == OK && !ended && w->p->stop && atomic_load(w->p->stop))
            rc = err_set(w->err, ERR_STOP, "interrupted");
        if (rc == OK && !ended)
            http_wait(w->http, SLICE_MS);
    }
    if (rc == OK && id)
        rc = paper_baseline_first_of(w, t, id);
    http_release(w->http, t);
    return rc;
}

/* Close the connection, if there is one, and add its bytes to the cost. */
static void hang_up(struct writer *w)
{
    if (w->http) {
        struct traffic t = http_traffic(w->http);
        w->cost->up += t.bytes_up;
        w->cost->down += t.bytes_down;
    }
    http_close(w->http);
    w->http = NULL;
}

/* Open a client unless there is one. */
static int paper_baseline_dial(struct writer *w)
{
    const struct http_options o = { .max_reply = MAX_REPLY };
    return w->http ? OK : http_open(&w->http, &o, w->err);
}

/* Request the next token from the server. */
static int paper_baseline_call(struct writer *w, uint32_t *id)
{
    uint64_t start = os_now_ns();
    char *body = body_of(w);
    int rc = body ? paper_baseline_dial(w) : err_set(w->err, ERR_NOMEM, "bench: out of memory");
    if (rc == OK)
        rc = transfer(w, "/generate", body, id);
    free(body);
    if (w->p->connect)
        hang_up(w);
    w->cost->calls++;
    w->cost->cloud_ms += paper_baseline_ms_since(start);
    return rc;
}

/* Replace the ids so far by those of their text, tokenized again. */
static int cut_again(struct writer *w)
{
    json_t *text = text_of(w);
    uint32_t *ids;
    size_t n;
    int rc = text ? tokenizer_encode(w->p->tok, &ids, &n, json_string_value(text),
                                     json_string_length(text), true, w->err)
                  : err_set(w->err, ERR_NOMEM, "bench: out of memory");
    json_decref(text);
    if (rc)
        return rc;
    if (!n || n >= w->cap)
        rc = err_set(w->err, ERR_ARG, "text cut again: expected 1 to %zu tokens, found %zu",
                     w->cap - 1, n);
    else
        memcpy(w->ids, ids, n * sizeof(*ids));
    w->n = rc ? w->n : n;
    free(ids);
    return rc;
}

/* Evaluate the part of the text that the session does not hold. */
static int paper_baseline_evaluate(struct writer *w)
{
    struct session *s = w->p->session;
    size_t shared = 0, have = w->p->no_cache ? 0 : session_length(s);
    const uint32_t *ids = session_ids(s);
    while (shared < have && shared < w->n - 1 && ids[shared] == w->ids[shared])
        shared++;
    session_rewind(s, shared);
    return session_eval(s, w->ids + shared, w->n - shared, w->p->stop, w->err);
}

/* Write token i of the answer. */
static int write_token(struct writer *w, size_t i)
{
    const struct paper_baseline *p = w->p;
    uint64_t start = os_now_ns();
    uint32_t id = 0;
    int rc = p->text ? cut_again(w) : OK;
    if (rc == OK)
        rc = paper_baseline_evaluate(w);
    if (rc)
        return rc;
    bool routed = policy_score_random(p->seed, p->n + i) < p->share;
    if (!routed)
        id = sampler_pick(p->sampler, session_logits(p->session, 0), w->ids, w->n);
    w->cost->edge_ms += paper_baseline_ms_since(start);
    if (routed)
        rc = paper_baseline_call(w, &id);
    w->ids[w->n++] = id;
    w->cost->text = scripted_cloud_hash(w->cost->text, id);
    return rc;
}

/* Write the answer. What opening the shared connection takes is not counted, neither as time nor as
 * bytes. */
static int paper_baseline_answer(struct writer *w)
{
    int rc = w->p->connect ? OK : paper_baseline_dial(w);
    if (rc == OK && !w->p->connect)
        rc = transfer(w, "/health", NULL, NULL);
    struct traffic opening = w->http ? http_traffic(w->http) : (struct traffic){ 0 };
    uint64_t start = os_now_ns();
    session_rewind(w->p->session, 0);
    for (size_t i = 0; i < w->p->tokens && rc == OK; i++)
        rc = write_token(w, i);
    w->cost->ms = paper_baseline_ms_since(start);
    hang_up(w);
    w->cost->up -= opening.bytes_up;
    w->cost->down -= opening.bytes_down;
    return rc;
}

int paper_baseline_run(struct paper_baseline_cost *out, const struct paper_baseline *p,
                       struct err *err)
{
    struct writer w = { .p = p, .cost = out, .cap = session_context(p->session), .err = err };
    sigset_t pipe, old;
    *out = (struct paper_baseline_cost){ 0 };
    if (p->n + p->tokens >= w.cap)
        return err_set(err, ERR_ARG, "context: expected more than %zu tokens, found %zu",
                       p->n + p->tokens, w.cap);
    w.ids = malloc(w.cap * sizeof(*w.ids));
    if (!w.ids)
        return err_set(err, ERR_NOMEM, "bench: out of memory");
    memcpy(w.ids, p->prompt, p->n * sizeof(*w.ids));
    w.n = p->n;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &old);
    int rc = paper_baseline_answer(&w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    free(w.ids);
    return rc;
}
