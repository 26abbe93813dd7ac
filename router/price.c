#include "router/price.h"

#include "kernels/math.h"

/* The level falls and rises with steps of 1/i until i is PACE_SETTLED, and never rises by more than
 * PACE_STEP at once; PACE_MOST keeps the factor finite. */
enum { PACE_SETTLED = 25, PACE_STEP = 1, PACE_MOST = 64 };

void price_set(struct price *out, double worth, const struct caps_price *tokens, double seconds,
               double second)
{
    const double pico = 1e-12;
    *out = (struct price){ .worth = worth,
                           .call = !tokens->up && !tokens->cached && !tokens->down,
                           .up = (double)tokens->up * pico,
                           .cached = (double)tokens->cached * pico,
                           .down = (double)tokens->down * pico,
                           .wait = seconds * second };
}

float price_score(const struct price *p, const struct price_odds *odds, size_t n, size_t warm)
{
    double sent = (double)warm * p->cached + (double)(n - warm) * p->up;
    double cost = p->call + sent + p->down + (double)odds->differs * p->wait;
    double gain = p->worth * (double)odds->wrong;
    return gain > 0 ? (float)(cost / (cost + gain)) : 1;
}

double price_pace_factor(const struct price_pace *p)
{
    return p->answers ? exp_f64(p->level) : 1;
}

/* Return what an answer has spent under one cap, as a multiple of its target; 0 if there is no such
 * cap, or if nothing of it was left. */
static double price_pace_part(uint64_t limit, uint64_t before, uint64_t now, double answers)
{
    if (limit == UINT64_MAX || before >= limit)
        return 0;
    return (double)(now - before) * answers / (double)(limit - before);
}

void price_pace_ended(struct price_pace *p, const struct caps_limits *l,
                      const struct caps_count *now)
{
    const struct caps_count *before = &p->spent;
    if (!p->answers)
        return;
    double left = p->ended < p->answers ? (double)(p->answers - p->ended) : 1;
    const double parts[] = { price_pace_part(l->tokens, before->tokens, now->tokens, left),
                             price_pace_part(l->upload, before->upload, now->upload, left),
                             price_pace_part(l->budget, before->cost, now->cost, left) };
    double most = parts[0] > parts[1] ? parts[0] : parts[1];
    most = most > parts[2] ? most : parts[2];
    p->ended++;
    double step = (most - 1) / (double)(p->ended < PACE_SETTLED ? p->ended : PACE_SETTLED);
    p->level += step < PACE_STEP ? step : PACE_STEP;
    p->level = p->level > 0 ? p->level < PACE_MOST ? p->level : PACE_MOST : 0;
    p->spent = *now;
}
