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
    size_t back = session_length(session) - n, answer = s->text.answer ? s->text.answer : s->text.n;
    const struct router_token t = { .text = { s->text.tok, session_ids(session), n, answer },
                                    .logits = logits,
                                    .hidden = session_hidden(session, TAP_FINAL, back),
                                    .size = s->size,
                                    .id = row->id,
                                    .embedding = model_embedding(session_model(session)) };
    router_look(r, row->extra, &t);
}

/* Return the length of the prefix before the token whose score is that of the token after the first
 * `at` ids, itself or an earlier one. */
static size_t step_leader(const struct step *s, size_t at)
{
    return s->way->leader ? s->way->leader(s, at) : at;
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
    *score = s->its_way.lead.score;
    return leader < s->text.n + s->stats->tokens;
}

bool step_score_ids(const struct step *s, size_t at, float *score)
{
    size_t leader = step_leader(s, at);
    if (s->way->score && s->way->score(s, at, score))
        return true;
    return leader < at && step_led(s, leader, score);
}

bool step_writes(const struct step *s, size_t at)
{
    return s->way->writes && s->way->writes(s, at);
}

bool step_routes(const struct step *s, float score, size_t at)
{
    const struct decode_options *o = s->o;
    if (score < o->threshold || step_writes(s, at))
        return true;
    return o->tie > 0 && !(score < o->threshold) && !(score > o->threshold) &&
           policy_draw_tie(o->seed, step_leader(s, at)) < o->tie;
}

bool step_confirms(const struct step *s, const struct ahead_token *e)
{
    return s->way->confirms && s->way->confirms(s, e);
}

bool step_stands(struct step *s, struct ahead_token *e)
{
    if (s->way->takes_back && s->way->takes_back(s, e))
        return false;
    if (e->met || isnan(e->t.score))
        return true;
    return step_routes(s, e->t.score, e->at) == e->routed;
}

void step_judged(struct step *s, const struct ahead_token *e, const struct decode_token *t)
{
    if (s->way->judged)
        s->way->judged(s, e, t);
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
