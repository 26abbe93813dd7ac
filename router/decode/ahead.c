#include "router/decode/ahead.h"

#include <stdlib.h>

int ahead_open(struct ahead *a, size_t cap, struct err *err)
{
    *a = (struct ahead){ .cap = cap };
    a->ring = calloc(cap, sizeof(*a->ring));
    return a->ring ? OK : err_set(err, ERR_NOMEM, "decode: out of memory");
}

void ahead_close(struct ahead *a)
{
    free(a->ring);
    a->ring = NULL;
}

struct ahead_token *ahead_at(const struct ahead *a, size_t i)
{
    size_t at = a->first + i;
    return &a->ring[at < a->cap ? at : at - a->cap];
}

struct ahead_token *ahead_last(const struct ahead *a)
{
    return a->n ? ahead_at(a, a->n - 1) : NULL;
}

void ahead_push(struct ahead *a, const struct ahead_token *t)
{
    *ahead_at(a, a->n++) = *t;
}

void ahead_pop(struct ahead *a)
{
    a->first = a->first + 1 < a->cap ? a->first + 1 : 0;
    a->n--;
}
