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

static size_t cloud_port_bytes(void *arg, const uint32_t *ids, size_t n, size_t want)
{
    return cloud_bytes(arg, ids, n, want);
}

static bool cloud_port_settled(void *arg)
{
    return cloud_settled(arg);
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

static size_t cloud_port_look(const void *call, uint32_t *ids, size_t from, size_t room,
                              bool *ended)
{
    return cloud_look(call, ids, from, room, ended);
}

static void cloud_port_enough(void *call)
{
    cloud_enough(call);
}

static bool cloud_port_quiet(void *arg, const struct cloud_tally *tally, bool wait)
{
    return cloud_tally_quiet(arg, tally, wait);
}

static bool cloud_port_sent(const void *call)
{
    return cloud_sent(call);
}

void cloud_port_cloud(struct cloud_port *out, struct cloud *c)
{
    *out = (struct cloud_port){ c,
                                cloud_port_known,
                                cloud_port_peek,
                                cloud_port_tokens,
                                cloud_port_ask,
                                cloud_port_done,
                                cloud_port_take,
                                cloud_port_commit,
                                cloud_port_drop,
                                cloud_port_bytes,
                                cloud_port_settled,
                                cloud_port_traffic,
                                cloud_port_end_tally,
                                cloud_port_notify,
                                cloud_port_moved,
                                cloud_port_look,
                                cloud_port_enough,
                                cloud_port_quiet,
                                cloud_port_sent };
}
