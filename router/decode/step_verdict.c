/* step_verdict.c - what a verdict depends on beside the token's own row: what was decided before
 * it. Ahead of the cloud that is not known yet, so a verdict is tentative until the token's turn.
 */
#include <math.h>

#include "model/model.h"
#include "router/decode/step_internal.h"
#include "router/policy.h"
#include "router/router.h"

void step_look(const struct step *s, struct view_row *row, size_t n, const float *logits)
{
    const struct router *r = s->text.router;
    const struct session *session = s->text.session;
    size_t back = session_length(session) - n;
    const struct router_token t = { .text = { s->text.tok, session_ids(session), n, s->text.n },
                                    .logits = logits,
                                    .hidden = session_hidden(session, router_tap(r), back),
                                    .size = s->size,
                                    .id = row->id,
                                    .embedding = model_embedding(session_model(session)) };
    router_look(r, row->extra, &t);
}

/* Return the length of the prefix before the token whose score is that of the token after the first
 * `at` ids, itself or an earlier one. */
static size_t step_leader(const struct step *s, size_t at)
{
    const uint32_t *ids = session_ids(s->text.session);
    if (s->o->policy == POLICY_QUERY)
        return s->text.n;
    if (s->o->policy == POLICY_STEP) {
        while (at > s->led && !policy_ends_step(s->text.tok, ids[at - 1]))
            at--;
        return at > s->led ? at : s->leader; /* what is decided stays */
    }
    return at;
}

bool step_leads(const struct step *s, size_t at)
{
    return step_leader(s, at) == at;
}

/* Find the score of an earlier token. False: it has none yet. */
static bool step_led(const struct step *s, size_t leader, float *score)
{
    for (size_t i = 0; i < s->ahead.n; i++) {
        const struct ahead_token *b = ahead_at(&s->ahead, i);
        if (b->at == leader) {
            *score = b->t.score;
            return true;
        }
    }
    *score = s->lead;
    return leader < s->text.n + s->stats->tokens;
}

/* True if the cloud writes the rest, from before the token after the first `at` ids on, given that
 * the calls for all tokens before it are answered. */
static bool step_taken(const struct step *s, size_t at)
{
    bool taken = s->stats->cloud > 0;
    for (size_t i = 0; i < s->ahead.n && !taken; i++) {
        const struct ahead_token *b = ahead_at(&s->ahead, i);
        taken = b->routed && b->at < at;
    }
    return taken;
}

bool step_score_ids(const struct step *s, size_t at, float *score)
{
    const struct decode_options *o = s->o;
    const uint32_t *ids = session_ids(s->text.session);
    size_t leader = step_leader(s, at);
    if (o->policy == POLICY_CONTEXT)
        *score = router_score_ids(s->text.router, ids, at);
    else if (o->policy == POLICY_RANDOM)
        *score = policy_score_random(o->seed, at);
    else if (o->policy == POLICY_POSITION)
        *score = policy_score_position(o->place, s->text.tok, ids + s->text.n, at - s->text.n);
    else if (o->policy == POLICY_TAKEOVER && step_taken(s, at))
        *score = 0;
    else
        return leader < at && step_led(s, leader, score);
    return true;
}

float step_price(const struct step *s, float wrong, size_t at)
{
    size_t warm = s->warm;
    for (size_t i = s->ahead.n; i-- > 0;) {
        const struct ahead_token *b = ahead_at(&s->ahead, i);
        if (b->routed && b->at < at) { /* the cloud will have answered it */
            warm = b->at;
            break;
        }
    }
    return price_score(&s->o->price, wrong, at, warm);
}

/* Return where the reach ends after a token of the cloud. */
static size_t step_reach_after(const struct step *s, size_t reach, size_t at)
{
    return at < reach ? reach : at + s->o->span.tokens;
}

/* Return where the reach ends for the token after the first `at` ids, if the calls for all tokens
 * before it are answered. */
static size_t step_reach(const struct step *s, size_t at)
{
    size_t reach = s->reach;
    for (size_t i = 0; i < s->ahead.n; i++) {
        const struct ahead_token *b = ahead_at(&s->ahead, i);
        if (b->at < at)
            reach = b->routed ? step_reach_after(s, reach, b->at) : 0;
    }
    return reach;
}

/* Return the score below which the token after the first `at` ids goes to the cloud, if the calls
 * for all tokens before it are answered. */
static float step_threshold(const struct step *s, size_t at)
{
    const struct decode_options *o = s->o;
    return o->span.threshold > o->threshold && at < step_reach(s, at) ? o->span.threshold
                                                                      : o->threshold;
}

bool step_routes(const struct step *s, float score, size_t at)
{
    const struct decode_options *o = s->o;
    if (score < step_threshold(s, at) || (o->policy == POLICY_TAKEOVER && step_taken(s, at)))
        return true;
    return o->tie > 0 && !(score < o->threshold) && !(score > o->threshold) &&
           policy_draw_tie(o->seed, step_leader(s, at)) < o->tie;
}

bool step_stands(struct step *s, struct ahead_token *e)
{
    if (step_take_call(s, e))
        return false;
    if (e->met || isnan(e->t.score))
        return true;
    if (s->o->policy == POLICY_PRICE)
        e->t.score = step_price(s, e->wrong, e->at);
    if (s->o->policy == POLICY_TAKEOVER && e->wrong > 0 && !step_taken(s, e->at))
        return false;
    return step_routes(s, e->t.score, e->at) == e->routed;
}

void step_judged(struct step *s, const struct ahead_token *e, struct decode_token *t)
{
    t->threshold = step_threshold(s, e->at);
    s->leader = step_leader(s, e->at);
    s->led = e->at;
    if (s->leader == e->at)
        s->lead = e->t.score;
    s->warm = e->answered ? e->at : s->warm;
    s->reach = e->answered ? step_reach_after(s, s->reach, e->at) : 0;
    step_way_judged(s, e, t);
}

bool step_keeps(struct step *s, const uint32_t *ids, size_t n, bool *own)
{
    bool holds = private_holds(s->o->patterns, &s->matches, ids, n);
    if (own)
        *own = holds;
    return holds || gate_holds(s->gate, &s->its, ids, n);
}

bool step_may_route(const struct step *s, size_t cloud, size_t at)
{
    const double spare = 2, share = (double)s->o->max_routed;
    return !(share > 0) || (double)(cloud + 1) <= share * (double)(at - s->text.n + 1) + spare;
}

bool step_has_room(const struct step *s)
{
    const struct ahead_token *first = ahead_at(&s->ahead, 0);
    /* Without a call of its own, the oldest token waits for a committed reply, which counts,
     * too. */
    size_t more = first->routed && !first->call, most = s->o->ahead;
    if (most && gate_limited(s->gate, &s->its))
        most = 1;
    return s->ahead.out + more < most;
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
