/* cloud_call.c - one token asked for: written, handed over, waited for. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/answers/answers.h"
#include "net/cloud_internal.h"
#include "net/http/gzip.h"

/* An answer that needs no network. Under the lock. */
static void cloud_call_settle(struct cloud_call *call, int rc, const struct err *why)
{
    struct wire_answer *answer = &call->wire->answer;
    answer->rc = rc;
    answer->err = *why;
    answer->done = answer->ended = true;
    wire_tell(call->cloud->wire);
}

/* The body as it goes up; until the next one. Under the lock, in READY. */
static const struct buf *write_body(struct cloud *c, const struct ask *a)
{
    struct buf before = c->plain;
    c->plain = c->spare;
    c->spare = before;
    c->plain.n = 0;
    if (!id_list_set(&c->list, a->ids, a->n) || !c->dialect->request(&c->plain, a, &c->list.text)) {
        c->plain.n = c->packed.n = 0;
        return NULL;
    }
    if (!c->gzip)
        return &c->plain;
    /* The same body is often wanted twice: for its size, and to be sent. */
    if (c->packed.n && c->plain.n == before.n && memcmp(c->plain.p, before.p, before.n) == 0)
        return &c->packed;
    c->packed.n = 0;
    if (gzip_add(&c->packed, c->plain.p, c->plain.n))
        return &c->packed;
    c->packed.n = 0;
    return NULL;
}

static struct ask question(const struct cloud *c, const uint32_t *ids, size_t n, size_t tokens)
{
    size_t most = c->text ? 1 : c->o.tokens;
    size_t want = tokens < most ? tokens : most;
    return (struct ask){ .model = c->model_json,
                         .ids = ids,
                         .n = n,
                         .vocab = c->o.vocab,
                         .want = want,
                         .slot = c->o.slot,
                         .stream = want > 1,
                         .encode = c->text ? c->o.encode : NULL,
                         .encode_arg = c->o.encode_arg };
}

/* Write the request and hand it over. Under the lock, in READY. */
static void cloud_call_launch(struct cloud *c, struct cloud_call *call)
{
    struct wire_call *w = call->wire;
    struct buf url = { 0 };
    w->ask = question(c, w->ask.ids, w->ask.n, call->tokens);
    w->dialect = c->dialect;
    w->gzip = c->gzip;
    w->hedge_ns = c->o.hedge_ms * UINT64_C(1000000);
    const struct buf *body = write_body(c, &w->ask);
    if (!body || !buf_add(&w->body, body->p, body->n) || !buf_str(&url, c->base) ||
        !buf_str(&url, c->dialect->path) || !buf_add(&url, "", 1)) {
        buf_free(&url);
        cloud_call_settle(call, ERR_NOMEM, &(struct err){ "cloud: out of memory" });
        return;
    }
    w->url = url.p;
    call->bytes = body->n;
    call->sent = true;
    wire_submit(c->wire, w);
}

/* The list has the newest first. */
static struct cloud_call *oldest_parked(const struct cloud *c)
{
    struct cloud_call *oldest = NULL;
    for (struct cloud_call *call = c->calls; call; call = call->next)
        if (call->parked)
            oldest = call;
    return oldest;
}

void cloud_unpark(struct cloud *c, int rc, const struct err *why)
{
    for (struct cloud_call *call; (call = oldest_parked(c));) {
        call->parked = false;
        if (rc)
            cloud_call_settle(call, rc, why);
        else
            cloud_call_launch(c, call);
    }
}

/* From ASLEEP, with calls parked: each has its whole time from here, as it would have in step. */
static void probe_again(struct cloud *c)
{
    uint64_t deadline = os_now_ns() + c->timeout_ns;
    for (struct cloud_call *call = c->calls; call; call = call->next)
        if (call->parked)
            call->wire->deadline = deadline;
    if (!cloud_wake_prober(c))
        cloud_unpark(c, ERR_NOMEM, &(struct err){ "cloud: no thread can be started" });
}

void cloud_charge(struct cloud *c)
{
    struct cloud_call *call = oldest_parked(c);
    c->failing = call;
    if (!call)
        return;
    call->parked = false;
    cloud_call_settle(call, c->failed, &c->why);
}

void cloud_charged(struct cloud_call *call, bool committed)
{
    struct cloud *c = call->cloud;
    if (c->failing != call)
        return;
    c->failing = NULL;
    if (!committed) {
        cloud_charge(c);
        return;
    }
    c->state = CLOUD_ASLEEP;
    if (oldest_parked(c))
        probe_again(c);
}

void cloud_free_handle(struct cloud_call *call)
{
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    free(call);
}

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

/* FNV-1a over the ids: what a retry waits depends on the prefix, not on the clock. */
static uint64_t seed_of(const uint32_t *ids, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        h = (h ^ ids[i]) * UINT64_C(0x100000001b3);
    return h;
}

