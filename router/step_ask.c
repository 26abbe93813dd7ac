/* step_ask.c - the loop's dealings with the cloud: what is known, how a token is requested, and
 * what the answer was. */
#include "kernels/sys/os.h"
#include "router/cloud_port.h"
#include "router/step_internal.h"

/* Return the ids of the text, and those of a draft after them. */
static const uint32_t *step_ask_ids(const struct step *s)
{
    return session_ids(s->text.session);
}

/* Look the token up without a call. */
static enum origin step_ask_known(const struct step *s, size_t n, uint32_t *id)
{
    const struct cloud_port *c = s->cloud;
    enum origin from = c ? c->known(c->arg, step_ask_ids(s), n, id) : ORIGIN_NONE;
    return from != ORIGIN_NONE && *id < s->size ? from : ORIGIN_NONE;
}

/* Bodies are measured only when a limit counts them. */
void step_find_ways(struct step *s, struct ahead_token *e)
{
    const struct cloud_port *c = s->cloud;
    for (size_t i = 0; i < 2; i++) {
        struct caps_call *w = &e->ways[i];
        size_t tokens = i ? 1 : c->tokens(c->arg);
        if (w->tokens == tokens && w->bytes)
            continue; /* done before, and nothing has changed */
        *w = (struct caps_call){ .n = e->at, .tokens = tokens };
        if (i && e->ways[0].tokens == 1)
            *w = e->ways[0];
        else if (gate_counts_bytes(s->gate)) /* waits for a server that is not known yet */
            w->bytes = c->bytes(c->arg, step_ask_ids(s), e->at, tokens);
    }
}

int step_ask(struct step *s, struct ahead_token *e, struct err *err)
{
    size_t tokens = e->ways[e->way].tokens;
    e->asked_ns = os_now_ns(); /* the thread of the network may go on with it before this one */
    int rc = s->cloud->ask(s->cloud->arg, step_ask_ids(s), e->at, tokens, &s->tally, &e->call, err);
    if (rc != OK) {
        e->call = NULL;
        return rc;
    }
    s->stats->calls++;
    ahead_asked(&s->ahead);
    step_tell(s, DECODE_ASKED, e->at, tokens, 0, GATE_OPEN);
    return OK;
}

/* Decide whether the text's own patterns or its limit keep the cloud's token out. They come before
 * what is known without a call, which depends on what other texts have asked. */
static enum gate_reason step_own_rules(struct step *s, const struct ahead_token *e)
{
    uint64_t limit = s->o->cloud_limit;
    if (e->own) {
        err_set(&s->fault, OK, "the text holds a private span");
        return GATE_PRIVATE;
    }
    if (!limit || s->stats->cloud + 1 < limit)
        return GATE_OPEN;
    err_set(&s->fault, OK, "the limit on cloud tokens of this text is reached");
    return GATE_CAPPED;
}

int step_begin_turn(struct step *s, struct ahead_token *e)
{
    size_t way = 0, asked = e->ways[e->way].tokens;
    e->met = true;
    if (s->cloud)
        step_find_ways(s, e); /* again: the server may have been unknown before */
    if (asked > e->ways[0].tokens)
        asked = e->ways[0].tokens; /* the server gives no more */
    enum gate_reason own = s->cloud ? step_own_rules(s, e) : GATE_OPEN;
    enum origin from = own == GATE_OPEN ? step_ask_known(s, e->at, &e->answer) : ORIGIN_NONE;
    e->answered = from != ORIGIN_NONE;
    if (own != GATE_OPEN) {
        e->gate = own;
    } else if (e->answered) {
        s->stats->memo_hits += from == ORIGIN_MEMO;
        s->stats->store_hits += from == ORIGIN_STORE;
    } else if (!s->cloud) {
        e->gate = GATE_NO_CLOUD;
        err_set(&s->fault, ERR_NET, "there is no cloud");
    } else {
        e->gate = gate_decide(s->gate, &s->its, e->ways, e->held, &way, &s->fault);
        if (e->call && e->gate == GATE_OPEN && e->ways[way].tokens != asked)
            ahead_drop(&s->ahead, e); /* a limit has come closer than predicted */
        e->way = way;
        if (e->gate == GATE_OPEN)
            return e->call ? OK : step_ask(s, e, &s->err);
        gate_held(s->gate, e->gate);
    }
    ahead_drop(&s->ahead, e);
    return OK;
}

