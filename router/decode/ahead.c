#include "router/decode/ahead.h"

#include <stdlib.h>

#include "router/cloud_port.h"

int ahead_open(struct ahead *a, const struct cloud_port *port, struct gate *gate, size_t cap,
               struct err *err)
{
    *a = (struct ahead){ .port = port, .gate = gate, .cap = cap };
    a->ring = calloc(cap, sizeof(*a->ring));
    return a->ring ? OK : err_set(err, ERR_NOMEM, "decode: out of memory");
}

void ahead_close(struct ahead *a)
{
    ahead_cut(a, 0);
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

void ahead_asked(struct ahead *a)
{
    a->out++;
    a->gate->out++;
}

/* Count a call that has ended. */
static void ahead_ended(struct ahead *a, struct ahead_token *t)
{
    t->call = NULL;
    a->out--;
    a->gate->out--;
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

void ahead_cut(struct ahead *a, size_t keep)
{
    for (; a->n > keep; a->n--)
        ahead_drop(a, ahead_last(a));
}

void ahead_commit(struct ahead *a, struct ahead_token *t)
{
    if (!t->call)
        return;
    a->port->commit(t->call);
    ahead_ended(a, t);
}

void ahead_reject(struct ahead *a, struct ahead_token *t)
{
    a->port->drop(t->call);
    ahead_ended(a, t);
}

void ahead_drop(struct ahead *a, struct ahead_token *t)
{
    if (!t->call)
        return;
    ahead_reject(a, t);
    a->wasted++;
}
