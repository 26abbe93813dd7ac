/* step_write.c - what a turn of the loop does: score, ask or guess, decide, show. The loop is
 * step_next in step.c; it decides what can be decided (step_decide_ready), then writes on
 * (step_advance). */
#include <math.h>

#include "kernels/sys/os.h"
#include "router/cloud_port.h"
#include "router/decode/step_internal.h"

/* Score the token, and say in e->routed whether it goes to the cloud. Only policies that need the
 * head read it. For the oracle, the score is p1 until the cloud has answered. False: something is
 * wanted first. */
static bool step_route(struct step *s, struct ahead_token *e)
{
    const struct decode_options *o = s->o;
    struct decode_token *t = &e->t;
    const struct view_row *row = NULL;
    uint64_t clock = os_now_ns();
    if (o->policy == POLICY_NEVER || o->policy == POLICY_ALWAYS) {
        t->score = NAN;
        e->routed = o->policy == POLICY_ALWAYS;
        return true;
    }
    if (!step_score_ids(s, e->at, &t->score)) {
        if (policy_reads_logits(o->policy) && !step_pick(s, e->at, t))
            return false;
        if (!(row = step_score(s, e->at)))
            return false;
    }
    if (row)
        t->score = row->score;
    if (row && o->policy == POLICY_PRICE) {
        e->wrong = 1 - row->score;
        t->score = step_price(s, e->wrong, e->at);
    }
    s->stats->router_ms += step_lap(&clock);
    e->routed = step_routes(s, t->score, e->at);
    return true;
}

/* Append the newest token; generation continues after it. */
static void step_written(struct step *s, struct ahead_token *e, uint32_t id)
{
    e->t.id = s->last = id;
    e->written = true;
    s->halted = step_is_last(s, id) || step_stopped(s, &s->tail, id);
}

/* Take back what was written from the oldest token on. */
static void step_roll_back(struct step *s, struct ahead_token *e)
{
    size_t n = s->ahead.n - !e->written;
    ahead_cut(&s->ahead, 1);
    s->view.length = e->at;
    s->scored = false;
    if (n)
        step_tell(s, DECODE_ROLLED_BACK, e->at, n, 0, GATE_OPEN);
    e->written = false;
}

/* Find the local model's own token for the oldest one. A cached answer may have been used and text
 * have been written after it. False: the head is wanted. */
static bool step_pick_oldest(struct step *s, struct ahead_token *e)
{
    if (e->t.has_edge)
        return true;
    if (s->view.length > e->at)
        step_roll_back(s, e);
    return step_pick(s, e->at, &e->t);
}

/* Take the local model's own token, as there is no answer. */
static int step_fall_back(struct step *s, struct ahead_token *e)
{
    bool limit = e->gate == GATE_PRIVATE || e->gate == GATE_CAPPED;
    int code = e->gate == GATE_REFUSED ? ERR_REMOTE : e->gate == GATE_UNFIT ? ERR_TEXT : ERR_NET;
    if (s->o->cloud_required && !limit)
        return err_set(&s->err, code, "%s", s->fault.msg);
    if (!step_pick_oldest(s, e))
        return OK;
    e->t.source = SOURCE_FALLBACK;
    e->t.reason = e->gate;
    e->t.fault = s->fault.msg;
    s->stats->fallback++;
    s->stats->reasons[e->gate]++;
    return OK;
}

/* Show the token, and see whether the text ends with it. */
static void step_show(struct step *s, struct decode_token *t, size_t at)
{
    struct decode_stats *stats = s->stats;
    const struct decode_options *o = s->o;
    t->pos = stats->tokens;
    t->eog = step_is_last(s, t->id);
    t->ms = step_lap(&s->clock);
    if (stats->tokens++ == 0)
        stats->ttft_ms = t->ms;
    stats->cloud += t->source == SOURCE_CLOUD;
    bool goes_on = !o->emit || o->emit(o->arg, t);
    s->abandoned = !goes_on;
    s->end = at;
    s->ended = true;
    stats->finish = t->eog ? FINISH_EOS : FINISH_STOP;
    if (t->eog || step_stopped(s, &s->stops, t->id) || !goes_on)
        return;
    stats->finish = FINISH_LENGTH;
    s->ended = stats->tokens >= o->max_tokens || at == session_context(s->text.session);
}

/* Make the oldest token part of the text; roll back the tokens after it if they follow a different
 * token. */
