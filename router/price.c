#include "router/price.h"

void price_set(struct price *out, double worth, const struct caps_price *tokens)
{
    const double pico = 1e-12;
    *out = (struct price){ .worth = worth,
                           .call = !tokens->up && !tokens->cached && !tokens->down,
                           .up = (double)tokens->up * pico,
                           .cached = (double)tokens->cached * pico,
                           .down = (double)tokens->down * pico };
}

float price_score(const struct price *p, float wrong, size_t n, size_t warm)
{
    double sent = (double)warm * p->cached + (double)(n - warm) * p->up;
    double cost = p->call + sent + p->down;
    double gain = p->worth * (double)wrong;
    return gain > 0 ? (float)(cost / (cost + gain)) : 1;
}
