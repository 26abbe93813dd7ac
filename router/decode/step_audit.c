/* step_audit.c - the audit: what is asked once the text has ended. Its calls pass the gate one by
 * one in the order of the text, as those of the text do. */
#include <stdlib.h>

#include "kernels/math.h"
#include "router/cloud_port.h"
#include "router/decode/step_internal.h"

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
    struct mizzle_audit *a = &s->stats->audit;
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

void step_give_up(struct step *s)
{
    const struct ahead_token *e = s->ahead.n ? ahead_at(&s->ahead, 0) : &s->next;
    gate_drop(s->gate, &s->its, e->call && (!s->cloud->sent || s->cloud->sent(e->call)));
    ahead_drop(&s->ahead, &s->next);
    ahead_cut(&s->ahead, 0);
}

void step_audit_begin(struct step *s)
{
    struct decode_stats *stats = s->stats;
    if (s->audit.begun)
        return;
    s->audit.begun = true;
    step_give_up(s);
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
    e.own = private_holds(s->o->patterns, &s->matches, ids, d->at);
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
    struct mizzle_audit *a = &s->stats->audit;
    bool routed = e->t.source == SOURCE_CLOUD;
    int rc = step_hear(s, e);
    if (rc != OK)
        return rc;
    gate_audited(s->gate, &s->its, e->gate, step_text_ids(s), &e->ways[e->way]);
    ahead_commit(&s->ahead, e);
    a->failed += !e->answered;
    *(routed ? &a->again : &a->kept) += e->answered;
    *(routed ? &a->flipped : &a->missed) += e->answered && e->answer != e->t.id;
    return OK;
}

/* Ask about the tokens drawn, as step_after. */
static int step_audit(struct step *s, bool wait)
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

int step_after(struct step *s, bool wait)
{
    const struct cloud_port *c = s->cloud;
    bool stopped = s->o->stop && *s->o->stop;
    int rc = s->rc;
    step_audit_begin(s);
    if (rc == OK && !s->abandoned && s->o->audit > 0)
        rc = step_audit(s, wait);
    if (rc == OK && !s->want && !stopped && c && c->quiet && !c->quiet(c->arg, &s->tally, wait))
        s->want = STEP_CLOUD;
    return rc;
}
