/* cloud_ask.c - the caller's side of a call: ask, poll, wait, commit or drop it; and tokens that
 * are known without one. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/answers/answers.h"
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
    size_t size, room;
    struct cloud_call *call = calloc(1, sizeof(*call));
    struct wire_call *w = calloc(1, sizeof(*w));
    /* Leave room after the ids for those of the reply: together they are the next prefixes. */
    bool fits = size_add(&room, n, CLOUD_MAX_TOKENS) && size_mul(&size, room, sizeof(*ids));
    uint32_t *own = fits ? malloc(size) : NULL;
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

/* Answer the call without a network: what is not known is a fault. With the lock held. */
static void cloud_call_offline(struct cloud *c, struct cloud_call *call)
{
    struct wire_call *w = call->wire;
    struct err why = { "" };
    uint32_t id = 0;
    w->ask = cloud_call_question(c, w->ask.ids, w->ask.n, call->tokens);
    int rc = answers_get(c->o.answers, w->ask.ids, w->ask.n, false, &id) ? OK : ERR_NET;
    if (rc != OK)
        err_set(&why, rc, "offline: no answer to a prefix of %zu tokens, the last of them %u",
                w->ask.n, (unsigned)w->ask.ids[w->ask.n - 1]);
    wire_ledger(c->wire)->tokens += rc == OK;
    wire_ledger(c->wire)->faults += rc != OK;
    w->answer.reply = (struct reply){ .ids = { id }, .n = 1, .ended = true };
    cloud_call_settle(call, rc, &why);
}

size_t cloud_tokens(struct cloud *c)
{
    size_t n = 1;
    if (!wire_enter(c->wire))
        return n;
    if (c->state != CLOUD_READY || !c->text) /* before that, the prober may be writing it */
        n = c->o.tokens;
    wire_unlock(c->wire);
    return n;
}

/* Give back what was taken for a call that is not made. Returns rc. */
static int cloud_unasked(const struct cloud *c, size_t n, size_t tokens, int rc)
{
    if (c->o.quota)
        quota_give(c->o.quota, tokens, n);
    return rc;
}

