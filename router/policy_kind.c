#include "router/policy_kind.h"

#include <string.h>

static const char *const names[] = {
    [POLICY_MLP] = "mlp",           [POLICY_COMBINED] = "combined", [POLICY_CONTEXT] = "context",
    [POLICY_ENTROPY] = "entropy",   [POLICY_MAX_PROB] = "max-prob", [POLICY_MARGIN] = "margin",
    [POLICY_RANDOM] = "random",     [POLICY_ALWAYS] = "always",     [POLICY_NEVER] = "never",
    [POLICY_POSITION] = "position",
};

const char *policy_name(enum policy p)
{
    return names[p];
}

bool policy_parse(enum policy *out, const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(name, names[i])) {
            *out = (enum policy)i;
            return true;
        }
    return false;
}

bool policy_scores(enum policy p)
{
    return p != POLICY_ALWAYS && p != POLICY_NEVER;
}

bool policy_judges(enum policy p)
{
    return p <= POLICY_MARGIN;
}

bool policy_reads_router(enum policy p)
{
    return policy_reads_network(p) || p == POLICY_CONTEXT;
}

const char *policy_router(enum policy p)
{
    return p == POLICY_CONTEXT    ? "table"
           : p == POLICY_COMBINED ? "network without hidden states"
                                  : "network";
}

bool policy_reads_network(enum policy p)
{
    return p == POLICY_MLP || p == POLICY_COMBINED;
}

bool policy_reads_logits(enum policy p)
{
    return p == POLICY_ENTROPY || p == POLICY_MAX_PROB || p == POLICY_MARGIN;
}
