/* wire_call.c - one question in the network thread, and what that thread and its callers share: the
 * lock, tallies, freeing a question. */
#include "net/wire_internal.h"

#include <stdlib.h>
#include <string.h>

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
    json_decref(call->answer.root);
    free((uint32_t *)(size_t)call->ask.ids); /* the call's own copy */
    free(call->url);
    buf_free(&call->body);
    free(call);
}

/* Add to the traffic of the call, and to that of its tally. With the lock held. */
static void wire_call_moved(struct wire_call *call, const struct traffic *more)
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

/* Return 1/2 to 3/2 of RETRY_MS, from the seed alone. */
static uint64_t jitter_ns(uint64_t seed)
{
    return RETRY_MS * ms / 2 + rand_u64(seed, 0) % (RETRY_MS * ms);
}

/* Release the transfer, if there is one. */
static void release(struct wire *w, struct wire_call *call)
{
    if (call->try)
        traffic_add(&call->moved, &call->try->traffic);
    http_release(w->http, call->try);
    call->try = NULL;
}

/* Copy http's counts of bytes into the ledger, and the call's into its answer. With the lock
 * held. */
static void count_wire(struct wire *w, struct wire_call *call)
{
    struct traffic all = call->moved, counted = call->answer.traffic;
    if (call->try)
        traffic_add(&all, &call->try->traffic);
    counted.retries = counted.asked_tokens = 0; /* these are counted when they happen */
    all = traffic_since(&all, &counted);
    wire_call_moved(call, &all);
    struct traffic *sum = &w->ledger.traffic, now = http_traffic(w->http);
    now.retries = sum->retries;
    now.asked_tokens = sum->asked_tokens;
    *sum = now;
    w->multiplexes = http_multiplexes(w->http);
}

/* Make the attempt's tokens so far those of the answer. With the lock held. */
static void wire_call_show(struct wire *w, struct wire_call *call)
{
    struct wire_answer *answer = &call->answer;
    w->ledger.tokens += call->reply.n - answer->reply.n;
    answer->reply = call->reply;
    answer->done = answer->done || call->reply.n;
    count_wire(w, call);
    wire_tell(w);
}

void wire_call_finish(struct wire *w, struct wire_call *call, int code, const struct err *why)
{
    struct wire_answer *answer = &call->answer;
    release(w, call);
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    else
        w->active_end = call->link;
    wire_lock(w);
    count_wire(w, call);
    if (!answer->done && code) {
        answer->rc = err_set(&answer->err, code, "%s", why->msg);
        w->ledger.faults += call->dialect && !call->dropped && code != ERR_STOP;
    }
    answer->done = answer->ended = true;
    wire_untally(call);
    bool dropped = call->dropped;
    wire_tell(w);
    wire_unlock(w);
    if (dropped)
        wire_free(call);
}

/* Read one event of a stream into the reply. */
static int on_event(void *arg, const char *data, size_t n, struct err *err)
{
    struct wire_call *call = arg;
    struct err low = { "" };
    json_t *root;
    if (call->reply.ended)
        return OK;
    if (n == 6 && memcmp(data, "[DONE]", 6) == 0) {
        call->reply.ended = true;
        return OK;
    }
    if (json_input_parse(&root, data, n, &low))
        return err_set(err, ERR_NET, "an event of the reply is %s", low.msg);
    int rc = wire_reply_says(root, err);
    if (rc == OK)
        rc = call->dialect->event(&call->reply, root, &call->ask, err);
    json_decref(root);
    return rc;
}

