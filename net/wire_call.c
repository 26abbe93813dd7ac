#include "net/wire_internal.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "net/http/json_input.h"

enum {
    MESSAGE = 200,
    MAX_LINGER = 4,   /* most dropped calls left to end by themselves */
    LINGER_MS = 2000, /* and for how long at most */
    RETRY_MS = 40,    /* mean delay before the retry, times 1/2 to 3/2 */
};

static const uint64_t ms = 1000000;
static const struct traffic one_retry = { .retries = 1 }, one_hedge = { .hedges = 1 };

/* Return 1/2 to 3/2 of RETRY_MS, from the seed alone (the last steps of MurmurHash3). */
static uint64_t jitter_ns(uint64_t x)
{
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    x ^= x >> 33;
    return RETRY_MS * ms / 2 + x % (RETRY_MS * ms);
}

/* True while an attempt is in flight. */
static bool wire_call_out(const struct wire_call *call)
{
    return call->attempts[0].try || call->attempts[1].try;
}

/* Release the attempt's transfer. */
static void release(struct wire *w, struct wire_attempt *a)
{
    if (a->try)
        traffic_add(&a->call->moved, &a->try->traffic);
    http_release(w->http, a->try);
    a->try = NULL;
}

/* Copy http's counts of bytes into the ledger, and the call's into its answer. With the lock
 * held. */
static void count_wire(struct wire *w, struct wire_call *call)
{
    struct traffic all = call->moved, counted = call->answer.traffic;
    for (size_t i = 0; i < 2; i++)
        if (call->attempts[i].try)
            traffic_add(&all, &call->attempts[i].try->traffic);
    counted.retries = counted.hedges = 0; /* these are counted when they happen */
    all = traffic_since(&all, &counted);
    wire_moved(call, &all);
    struct traffic *sum = &w->ledger.traffic, now = http_traffic(w->http);
    now.retries = sum->retries;
    now.hedges = sum->hedges;
    *sum = now;
    w->multiplexes = http_multiplexes(w->http);
}

/* Make the winning attempt's tokens so far those of the call. With the lock held. */
static void wire_call_show(struct wire *w, struct wire_call *call, const struct reply *r)
{
    struct wire_answer *answer = &call->answer;
    w->ledger.tokens += r->n - answer->reply.n;
    answer->reply = *r;
    answer->done = answer->done || r->n;
    count_wire(w, call);
    wire_tell(w);
}

void wire_call_finish(struct wire *w, struct wire_call *call, int code, const struct err *why)
{
    struct wire_answer *answer = &call->answer;
    for (size_t i = 0; i < 2; i++)
        release(w, &call->attempts[i]);
    if (call->text)
        w->local.drop(call->text);
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    else
        w->active_end = call->link;
    w->lingering -= call->linger != 0;
    wire_lock(w);
    count_wire(w, call);
    if (!answer->done && code) {
        answer->rc = err_set(&answer->err, code, "%s", why->msg);
        w->ledger.faults += call->dialect && !call->dropped && code != ERR_STOP;
    }
    answer->done = answer->ended = true;
    wire_untally(call);
    bool dropped = call->dropped;
    if (!dropped)
        wire_tell(w);
    wire_unlock(w);
    if (dropped)
        wire_free(call);
}

/* Read one event of a stream into the attempt's reply. */
static int on_event(void *arg, const char *data, size_t n, struct err *err)
{
    struct wire_attempt *a = arg;
    struct err low = { "" };
    json_t *root;
    if (a->reply.ended)
        return OK;
    if (n == 6 && memcmp(data, "[DONE]", 6) == 0) {
        a->reply.ended = true;
        return OK;
    }
    if (json_input_parse(&root, data, n, &low))
        return err_set(err, ERR_NET, "an event of the reply is %s", low.msg);
    const char *words = dialect_message(root);
    int rc = OK;
    if (words && json_object_get(root, "error"))
        rc = err_set(err, ERR_NET, "the server says: %s", words);
    else
        rc = a->call->dialect->event(&a->reply, root, &a->call->ask, err);
    json_decref(root);
    return rc;
}