int cloud_ask(struct cloud *c, const uint32_t *ids, size_t n, size_t tokens,
              struct cloud_call **out, struct err *err)
{
    struct cloud_tally *tally = c->tally;
    *out = NULL;
    c->tally = NULL;
    if (wire_forked(c->wire))
        return cloud_unasked(c, n, tokens, cloud_forked(err));
    int rc = check_ids(c, ids, n, err);
    if (rc == OK && c->o.stop && atomic_load(c->o.stop))
        rc = err_set(err, ERR_STOP, "cloud: interrupted");
    if (rc)
        return cloud_unasked(c, n, tokens, rc);
    wire_lock(c->wire);
    struct cloud_call *call = new_call(c, ids, n, tokens);
    if (call) {
        wire_ledger(c->wire)->calls++;
        if (c->o.offline)
            cloud_call_offline(c, call);
        if (tally)
            wire_tally(call->wire, tally);
        if (c->o.offline) {
            /* it has ended */
        } else if (c->state == CLOUD_READY) {
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
    return call ? OK : cloud_unasked(c, n, tokens, cloud_no_memory(err));
}

bool cloud_done(const struct cloud_call *call)
{
    wire_lock(call->cloud->wire);
    bool done = call->wire->answer.done;
    wire_unlock(call->cloud->wire);
    return done;
}

size_t cloud_look(const struct cloud_call *call, uint32_t *ids, size_t from, size_t room,
                  bool *ended)
{
    const struct wire_answer *answer = &call->wire->answer;
    wire_lock(call->cloud->wire);
    size_t n = from < answer->reply.n ? answer->reply.n - from : 0;
    n = n < room ? n : room;
    memcpy(ids, answer->reply.ids + from, n * sizeof(*ids));
    bool over = answer->ended || answer->reply.ended;
    *ended = over && from + n >= answer->reply.n;
    wire_unlock(call->cloud->wire);
    return n;
}

void cloud_enough(struct cloud_call *call)
{
    wire_lock(call->cloud->wire);
    if (call->text && call->wire->answer.done)
        call->wire->answer.ended = true;
    else if (call->sent && call->wire->answer.reply.n && !call->wire->answer.ended)
        wire_enough(call->cloud->wire, call->wire);
    wire_unlock(call->cloud->wire);
}

int cloud_take(struct cloud_call *call, uint32_t *id, struct err *err)
{
    struct cloud *c = call->cloud;
    const struct wire_answer *answer = &call->wire->answer;
    if (!wire_enter(c->wire))
        return cloud_forked(err);
    while (!answer->done)
        cloud_wait(c);
    int rc = answer->rc;
    if (rc)
        err_set(err, rc, "%s", answer->err.msg);
    else
        *id = answer->reply.ids[0];
    wire_unlock(c->wire);
    return rc;
}

void cloud_tally(struct cloud *c, struct cloud_tally *t)
{
    c->tally = t;
}

struct traffic cloud_tally_read(struct cloud *c, const struct cloud_tally *t)
{
    if (!wire_enter(c->wire))
        return t->traffic;
    struct traffic sum = t->traffic;
    wire_unlock(c->wire);
    return sum;
}

void cloud_tally_end(struct cloud *c, struct cloud_tally *t)
{
    if (!wire_enter(c->wire))
        return;
    wire_tally_end(t);
    wire_unlock(c->wire);
}

struct traffic cloud_call_traffic(const struct cloud_call *call)
{
    wire_lock(call->cloud->wire);
    struct traffic moved = call->wire->answer.traffic;
    wire_unlock(call->cloud->wire);
    return moved;
}

size_t cloud_bytes(struct cloud *c, const uint32_t *ids, size_t n, size_t tokens)
{
    size_t bytes = 0;
    if (wire_forked(c->wire) || check_ids(c, ids, n, NULL))
        return 0;
    wire_lock(c->wire);
    if (cloud_wait_ready(c, NULL) == OK) {
        const struct ask a = cloud_call_question(c, ids, n, tokens);
        c->body.n = 0;
        bytes = cloud_call_body(&c->body, c, &a) ? c->body.n : 0;
    }
    wire_unlock(c->wire);
    return bytes;
}

/* Keep the remaining tokens of a committed reply. The ids so far are the prefix of the
 * next. With the lock held. */
static void harvest(struct cloud *c, struct cloud_call *call)
{
    const struct reply *r = &call->wire->answer.reply;
    uint32_t *ids = (uint32_t *)(size_t)call->wire->ask.ids; /* our copy, with room */
    for (; call->kept < r->n; call->kept++) {
        size_t n = call->wire->ask.n + call->kept;
        if (call->kept)
            answers_put(c->o.answers, ids, n, false, r->ids[call->kept]);
        ids[n] = r->ids[call->kept];
    }
}

/* Harvest all committed replies, and free those that have ended. With the lock held. */
static void harvest_all(struct cloud *c)
{
    for (struct cloud_call *call = c->calls, *next; call; call = next) {
        next = call->next;
        if (!call->committed)
            continue;
        harvest(c, call);
        if (call->wire->answer.ended)
            cloud_call_free(call);
    }
}

void cloud_commit(struct cloud_call *call)
{
    struct cloud *c = call->cloud;
    struct err why = { "" };
    uint32_t id = 0;
    if (wire_forked(c->wire))
        return;
    int rc = cloud_take(call, &id, &why);
    const struct ask *a = &call->wire->ask;
    if (c->o.answers && rc == OK)
        answers_put(c->o.answers, a->ids, a->n, true, id);
    wire_lock(c->wire);
    wire_ledger(c->wire)->committed += rc == OK;
    call->committed = true;
    if (c->o.answers && rc == OK && a->want > 1)
        harvest_all(c);
    else
        cloud_call_free(call);
    wire_unlock(c->wire);
}

void cloud_drop(struct cloud_call *call)
{
    struct cloud *c = call->cloud;
    if (!wire_enter(c->wire))
        return;
    cloud_call_free(call);
    wire_unlock(c->wire);
}

/* True when this committed reply, which has been harvested and has not ended, may still bring the
 * token after ids[n]. With the lock held. */
static bool may_come(const struct cloud_call *call, const uint32_t *ids, size_t n)
{
    const struct ask *a = &call->wire->ask;
    if (!call->committed || call->wire->answer.ended || call->wire->answer.reply.ended ||
        n <= a->n || n - a->n >= a->want || n < a->n + call->kept)
        return false;
    return memcmp(a->ids, ids, (a->n + call->kept) * sizeof(*ids)) == 0;
}

/* True when any committed reply may still bring the token. With the lock held. */
static bool some_may_come(const struct cloud *c, const uint32_t *ids, size_t n)
{
    for (const struct cloud_call *call = c->calls; call; call = call->next)
        if (may_come(call, ids, n))
            return true;
    return false;
}

/* Look for the token after ids[n] in the part of a committed reply received so far. With the lock
 * held. */
static enum cloud_sight in_reply(const struct cloud_call *call, const uint32_t *ids, size_t n,
                                 uint32_t *id)
{
    const struct ask *a = &call->wire->ask;
    const struct reply *r = &call->wire->answer.reply;
    if (!call->committed || n <= a->n || n - a->n >= a->want)
        return CLOUD_UNKNOWN;
    size_t i = n - a->n, come = i < r->n ? i : r->n;
    if (memcmp(a->ids, ids, a->n * sizeof(*ids)) != 0 ||
        memcmp(r->ids, ids + a->n, come * sizeof(*ids)) != 0)
        return CLOUD_UNKNOWN;
    if (i < r->n)
        *id = r->ids[i];
    if (i < r->n)
        return CLOUD_HERE;
    return r->ended || call->wire->answer.ended ? CLOUD_UNKNOWN : CLOUD_COMING;
}

enum cloud_sight cloud_peek(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *id)
{
    enum cloud_sight sight = CLOUD_UNKNOWN;
    if (!c->o.answers || wire_forked(c->wire))
        return sight;
    wire_lock(c->wire);
    for (const struct cloud_call *call = c->calls; call && !sight; call = call->next)
        sight = in_reply(call, ids, n, id);
    wire_unlock(c->wire);
    if (sight == CLOUD_UNKNOWN && answers_get(c->o.answers, ids, n, false, id))
        sight = CLOUD_HERE;
    return sight;
}

enum origin cloud_known(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *id)
{
    if (!c->o.answers || wire_forked(c->wire))
        return ORIGIN_NONE;
    wire_lock(c->wire);
    for (harvest_all(c); some_may_come(c, ids, n); harvest_all(c))
        cloud_wait(c);
    wire_unlock(c->wire);
    enum origin from = answers_get(c->o.answers, ids, n, true, id);
    if (from == ORIGIN_NONE)
        return from;
    wire_lock(c->wire);
    struct cloud_ledger *l = wire_ledger(c->wire);
    ++*(from == ORIGIN_MEMO ? &l->memo : &l->store);
    wire_unlock(c->wire);
    return from;
}

int cloud_next(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *out, struct err *err)
{
    struct cloud_call *call;
    int rc = cloud_ask(c, ids, n, c->o.tokens, &call, err);
    if (rc)
        return rc;
    rc = cloud_take(call, out, err);
    cloud_commit(call);
    return rc;
}
