/* step_price.c - policy price in the loop: what a call costs depends on the calls before it. */
#include "router/step_internal.h"

float step_price(const struct step *s, const struct price_odds *odds, size_t at)
{
    size_t warm = s->warm;
    for (size_t i = s->ahead.n; i-- > 0;) {
        const struct ahead_token *b = ahead_at(&s->ahead, i);
        if (b->routed && b->at < at) { /* the cloud will have answered it */
            warm = b->at;
            break;
        }
    }
    struct price price = s->o->price;
    price.worth /= s->its.factor;
    return price_score(&price, odds, at, warm);
}

bool step_stands(const struct step *s, struct ahead_token *e)
{
    if (s->o->policy != POLICY_PRICE || e->met)
        return true;
    e->t.score = step_price(s, &e->odds, e->at);
    return (e->t.score < s->o->threshold) == e->routed;
}