/* Read events as they arrive; keep any other body until it is complete. */
static bool on_data(struct http_try *t)
{
    struct wire_attempt *a = t->arg;
    struct wire_call *call = a->call;
    if (!t->stream || t->status != 200 || !call->dialect)
        return true;
    if (call->winner && call->winner != a)
        return false;
    a->rc = sse_feed(&a->sse, t->body.p, t->body.n, on_event, a, &a->err);
    t->body.n = 0;
    if (a->reply.n && a->reply.n != call->answer.reply.n) {
        call->winner = a;
        wire_lock(call->wire);
        wire_call_show(call->wire, call, &a->reply);
        wire_unlock(call->wire);
    }
    return a->rc == OK;
}

/* Send the question as attempt 0, or as attempt 1 while 0 is in flight. */
static void wire_call_send(struct wire *w, struct wire_call *call, bool fresh)
{
    struct wire_attempt *a = &call->attempts[call->attempts[0].try != NULL];
    struct err err = { "" };
    const struct http_request r = { .url = call->url,
                                    .body = call->body.p,
                                    .n = call->body.n,
                                    .gzip = call->gzip,
                                    .fresh = fresh,
                                    .once = call->resent };
    sse_free(&a->sse);
    a->sse = (struct sse){ .line.max = w->max_reply, .data.max = w->max_reply };
    a->call = call;
    a->reply = (struct reply){ 0 };
    a->rc = OK;
    int rc = http_start(w->http, &a->try, &r, a, on_data, &err);
    if (rc && !wire_call_out(call)) {
        wire_error(w, &err, rc, call->url, &(struct err){ "out of memory" });
        wire_call_finish(w, call, rc, &err);
    }
}

/* Note how the model of this process failed. With the lock held. */
static void wire_call_fail(struct wire *w, struct wire_call *call, int rc, const struct err *why)
{
    struct wire_answer *a = &call->answer;
    a->rc = err_set(&a->err, rc, "cloud %s: %s", w->local.name, why->msg);
    w->ledger.faults += rc != ERR_STOP;
}

/* Callback of the model of this process: copy what there is of its text. */
static void wire_call_news(void *arg)
{
    struct wire_call *call = arg;
    struct wire *w = call->wire;
    struct wire_answer *a = &call->answer;
    struct err why = { "" };
    int rc = OK;
    wire_lock(w);
    size_t had = a->reply.n;
    a->reply.ended = w->local.look(call->text, a->reply.ids, &a->reply.n, &rc, &why);
    w->ledger.tokens += a->reply.n - had;
    if (rc && !a->reply.n)
        wire_call_fail(w, call, rc, &why);
    a->done = a->reply.n || a->reply.ended;
    call->enough |= a->reply.ended; /* the text cannot be dropped from here */
    wire_tell(w);
    wire_unlock(w);
}

bool wire_call_local(struct wire *w, struct wire_call *call)
{
    struct err why = { "" };
    call->wire = w;
    call->deadline = UINT64_MAX;
    int rc = w->local.ask(w->local.arg, &call->text, call->ask.ids, call->ask.n, call->ask.want,
                          wire_call_news, call, &why);
    if (rc == OK)
        return true;
    wire_call_fail(w, call, rc, &why);
    call->answer.done = call->answer.ended = true;
    wire_tell(w);
    return false;
}

void wire_call_begin(struct wire *w, struct wire_call *call, uint64_t now)
{
    call->next = NULL;
    call->link = w->active_end;
    *w->active_end = call;
    w->active_end = &call->next;
    if (call->text)
        return;
    call->wire = w;
    call->hedge_at = call->hedge_ns ? now + call->hedge_ns : 0;
    wire_call_send(w, call, false);
}

