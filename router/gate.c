#include "router/gate.h"

#include "router/caps.h"

const char *gate_name(enum gate_reason r)
{
    static const char *const names[] = { "open",    "no-cloud", "refused", "unfit",
                                         "private", "capped",   "breaker", "fault" };
    return names[r];
}

bool gate_counts_bytes(const struct gate *g)
{
    return g->caps && g->caps->limits.upload != UINT64_MAX;
}

void gate_text(struct gate *g, const uint32_t *prompt, size_t n)
{
    g->unfit = false;
    if (g->caps)
        caps_text(g->caps, prompt, n);
}

/* Find the way that the limits allow after these counts. Returns NULL, or why there is none. */
static const char *gate_choose(const struct gate *g, const struct caps_count *count,
                               const struct caps_call ways[2], size_t *way)
{
    const char *why = NULL;
    for (*way = 0; *way < 2; ++*way) {
        why = g->caps ? caps_refuse(&g->caps->limits, count, &ways[*way]) : NULL;
        if (!why)
            return NULL;
    }
    *way = 0;
    return why;
}

enum gate_reason gate_decide(const struct gate *g, const struct caps_call ways[2], bool held,
                             size_t *way, struct err *why)
{
    *way = 0;
    if (g->refused || g->unfit) {
        *why = g->fault;
        return g->refused ? GATE_REFUSED : GATE_UNFIT;
    }
    if (held) {
        err_set(why, OK, "the text holds a private span");
        return GATE_PRIVATE;
    }
    const char *cap = gate_choose(g, g->caps ? &g->caps->count : NULL, ways, way);
    if (cap) {
        err_set(why, OK, "%s", cap);
        return GATE_CAPPED;
    }
    if (breaker_allows(&g->breaker))
        return GATE_OPEN;
    err_set(why, ERR_NET, "not asked after %d faults in a row: %s", BREAKER_FAULTS, g->fault.msg);
    return GATE_BREAKER;
}

void gate_done(struct gate *g, enum gate_reason r, const uint32_t *ids,
               const struct caps_call *call, const struct err *why)
{
    bool asked = r == GATE_OPEN || r == GATE_FAULT || (r == GATE_REFUSED && !g->refused) ||
                 (r == GATE_UNFIT && !g->unfit);
    if (r == GATE_BREAKER)
        breaker_held(&g->breaker);
    if (!asked)
        return;
    /* A server that refuses this text is alive. */
    breaker_result(&g->breaker, r == GATE_OPEN || r == GATE_UNFIT);
    if (g->caps)
        caps_commit(g->caps, ids, call, r == GATE_OPEN);
    if (r != GATE_OPEN)
        g->fault = *why;
    g->refused = r == GATE_REFUSED;
    g->unfit = r == GATE_UNFIT;
}

bool gate_expects(const struct gate *g, const struct caps_call ways[2], bool held,
                  const struct gate_ahead *a, size_t *way)
{
    const struct breaker *b = &g->breaker;
    *way = 0;
    if (g->refused || g->unfit || held || (b->pause && b->held != a->routed))
        return false;
    return !gate_choose(g, &a->count, ways, way);
}

void gate_ahead_begin(struct gate_ahead *a, const struct gate *g)
{
    *a = (struct gate_ahead){ 0 };
    if (g->caps)
        a->count = g->caps->count;
}

void gate_ahead_add(struct gate_ahead *a, const struct gate *g, const struct caps_call *call)
{
    a->routed++;
    if (g->caps && call)
        caps_add(&g->caps->limits, &a->count, call, true);
}