int step_take_answer(struct step *s, struct ahead_token *e)
{
    int rc = s->cloud->take(e->call, &e->answer, &s->fault);
    if (s->cloud->moved)
        s->moved = s->cloud->moved(e->call);
    if (rc == OK && e->answer >= s->size) {
        rc = err_set(&s->fault, ERR_NET, "cloud: token id: expected below %zu, found %u", s->size,
                     (unsigned)e->answer);
        ahead_reject(&s->ahead, e); /* the memo must not keep it */
    }
    if (rc != OK && rc != ERR_NET && rc != ERR_REMOTE && rc != ERR_TEXT)
        return err_set(&s->err, rc, "%s", s->fault.msg);
    e->answered = e->called = rc == OK;
    e->gate = rc == OK           ? GATE_OPEN
              : rc == ERR_REMOTE ? GATE_REFUSED
              : rc == ERR_TEXT   ? GATE_UNFIT
                                 : GATE_FAULT;
    struct caps_call *way = &e->ways[e->way];
    size_t most = s->cloud->tokens(s->cloud->arg);
    if (rc == OK && way->tokens > most)
        way->tokens = most; /* the server, unknown when it was asked, gives no more */
    gate_done(s->gate, &s->its, e->gate, step_ask_ids(s), way, &s->fault);
    s->stats->committed += rc == OK;
    s->stats->failed += rc != OK;
    ahead_commit(&s->ahead, e);
    step_tell(s, DECODE_ANSWERED, e->at, way->tokens, e->asked_ns, e->gate);
    return OK;
}

int step_ask_first(struct step *s, struct ahead_token *e, bool wait)
{
    int rc = OK;
    if (!e->met && !wait && step_must_wait(s, e)) {
        s->want = STEP_CLOUD;
        return OK;
    }
    if (!e->met)
        rc = step_begin_turn(s, e);
    if (rc == OK && e->call && !wait && !s->cloud->done(e->call)) {
        s->want = STEP_CLOUD;
        return OK;
    }
    if (rc == OK && e->call)
        rc = step_take_answer(s, e);
    if (rc != OK)
        return rc;
    if (e->answered && e->answer == e->t.edge_id)
        e->t.score = 1;
    e->routed = e->t.score < step_threshold(s, e->at);
    e->answered = e->answered && e->routed;
    return OK;
}

bool step_must_wait(const struct step *s, const struct ahead_token *e)
{
    const struct cloud_port *c = s->cloud;
    uint32_t id;
    if (!c)
        return false;
    return c->peek(c->arg, step_ask_ids(s), e->at, &id) == CLOUD_COMING ||
           (gate_counts_bytes(s->gate) && !c->settled(c->arg));
}

bool step_has_room(const struct step *s)
{
    const struct gate *g = s->gate;
    const struct ahead_token *first = ahead_at(&s->ahead, 0);
    /* Without a call of its own, the oldest token waits for a committed reply, which counts,
     * too. */
    size_t more = first->routed && !first->call;
    return s->ahead.out + more < s->o->ahead &&
           (!g->max_wasted || g->wasted + g->out + more <= g->max_wasted);
}

bool step_expects(const struct step *s, struct ahead_token *e)
{
    struct gate_ahead a;
    gate_ahead_begin(&a, s->gate, &s->its);
    for (size_t i = 0; i < s->ahead.n; i++) {
        const struct ahead_token *b = ahead_at(&s->ahead, i);
        if (b->routed && !b->known && !b->covered)
            gate_ahead_add(&a, s->gate, b->call ? &b->ways[b->way] : NULL);
    }
    return gate_expects(s->gate, &s->its, e->ways, e->held, &a, &e->way);
}

/* True when a call in flight for an earlier token also requests this one. */
static bool step_ask_covered(const struct step *s, const struct ahead_token *e)
{
    for (size_t i = 0; i < s->ahead.n; i++) {
        const struct ahead_token *b = ahead_at(&s->ahead, i);
        if (b->call && e->at - b->at < b->ways[b->way].tokens)
            return true;
    }
    return false;
}

void step_look_up(const struct step *s, struct ahead_token *e, uint32_t *id)
{
    const struct cloud_port *c = s->cloud;
    enum cloud_sight sight = c->peek(c->arg, step_ask_ids(s), e->at, id);
    e->known = sight == CLOUD_HERE && *id < s->size;
    e->covered = sight == CLOUD_COMING || step_ask_covered(s, e);
}
