#include "net/wire.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/os.h"
#include "kernels/sys/wipe.h"
#include "net/wire_internal.h"

enum {
    STOP_SLICE_MS = 20, /* how often to look for an interruption */
    IDLE_MS = 1000,     /* the longest delay after a lost wake-up */
};

bool wire_forked(const struct wire *w)
{
    return w->owner != getpid();
}

bool wire_enter(struct wire *w)
{
    if (wire_forked(w))
        return false;
    wire_lock(w);
    return true;
}

void wire_wait(struct wire *w)
{
    pthread_cond_wait(&w->changed, &w->lock);
}

void wire_notify(struct wire *w, void (*f)(void *arg), void *arg)
{
    wire_lock(w);
    w->notify = f;
    w->notify_arg = arg;
    wire_unlock(w);
}

struct cloud_ledger *wire_ledger(struct wire *w)
{
    return &w->ledger;
}

/* Take over submitted calls. False: the wire is closing. */
static bool take_over(struct wire *w)
{
    wire_lock(w);
    struct wire_call *queue = w->queue;
    bool closing = w->closing;
    w->queue = NULL;
    w->queue_end = &w->queue;
    wire_unlock(w);
    for (struct wire_call *call = queue; call; call = call->next) {
        call->link = w->active_end;
        *w->active_end = call;
        w->active_end = &call->next;
    }
    return !closing;
}

/* End all active calls with an error. */
static void end_all(struct wire *w, int code, const char *why)
{
    struct err err;
    err_set(&err, code, "cloud: %s", why);
    while (w->active)
        wire_call_finish(w, w->active, code, &err);
}

/* Return how long the thread may sleep. */
static int wait_ms(const struct wire *w)
{
    uint64_t now = os_now_ns(), wait = w->next > now ? (w->next - now) / 1000000 + 1 : 0;
    uint64_t most = w->active && w->stop ? STOP_SLICE_MS : IDLE_MS;
    return (int)(wait < most ? wait : most);
}

/* The network thread. */
static void *wire_run(void *arg)
{
    struct wire *w = arg;
    while (take_over(w)) {
        struct err err = { "" };
        uint64_t now = os_now_ns();
        w->next = UINT64_MAX;
        if (w->active && w->stop && atomic_load(w->stop))
            end_all(w, ERR_STOP, "interrupted");
        for (struct wire_call *call = w->active, *after; call; call = after) {
            after = call->next;
            wire_call_turn(w, call, now);
        }
        int rc = http_perform(w->http, &err);
        if (rc)
            end_all(w, rc, err.msg);
        http_wait(w->http, wait_ms(w));
    }
    end_all(w, ERR_STOP, "closed");
    return NULL;
}

/* Start the thread with all signals blocked: Ctrl-C is for the other threads, and a SIGPIPE of
 * OpenSSL's stays pending. */
static bool wire_start(struct wire *w)
{
    sigset_t all, old;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &old))
        return false;
    w->running = pthread_create(&w->thread, NULL, wire_run, w) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return w->running;
}

int wire_open(struct wire **out, const struct wire_options *o, struct err *err)
{
    *out = NULL;
    struct wire *w = calloc(1, sizeof(*w));
    if (!w)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    pthread_mutex_init(&w->lock, NULL);
    os_cond_open(&w->changed);
    w->queue_end = &w->queue;
    w->active_end = &w->active;
    w->owner = getpid();
    w->stop = o->stop;
    w->max_reply = o->http.max_reply;
    w->quota = o->quota;
    int rc = OK;
    if (o->http.key && !(w->key = strdup(o->http.key)))
        rc = err_set(err, ERR_NOMEM, "cloud: out of memory");
    if (rc == OK)
        rc = http_open(&w->http, &o->http, err);
    if (rc == OK && !wire_start(w))
        rc = err_set(err, ERR_NOMEM, "cloud: no thread can be started");
    if (rc) {
        wire_close(w);
        return rc;
    }
    *out = w;
    return OK;
}

void wire_stop(struct wire *w)
{
    if (!w || !w->running || wire_forked(w))
        return;
    wire_lock(w);
    w->closing = true;
    http_wake(w->http);
    wire_unlock(w);
    pthread_join(w->thread, NULL);
    w->running = false;
}

void wire_close(struct wire *w)
{
    /* A forked child cannot know in which state the thread was copied. */
    if (!w || wire_forked(w))
        return;
    http_close(w->http);
    wipe_text(w->key);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void wire_submit(struct wire *w, struct wire_call *call)
{
    call->next = NULL;
    call->wire = w;
    if (w->closing) {
        call->answer.rc = err_set(&call->answer.err, ERR_STOP, "cloud: closed");
        call->answer.done = call->answer.ended = true;
        return;
    }
    *w->queue_end = call;
    w->queue_end = &call->next;
    http_wake(w->http);
}

void wire_drop(struct wire *w, struct wire_call *call)
{
    call->dropped = true;
    call->tally = NULL;
    if (!call->answer.reply.ended)
        http_wake(w->http);
}

int wire_fetch(struct wire *w, const char *base, const char *path, const struct buf *body,
               size_t tokens, size_t input, uint64_t deadline, struct wire_answer *out)
{
    struct wire_call *call = calloc(1, sizeof(*call));
    struct buf url = { 0 };
    bool fine = call && buf_str(&url, base) && buf_str(&url, path) && buf_add(&url, "", 1) &&
                (!body || buf_add(&call->body, body->p, body->n));
    *out = (struct wire_answer){ 0 };
    if (!fine) {
        buf_free(&url);
        wire_free(call);
        return out->rc = err_set(&out->err, ERR_NOMEM, "cloud: out of memory");
    }
    call->url = url.p;
    call->deadline = deadline;
    call->ask.want = tokens;
    call->ask.n = input;
    call->quota = w->quota;
    wire_lock(w);
    if (wire_call_fund(call))
        wire_submit(w, call);
    else
        call->answer.rc = err_set(&call->answer.err, ERR_TEXT, "no tokens are left");
    while (!call->answer.rc && !call->answer.ended)
        wire_wait(w);
    wire_unlock(w);
    *out = call->answer;
    call->answer.root = NULL;
    wire_free(call);
    return out->rc;
}