static struct cloud_call *new_call(struct cloud *c, const uint32_t *ids, size_t n, size_t tokens)
{
    size_t size, room;
    struct cloud_call *call = calloc(1, sizeof(*call));
    struct wire_call *w = calloc(1, sizeof(*w));
    /* Behind the ids there is room for the reply's: together they are the next prefixes. */
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

/* The recorded answer. Under the lock. */
static void cloud_call_from_file(struct cloud *c, struct cloud_call *call)
{
    struct wire_call *w = call->wire;
    struct err why = { "" };
    uint32_t id = 0;
    w->ask = question(c, w->ask.ids, w->ask.n, call->tokens);
    const struct buf *body = write_body(c, &w->ask);
    call->bytes = body ? body->n : 0;
    int rc = answers_call(c->o.answers, w->ask.ids, w->ask.n, &id, &why);
    wire_ledger(c->wire)->tokens += rc == OK;
    wire_ledger(c->wire)->faults += rc != OK;
    w->answer.reply = (struct reply){ .ids = { id }, .n = 1, .ended = true };
    cloud_call_settle(call, rc, &why);
}

size_t cloud_tokens(struct cloud *c)
{
    size_t n = 1;
    if (wire_forked(c->wire))
        return n;
    wire_lock(c->wire);
    if (c->state != CLOUD_READY || !c->text) /* before, the prober may be writing it */
        n = c->o.tokens;
    wire_unlock(c->wire);
    return n;
}

int cloud_ask(struct cloud *c, const uint32_t *ids, size_t n, size_t tokens,
              struct cloud_call **out, struct err *err)
{
    *out = NULL;
    if (wire_forked(c->wire))
        return cloud_forked(err);
    int rc = check_ids(c, ids, n, err);
    if (rc)
        return rc;
    if (c->o.stop && atomic_load(c->o.stop))
        return err_set(err, ERR_STOP, "cloud: interrupted");
    wire_lock(c->wire);
    struct cloud_call *call = new_call(c, ids, n, tokens);
    if (call) {
        wire_ledger(c->wire)->calls++;
        if (c->replay) {
            cloud_call_from_file(c, call);
        } else if (c->state == CLOUD_READY) {
            cloud_call_launch(c, call);
        } else if (c->state == CLOUD_REFUSED) {
            cloud_call_settle(call, c->failed, &c->why);
        } else {
            call->parked = true;
            if (c->state == CLOUD_ASLEEP)
                probe_again(c);
            else if (c->state == CLOUD_FAILED && !c->failing)
                cloud_charge(c);
        }
    }
    wire_unlock(c->wire);
    *out = call;
    return call ? OK : cloud_no_memory(err);
}

/* It waits for a probe that will not be made before an older call is ended. Who wants its answer
 * now shares the older one's. Under the lock. */
static bool given_up(const struct cloud_call *call)
{
    return call->parked && call->cloud->state == CLOUD_FAILED;
}

bool cloud_done(const struct cloud_call *call)
{
    wire_lock(call->cloud->wire);
    bool done = call->wire->answer.done || given_up(call);
    wire_unlock(call->cloud->wire);
    return done;
}

int cloud_take(struct cloud_call *call, uint32_t *id, struct err *err)
{
    struct cloud *c = call->cloud;
    const struct wire_answer *answer = &call->wire->answer;
    if (wire_forked(c->wire))
        return cloud_forked(err);
    wire_lock(c->wire);
    if (!answer->done) {
        uint64_t start = os_now_ns();
        while (!answer->done && !given_up(call))
            wire_wait(c->wire);
        c->ns += os_now_ns() - start;
    }
    if (!answer->done) {
        call->parked = false;
        cloud_call_settle(call, c->failed, &c->why);
    }
    int rc = answer->rc;
    if (rc)
        err_set(err, rc, "%s", answer->err.msg);
    else
        *id = answer->reply.ids[0];
    wire_unlock(c->wire);
    return rc;
}

size_t cloud_call_bytes(const struct cloud_call *call)
{
    struct cloud *c = call->cloud;
    wire_lock(c->wire);
    while (call->parked && !given_up(call))
        wire_wait(c->wire);
    wire_unlock(c->wire);
    return call->bytes;
}

size_t cloud_bytes(struct cloud *c, const uint32_t *ids, size_t n, size_t tokens)
{
    size_t bytes = 0;
    if (wire_forked(c->wire) || check_ids(c, ids, n, NULL))
        return 0;
    wire_lock(c->wire);
    if (cloud_wait_ready(c, NULL) == OK) {
        const struct ask a = question(c, ids, n, tokens);
        const struct buf *body = write_body(c, &a);
        bytes = body ? body->n : 0;
    }
    wire_unlock(c->wire);
    return bytes;
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
