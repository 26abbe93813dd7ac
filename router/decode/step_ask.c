/* step_ask.c - the loop's dealings with the cloud: what is known, how a token is requested, and
 * what the answer was; at the end, the audit: what is asked once the text has ended. */
#include <stdlib.h>

#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "router/cloud_port.h"
#include "router/decode/step_internal.h"

/* Look the token up without a call. */
static enum origin step_ask_known(const struct step *s, size_t n, uint32_t *id)
{
    const struct cloud_port *c = s->cloud;
    enum origin from = c ? c->known(c->arg, step_text_ids(s), n, id) : ORIGIN_NONE;
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
            w->bytes = c->bytes(c->arg, step_text_ids(s), e->at, tokens);
    }
}

int step_ask(struct step *s, struct ahead_token *e, struct err *err)
{
    size_t tokens = e->ways[e->way].tokens;
    e->asked_ns = os_now_ns(); /* the thread of the network may go on with it before this one */
    int rc =
        s->cloud->ask(s->cloud->arg, step_text_ids(s), e->at, tokens, &s->tally, &e->call, err);
    if (rc != OK) {
        e->call = NULL;
        return rc;
    }
    s->stats->calls++;
    ahead_asked(&s->ahead);
    step_tell(s, DECODE_ASKED, e->at, tokens, 0, GATE_OPEN);
    return OK;
}

/* True when the token after the first `at` ids may be the cloud's, with so many before it. */
static bool step_may_route(const struct step *s, size_t cloud, size_t at)
{
    const double spare = 2, share = (double)s->o->max_routed;
    return !(share > 0) || (double)(cloud + 1) <= share * (double)(at - s->text.n + 1) + spare;
}

/* Decide whether the text's own patterns or limits keep the cloud's token out. They come before
 * what is known without a call, which depends on what other texts have asked. */
static enum gate_reason step_own_rules(struct step *s, const struct ahead_token *e)
{
    uint64_t limit = s->o->cloud_limit;
    if (!step_may_route(s, s->stats->cloud, e->at)) {
        err_set(&s->fault, OK, "max_routed: more than %.3g %% and 2 tokens of this text so far",
                100 * (double)s->o->max_routed);
        return GATE_CAPPED;
    }
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

/* Take the answer to a token whose turn it is. */
static int step_hear(struct step *s, struct ahead_token *e)
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
    return OK;
}

int step_take_answer(struct step *s, struct ahead_token *e)
{
    int rc = step_hear(s, e);
    if (rc != OK)
        return rc;
    gate_done(s->gate, &s->its, e->gate, step_text_ids(s), &e->ways[e->way], &s->fault);
    ahead_commit(&s->ahead, e);
    s->stats->committed += e->answered;
    s->stats->failed += !e->answered;
    step_tell(s, DECODE_ANSWERED, e->at, e->ways[e->way].tokens, e->asked_ns, e->gate);
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
    e->routed = step_routes(s, e->t.score, e->at);
    e->answered = e->answered && e->routed;
    return OK;
}

bool step_must_wait(const struct step *s, const struct ahead_token *e)
{
    const struct cloud_port *c = s->cloud;
    uint32_t id;
    if (!c)
        return false;
    return c->peek(c->arg, step_text_ids(s), e->at, &id) == CLOUD_COMING ||
           (gate_counts_bytes(s->gate) && !c->settled(c->arg));
}

bool step_has_room(const struct step *s)
{
    const struct ahead_token *first = ahead_at(&s->ahead, 0);
    /* Without a call of its own, the oldest token waits for a committed reply, which counts,
     * too. */
    size_t more = first->routed && !first->call;
    return s->ahead.out + more < s->o->ahead;
}

bool step_expects(const struct step *s, struct ahead_token *e)
{
    struct gate_ahead a;
    size_t cloud = s->stats->cloud;
    gate_ahead_begin(&a, s->gate, &s->its);
    for (size_t i = 0; i < s->ahead.n; i++) {
        const struct ahead_token *b = ahead_at(&s->ahead, i);
        cloud += b->routed;
        if (b->routed && !b->known && !b->covered)
            gate_ahead_add(&a, s->gate, b->call ? &b->ways[b->way] : NULL);
    }
    return step_may_route(s, cloud, e->at) &&
           gate_expects(s->gate, &s->its, e->ways, e->held, &a, &e->way);
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
    enum cloud_sight sight = c->peek(c->arg, step_text_ids(s), e->at, id);
    e->known = sight == CLOUD_HERE && *id < s->size;
    e->covered = sight == CLOUD_COMING || step_ask_covered(s, e);
}

/* The audit. Its calls pass the gate one by one in the order of the text, as those of the text do.
 */

/* A key of the random numbers, other than those of the sampler and of policy random. */
static const uint64_t AUDIT_KEY = 0x6175646974;

void step_audit_open(struct step *s)
{
    s->audit.key = rand_u64(s->o->seed, AUDIT_KEY);
    for (size_t i = 0; s->o->audit > 0 && i < s->text.n; i++)
        s->audit.key = rand_u64(s->audit.key, s->text.prompt[i]);
}

void step_audit_close(struct step *s)
{
    struct decode_audit *a = &s->stats->audit;
    a->wasted = (size_t)s->ahead.wasted - s->stats->wasted;
    a->cost = s->its.cost - s->audit.cost;
    free(s->audit.at);
}

