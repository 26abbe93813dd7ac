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
    const struct router_token t = { .text = { s->text.tok, s->ids, n, answer },
                                    .logits = logits,
                                    .hidden = session_hidden(session, TAP_FINAL, back),
                                    .size = s->size,
                                    .id = row->id,
                                    .embedding = model_embedding(session_model(session)) };
    router_look(r, row->extra, &t);
}

bool step_score_ids(const struct step *s, size_t at, float *score)
{
    const uint32_t *ids = s->ids;
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