/* End the call at its deadline. */
static void too_late(struct wire *w, struct wire_call *call)
{
    struct err err, low;
    bool begun = false;
    for (size_t i = 0; i < 2; i++)
        begun = begun || (call->attempts[i].try && call->attempts[i].try->answered);
    err_set(&low, ERR_NET, "no answer in time (%s)", begun ? "it had begun" : "nothing came");
    wire_error(w, &err, ERR_NET, call->url, &low);
    wire_call_finish(w, call, ERR_NET, &err);
}

static void wire_call_lower(uint64_t *next, uint64_t at)
{
    if (at && at < *next)
        *next = at;
}

/* Count requests that were sent again. */
static void wire_call_count(struct wire *w, struct wire_call *call, const struct traffic *more)
{
    wire_lock(w);
    traffic_add(&w->ledger.traffic, more);
    wire_moved(call, more);
    wire_unlock(w);
}

void wire_call_turn(struct wire *w, struct wire_call *call, uint64_t now, uint64_t *next)
{
    if (now >= call->deadline) {
        too_late(w, call);
        return;
    }
    for (size_t i = 0; i < 2; i++)
        if (call->winner && call->winner != &call->attempts[i])
            release(w, &call->attempts[i]);
    wire_call_lower(next, call->deadline);
    if (call->retry_at && now >= call->retry_at) {
        call->retry_at = 0;
        wire_call_count(w, call, &one_retry);
        wire_call_send(w, call, false);
        return;
    }
    wire_call_lower(next, call->retry_at);
    if (call->hedge_at && (call->winner || call->retry_at))
        call->hedge_at = 0;
    if (call->hedge_at && now >= call->hedge_at) {
        call->hedge_at = 0;
        wire_call_count(w, call, &one_hedge);
        /* A second stream of the same connection would be delayed by the same packet loss. */
        wire_call_send(w, call, http_multiplexes(w->http));
        return;
    }
    wire_call_lower(next, call->hedge_at);
}

/* Describe a non-200 status, quoting the server, and choose the kind of failure. */
static int status_error(const struct wire *w, const struct wire_call *call,
                        const struct http_try *t, struct err *err)
{
    long s = t->status;
    bool passing = s < 300 || s >= 500 || s == 408 || s == 425 || s == 429 || s == 302 ||
                   s == 303 || s == 307 || s == 304;
    bool good = s == 401 || s == 403 || s == 404 || !call->dialect; /* whatever the prompt */
    int code = passing ? ERR_NET : good ? ERR_REMOTE : ERR_TEXT;
    struct err low;
    if (s >= 300 && s < 400) {
        err_set(&low, code, "status %ld: redirects are not followed (to %.*s)", s, MESSAGE,
                t->location ? t->location : "nowhere");
        return wire_error(w, err, code, call->url, &low);
    }
    json_t *root;
    struct err ignored;
    const char *text = NULL, *hint = "";
    if (s == 401)
        hint = w->key ? " (the API key that was sent is not accepted)"
                      : " (no API key was sent: give one with --cloud-key-file or in "
                        "MIZZLE_API_KEY)";
    if (json_input_parse(&root, t->body.p, t->body.n, &ignored) == OK)
        text = dialect_message(root);
    err_set(&low, code, "status %ld%s%.*s%s", s, text ? ": " : "", MESSAGE, text ? text : "", hint);
    json_decref(root);
    return wire_error(w, err, code, call->url, &low);
}

/* Read a complete reply with status 200 that is not a stream. */
static int read_whole(const struct wire *w, struct wire_attempt *a, const struct http_try *t,
                      json_t **root, struct err *err)
{
    struct wire_call *call = a->call;
    struct err low = { "" };
    int rc = json_input_parse(root, t->body.p, t->body.n, &low);
    if (rc) {
        char begin[48], line[256];
        json_input_line(begin, sizeof(begin), t->body.p ? t->body.p : "", t->body.n);
        json_input_line(line, sizeof(line), low.msg, strlen(low.msg));
        rc = rc == ERR_NOMEM ? rc : ERR_NET;
        err_set(&low, rc, "the reply is %s (it begins: %s)", line, *begin ? begin : "with nothing");
        return wire_error(w, err, rc, call->url, &low);
    }
    if (!call->dialect)
        return OK;
    const char *words = dialect_message(*root);
    if (words && json_object_get(*root, "error")) /* an error disguised as success */
        rc = err_set(&low, ERR_NET, "the server says: %s", words);
    else
        rc = call->dialect->reply(&a->reply, *root, &call->ask, &low);
    return rc ? wire_error(w, err, rc, call->url, &low) : OK;
}

