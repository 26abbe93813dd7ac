#include "net/cloud.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base.h"
#include "kernels/os.h"
#include "net/cloud_in.h"
#include "net/gzip.h"

enum { TIMEOUT_MS = 10000, MAX_REPLY = 1 << 20 };

struct cloud_call {
    struct cloud *cloud;
    struct cloud_call *next, **link;
    struct wire_call *wire;
    bool sent;   /* the network thread has it, or has had it */
    bool parked; /* waits for the prober */
    size_t bytes;
};

static int no_memory(struct err *err)
{
    return err_set(err, ERR_NOMEM, "cloud: out of memory");
}

/* An answer that needs no network. Under the lock. */
static void settle(struct cloud_call *call, int rc, const struct err *why)
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
    if (!idtext_set(&c->list, a->ids, a->n) || !c->dialect->request(&c->plain, a, &c->list.text)) {
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

static struct ask question(const struct cloud *c, const uint32_t *ids, size_t n)
{
    return (struct ask){ .model = c->model_json,
                         .ids = ids,
                         .n = n,
                         .vocab = c->o.vocab,
                         .want = c->text ? 1 : c->o.tokens,
                         .slot = c->o.slot,
                         .stream = c->o.tokens > 1 && !c->text,
                         .encode = c->text ? c->o.encode : NULL,
                         .encode_arg = c->o.encode_arg };
}

/* Write the request and hand it over. Under the lock, in READY. */
static void launch(struct cloud *c, struct cloud_call *call)
{
    struct wire_call *w = call->wire;
    struct buf url = { 0 };
    w->ask = question(c, w->ask.ids, w->ask.n);
    w->dialect = c->dialect;
    w->gzip = c->gzip;
    w->hedge_ns = c->o.hedge_ms * UINT64_C(1000000);
    const struct buf *body = write_body(c, &w->ask);
    if (!body || !buf_add(&w->body, body->p, body->n) || !buf_str(&url, c->base) ||
        !buf_str(&url, c->dialect->path) || !buf_add(&url, "", 1)) {
        buf_free(&url);
        settle(call, ERR_NOMEM, &(struct err){ "cloud: out of memory" });
        return;
    }
    w->url = url.p;
    call->bytes = body->n;
    call->sent = true;
    wire_submit(c->wire, w);
}

/* What has been asked meanwhile goes out, or is told why not. Under the lock. */
static void unpark(struct cloud *c, int rc, const struct err *why)
{
    for (struct cloud_call *call = c->calls; call; call = call->next) {
        if (!call->parked)
            continue;
        call->parked = false;
        if (rc)
            settle(call, rc, why);
        else
            launch(c, call);
    }
}

static void probed(struct cloud *c, int rc, const struct err *why)
{
    wire_lock(c->wire);
    c->failed = rc;
    c->why = *why;
    c->state = rc == OK ? CLOUD_READY : rc == ERR_REMOTE ? CLOUD_REFUSED : CLOUD_ASLEEP;
    unpark(c, rc, why);
    wire_tell(c->wire);
    wire_unlock(c->wire);
}

static void *prober(void *arg)
{
    struct cloud *c = arg;
    struct err why = { "" };
    int rc = probe_run(c, &why);
    probed(c, rc, &why);
    return NULL;
}

/* Under the lock: from ASLEEP to PROBING. */
static bool wake_prober(struct cloud *c)
{
    if (c->prober_runs)
        pthread_join(c->prober, NULL); /* it has ended, or is about to */
    c->state = CLOUD_PROBING;
    c->prober_runs = pthread_create(&c->prober, NULL, prober, c) == 0;
    if (!c->prober_runs)
        c->state = CLOUD_ASLEEP;
    return c->prober_runs;
}

static int open_parts(struct cloud *c, const struct cloud_options *o, struct err *err)
{
    int rc = cloud_url_check(&c->base, o->url, err);
    if (rc)
        return rc;
    const struct wire_options w = {
        .http = { .key = o->key,
                  .ca = o->ca,
                  .max_reply = o->max_reply ? o->max_reply : MAX_REPLY },
        .stop = o->stop,
    };
    rc = wire_open(&c->wire, &w, err);
    if (rc == OK && o->model)
        rc = cloud_set_model(c, o->model, strlen(o->model), err);
    if (rc)
        return rc;
    if (o->api != CLOUD_AUTO)
        c->dialect = dialect_of(o->api);
    if (!probe_needed(c)) {
        c->info = (struct cloud_info){ .api = o->api, .ids = true };
        c->state = CLOUD_READY;
        return OK;
    }
    if (o->background) {
        wire_lock(c->wire);
        bool runs = wake_prober(c);
        wire_unlock(c->wire);
        return runs ? OK : no_memory(err);
    }
    if (o->api != CLOUD_AUTO)
        return OK;
    uint64_t start = os_now_ns();
    struct err why = { "" };
    rc = probe_run(c, &why);
    probed(c, rc, &why);
    c->ns += os_now_ns() - start;
    return rc ? err_set(err, rc, "%s", why.msg) : OK;
}

int cloud_open(struct cloud **out, const struct cloud_options *o, struct err *err)
{
    *out = NULL;
    for (const char *k = o->key ? o->key : ""; *k; k++)
        if (*k <= 0x20 || *k > 0x7e)
            return err_set(err, ERR_ARG, "cloud: the API key must be one word of printable ASCII");
    if (o->tokens > CLOUD_MAX_TOKENS)
        return err_set(err, ERR_ARG, "cloud: tokens of one call: expected 1 to %d, found %zu",
                       CLOUD_MAX_TOKENS, o->tokens);
    struct cloud *c = calloc(1, sizeof(*c));
    if (!c)
        return no_memory(err);
    c->o = *o;
    c->o.url = c->o.key = c->o.ca = c->o.model = NULL;
    c->o.tokens = o->tokens ? o->tokens : 1;
    c->timeout_ns = (o->timeout_ms ? o->timeout_ms : TIMEOUT_MS) * UINT64_C(1000000);
    int rc = open_parts(c, o, err);
    if (rc) {
        cloud_close(c);
        return rc;
    }
    *out = c;
    return OK;
}

static void free_handle(struct cloud_call *call)
{
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    free(call);
}

void cloud_close(struct cloud *c)
{
    if (!c)
        return;
    bool child = c->wire && wire_forked(c->wire);
    wire_stop(c->wire);
    if (c->prober_runs && !child)
        pthread_join(c->prober, NULL);
    while (c->calls) {
        if (!child)
            wire_free(c->calls->wire);
        free_handle(c->calls);
    }
    wire_close(c->wire);
    idtext_free(&c->list);
    buf_free(&c->plain);
    buf_free(&c->spare);
    buf_free(&c->packed);
    free(c->base);
    free(c->model);
    free(c->model_json);
    free(c);
}

/* Under the lock. */
static int wait_ready(struct cloud *c, struct err *err)
{
    if (c->state == CLOUD_ASLEEP && !wake_prober(c))
        return no_memory(err);
    uint64_t start = os_now_ns();
    while (c->state == CLOUD_PROBING)
        wire_wait(c->wire);
    c->ns += os_now_ns() - start;
    return c->state == CLOUD_READY ? OK : err_set(err, c->failed, "%s", c->why.msg);
}

static int forked(struct err *err)
{
    return err_set(err, ERR_ARG, "cloud: the connection belongs to the parent process");
}

int cloud_ready(struct cloud *c, struct err *err)
{
    if (wire_forked(c->wire))
        return forked(err);
    wire_lock(c->wire);
    int rc = wait_ready(c, err);
    wire_unlock(c->wire);
    return rc;
}

enum cloud_api cloud_dialect(struct cloud *c)
{
    if (c->o.api != CLOUD_AUTO)
        return c->o.api;
    return cloud_ready(c, NULL) == OK ? c->dialect->api : CLOUD_AUTO;
}

const char *cloud_model(struct cloud *c)
{
    return cloud_ready(c, NULL) == OK ? c->model : NULL;
}

const struct cloud_ledger *cloud_ledger(struct cloud *c)
{
    if (wire_forked(c->wire))
        return &c->shown;
    wire_lock(c->wire);
    c->shown = *wire_ledger(c->wire);
    c->shown.ns = c->ns;
    wire_unlock(c->wire);
    return &c->shown;
}

void cloud_say(struct cloud *c, size_t slot, const char *text)
{
    wire_lock(c->wire);
    err_set(&c->notes[slot], OK, "cloud %s: %s", c->base, text);
    wire_unlock(c->wire);
}

bool cloud_note(struct cloud *c, struct err *note)
{
    bool some = false;
    if (wire_forked(c->wire))
        return false;
    wire_lock(c->wire);
    for (size_t i = 0; i < sizeof(c->notes) / sizeof(c->notes[0]) && !some; i++) {
        some = c->notes[i].msg[0];
        if (some)
            *note = c->notes[i];
        c->notes[i].msg[0] = 0;
    }
    wire_unlock(c->wire);
    return some;
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

static struct cloud_call *new_call(struct cloud *c, const uint32_t *ids, size_t n)
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
    memcpy(own, ids, size);
    w->ask.ids = own;
    w->ask.n = n;
    w->seed = seed_of(ids, n);
    w->deadline = os_now_ns() + c->timeout_ns;
    call->cloud = c;
    call->wire = w;
    call->next = c->calls;
    call->link = &c->calls;
    if (call->next)
        call->next->link = &call->next;
    c->calls = call;
    return call;
}

int cloud_ask(struct cloud *c, const uint32_t *ids, size_t n, struct cloud_call **out,
              struct err *err)
{
    *out = NULL;
    if (wire_forked(c->wire))
        return forked(err);
    int rc = check_ids(c, ids, n, err);
    if (rc)
        return rc;
    if (c->o.stop && atomic_load(c->o.stop))
        return err_set(err, ERR_STOP, "cloud: interrupted");
    wire_lock(c->wire);
    struct cloud_call *call = new_call(c, ids, n);
    if (call) {
        wire_ledger(c->wire)->calls++;
        if (c->state == CLOUD_READY) {
            launch(c, call);
        } else if (c->state == CLOUD_REFUSED) {
            settle(call, c->failed, &c->why);
        } else {
            call->parked = true;
            if (c->state == CLOUD_ASLEEP && !wake_prober(c))
                unpark(c, ERR_NOMEM, &(struct err){ "cloud: no thread can be started" });
        }
    }
    wire_unlock(c->wire);
    *out = call;
    return call ? OK : no_memory(err);
}

bool cloud_done(const struct cloud_call *call)
{
    wire_lock(call->cloud->wire);
    bool done = call->wire->answer.done;
    wire_unlock(call->cloud->wire);
    return done;
}

int cloud_take(struct cloud_call *call, uint32_t *id, struct err *err)
{
    struct cloud *c = call->cloud;
    const struct wire_answer *answer = &call->wire->answer;
    if (wire_forked(c->wire))
        return forked(err);
    wire_lock(c->wire);
    if (!answer->done) {
        uint64_t start = os_now_ns();
        while (!answer->done)
            wire_wait(c->wire);
        c->ns += os_now_ns() - start;
    }
    int rc = answer->rc;
    if (rc)
        err_set(err, rc, "%s", answer->err.msg);
    else
        *id = answer->reply.ids[0];
    wire_unlock(c->wire);
    return rc;
}

/* The handle goes; what the network thread still has, it frees. Under the lock. */
static void let_go(struct cloud_call *call)
{
    if (call->sent && !call->wire->answer.ended)
        wire_drop(call->cloud->wire, call->wire);
    else
        wire_free(call->wire);
    free_handle(call);
}

void cloud_commit(struct cloud_call *call)
{
    struct cloud *c = call->cloud;
    uint32_t id;
    int rc = cloud_take(call, &id, NULL);
    if (wire_forked(c->wire))
        return;
    wire_lock(c->wire);
    wire_ledger(c->wire)->committed += rc == OK;
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

size_t cloud_call_bytes(const struct cloud_call *call)
{
    struct cloud *c = call->cloud;
    wire_lock(c->wire);
    while (call->parked)
        wire_wait(c->wire);
    wire_unlock(c->wire);
    return call->bytes;
}

size_t cloud_bytes(struct cloud *c, const uint32_t *ids, size_t n)
{
    size_t bytes = 0;
    if (wire_forked(c->wire) || check_ids(c, ids, n, NULL))
        return 0;
    wire_lock(c->wire);
    if (wait_ready(c, NULL) == OK) {
        const struct ask a = question(c, ids, n);
        const struct buf *body = write_body(c, &a);
        bytes = body ? body->n : 0;
    }
    wire_unlock(c->wire);
    return bytes;
}

bool cloud_known(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *id,
                 enum cloud_from *from)
{
    (void)c, (void)ids, (void)n, (void)id, (void)from;
    return false; /* nothing is remembered */
}

int cloud_next(struct cloud *c, const uint32_t *ids, size_t n, uint32_t *out, struct err *err)
{
    struct cloud_call *call;
    int rc = cloud_ask(c, ids, n, &call, err);
    if (rc)
        return rc;
    rc = cloud_take(call, out, err);
    cloud_commit(call);
    return rc;
}
