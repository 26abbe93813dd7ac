/* wire_local.c - questions that a model of this process answers. Its threads tell when there is
 * news; there is nothing to send, and no deadline. */
#include "net/wire_internal.h"

/* Take the call out of the list of those that have not ended. With the lock held. */
static void wire_local_take_out(struct wire_call *call)
{
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    wire_untally(call);
}

/* Count what the call would have moved. With the lock held. */
static void wire_local_count(struct wire *w, struct wire_call *call, size_t up, size_t down)
{
    const struct traffic more = { .bytes_up = up, .bytes_down = down };
    traffic_add(&w->ledger.traffic, &more);
    wire_moved(call, &more);
}

/* Return the bytes that these n ids add to a JSON list, which is empty or has some. */
static size_t wire_local_bytes(const uint32_t *ids, size_t n, bool empty)
{
    size_t bytes = empty; /* its brackets are as many as its commas and one more */
    for (size_t i = 0; i < n; i++) {
        bytes += 2;
        for (uint32_t rest = ids[i]; rest >= 10; rest /= 10)
            bytes++;
    }
    return bytes;
}

/* Copy what there is of the text into the answer. With the lock held. */
static void wire_local_look(struct wire *w, struct wire_call *call)
{
    struct wire_answer *a = &call->answer;
    struct reply *r = &a->reply;
    struct err why = { "" };
    size_t had = r->n;
    int rc = OK;
    bool ended = w->local.look(call->text, r->ids, &r->n, &rc, &why);
    w->ledger.tokens += r->n - had;
    if (r->n > had)
        wire_local_count(w, call, 0, wire_local_bytes(r->ids + had, r->n - had, !had));
    if (ended) {
        wire_local_take_out(call);
        r->ended = a->ended = true;
        if (rc && !r->n)
            a->rc = err_set(&a->err, rc, "cloud %s: %s", w->local.name, why.msg);
        w->ledger.faults += a->rc && a->rc != ERR_STOP;
    }
    a->done = ended || r->n;
    wire_tell(w);
}

/* Callback of the model, from a thread of its own. */
static void wire_local_news(void *arg)
{
    struct wire_call *call = arg;
    struct wire *w = call->wire;
    pthread_mutex_lock(&w->lock);
    if (!call->answer.ended)
        wire_local_look(w, call);
    pthread_mutex_unlock(&w->lock); /* wire_unlock would wait for this very function */
}

void wire_local_begin(struct wire *w, struct wire_call *call)
{
    struct wire_answer *a = &call->answer;
    struct err why = { "" };
    call->wire = w;
    int rc = w->local.ask(w->local.arg, &call->text, call->ask.ids, call->ask.n, call->ask.want,
                          wire_local_news, call, &why);
    wire_local_count(w, call, call->body.n, 0);
    if (rc) {
        a->rc = err_set(&a->err, rc, "cloud %s: %s", w->local.name, why.msg);
        a->done = a->ended = true;
        w->ledger.faults += rc != ERR_STOP;
        wire_tell(w);
        return;
    }
    call->link = &w->active;
    call->next = w->active;
    if (call->next)
        call->next->link = &call->next;
    w->active = call;
}

void wire_local_end(struct wire *w, struct wire_call *call)
{
    wire_local_take_out(call);
    call->answer.ended = true;
    w->local.cancel(call->text);
    wire_tell(w);
}