static int step_decide(struct step *s, struct ahead_token *e)
{
    int rc = OK;
    /* Ahead, a token that took a call shows the guess. One that was known ahead of its turn, and no
     * longer when that came, has none yet. */
    bool guessed = s->o->edges || (s->o->ahead && e->called);
    if (e->routed && !e->answered)
        rc = step_fall_back(s, e);
    else if (e->routed && guessed)
        step_pick_oldest(s, e);
    if (rc != OK || s->want)
        return rc;
    struct decode_token t = e->t;
    if (e->answered)
        t.source = SOURCE_CLOUD;
    /* A guess made while another call's reply was about to bring the token was made by chance. */
    if (e->answered && !e->called && !policy_reads_logits(s->o->policy) && !s->o->edges)
        t.has_edge = false;
    if (e->routed)
        t.id = e->answered ? e->answer : t.edge_id;
    bool back = !e->written || t.id != e->t.id;
    if (back) {
        step_roll_back(s, e);
        s->last = t.id;
    }
    size_t at = e->at;
    rc = step_audit_draw(s, &t, at, e->called);
    if (rc != OK)
        return rc;
    step_judged(s, e, &t);
    ahead_pop(&s->ahead);
    step_show(s, &t, at);
    if (back)
        s->tail = s->stops;
    return OK;
}

int step_decide_ready(struct step *s, bool wait)
{
    while (s->ahead.n && !s->ended) {
        struct ahead_token *e = ahead_at(&s->ahead, 0);
        if (!step_stands(s, e)) { /* by what is decided now: written anew */
            step_roll_back(s, e);
            ahead_cut(&s->ahead, 0);
            s->tail = s->stops;
            return OK;
        }
        bool turn = e->routed && !e->met, comes = turn && step_must_wait(s, e);
        if (comes && !wait)
            return OK;
        wait = wait && !comes;
        int rc = turn ? step_begin_turn(s, e) : OK;
        if (rc == OK && e->call) {
            /* Ahead, the guess comes before the answer, however soon that is there. */
            if (!wait && ((s->o->ahead && !e->written) || !s->cloud->done(e->call)))
                return OK;
            wait = false;
            rc = step_take_answer(s, e);
        }
        if (rc == OK)
            rc = step_decide(s, e);
        if (rc != OK || s->want)
            return rc;
    }
    return OK;
}

int step_score_next(struct step *s, bool wait)
{
    struct ahead_token *e = &s->next;
    bool oracle = s->o->policy == POLICY_ORACLE;
    if (!e->met) {
        *e = (struct ahead_token){ .t.source = SOURCE_EDGE, .at = s->view.length };
        if (!step_route(s, e))
            return OK;
        if ((e->routed || oracle) && s->cloud) {
            if (!wait && gate_counts_bytes(s->gate) && !s->cloud->settled(s->cloud->arg)) {
                s->want = STEP_CLOUD;
                return OK;
            }
            const uint32_t *ids = step_text_ids(s);
            e->own = private_holds(s->o->spans, &s->spans, ids, e->at);
            e->held = e->own || gate_holds(s->gate, &s->its, ids, e->at);
            step_find_ways(s, e);
        }
    }
    int rc = oracle ? step_ask_first(s, e, wait) : OK;
    s->scored = rc == OK && !s->want;
    return rc;
}

/* Append the next token to the queue. A routed token that follows undecided tokens is requested
 * early. */
static int step_enqueue_next(struct step *s)
{
    struct ahead_token *e = &s->next;
    uint32_t id = 0;
    bool early = e->routed && s->ahead.n && s->cloud;
    if (early)
        step_look_up(s, e, &id);
    if (early && !e->known && !e->covered && step_expects(s, e)) {
        if (!step_has_room(s)) {
            s->want = STEP_CLOUD;
            return OK;
        }
        step_ask(s, e, NULL); /* when its turn comes, an error will be reported */
    }
    if (!e->routed) {
        if (!e->t.has_edge && !step_pick(s, e->at, &e->t))
            return OK;
        id = e->t.edge_id;
    }
    ahead_push(&s->ahead, e);
    if (!e->routed || e->known)
        step_written(s, ahead_last(&s->ahead), id);
    s->scored = false;
    *e = (struct ahead_token){ .met = false };
    return OK;
}

int step_advance(struct step *s)
{
    struct ahead_token *last = ahead_last(&s->ahead);
    const struct decode_options *o = s->o;
    size_t all = s->stats->tokens + s->ahead.n;
    if (o->stop && *o->stop)
        return err_set(&s->err, ERR_STOP, "interrupted");
    if (last && !last->written && o->ahead) {
        if (last->t.has_edge || step_pick(s, last->at, &last->t))
            step_written(s, last, last->t.edge_id);
        return OK;
    }
    if (last && (!last->written || s->halted || all >= o->max_tokens ||
                 last->at == session_context(s->text.session))) {
        s->want = STEP_CLOUD;
        return OK;
    }
    if (s->view.length < s->text.n + all) {
        step_append(s);
        return OK;
    }
    return s->scored ? step_enqueue_next(s) : step_score_next(s, false);
}
