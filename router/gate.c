#include "router/gate.h"

const char *gate_name(enum gate_reason r)
{
    static const char *const names[] = { "open",    "no-cloud", "refused", "unfit",
                                         "private", "capped",   "breaker", "fault" };
    return names[r];
}

enum gate_reason gate_own(struct gate_text *t, const uint32_t *ids, size_t n, size_t pos,
                          size_t cloud, struct err *why)
{
    const double spare = 2, share = (double)t->max_routed, next = (double)(cloud + 1);
    bool matches = private_holds(t->patterns, &t->own, ids, n);
    if (share > 0 && next > share * (double)(pos + 1) + spare) {
        err_set(why, OK, "max_routed: more than %.3g %% and 2 tokens of this text so far",
                100 * share);
        return GATE_CAPPED;
    }
    if (matches) {
        err_set(why, OK, "the text matches a private pattern");
        return GATE_PRIVATE;
    }
    if (!t->limit || cloud + 1 < t->limit)
        return GATE_OPEN;
    err_set(why, OK, "the limit on cloud tokens of this text is reached");
    return GATE_CAPPED;
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

enum gate_reason gate_decide(struct gate *g, struct gate_text *t, const uint32_t *ids, size_t n,
                             size_t *tokens, struct err *why)
{
    struct breaker *b = &g->breaker;
    bool matches = private_holds(g->patterns, &t->matches, ids, n);
    if (g->refused || t->unfit) {
        *why = g->refused ? g->fault : t->why;
        return g->refused ? GATE_REFUSED : GATE_UNFIT;
    }
    if (matches) {
        err_set(why, OK, "the text matches a private pattern");
        return GATE_PRIVATE;
    }
    const char *cap = gate_cap(g, t, n, tokens);
    bool pauses = b->held || (b->pause && g->probing);
    bool asks = !cap && (t->required || !pauses);
    if (asks && (!g->quota || quota_take(g->quota, *tokens, n))) {
        t->probing = b->pause;
        g->probing |= t->probing;
        return GATE_OPEN;
    }
    if (asks) /* meanwhile: gate_cap found some */
        cap = "what is left is taken by another request";
    if (cap) {
        err_set(why, OK, "%s", cap);
        return GATE_CAPPED;
    }
    b->held -= b->held > 0;
    err_set(why, ERR_NET, "not asked after %d faults in a row: %s", BREAKER_FAULTS, g->fault.msg);
    return GATE_BREAKER;
}

/* Note whether a requested token was answered. */
static void breaker_result(struct breaker *b, bool probe, bool answered)
{
    if (answered) {
        *b = (struct breaker){ 0 };
        return;
    }
    if (b->pause && !probe) /* it was requested before the breaker opened */
        return;
    if (b->pause)
        b->pause = b->pause < BREAKER_MAX_PAUSE / 2 ? b->pause * 2 : BREAKER_MAX_PAUSE;
    else if (++b->faults >= BREAKER_FAULTS)
        b->pause = BREAKER_PAUSE;
    b->held = b->pause;
}

/* The call of the text is over. */
static void gate_release(struct gate *g, struct gate_text *t)
{
    g->probing &= !t->probing;
    t->probing = false;
}

void gate_done(struct gate *g, struct gate_text *t, enum gate_reason r, uint64_t sent,
               const struct err *why)
{
    /* A server that refuses this text is alive. */
    bool alive = r == GATE_OPEN || r == GATE_UNFIT;
    breaker_result(&g->breaker, t->probing, alive);
    gate_release(g, t);
    t->tokens += sent;
    if (r != GATE_OPEN)
        g->fault = *why;
    g->refused |= r == GATE_REFUSED; /* another text's call may have been answered since */
    g->lost = !alive && (g->lost || g->refused || g->breaker.pause);
    t->unfit |= r == GATE_UNFIT;
    if (r == GATE_UNFIT)
        t->why = *why;
}

void gate_end(struct gate *g, struct gate_text *t)
{
    gate_release(g, t);
    private_text_end(&t->matches);
    private_text_end(&t->own);
}

void gate_forgive(struct gate *g)
{
    g->refused = false;
    g->breaker = (struct breaker){ 0 };
}
