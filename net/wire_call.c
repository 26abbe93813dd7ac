/* wire_call.c - one question in the network thread, and what that thread and its callers share: the
 * lock, tallies, freeing a question. */
#include "net/wire_internal.h"

#include <stdlib.h>

#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "net/http/json_input.h"

enum {
    RETRY_MS = 40, /* mean delay before the retry, times 1/2 to 3/2 */
};

static const uint64_t ms = 1000000;

void wire_lock(struct wire *w)
{
    pthread_mutex_lock(&w->lock);
}

void wire_unlock(struct wire *w)
{
    pthread_mutex_unlock(&w->lock);
}

void wire_tell(struct wire *w)
{
    pthread_cond_broadcast(&w->changed);
    if (w->notify)
        w->notify(w->notify_arg);
}

void wire_free(struct wire_call *call)
{
    if (!call)
        return;
    if (call->quota)
        quota_give(call->quota, call->paid, call->fed); /* what never went out */
    sse_free(&call->sse);
    json_decref(call->root);
    json_decref(call->answer.root);
    free((uint32_t *)(size_t)call->ask.ids); /* the call's own copy */
    free(call->url);
    buf_free(&call->body);
    free(call);
}

/* Count traffic: in the ledger, of the call, and of its tally. With the lock held. */
static void wire_call_count(struct wire_call *call, const struct traffic *more)
{
    traffic_add(&call->wire->ledger.traffic, more);
    traffic_add(&call->answer.traffic, more);
    if (call->tally)
        traffic_add(&call->tally->traffic, more);
}

/* Make the attempt's tokens so far those of the answer. With the lock held. */
static void wire_call_show(struct wire *w, struct wire_call *call)
{
    struct wire_answer *answer = &call->answer;
    w->ledger.tokens += call->reply.n - answer->reply.n;
    answer->reply = call->reply;
    answer->done = answer->done || call->reply.n;
    wire_tell(w);
}

void wire_call_finish(struct wire *w, struct wire_call *call, int code, const struct err *why)
{
    struct wire_answer *answer = &call->answer;
    http_release(w->http, call->try);
    call->try = NULL;
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    else
        w->active_end = call->link;
    wire_lock(w);
    if (!answer->done && code) {
        answer->rc = err_set(&answer->err, code, "%s", why->msg);
        w->ledger.faults += call->dialect && !call->dropped && code != ERR_STOP;
    }
    answer->done = answer->ended = true;
    bool dropped = call->dropped;
    wire_tell(w);
    wire_unlock(w);
    if (dropped)
        wire_free(call);
}

/* Read events as they arrive; keep any other body until it is complete. */
static bool on_data(struct http_try *t)
{
    struct wire_call *call = t->request.arg;
    if (!t->stream || t->status != 200 || !call->dialect)
        return true;
    call->rc = sse_feed(&call->sse, t->body.p, t->body.n, &call->err);
    t->body.n = 0;
    if (call->reply.n && call->reply.n != call->answer.reply.n) {
        wire_lock(call->wire);
        wire_call_show(call->wire, call);
        wire_unlock(call->wire);
    }
    return call->rc == OK;
}

static void on_moved(struct http_try *t, const struct traffic *more)
{
    struct wire_call *call = t->request.arg;
    wire_lock(call->wire);
    wire_call_count(call, more);
    wire_unlock(call->wire);
}

bool wire_call_fund(struct wire_call *call)
{
    size_t n = call->ask.want;
    const struct cloud_tally *t = call->tally;
    if (t && t->limit && t->traffic.asked_tokens + n >= t->limit)
        return false;
    if (!call->quota || (call->paid >= n && call->fed))
        return true;
    size_t tokens = call->paid < n ? n - call->paid : 0, input = call->ask.n - call->fed;
    if (!quota_take(call->quota, tokens, input))
        return false;
    call->paid += tokens;
    call->fed += input;
    return true;
}

/* Callback before a request goes out: count what it asks for. */
static bool on_leave(struct http_try *t)
{
    struct wire_call *call = t->request.arg;
    const struct traffic more = { .asked_tokens = call->ask.want };
    wire_lock(call->wire);
    bool may = !call->dropped && wire_call_fund(call);
    if (may) {
        call->paid -= call->quota ? call->ask.want : 0;
        call->fed = 0;
        wire_call_count(call, &more);
    }
    wire_unlock(call->wire);
    return may;
}

