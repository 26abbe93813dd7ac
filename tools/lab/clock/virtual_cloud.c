#include "tools/lab/clock/virtual_cloud.h"

#include <jansson.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "kernels/sys/buf.h"
#include "net/dialect/dialect.h"

size_t virtual_cloud_measure(const struct cloud_port *port, const uint32_t *ids, size_t n,
                             size_t tokens)
{
    const struct cloud_info info = port->info(port->arg);
    json_t *name = info.model ? json_string(info.model) : NULL;
    char *model = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
    struct ask a = { .model = model, .ids = ids, .n = n };
    struct buf body = { 0 };
    a.want = tokens < info.tokens ? tokens : info.tokens;
    a.stream = a.want > 1;
    size_t bytes = dialect_of(info.api)->request(&body, &a) ? body.n : 0;
    buf_free(&body);
    free(model);
    json_decref(name);
    return bytes;
}

/* Begin a call for one prefix. */
static void virtual_cloud_prefix(struct virtual_cloud *v, const uint32_t *ids, size_t n,
                                 size_t tokens)
{
    v->key = stand_in_chance_first(v->clock->seed, ids, n);
    v->size.up = v->bytes(v->real, ids, n, tokens);
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

static enum cloud_sight virtual_cloud_known(void *arg, const uint32_t *ids, size_t n, bool used,
                                            uint32_t *id)
{
    struct virtual_cloud *v = arg;
    enum cloud_sight sight = cloud_port_known(v->real, ids, n, used, id);
    if (!used || !cloud_port_here(sight))
        return sight;
    virtual_cloud_prefix(v, ids, n, v->real->info(v->real->arg).tokens);
    virtual_cloud_time(v);
    return v->late ? CLOUD_UNKNOWN : sight;
}

static struct cloud_info virtual_cloud_info(void *arg)
{
    const struct virtual_cloud *v = arg;
    return v->real->info(v->real->arg);
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
static void virtual_cloud_asked(struct virtual_cloud *v, struct cloud_tally *tally)
{
    v->tally = tally;
    v->before = v->real->traffic(v->real->arg, tally, false);
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

static bool virtual_cloud_done(const void *call, size_t at)
{
    const struct virtual_cloud *v = call;
    return v->real->done(v->call, at);
}

static int virtual_cloud_take(void *call, size_t at, uint32_t *id, struct err *err)
{
    struct virtual_cloud *v = call;
    int rc = virtual_cloud_real(v, v->real->take(v->call, at, id, err), err);
    struct traffic now = v->real->traffic(v->real->arg, v->tally, false);
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

static void virtual_cloud_end(void *call, enum cloud_end how)
{
    struct virtual_cloud *v = call;
    v->real->end(v->call, v->late ? CLOUD_DROP : how);
}

static struct traffic virtual_cloud_traffic(void *arg, struct cloud_tally *tally, bool last)
{
    const struct virtual_cloud *v = arg;
    return v->real->traffic(v->real->arg, tally, last);
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
                                   .info = virtual_cloud_info,
                                   .ask = virtual_cloud_ask,
                                   .done = virtual_cloud_done,
                                   .take = virtual_cloud_take,
                                   .end = virtual_cloud_end,
                                   .traffic = virtual_cloud_traffic };
}
