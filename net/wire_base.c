/* wire_base.c - what the network thread and its callers share: the lock, freeing a question, and
 * error lines. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "net/http/json_input.h"
#include "net/wire_internal.h"

enum {
    MESSAGE = 300,
    /* This many characters of the key in a row are hidden; fewer at its beginning. */
    PART_OF_KEY = 8,
    BEGINNING_OF_KEY = 6,
};

void wire_lock(struct wire *w)
{
    pthread_mutex_lock(&w->lock);
}

void wire_unlock(struct wire *w)
{
    pthread_mutex_unlock(&w->lock);
}

void wire_wait(struct wire *w)
{
    pthread_cond_wait(&w->changed, &w->lock);
}

void wire_tell(struct wire *w)
{
    pthread_cond_broadcast(&w->changed);
    if (w->notify)
        w->notify(w->notify_arg);
}

void wire_notify(struct wire *w, void (*f)(void *arg), void *arg)
{
    wire_lock(w);
    w->notify = f;
    w->notify_arg = arg;
    wire_unlock(w);
}

void wire_free(struct wire_call *call)
{
    if (!call)
        return;
    sse_free(&call->sse);
    json_decref(call->answer.root);
    free((uint32_t *)(size_t)call->ask.ids); /* the call's own copy */
    free(call->url);
    buf_free(&call->body);
    free(call);
}

void wire_moved(struct wire_call *call, const struct traffic *more)
{
    traffic_add(&call->answer.traffic, more);
    if (call->tally)
        traffic_add(&call->tally->traffic, more);
}

void wire_tally(struct wire_call *call, struct cloud_tally *t)
{
    traffic_add(&t->traffic, &call->answer.traffic);
    if (call->answer.ended)
        return;
    call->tally = t;
    call->tally_next = t->calls;
    call->tally_link = &t->calls;
    if (call->tally_next)
        call->tally_next->tally_link = &call->tally_next;
    t->calls = call;
}

void wire_untally(struct wire_call *call)
{
    if (!call->tally)
        return;
    *call->tally_link = call->tally_next;
    if (call->tally_next)
        call->tally_next->tally_link = call->tally_link;
    call->tally = NULL;
}

void wire_tally_end(struct cloud_tally *t)
{
    while (t->calls)
        wire_untally(t->calls);
}

/* Return how many characters at the beginning of text[n] must be hidden because the key has them,
 * too. */
static size_t wire_secret(const char *key, const char *text, size_t n)
{
    size_t most = 0, k = key ? strlen(key) : 0;
    for (size_t at = 0; at < k; at++) {
        size_t same = 0, least = at ? PART_OF_KEY : BEGINNING_OF_KEY;
        while (same < n && at + same < k && text[same] == key[at + same])
            same++;
        if (same > most && (same >= least || same == k))
            most = same;
    }
    return most;
}

int wire_error(const struct wire *w, struct err *err, int code, const char *url,
               const struct err *low)
{
    struct buf clean = { 0 };
    char line[MESSAGE];
    const char *text = low->msg;
    size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        size_t secret = wire_secret(w->key, text + i, n - i);
        if (!buf_add(&clean, secret ? "***" : text + i, secret ? 3 : 1))
            break;
        i += secret ? secret : 1;
    }
    json_input_line(line, sizeof(line), clean.p ? clean.p : "", clean.n);
    buf_free(&clean);
    return err_set(err, code, "cloud %s: %s", url, line);
}