int step_audit_draw(struct step *s, const struct decode_token *t, size_t at, bool called)
{
    struct step_audit *a = &s->audit;
    bool asks = t->source == SOURCE_EDGE || (t->source == SOURCE_CLOUD && called);
    if (!asks || !(rand_unit(a->key, at) < s->o->audit))
        return OK;
    if (a->n == a->room) {
        size_t bytes, room = a->room ? 2 * a->room : 16;
        bool fits = size_mul(&bytes, room, sizeof(*a->at));
        struct step_audited *more = fits ? realloc(a->at, bytes) : NULL;
        if (!more)
            return err_set(&s->err, ERR_NOMEM, "decode: out of memory");
        a->at = more;
        a->room = room;
    }
    a->at[a->n++] = (struct step_audited){ at, t->id, t->source == SOURCE_CLOUD };
    return OK;
}

void step_audit_begin(struct step *s)
{
    struct decode_stats *stats = s->stats;
    if (s->audit.begun)
        return;
    s->audit.begun = true;
    ahead_drop(&s->ahead, &s->next);
    ahead_cut(&s->ahead, 0);
    stats->wasted = (size_t)s->ahead.wasted;
    stats->total_ms = step_lap(&s->begun);
    s->audit.cost = s->its.cost;
}

static int step_audit_ask(struct step *s, struct ahead_token *e, struct err *err)
{
    const struct cloud_port *c = s->cloud;
    const uint32_t *ids = step_text_ids(s);
    int rc = c->audit(c->arg, ids, e->at, &s->tally, &e->call, err);
    if (rc != OK) {
        e->call = NULL;
        return rc;
    }
    s->stats->audit.calls++;
    ahead_asked(&s->ahead);
    return OK;
}

/* Measure the body of a request, if a limit counts it and the server is known. */
static void step_audit_measure(const struct step *s, struct ahead_token *e)
{
    const struct cloud_port *c = s->cloud;
    if (gate_counts_bytes(s->gate))
        e->ways[0].bytes = c->bytes(c->arg, step_text_ids(s), e->at, 1);
    e->ways[1] = e->ways[0];
}

/* Append the next token that was drawn to the queue; one that is not the first is requested early.
 * False: there is none, or it must wait. */
static bool step_audit_push(struct step *s)
{
    struct step_audit *a = &s->audit;
    bool early = s->ahead.n;
    if (a->next == a->n || (early && (s->ahead.n == s->ahead.cap || !step_has_room(s))))
        return false;
    const struct step_audited *d = &a->at[a->next];
    const uint32_t *ids = step_text_ids(s);
    struct ahead_token e = { .t.id = d->id, .at = d->at, .routed = true };
    e.own = private_holds(s->o->spans, &s->spans, ids, d->at);
    e.held = e.own || gate_holds(s->gate, &s->its, ids, d->at);
    e.ways[0] = (struct caps_call){ .n = d->at, .tokens = 1 };
    step_audit_measure(s, &e);
    e.t.source = d->routed ? SOURCE_CLOUD : SOURCE_EDGE;
    if (early &&
        (!gate_audits(s->gate) || !step_expects(s, &e) || step_audit_ask(s, &e, NULL) != OK))
        return false; /* when its turn comes, an error will be reported */
    ahead_push(&s->ahead, &e);
    a->next++;
    return true;
}

/* Begin the turn of a token: afterwards it is requested, or the gate has said why not. */
static int step_audit_turn(struct step *s, struct ahead_token *e)
{
    e->met = true;
    step_audit_measure(s, e); /* again: the server may have been unknown before */
    e->gate =
        e->own ? GATE_PRIVATE : gate_decide_audit(s->gate, &s->its, e->ways, e->held, &s->fault);
    if (e->gate == GATE_OPEN)
        return e->call ? OK : step_audit_ask(s, e, &s->err);
    ahead_drop(&s->ahead, e);
    return OK;
}

/* Take an answer or a fault, and count what it says of its token. */
static int step_audit_hear(struct step *s, struct ahead_token *e)
{
    struct decode_audit *a = &s->stats->audit;
    bool routed = e->t.source == SOURCE_CLOUD;
    int rc = step_hear(s, e);
    if (rc != OK)
        return rc;
    gate_audited(s->gate, &s->its, e->gate, step_text_ids(s), &e->ways[e->way]);
    ahead_commit(&s->ahead, e);
    a->failed += !e->answered;
    *(routed ? &a->routed : &a->kept) += e->answered;
    *(routed ? &a->flipped : &a->missed) += e->answered && e->answer != e->t.id;
    return OK;
}

int step_audit(struct step *s, bool wait)
{
    step_audit_begin(s);
    s->stats->audit.drawn = s->audit.n;
    while (s->cloud && (s->ahead.n || s->audit.next < s->audit.n)) {
        if (s->o->stop && *s->o->stop)
            return err_set(&s->err, ERR_STOP, "interrupted");
        if (!wait && gate_counts_bytes(s->gate) && !s->cloud->settled(s->cloud->arg)) {
            s->want = STEP_CLOUD;
            return OK;
        }
        if (!s->ahead.n)
            step_audit_push(s);
        struct ahead_token *e = ahead_at(&s->ahead, 0);
        int rc = e->met ? OK : step_audit_turn(s, e);
        while (rc == OK && e->call && step_audit_push(s))
            ;
        if (rc == OK && e->call && !wait && !s->cloud->done(e->call)) {
            s->want = STEP_CLOUD;
            return OK;
        }
        wait = wait && !e->call;
        if (rc == OK && e->call)
            rc = step_audit_hear(s, e);
        if (rc != OK)
            return rc;
        ahead_pop(&s->ahead);
    }
    return OK;
}