/* Read events as they arrive; keep any other body until it is complete. */
static bool on_data(struct http_try *t)
{
    struct wire_call *call = t->arg;
    if (!t->stream || t->status != 200 || !call->dialect)
        return true;
    call->rc = sse_feed(&call->sse, t->body.p, t->body.n, on_event, call, &call->err);
    t->body.n = 0;
    if (call->reply.n && call->reply.n != call->answer.reply.n) {
        wire_lock(call->wire);
        wire_call_show(call->wire, call);
        wire_unlock(call->wire);
    }
    return call->rc == OK;
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

/* Count what the call asks for, as it goes out. With the lock held. */
static void wire_left(struct wire *w, struct wire_call *call)
{
    const struct traffic more = { .asked_tokens = call->ask.want };
    call->paid -= call->quota ? call->ask.want : 0;
    call->fed = 0;
    traffic_add(&w->ledger.traffic, &more);
    wire_call_moved(call, &more);
}

/* Callback before a request goes out. */
static bool on_leave(struct http_try *t)
{
    struct wire_call *call = t->arg;
    wire_lock(call->wire);
    bool may = wire_call_fund(call);
    if (may)
        wire_left(call->wire, call);
    wire_unlock(call->wire);
    return may;
}

/* Send the question. */
static void wire_call_send(struct wire *w, struct wire_call *call, bool fresh)
{
    struct err err = { "" };
    const struct http_request r = { .url = call->url,
                                    .body = call->body.p,
                                    .n = call->body.n,
                                    .fresh = fresh,
                                    .once = call->resent,
                                    .leave = on_leave };
    sse_free(&call->sse);
    call->sse = (struct sse){ .line.max = w->max_reply, .data.max = w->max_reply };
    call->reply = (struct reply){ 0 };
    call->rc = OK;
    int rc = http_start(w->http, &call->try, &r, call, on_data, &err);
    if (rc) {
        wire_reply_error(call, &err, rc, &(struct err){ "out of memory" });
        wire_call_finish(w, call, rc, &err);
    }
}

void wire_call_begin(struct wire *w, struct wire_call *call)
{
    call->next = NULL;
    call->link = w->active_end;
    *w->active_end = call;
    w->active_end = &call->next;
    call->wire = w;
    wire_call_send(w, call, false);
}

/* End the call at its deadline. */
static void too_late(struct wire *w, struct wire_call *call)
{
    struct err err, low;
    bool begun = call->try && call->try->answered;
    err_set(&low, ERR_NET, "no answer in time (%s)", begun ? "it had begun" : "nothing came");
    wire_reply_error(call, &err, ERR_NET, &low);
    wire_call_finish(w, call, ERR_NET, &err);
}

static void wire_call_lower(uint64_t *next, uint64_t at)
{
    if (at && at < *next)
        *next = at;
}

/* Count a request that is sent again. */
static void wire_call_count_retry(struct wire *w, struct wire_call *call)
{
    static const struct traffic one = { .retries = 1 };
    wire_lock(w);
    traffic_add(&w->ledger.traffic, &one);
    wire_call_moved(call, &one);
    wire_unlock(w);
}

void wire_call_turn(struct wire *w, struct wire_call *call, uint64_t now, uint64_t *next)
{
    if (now >= call->deadline) {
        too_late(w, call);
        return;
    }
    wire_call_lower(next, call->deadline);
    if (call->retry_at && now >= call->retry_at) {
        call->retry_at = 0;
        wire_call_count_retry(w, call);
        wire_call_send(w, call, false);
        return;
    }
    wire_call_lower(next, call->retry_at);
}

/* Return when to send once more; 0: never. */
static uint64_t retry_time(const struct wire_call *call, const struct http_try *t, uint64_t now)
{
    long s = t->status;
    bool passing = t->rc ? t->broken : s == 408 || s == 425 || s == 429 || s >= 500;
    uint64_t wait = jitter_ns(call->seed);
    if (call->retried || !passing)
        return 0;
    if (!t->rc && t->retry_ms > (call->deadline - now) / ms)
        return 0;
    if (!t->rc && wait < t->retry_ms * ms)
        wait = t->retry_ms * ms;
    return wait < call->deadline - now ? now + wait : 0;
}

void wire_call_ended(struct wire *w, struct http_try *t)
{
    struct wire_call *call = t->arg;
    struct err err = { "" };
    json_t *root;
    uint64_t now = os_now_ns();
    if (now >= call->deadline)
        now = call->deadline - 1;
    int rc = wire_reply_read(call, t, &root, &err);
    if (t->sent > 1) {
        call->resent = true;
        wire_call_count_retry(w, call);
    }
    bool lost = t->lost && !call->resent;
    uint64_t again = retry_time(call, t, now);
    wire_lock(w);
    if (rc && (lost || again) && !wire_call_fund(call)) { /* the fault stands */
        lost = false;
        again = 0;
    }
    call->answer.status = t->status;
    if (rc == OK) {
        wire_call_show(w, call);
        call->answer.root = call->dialect ? NULL : json_incref(root);
    }
    wire_unlock(w);
    json_decref(root);
    release(w, call);
    bool begun = call->answer.reply.n; /* what was shown stands */
    if (rc == OK || begun || rc == ERR_REMOTE || rc == ERR_TEXT || rc == ERR_NOMEM ||
        !(lost || again)) {
        wire_call_finish(w, call, rc, &err);
    } else if (lost) {
        call->resent = true;
        wire_call_count_retry(w, call);
        wire_call_send(w, call, true);
    } else {
        call->retried = true;
        call->retry_at = again;
    }
}
