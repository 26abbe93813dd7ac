#include "router/policy_kind.h"

#include <string.h>

#include "kernels/sys/base.h"

static const struct {
    const char *name;
    enum policy_reads reads;
    enum router_kind router;
} rows[] = {
#define X(policy, name, reads, needs, help) { name, READS_##reads, ROUTER_##needs },
    POLICIES(X)
#undef X
};

const char *policy_name(enum policy p)
{
    return rows[p].name;
}

enum policy_reads policy_reads(enum policy p)
{
    return rows[p].reads;
}

bool policy_parse(enum policy *out, const char *name)
{
    for (size_t i = 0; i < POLICY_COUNT; i++)
        if (!strcmp(name, rows[i].name)) {
            *out = (enum policy)i;
            return true;
        }
    return false;
}

bool policy_scores(enum policy p)
{
    return rows[p].reads != READS_NOTHING;
}

bool policy_judges(enum policy p)
{
    return rows[p].reads == READS_LOGITS || policy_reads_router(p);
}

enum router_kind policy_router(enum policy p)
{
    return rows[p].router;
}

bool policy_reads_router(enum policy p)
{
    return rows[p].router != ROUTER_NONE;
}

bool policy_reads_network(enum policy p)
{
    return rows[p].reads == READS_NETWORK;
}

bool policy_reads_logits(enum policy p)
{
    return rows[p].reads == READS_LOGITS;
}

int policy_check(enum policy p, const struct router *r, struct err *err)
{
    enum router_kind kind = policy_router(p);
    if (kind == ROUTER_NONE || (r && router_kind(r) == kind))
        return OK;
    return err_set(err, ERR_ARG, "policy %s needs a router that is a %s", policy_name(p),
                   router_kind_name(kind));
}
