/* cloud_ask.c - the caller's side of a call: ask, poll, wait, end it. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/cloud_internal.h"

/* Refuse an empty prefix and ids outside of the vocabulary. */
static int check_ids(const struct cloud *c, const uint32_t *ids, size_t n, struct err *err)
{
    if (!n)
        return err_set(err, ERR_ARG, "cloud: no tokens to continue");
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= c->o.vocab)
            return err_set(err, ERR_ARG, "cloud: token %zu: expected an id below %zu, found %u", i,
                           c->o.vocab, (unsigned)ids[i]);
    return OK;
}

/* Hash the ids (FNV-1a), so that the delay before a retry depends on the prefix and not on the
 * clock. */
static uint64_t seed_of(const uint32_t *ids, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        h = (h ^ ids[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* Create a call and put it at the front of the list. NULL: out of memory. With the lock held. */
static struct cloud_call *new_call(struct cloud *c, const uint32_t *ids, size_t n, size_t tokens)
{
    size_t size;
    struct cloud_call *call = calloc(1, sizeof(*call));
    struct wire_call *w = calloc(1, sizeof(*w));
    uint32_t *own = size_mul(&size, n, sizeof(*ids)) ? malloc(size) : NULL;
    if (!call || !w || !own) {
        free(call);
        free(w);
        free(own);
        return NULL;
    }
    memcpy(own, ids, n * sizeof(*ids));
    w->ask.ids = own;
    w->ask.n = n;
    w->seed = seed_of(ids, n);
    w->quota = c->o.quota;
    w->paid = w->quota ? tokens : 0;
    w->fed = w->quota ? n : 0;
    w->deadline = os_now_ns() + c->timeout_ns;
    call->cloud = c;
    call->wire = w;
    call->tokens = tokens;
    call->next = c->calls;
    call->link = &c->calls;
    if (call->next)
        call->next->link = &call->next;
    c->calls = call;
    return call;
}

int cloud_ask(void *cloud, const uint32_t *ids, size_t n, size_t tokens, struct cloud_tally *tally,
              void **out, struct err *err)
{
    struct cloud *c = cloud;
    *out = NULL;
    if (wire_forked(c->wire))
        return cloud_forked(err);
    int rc = check_ids(c, ids, n, err);
    if (rc == OK && c->o.stop && atomic_load(c->o.stop))
        rc = err_set(err, ERR_STOP, "cloud: interrupted");
    if (rc)
        return rc;
    wire_lock(c->wire);
    struct cloud_call *call = new_call(c, ids, n, tokens);
    if (call) {
        wire_ledger(c->wire)->calls++;
        call->wire->tally = tally;
        if (c->state == CLOUD_READY) {
            cloud_call_launch(c, call);
        } else if (c->state == CLOUD_REFUSED || c->state == CLOUD_FAILED) {
            cloud_call_settle(call, c->failed, &c->why);
            c->state = c->state == CLOUD_FAILED ? CLOUD_ASLEEP : c->state;
        } else if (c->state == CLOUD_ASLEEP && !cloud_wake_prober(c)) {
            cloud_call_settle(call, ERR_NOMEM, &(struct err){ "cloud: no thread can be started" });
        } else {
            call->parked = true;
        }
    }
    wire_unlock(c->wire);
    *out = call;
    return call ? OK : cloud_no_memory(err);
}

/* True when token `at` or a fault is there, or no further token will come; for the number of those
 * asked for, when the network thread has let go of the call. With the lock held. */
static bool cloud_has(const struct cloud_call *call, size_t at)
{
    const struct wire_answer *a = &call->wire->answer;
    bool over = at >= call->tokens ? a->ended : at ? a->ended || a->reply.ended : a->done;
    return over || at < a->reply.n;
}

bool cloud_done(const void *handle, size_t at)
{
    const struct cloud_call *call = handle;
    wire_lock(call->cloud->wire);
    bool done = cloud_has(call, at);
    wire_unlock(call->cloud->wire);
    return done;
}

int cloud_take(void *handle, size_t at, uint32_t *id, struct err *err)
{
    const struct cloud_call *call = handle;
    struct cloud *c = call->cloud;
    const struct wire_answer *answer = &call->wire->answer;
    if (!wire_enter(c->wire))
        return cloud_forked(err);
    while (!cloud_has(call, at))
        wire_wait(c->wire);
    int rc = answer->rc;
    if (rc)
        err_set(err, rc, "%s", answer->err.msg);
    else if (at >= answer->reply.n)
        rc = err_set(err, ERR_NET, "cloud: the reply has no token %zu", at);
    else
        *id = answer->reply.ids[at];
    wire_unlock(c->wire);
    return rc;
}

void cloud_end(void *handle, enum cloud_end how)
{
    struct cloud_call *call = handle;
    struct cloud *c = call->cloud;
    (void)how;
    if (!wire_enter(c->wire))
        return;
    cloud_call_free(call);
    wire_unlock(c->wire);
}

struct traffic cloud_traffic(void *cloud, struct cloud_tally *t, bool last)
{
    struct cloud *c = cloud;
    if (!wire_enter(c->wire))
        return t->traffic;
    if (last)
        for (struct cloud_call *call = c->calls; call; call = call->next)
            call->wire->tally = call->wire->tally == t ? NULL : call->wire->tally;
    struct traffic sum = t->traffic;
    wire_unlock(c->wire);
    return sum;
}

void cloud_port(struct cloud_port *out, struct cloud *c)
{
    *out = (struct cloud_port){ .arg = c,
                                .info = cloud_known_info,
                                .ask = cloud_ask,
                                .done = cloud_done,
                                .take = cloud_take,
                                .end = cloud_end,
                                .traffic = cloud_traffic,
                                .notify = cloud_notify,
                                .close = cloud_close };
}
