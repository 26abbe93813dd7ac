#include "router/gate.h"

const char *gate_name(enum gate_reason r)
{
    static const char *const names[] = { "open",    "no-cloud", "refused", "unfit",
                                         "private", "capped",   "breaker", "fault" };
    return names[r];
}

void gate_drop(struct gate *g, struct gate_text *t)
{
    g->probing &= !t->probing;
    t->probing = false;
}

void gate_end(struct gate_text *t)
{
    private_text_end(&t->matches);
    private_text_end(&t->own);
}

void gate_forgive(struct gate *g)
{
    g->refused = false;
    g->breaker = (struct breaker){ 0 };
}

bool gate_holds(const struct gate *g, struct gate_text *t, const uint32_t *ids, size_t n)
{
    return private_holds(g->patterns, &t->matches, ids, n);
}

/* Lower *tokens to what the limits allow. Returns NULL, or why that is none. */
static const char *gate_cap(const struct gate *g, const struct gate_text *t, size_t n,
                            size_t *tokens)
{
    const struct quota *q = g->quota;
    uint64_t most = *tokens, left = t->limit ? t->limit - 1 : UINT64_MAX;
    left = left > t->tokens ? left - t->tokens : 0;
    if (!left)
        return "the limit on cloud tokens of this text is reached";
    most = most < left ? most : left;
    left = q ? q->tokens - atomic_load(&q->asked) : UINT64_MAX;
    if (!left)
        return "--max-cloud-tokens is reached";
    *tokens = most < left ? most : left;
    bool fits = !q || (n <= q->input && atomic_load(&q->sent) <= q->input - n);
    return fits ? NULL : "--max-cloud-input would be exceeded";
}

enum gate_reason gate_decide(struct gate *g, struct gate_text *t, size_t n, bool held,
                             size_t *tokens, struct err *why)
{
    if (g->refused || t->unfit) {
        *why = g->refused ? g->fault : t->why;
        return g->refused ? GATE_REFUSED : GATE_UNFIT;
    }
    if (held) {
        err_set(why, OK, "the text matches a private pattern");
        return GATE_PRIVATE;
    }
    const char *cap = gate_cap(g, t, n, tokens);
    bool pauses = !breaker_allows(&g->breaker) || (breaker_probes(&g->breaker) && g->probing);
    bool asks = !cap && (t->required || !pauses);
    if (asks && (!g->quota || quota_take(g->quota, *tokens, n))) {
        t->probing = breaker_probes(&g->breaker);
        g->probing |= t->probing;
        return GATE_OPEN;
    }
    if (asks) /* another request has gone out again meanwhile */
        cap = gate_cap(g, t, n, tokens);
    if (cap || asks) {
        err_set(why, OK, "%s", cap ? cap : "what is left is taken by another request");
        return GATE_CAPPED;
    }
    err_set(why, ERR_NET, "not asked after %d faults in a row: %s", BREAKER_FAULTS, g->fault.msg);
    return GATE_BREAKER;
}

void gate_held(struct gate *g, enum gate_reason r)
{
    if (r == GATE_BREAKER)
        breaker_held(&g->breaker);
}

void gate_done(struct gate *g, struct gate_text *t, enum gate_reason r, uint64_t sent,
               const struct err *why)
{
    /* A server that refuses this text is alive. */
    bool alive = r == GATE_OPEN || r == GATE_UNFIT;
    breaker_result(&g->breaker, t->probing, alive);
    gate_drop(g, t);
    t->tokens += sent;
    if (r != GATE_OPEN)
        g->fault = *why;
    g->refused |= r == GATE_REFUSED; /* another text's call may have been answered since */
    g->lost = !alive && (g->lost || g->refused || g->breaker.pause);
    t->unfit |= r == GATE_UNFIT;
    if (r == GATE_UNFIT)
        t->why = *why;
}
