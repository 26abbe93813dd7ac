#include "router/gate.h"

#include "router/caps.h"

const char *gate_name(enum gate_reason r)
{
    static const char *const names[] = { "open",   "no-cloud", "refused", "private",
                                         "capped", "breaker",  "fault" };
    return names[r];
}

bool gate_counts_bytes(const struct gate *g)
{
    return g->caps && g->caps->limits.upload != UINT64_MAX;
}

enum gate_reason gate_decide(const struct gate *g, size_t n, size_t bytes, bool held,
                             struct err *why)
{
    if (g->refused) {
        *why = g->fault;
        return GATE_REFUSED;
    }
    if (held) {
        err_set(why, OK, "the text holds a private span");
        return GATE_PRIVATE;
    }
    const char *cap = g->caps ? caps_refuse(&g->caps->limits, &g->caps->count, n, bytes) : NULL;
    if (cap) {
        err_set(why, OK, "%s", cap);
        return GATE_CAPPED;
    }
    if (breaker_allows(&g->breaker))
        return GATE_OPEN;
    err_set(why, ERR_NET, "not asked after %d faults in a row: %s", BREAKER_FAULTS, g->fault.msg);
    return GATE_BREAKER;
}

void gate_done(struct gate *g, enum gate_reason r, const uint32_t *ids, size_t n, size_t bytes,
               const struct err *why)
{
    bool asked = r == GATE_OPEN || r == GATE_FAULT || (r == GATE_REFUSED && !g->refused);
    if (r == GATE_BREAKER)
        breaker_held(&g->breaker);
    if (!asked)
        return;
    breaker_result(&g->breaker, r == GATE_OPEN);
    if (g->caps)
        caps_commit(g->caps, ids, n, bytes, r == GATE_OPEN);
    if (r != GATE_OPEN)
        g->fault = *why;
    g->refused = r == GATE_REFUSED;
}

bool gate_expects(const struct gate *g, size_t n, size_t bytes, bool held,
                  const struct gate_ahead *a)
{
    const struct breaker *b = &g->breaker;
    if (g->refused || held || (b->pause && b->held != a->routed))
        return false;
    return !g->caps || !caps_refuse(&g->caps->limits, &a->count, n, bytes);
}

void gate_ahead_begin(struct gate_ahead *a, const struct gate *g)
{
    *a = (struct gate_ahead){ 0 };
    if (g->caps)
        a->count = g->caps->count;
}

void gate_ahead_add(struct gate_ahead *a, const struct gate *g, size_t n, size_t bytes, bool asked)
{
    a->routed++;
    if (g->caps && asked)
        caps_add(&g->caps->limits, &a->count, n, bytes, true);
}
