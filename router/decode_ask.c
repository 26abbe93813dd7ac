/* decode_ask.c - the loop's dealings with the cloud: what is known, how a token is requested, and
 * what the answer was. */
#include "router/decode_internal.h"

#include "kernels/sys/os.h"
#include "router/cloud_port.h"

double decode_lap(uint64_t *since)
{
    uint64_t now = os_now_ns();
    double ms = (double)(now - *since) / 1e6;
    *since = now;
    return ms;
}

/* Look the token up without a call. */
static enum origin decode_ask_known(const struct decode *d, size_t n, uint32_t *id)
{
    const struct cloud_port *c = d->cloud;
    enum origin from = c ? c->known(c->arg, session_ids(d->session), n, id) : ORIGIN_NONE;
    return from != ORIGIN_NONE && *id < d->size ? from : ORIGIN_NONE;
}

/* Bodies are measured only when a limit counts them. */
void decode_find_ways(struct decode *d, struct ahead_token *e)
{
    const struct cloud_port *c = d->cloud;
    const uint32_t *ids = session_ids(d->session);
    uint64_t clock = os_now_ns();
    for (size_t i = 0; i < 2; i++) {
        struct caps_call *w = &e->ways[i];
        size_t tokens = i ? 1 : c->tokens(c->arg);
        if (w->tokens == tokens && w->bytes)
            continue; /* done before, and nothing has changed */
        *w = (struct caps_call){ .n = e->at, .tokens = tokens };
        if (i && e->ways[0].tokens == 1)
            *w = e->ways[0];
        else if (gate_counts_bytes(d->gate)) /* waits for a server that is not known yet */
            w->bytes = c->bytes(c->arg, ids, e->at, tokens);
    }
    d->stats->cloud_ms += decode_lap(&clock);
}

int decode_ask(struct decode *d, struct ahead_token *e, struct err *err)
{
    int rc = d->cloud->ask(d->cloud->arg, session_ids(d->session), e->at, e->ways[e->way].tokens,
                           &e->call, err);
    d->stats->calls += rc == OK;
    d->ahead.out += rc == OK;
    return rc;
}

int decode_begin_turn(struct decode *d, struct ahead_token *e)
{
    size_t way = 0, asked = e->ways[e->way].tokens;
    e->met = true;
    if (d->cloud)
        decode_find_ways(d, e); /* again: the server may have been unknown before */
    if (asked > e->ways[0].tokens)
        asked = e->ways[0].tokens; /* the server gives no more */
    uint64_t clock = os_now_ns();
    enum origin from = decode_ask_known(d, e->at, &e->answer);
    e->answered = from != ORIGIN_NONE;
    d->stats->cloud_ms += decode_lap(&clock); /* a reply on its way may bring it */
    if (e->answered) {
        d->stats->memo_hits += from == ORIGIN_MEMO;
        d->stats->store_hits += from == ORIGIN_STORE;
    } else if (!d->cloud) {
        e->gate = GATE_NO_CLOUD;
        err_set(&d->fault, ERR_NET, "there is no cloud");
    } else {
        e->gate = gate_decide(d->gate, e->ways, e->held, &way, &d->fault);
        if (e->call && e->gate == GATE_OPEN && e->ways[way].tokens != asked)
            ahead_drop(&d->ahead, e); /* a limit has come closer than predicted */
        e->way = way;
        if (e->gate == GATE_OPEN)
            return e->call ? OK : decode_ask(d, e, d->err);
        gate_done(d->gate, e->gate, session_ids(d->session), &e->ways[0], &d->fault);
    }
    ahead_drop(&d->ahead, e);
    return OK;
}

int decode_await_answer(struct decode *d, struct ahead_token *e)
{
    uint64_t clock = os_now_ns();
    int rc = d->cloud->take(e->call, &e->answer, &d->fault);
    d->stats->cloud_ms += decode_lap(&clock);
    if (rc == OK && e->answer >= d->size) {
        rc = err_set(&d->fault, ERR_NET, "cloud: token id: expected below %zu, found %u", d->size,
                     (unsigned)e->answer);
        ahead_drop(&d->ahead, e); /* the memo must not keep it */
    }
    if (rc != OK && rc != ERR_NET && rc != ERR_REMOTE && rc != ERR_TEXT)
        return err_set(d->err, rc, "%s", d->fault.msg);
    e->answered = rc == OK;
    e->gate = rc == OK           ? GATE_OPEN
              : rc == ERR_REMOTE ? GATE_REFUSED
              : rc == ERR_TEXT   ? GATE_UNFIT
                                 : GATE_FAULT;
    struct caps_call *way = &e->ways[e->way];
    size_t most = d->cloud->tokens(d->cloud->arg);
    if (rc == OK && way->tokens > most)
        way->tokens = most; /* the server, unknown when it was asked, gives no more */
    gate_done(d->gate, e->gate, session_ids(d->session), way, &d->fault);
    d->stats->committed += e->call && rc == OK;
    d->stats->failed += e->call && rc != OK;
    ahead_commit(&d->ahead, e);
    return OK;
}

int decode_ask_first(struct decode *d, struct ahead_token *e)
{
    int rc = decode_begin_turn(d, e);
    if (rc == OK && e->call)
        rc = decode_await_answer(d, e);
    if (rc != OK)
        return rc;
    if (e->answered && e->answer == e->t.edge_id)
        e->t.score = 1;
    e->routed = e->t.score < d->o->threshold;
    e->answered = e->answered && e->routed;
    return OK;
}

/* In step this is always false, as there is nothing to do meanwhile. */
bool decode_is_coming(const struct decode *d, const struct ahead_token *e)
{
    const struct cloud_port *c = d->cloud;
    uint32_t id;
    return c && d->o->ahead && c->peek(c->arg, session_ids(d->session), e->at, &id) == CLOUD_COMING;
}

bool decode_has_room(const struct decode *d)
{
    const struct gate *g = d->gate;
    const struct ahead_token *first = ahead_at(&d->ahead, 0);
    /* Without a call of its own, the oldest token waits for a committed reply, which counts,
     * too. */
    size_t out = d->ahead.out + (first->routed && !first->call);
    return out < d->o->ahead &&
           (!g->max_wasted || g->wasted + d->ahead.wasted + out <= g->max_wasted);
}

bool decode_expects(const struct decode *d, struct ahead_token *e)
{
    struct gate_ahead a;
    gate_ahead_begin(&a, d->gate);
    for (size_t i = 0; i < d->ahead.n; i++) {
        const struct ahead_token *b = ahead_at(&d->ahead, i);
        if (b->routed && !b->known && !b->covered)
            gate_ahead_add(&a, d->gate, b->call ? &b->ways[b->way] : NULL);
    }
    return gate_expects(d->gate, e->ways, e->held, &a, &e->way);
}

/* True when a call in flight for an earlier token also requests this one. */
static bool decode_ask_covered(const struct decode *d, const struct ahead_token *e)
{
    for (size_t i = 0; i < d->ahead.n; i++) {
        const struct ahead_token *b = ahead_at(&d->ahead, i);
        if (b->call && e->at - b->at < b->ways[b->way].tokens)
            return true;
    }
    return false;
}

void decode_look_up(const struct decode *d, struct ahead_token *e, uint32_t *id)
{
    const struct cloud_port *c = d->cloud;
    enum cloud_sight sight = c->peek(c->arg, session_ids(d->session), e->at, id);
    e->known = sight == CLOUD_HERE && *id < d->size;
    e->covered = sight == CLOUD_COMING || decode_ask_covered(d, e);
}
