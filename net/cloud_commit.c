/* cloud_commit.c - ends calls, and finds tokens that are known without one. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/answers/answers.h"
#include "net/cloud_internal.h"

/* Free the handle and the wire call; the network thread frees one that it still has. With the lock
 * held. */
static void let_go(struct cloud_call *call)
{
    cloud_charged(call, call->committed);
    if (call->sent && !call->wire->answer.ended)
        wire_drop(call->cloud->wire, call->wire);
    else {
        wire_untally(call->wire);
        wire_free(call->wire);
    }
    cloud_free_handle(call);
}

/* Put the remaining tokens of a committed reply into the memo. The ids so far are the prefix of the
 * next. With the lock held. */
static void harvest(struct cloud *c, struct cloud_call *call)
{
    const struct reply *r = &call->wire->answer.reply;
    uint32_t *ids = (uint32_t *)(size_t)call->wire->ask.ids; /* our copy, with room */
    for (; call->kept < r->n; call->kept++) {
        size_t n = call->wire->ask.n + call->kept;
        if (call->kept)
            answers_extra(c->o.answers, ids, n, r->ids[call->kept]);
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
            let_go(call);
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
    if (c->o.answers && call->audit)
        answers_audited(c->o.answers, a->ids, a->n, rc, id, why.msg);
    else if (c->o.answers && rc == OK)
        answers_put(c->o.answers, a->ids, a->n, id);
    else if (c->o.answers)
        answers_fault(c->o.answers, a->ids, a->n, rc, why.msg);
    wire_lock(c->wire);
    wire_ledger(c->wire)->committed += rc == OK;
    call->committed = true;
    if (c->o.answers && rc == OK && a->want > 1)
        harvest_all(c);
    else
        let_go(call);
    wire_unlock(c->wire);
}

void cloud_drop(struct cloud_call *call)
{
    struct cloud *c = call->cloud;
    if (wire_forked(c->wire))
        return;
    wire_lock(c->wire);
    wire_ledger(c->wire)->wasted++;
    let_go(call);
    wire_unlock(c->wire);
}

/* True when this committed reply, which has been harvested and has not ended, may still bring the
 * token after ids[n]. With the lock held. */
static bool may_come(const struct cloud_call *call, const uint32_t *ids, size_t n)
{
    const struct ask *a = &call->wire->ask;
    if (!call->committed || call->wire->answer.reply.ended || n <= a->n || n - a->n >= a->want ||
        n < a->n + call->kept)
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
    if (sight == CLOUD_UNKNOWN && answers_peek(c->o.answers, ids, n, id) != ORIGIN_NONE)
        sight = CLOUD_HERE;
    return sight;
}

enum origin cloud_known(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *id)
{
    if (!c->o.answers || wire_forked(c->wire))
        return ORIGIN_NONE;
    wire_lock(c->wire);
    for (harvest_all(c); some_may_come(c, ids, n); harvest_all(c))
        wire_wait(c->wire);
    wire_unlock(c->wire);
    enum origin from = answers_get(c->o.answers, ids, n, id);
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
