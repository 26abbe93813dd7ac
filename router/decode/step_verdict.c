/* step_verdict.c - who writes a token: the score of its prefix against the threshold, and then what
 * text and gate let through. */
#include <math.h>

#include "model/model.h"
#include "router/decode/step_internal.h"
#include "router/policy.h"
#include "router/router.h"

void step_look(const struct step *s, struct view_row *row, size_t n, const float *logits)
{
    const struct router *r = s->text.router;
    const struct session *session = s->text.session;
    size_t back = session_length(session) - n, answer = s->text.answer ? s->text.answer : s->text.n;
    const struct router_token t = { .text = { s->text.tok, session_ids(session), n, answer },
                                    .logits = logits,
                                    .hidden = session_hidden(session, TAP_FINAL, back),
                                    .size = s->size,
                                    .id = row->id,
                                    .embedding = model_embedding(session_model(session)) };
    router_look(r, row->extra, &t);
}

bool step_score_ids(const struct step *s, size_t at, float *score)
{
    const uint32_t *ids = session_ids(s->text.session);
    switch (s->o->policy) {
    case POLICY_CONTEXT:
        *score = router_score_ids(s->text.router, ids, at);
        return true;
    case POLICY_RANDOM:
        *score = policy_score_random(s->o->seed, at);
        return true;
    case POLICY_POSITION:
        *score = policy_score_position(s->o->place, s->text.tok, ids + s->text.n, at - s->text.n);
        return true;
    default:
        return false;
    }
}

bool step_routes(const struct step *s, float score, size_t at)
{
    const struct decode_options *o = s->o;
    if (score < o->threshold)
        return true;
    return o->tie > 0 && !(score > o->threshold) && policy_draw_tie(o->seed, at) < o->tie;
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
