#include "router/decode/ahead.h"

struct ahead_token *ahead_at(struct ahead *a, size_t i)
{
    return &a->ring[(a->first + i) % AHEAD_MOST];
}

struct ahead_token *ahead_last(struct ahead *a)
{
    return a->n ? ahead_at(a, a->n - 1) : NULL;
}

void ahead_push(struct ahead *a, const struct ahead_token *t)
{
    *ahead_at(a, a->n++) = *t;
}

void ahead_pop(struct ahead *a)
{
    a->first = (a->first + 1) % AHEAD_MOST;
    a->n--;
}
