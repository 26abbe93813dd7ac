#include "tools/lab/clock/virtual_cloud.h"

#include "kernels/sys/base.h"

size_t virtual_cloud_measure(void *arg, const uint32_t *ids, size_t n, size_t tokens)
{
    return cloud_bytes(arg, ids, n, tokens);
}

/* Begin a call for one prefix. */
static void virtual_cloud_prefix(struct virtual_cloud *v, const uint32_t *ids, size_t n,
                                 size_t tokens)
{
    v->key = stand_in_chance_first(v->clock->seed, ids, n);
    v->size.up = v->bytes(v->real->arg, ids, n, tokens);
    v->late = false;
    v->ms = 0;
}

/* Give the call its time, now that all of v->size is known. */
static void virtual_cloud_time(struct virtual_cloud *v)
{
    v->ms = virtual_clock_call(v->clock, v->key, &v->size);
    v->late = v->ms > v->clock->deadline_ms;
    if (v->late)
        v->ms = v->clock->deadline_ms;
}

static enum origin virtual_cloud_known(void *arg, const uint32_t *ids, size_t n, uint32_t *id)
{
    struct virtual_cloud *v = arg;
    enum origin from = v->real->known(v->real->arg, ids, n, id);
    if (from == ORIGIN_NONE)
        return from;
    virtual_cloud_prefix(v, ids, n, v->real->tokens(v->real->arg));
    virtual_cloud_time(v);
    return v->late ? ORIGIN_NONE : from;
}

static enum cloud_sight virtual_cloud_peek(void *arg, const uint32_t *ids, size_t n, uint32_t *id)
{
    const struct virtual_cloud *v = arg;
    return v->real->peek(v->real->arg, ids, n, id);
}

static size_t virtual_cloud_tokens(void *arg)
{
    const struct virtual_cloud *v = arg;
    return v->real->tokens(v->real->arg);
}

/* Keep an error of the other port. */
static int virtual_cloud_real(struct virtual_cloud *v, int rc, const struct err *err)
{
    if (rc != OK) {
        v->failed = rc;
        v->why = *err;
    }
    return rc;
}

/* Note a call that is about to be made. */
static void virtual_cloud_asked(struct virtual_cloud *v, const struct cloud_tally *tally)
{
    v->tally = tally;
    v->before = v->real->traffic(v->real->arg, tally);
}

static int virtual_cloud_ask(void *arg, const uint32_t *ids, size_t n, size_t tokens,
                             struct cloud_tally *tally, void **call, struct err *err)
{
    struct virtual_cloud *v = arg;
    virtual_cloud_prefix(v, ids, n, tokens);
    virtual_cloud_asked(v, tally);
    *call = v;
    int rc = v->real->ask(v->real->arg, ids, n, tokens, tally, &v->call, err);
    return virtual_cloud_real(v, rc, err);
}

static bool virtual_cloud_done(const void *call)
{
    const struct virtual_cloud *v = call;
    return v->real->done(v->call);
}

static int virtual_cloud_take(void *call, uint32_t *id, struct err *err)
{
    struct virtual_cloud *v = call;
    int rc = virtual_cloud_real(v, v->real->take(v->call, id, err), err);
    struct traffic now = v->real->traffic(v->real->arg, v->tally);
    struct traffic took = traffic_since(&now, &v->before);
    if (rc != OK)
        return rc;
    if (took.bytes_down) {
        v->size.header = (size_t)took.header_bytes_up;
        v->size.down = (size_t)(took.bytes_down - took.header_bytes_down);
    }
    v->before = now;
    virtual_cloud_time(v);
    return v->late ? err_set(err, ERR_NET, "cloud: no answer in time (%g ms)", v->ms) : OK;
}

static void virtual_cloud_commit(void *call)
{
    struct virtual_cloud *v = call;
    if (v->late)
        v->real->drop(v->call);
    else
        v->real->commit(v->call);
}

static void virtual_cloud_drop(void *call)
{
    struct virtual_cloud *v = call;
    v->real->drop(v->call);
}

static struct traffic virtual_cloud_traffic(void *arg, const struct cloud_tally *tally)
{
    const struct virtual_cloud *v = arg;
    return v->real->traffic(v->real->arg, tally);
}

static void virtual_cloud_end_tally(void *arg, struct cloud_tally *tally)
{
    const struct virtual_cloud *v = arg;
    v->real->end_tally(v->real->arg, tally);
}

void virtual_cloud_begin(struct virtual_cloud *v, const struct cloud_port *real,
                         virtual_cloud_bytes *bytes, const struct virtual_clock *clock)
{
    v->real = real;
    v->bytes = bytes;
    v->clock = clock;
    v->failed = OK;
    v->port = (struct cloud_port){ .arg = v,
                                   .known = virtual_cloud_known,
                                   .peek = virtual_cloud_peek,
                                   .tokens = virtual_cloud_tokens,
                                   .ask = virtual_cloud_ask,
                                   .done = virtual_cloud_done,
                                   .take = virtual_cloud_take,
                                   .commit = virtual_cloud_commit,
                                   .drop = virtual_cloud_drop,
                                   .traffic = virtual_cloud_traffic,
                                   .end_tally = virtual_cloud_end_tally };
}
