#include "tools/lab/eval/lose.h"

#include "kernels/sys/base.h"
#include "tools/lab/clock/chance.h"

static bool lose_fails(const struct lose *l, const uint32_t *ids, size_t n)
{
    return stand_in_chance_unit(stand_in_chance_first(l->seed, ids, n), 0) < l->rate;
}

/* What is known without a call is lost alike, so that a text does not depend on what is kept. */
static enum cloud_sight lose_known(void *arg, const uint32_t *ids, size_t n, bool used,
                                   uint32_t *id)
{
    struct lose *l = arg;
    return lose_fails(l, ids, n) ? CLOUD_UNKNOWN : cloud_port_known(l->real, ids, n, used, id);
}

static struct cloud_info lose_info(void *arg)
{
    const struct lose *l = arg;
    return l->real->info(l->real->arg);
}

static int lose_ask(void *arg, const uint32_t *ids, size_t n, size_t tokens,
                    struct cloud_tally *tally, void **call, struct err *err)
{
    struct lose *l = arg;
    *call = l;
    l->call = NULL;
    return lose_fails(l, ids, n) ? OK
                                 : l->real->ask(l->real->arg, ids, n, tokens, tally, &l->call, err);
}

static bool lose_done(const void *call, size_t at)
{
    const struct lose *l = call;
    return !l->call || l->real->done(l->call, at);
}

static int lose_take(void *call, size_t at, uint32_t *id, struct err *err)
{
    struct lose *l = call;
    return l->call ? l->real->take(l->call, at, id, err)
                   : err_set(err, ERR_NET, "cloud: the call is lost (--lose)");
}

static void lose_end(void *call, enum cloud_end how)
{
    struct lose *l = call;
    if (l->call)
        l->real->end(l->call, how);
}

static struct traffic lose_traffic(void *arg, struct cloud_tally *tally, bool last)
{
    const struct lose *l = arg;
    return l->real->traffic(l->real->arg, tally, last);
}

void lose_begin(struct lose *l, const struct cloud_port *real, double rate, uint64_t seed)
{
    *l = (struct lose){ .real = real, .rate = rate, .seed = seed };
    l->port = (struct cloud_port){ .arg = l,
                                   .known = lose_known,
                                   .info = lose_info,
                                   .ask = lose_ask,
                                   .done = lose_done,
                                   .take = lose_take,
                                   .end = lose_end,
                                   .traffic = lose_traffic };
}