/* Return the result of an attempt. *root is the reply to a question without a dialect. */
static int outcome(const struct wire *w, struct wire_attempt *a, const struct http_try *t,
                   json_t **root, struct err *err)
{
    struct wire_call *call = a->call;
    *root = NULL;
    if (a->rc)
        return wire_error(w, err, a->rc, call->url, &a->err);
    if (t->rc)
        return wire_error(w, err, t->rc, call->url, &t->err);
    if (t->status != 200)
        return status_error(w, call, t, err);
    if (!t->stream || !call->dialect)
        return read_whole(w, a, t, root, err);
    if (a->reply.n)
        return OK;
    return wire_error(w, err, ERR_NET, call->url,
                      &(struct err){ "the reply ended without a token" });
}

/* Return when to send once more; 0: never. */
static uint64_t retry_time(const struct wire_call *call, const struct http_try *t, uint64_t now)
{
    long s = t->status;
    bool passing = t->rc ? t->broken : s == 408 || s == 425 || s == 429 || s >= 500;
    uint64_t wait = jitter_ns(call->seed);
    if (call->retried || call->linger || !passing)
        return 0;
    if (!t->rc && t->retry_ms > (call->deadline - now) / ms)
        return 0;
    if (!t->rc && wait < t->retry_ms * ms)
        wait = t->retry_ms * ms;
    return wait < call->deadline - now ? now + wait : 0;
}

void wire_call_ended(struct wire *w, struct http_try *t)
{
    struct wire_attempt *a = t->arg;
    struct wire_call *call = a->call;
    struct err err = { "" };
    json_t *root;
    uint64_t now = os_now_ns();
    if (now >= call->deadline)
        now = call->deadline - 1;
    int rc = outcome(w, a, t, &root, &err);
    if (t->sent > 1) {
        call->resent = true;
        wire_call_count(w, call, &one_retry);
    }
    bool lost = t->lost && !call->resent && !call->linger;
    uint64_t again = retry_time(call, t, now);
    wire_lock(w);
    call->answer.status = t->status;
    if (rc == OK && !call->winner)
        call->winner = a;
    if (rc == OK && call->winner == a) {
        wire_call_show(w, call, &a->reply);
        call->answer.root = call->dialect ? NULL : json_incref(root);
    }
    wire_unlock(w);
    json_decref(root);
    release(w, a);
    if (call->winner == a || rc == ERR_REMOTE || rc == ERR_TEXT || rc == ERR_NOMEM) {
        wire_call_finish(w, call, rc, &err);
    } else if (wire_call_out(call)) { /* the other attempt may still answer */
        call->retried = true;
    } else if (lost) {
        call->resent = true;
        wire_call_count(w, call, &one_retry);
        wire_call_send(w, call, true);
    } else if (again) {
        call->retried = true;
        call->retry_at = again;
    } else {
        wire_call_finish(w, call, rc, &err);
    }
}

void wire_call_forget(struct wire *w, struct wire_call *call, uint64_t now)
{
    bool single = (call->attempts[0].try != NULL) != (call->attempts[1].try != NULL);
    if (call->linger)
        return;
    if (w->lingering == MAX_LINGER || http_multiplexes(w->http) || call->ask.stream || !single) {
        wire_call_finish(w, call, ERR_STOP, &(struct err){ "dropped" });
        return;
    }
    call->linger = true;
    call->hedge_at = 0;
    w->lingering++;
    if (call->deadline > now + LINGER_MS * ms)
        call->deadline = now + LINGER_MS * ms;
}
