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

void gate_begin(const struct gate *g, struct gate_text *t, const uint32_t *prompt, size_t n)
{
    *t = (struct gate_text){ 0 };
    if (!g->caps)
        return;
    caps_text(g->caps, prompt, n);
    t->warm = g->caps->count.warm;
}

/* Add to a count; at the top it stays there. */
static void gate_add(uint64_t *count, uint64_t more)
{
    if (__builtin_add_overflow(*count, more, count))
        *count = UINT64_MAX;
}

/* Return the counts of all texts, as this one sees them: with the calls of the others in flight. */
static struct caps_count gate_count(const struct gate *g, const struct gate_text *t)
{
    const struct caps_count *all = &g->reserved, *mine = &t->reserved;
    struct caps_count count = { 0 };
    if (g->caps)
        count = g->caps->count;
    if (g->caps) /* with what is reserved */
        count.tokens = atomic_load(&g->caps->quota.taken) - mine->tokens;
    gate_add(&count.upload, all->upload - mine->upload);
    gate_add(&count.cost, all->cost - mine->cost);
    count.warm = t->warm;
    return count;
}

/* Reserve what the call may cost. False: its tokens have been asked for meanwhile, by a request
 * that went out again. */
static bool gate_reserve(struct gate *g, struct gate_text *t, const struct caps_call *call)
{
    if (g->caps && !quota_take(&g->caps->quota, call->tokens))
        return false;
    t->probing = breaker_probes(&g->breaker);
    g->probing |= t->probing;
    if (!g->caps)
        return true;
    t->reserved = (struct caps_count){ .warm = t->warm };
    caps_add(&g->caps->limits, &t->reserved, call, true);
    g->reserved.upload += t->reserved.upload;
    g->reserved.cost += t->reserved.cost;
    return true;
}

/* Free it again. */
static void gate_release(struct gate *g, struct gate_text *t)
{
    g->probing &= !t->probing;
    t->probing = false;
    g->reserved.upload -= t->reserved.upload;
    g->reserved.cost -= t->reserved.cost;
    t->reserved = (struct caps_count){ 0 };
}

void gate_drop(struct gate *g, struct gate_text *t, bool sent)
{
    if (g->caps && sent) {
        g->caps->count.tokens = atomic_load(&g->caps->quota.taken);
        gate_add(&g->caps->count.upload, t->reserved.upload);
        gate_add(&g->caps->count.cost, t->reserved.cost);
        gate_add(&t->cost, t->reserved.cost);
    }
    gate_release(g, t);
}

void gate_end(struct gate_text *t)
{
    private_text_end(&t->matches);
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

/* Find the way that the limits allow after these counts, with so many tokens from calls of this
 * text. Returns NULL, or why there is none. */
static const char *gate_choose(const struct gate *g, const struct gate_text *t,
                               const struct caps_count *count, uint64_t tokens,
                               const struct caps_call ways[2], size_t *way)
{
    const char *why = NULL;
    for (*way = 0; *way < 2; ++*way) {
        why = g->caps ? caps_refuse(&g->caps->limits, count, &ways[*way]) : NULL;
        if (t->limit && tokens + ways[*way].tokens >= t->limit)
            why = "the limit on cloud tokens of this text is reached";
        if (!why)
            return NULL;
    }
    *way = 0;
    return why;
}

enum gate_reason gate_decide(struct gate *g, struct gate_text *t, const struct caps_call ways[2],
                             bool held, size_t *way, struct err *why)
{
    const struct caps_count count = gate_count(g, t);
    *way = 0;
    if (g->refused || t->unfit) {
        *why = g->refused ? g->fault : t->why;
        return g->refused ? GATE_REFUSED : GATE_UNFIT;
    }
    if (held) {
        err_set(why, OK, "the text matches a private pattern");
        return GATE_PRIVATE;
    }
    const char *cap = gate_choose(g, t, &count, t->tokens, ways, way);
    bool pauses = !breaker_allows(&g->breaker) || (breaker_probes(&g->breaker) && g->probing);
    bool asks = !cap && (t->required || !pauses);
    if (asks && gate_reserve(g, t, &ways[*way]))
        return GATE_OPEN;
    if (cap || asks) {
        err_set(why, OK, "%s", cap ? cap : "--max-cloud-tokens is reached");
        return GATE_CAPPED;
    }
    err_set(why, ERR_NET, "not asked after %d faults in a row: %s", BREAKER_FAULTS, g->fault.msg);
    return GATE_BREAKER;
}

/* Charge the call to the limits and to its text. */
static void gate_charge(struct caps *caps, struct gate_text *t, const uint32_t *ids,
                        const struct caps_call *call, bool answered)
{
    uint64_t before = caps->count.cost;
    caps->count.warm = t->warm;
    caps_commit(caps, ids, call, answered);
    t->warm = caps->count.warm;
    t->cost += caps->count.cost - before;
}

void gate_held(struct gate *g, enum gate_reason r)
{
    if (r == GATE_BREAKER)
        breaker_held(&g->breaker);
}

void gate_done(struct gate *g, struct gate_text *t, enum gate_reason r, const uint32_t *ids,
               const struct caps_call *call, const struct err *why)
{
    /* A server that refuses this text is alive. */
    bool alive = r == GATE_OPEN || r == GATE_UNFIT;
    breaker_result(&g->breaker, t->probing, alive);
    gate_release(g, t);
    t->tokens += call->sent;
    if (g->caps)
        gate_charge(g->caps, t, ids, call, r == GATE_OPEN);
    if (r != GATE_OPEN)
        g->fault = *why;
    g->refused |= r == GATE_REFUSED; /* another text's call may have been answered since */
    g->lost = !alive && (g->lost || g->refused || g->breaker.pause);
    t->unfit |= r == GATE_UNFIT;
    if (r == GATE_UNFIT)
        t->why = *why;
}
