#include "router/cloud_port.h"

#include "kernels/sys/base.h"

static enum origin cloud_port_known(void *arg, const uint32_t *ids, size_t n, uint32_t *id)
{
    return cloud_known(arg, ids, n, id);
}

static enum cloud_sight cloud_port_peek(void *arg, const uint32_t *ids, size_t n, uint32_t *id)
{
    return cloud_peek(arg, ids, n, id);
}

static size_t cloud_port_tokens(void *arg)
{
    return cloud_tokens(arg);
}

static int cloud_port_ask(void *arg, const uint32_t *ids, size_t n, size_t want,
                          struct cloud_tally *tally, void **call, struct err *err)
{
    struct cloud_call *c = NULL;
    cloud_tally(arg, tally);
    int rc = cloud_ask(arg, ids, n, want, &c, err);
    *call = c;
    return rc;
}

static bool cloud_port_done(const void *call)
{
    return cloud_done(call);
}

static int cloud_port_take(void *call, uint32_t *id, struct err *err)
{
    return cloud_take(call, id, err);
}

static void cloud_port_commit(void *call)
{
    cloud_commit(call);
}

static void cloud_port_drop(void *call)
{
    cloud_drop(call);
}

static struct traffic cloud_port_traffic(void *arg, const struct cloud_tally *tally)
{
    return cloud_tally_read(arg, tally);
}

static void cloud_port_end_tally(void *arg, struct cloud_tally *tally)
{
    cloud_tally_end(arg, tally);
}

static void cloud_port_notify(void *arg, void (*f)(void *), void *f_arg)
{
    cloud_notify(arg, f, f_arg);
}

static struct traffic cloud_port_moved(const void *call)
{
    return cloud_call_traffic(call);
}

void cloud_port_cloud(struct cloud_port *out, struct cloud *c)
{
    *out = (struct cloud_port){ .arg = c,
                                .known = cloud_port_known,
                                .peek = cloud_port_peek,
                                .tokens = cloud_port_tokens,
                                .ask = cloud_port_ask,
                                .done = cloud_port_done,
                                .take = cloud_port_take,
                                .commit = cloud_port_commit,
                                .drop = cloud_port_drop,
                                .traffic = cloud_port_traffic,
                                .end_tally = cloud_port_end_tally,
                                .notify = cloud_port_notify,
                                .moved = cloud_port_moved };
}