static void on_ended(struct http_try *t);

/* Send the question; fresh: over a new connection. */
static void wire_call_send(struct wire *w, struct wire_call *call, bool fresh)
{
    struct err err = { "" };
    const struct http_request r = { .url = call->url,
                                    .body = call->body.p,
                                    .n = call->body.n,
                                    .fresh = fresh,
                                    .arg = call,
                                    .leave = on_leave,
                                    .data = on_data,
                                    .moved = on_moved,
                                    .ended = on_ended };
    sse_free(&call->sse);
    call->sse =
        (struct sse){ wire_reply_event, call, .line.max = w->max_reply, .data.max = w->max_reply };
    call->reply = (struct reply){ 0 };
    call->rc = http_start(w->http, &call->try, &r, &call->err);
    if (call->rc) {
        wire_reply_error(call, &err, call->rc, call->err.msg);
        wire_call_finish(w, call, call->rc, &err);
    }
}

/* Count a request that is sent again, and send it. */
static void wire_call_again(struct wire *w, struct wire_call *call, bool fresh)
{
    static const struct traffic one = { .retries = 1 };
    wire_lock(w);
    wire_call_count(call, &one);
    wire_unlock(w);
    wire_call_send(w, call, fresh);
}

/* Look at the call again at this time. */
static void wire_call_due(struct wire *w, uint64_t at)
{
    w->next = at < w->next ? at : w->next;
}

void wire_call_turn(struct wire *w, struct wire_call *call, uint64_t now)
{
    struct err err = { "" };
    wire_lock(w);
    bool dropped = call->dropped;
    wire_unlock(w);
    if (dropped) {
        wire_call_finish(w, call, ERR_STOP, &err);
    } else if (now >= call->deadline) {
        bool begun = call->try && call->try->answered;
        wire_reply_error(call, &err, ERR_NET,
                         begun ? "no answer in time (it had begun)"
                               : "no answer in time (nothing came)");
        wire_call_finish(w, call, ERR_NET, &err);
    } else {
        wire_call_due(w, call->deadline);
        if (call->retry_at > now)
            wire_call_due(w, call->retry_at);
        else if (!call->try && call->retried)
            wire_call_again(w, call, false);
        else if (!call->try)
            wire_call_send(w, call, false);
    }
}

/* Return when to send once more, after `least` milliseconds or later; 0: never. */
static uint64_t retry_time(const struct wire_call *call, uint64_t least)
{
    uint64_t now = os_now_ns(), left = now < call->deadline ? call->deadline - now : 0;
    uint64_t wait = RETRY_MS * ms / 2 + rand_u64(call->seed, 0) % (RETRY_MS * ms);
    if (call->retried || least > left / ms)
        return 0;
    wait = wait < least * ms ? least * ms : wait;
    return wait < left ? now + wait : 0;
}

/* Callback at the end of a transfer: end the call, or send it again. */
static void on_ended(struct http_try *t)
{
    struct wire_call *call = t->request.arg;
    struct wire *w = call->wire;
    struct err err = { "" };
    bool passes;
    int rc = wire_reply_end(call, t, &passes, &err);
    /* A kept connection may have been dead. */
    bool lost = t->broken && t->sent && !t->answered && !call->resent;
    uint64_t again = lost || !passes ? 0 : retry_time(call, t->rc ? 0 : t->retry_ms);
    wire_lock(w);
    call->answer.status = t->status;
    call->answer.http2 = t->http2;
    if (rc == OK)
        wire_call_show(w, call);
    call->answer.root = call->root;
    call->root = NULL;
    bool begun = call->answer.reply.n; /* what was shown stands */
    bool may = rc == ERR_NET && !begun && (lost || again) && wire_call_fund(call);
    wire_unlock(w);
    if (!may) {
        wire_call_finish(w, call, rc, &err);
        return;
    }
    http_release(w->http, call->try);
    call->try = NULL;
    call->resent = call->resent || lost;
    call->retried = call->retried || again;
    call->retry_at = again;
    if (lost)
        wire_call_again(w, call, true);
    else
        wire_call_due(w, again);
}
