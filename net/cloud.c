/* cloud.c - opens a cloud, probes the server, in cloud_open or in a thread of its own, and then
 * sends or ends the calls that wait for what the probe finds. */
#include "net/cloud.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/cloud_internal.h"

enum { MAX_REPLY = 1 << 20 };

/* Return the oldest call that waits for the prober, or NULL: the list begins with the newest. */
static struct cloud_call *cloud_oldest(const struct cloud *c)
{
    struct cloud_call *oldest = NULL;
    for (struct cloud_call *call = c->calls; call; call = call->next)
        if (call->parked)
            oldest = call;
    return oldest;
}

/* Send the calls that wait, the oldest first; with rc, end them with that error. */
static void cloud_unpark(struct cloud *c, int rc, const struct err *why)
{
    for (struct cloud_call *call; (call = cloud_oldest(c));) {
        call->parked = false;
        if (rc)
            cloud_call_settle(call, rc, why);
        else
            cloud_call_launch(c, call);
    }
}

/* Run the probe in this thread, and settle what waited for it; without the lock. */
static int cloud_probe(struct cloud *c, struct err *why)
{
    int rc = probe_run(c, why);
    if (rc == OK && c->o.found)
        rc = c->o.found(c->o.found_arg, c->model ? c->model : c->base, c->info.says, why);
    bool passing = rc == ERR_NET || rc == ERR_STOP || rc == ERR_NOMEM;
    wire_lock(c->wire);
    c->failed = rc;
    c->why = *why;
    bool awaited = cloud_oldest(c);
    c->state = rc == OK   ? CLOUD_READY
               : !passing ? CLOUD_REFUSED
               : awaited  ? CLOUD_ASLEEP
                          : CLOUD_FAILED;
    cloud_unpark(c, rc, why);
    wire_tell(c->wire);
    wire_unlock(c->wire);
    return rc;
}

static void *cloud_prober(void *arg)
{
    struct cloud *c = arg;
    struct err why = { "" };
    cloud_probe(c, &why);
    return NULL;
}

bool cloud_wake_prober(struct cloud *c)
{
    if (c->prober_runs)
        pthread_join(c->prober, NULL); /* it has ended or is about to end */
    c->state = CLOUD_PROBING;
    c->prober_runs = pthread_create(&c->prober, NULL, cloud_prober, c) == 0;
    if (!c->prober_runs)
        c->state = CLOUD_ASLEEP;
    return c->prober_runs;
}

/* Open what cloud_open needs, and probe the server if that must be done now. */
static int cloud_open_parts(struct cloud *c, const struct cloud_options *o, struct err *err)
{
    int rc = cloud_url_check(&c->base, o->url, err);
    if (rc)
        return rc;
    const struct wire_options w = {
        .http = { .key = o->key,
                  .ca = o->ca,
                  .proxy = o->proxy,
                  .max_reply = o->max_reply ? o->max_reply : MAX_REPLY },
        .stop = o->stop,
        .quota = o->quota,
    };
    rc = wire_open(&c->wire, &w, err);
    if (rc == OK && o->model)
        rc = cloud_set_model(c, o->model, strlen(o->model), err);
    if (rc)
        return rc;
    if (o->api != CLOUD_AUTO)
        c->dialect = dialect_of(o->api);
    if (!probe_needed(c)) { /* the server is trusted to do what is asked */
        c->info = (struct cloud_info){ .api = o->api, .model = c->model, .ids = true };
        c->state = CLOUD_READY;
        return o->found ? o->found(o->found_arg, c->model ? c->model : c->base, "", err) : OK;
    }
    if (o->background) {
        wire_lock(c->wire);
        bool runs = cloud_wake_prober(c);
        wire_unlock(c->wire);
        return runs ? OK : cloud_no_memory(err);
    }
    if (o->api != CLOUD_AUTO)
        return OK;
    struct err why = { "" };
    rc = cloud_probe(c, &why);
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
        return cloud_no_memory(err);
    c->o = *o;
    c->o.url = c->o.key = c->o.ca = c->o.proxy = c->o.model = NULL;
    c->o.tokens = o->tokens ? o->tokens : 1;
    c->timeout_ns = (o->timeout_ms ? o->timeout_ms : CLOUD_TIMEOUT_MS) * UINT64_C(1000000);
    int rc = cloud_open_parts(c, o, err);
    if (rc) {
        cloud_close(c);
        return rc;
    }
    *out = c;
    return OK;
}

void cloud_close(void *cloud)
{
    struct cloud *c = cloud;
    if (!c)
        return;
    bool child = c->wire && wire_forked(c->wire);
    wire_stop(c->wire);
    if (c->prober_runs && !child)
        pthread_join(c->prober, NULL);
    if (!child && c->calls) {
        wire_lock(c->wire);
        while (c->calls)
            cloud_call_free(c->calls);
        wire_unlock(c->wire);
    }
    wire_close(c->wire);
    free(c->base);
    free(c->model);
    free(c->model_json);
    free(c);
}

int cloud_ready(struct cloud *c, struct err *err)
{
    if (!wire_enter(c->wire))
        return cloud_forked(err);
    int rc = c->state == CLOUD_ASLEEP && !cloud_wake_prober(c) ? cloud_no_memory(err) : OK;
    while (c->state == CLOUD_PROBING)
        wire_wait(c->wire);
    if (rc == OK && c->state != CLOUD_READY)
        rc = err_set(err, c->failed, "%s", c->why.msg);
    if (c->state == CLOUD_FAILED)
        c->state = CLOUD_ASLEEP; /* the caller gets the error */
    wire_unlock(c->wire);
    return rc;
}

void cloud_forgive(struct cloud *c)
{
    if (!wire_enter(c->wire))
        return;
    if (c->state == CLOUD_REFUSED)
        c->state = CLOUD_ASLEEP;
    wire_unlock(c->wire);
}

struct cloud_info cloud_known_info(void *cloud)
{
    struct cloud *c = cloud;
    struct cloud_info info = { 0 };
    if (!wire_enter(c->wire))
        return info;
    if (c->state == CLOUD_READY) /* before that, the prober may be writing it */
        info = c->info;
    info.tokens = c->state == CLOUD_READY && c->text ? 1 : c->o.tokens;
    wire_unlock(c->wire);
    return info;
}

const struct cloud_ledger *cloud_ledger(struct cloud *c)
{
    if (!wire_enter(c->wire))
        return &c->shown;
    c->shown = *wire_ledger(c->wire);
    wire_unlock(c->wire);
    return &c->shown;
}

int cloud_inspect(struct cloud *c, struct cloud_info *out, struct err *err)
{
    int rc = cloud_ready(c, err);
    return rc == OK ? probe_inspect(c, out, err) : rc;
}

void cloud_notify(void *cloud, void (*f)(void *arg), void *arg)
{
    const struct cloud *c = cloud;
    if (!wire_forked(c->wire))
        wire_notify(c->wire, f, arg);
}

bool cloud_note(struct cloud *c, struct err *note)
{
    if (!wire_enter(c->wire))
        return false;
    bool some = c->note.msg[0];
    if (some)
        *note = c->note;
    c->note.msg[0] = 0;
    wire_unlock(c->wire);
    return some;
}
