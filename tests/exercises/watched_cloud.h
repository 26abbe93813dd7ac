/* watched_cloud.h - the simulated cloud of exercise 12, which says in words where it is misused;
 * left to itself, sim.c names a line of its own. */
#ifndef TESTS_EXERCISES_WATCHED_CLOUD_H
#define TESTS_EXERCISES_WATCHED_CLOUD_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/session.h"
#include "tests/router/ahead_help.h"
#include "tests/support/sim.h"

static struct cloud_port sim_calls; /* the functions of the simulated cloud */
static struct sim *asked;
static uint64_t round_seed;
static const char *program; /* its path */

/* End the program where the cloud is misused, with what is wrong. */
static _Noreturn void ahead_misused(const char *fmt, ...)
{
    va_list args;
    printf("FAIL ahead: ");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("; with %zu in flight, in the round with round_seed %llu of %s\n", asked->window,
           (unsigned long long)round_seed, program);
    exit(1);
}

/* Return the call in flight with the shortest prefix, or NULL. */
static const struct sim_call *ahead_oldest(void)
{
    const struct sim_call *oldest = NULL;
    for (size_t i = 0; i < SIM_CALLS; i++) {
        const struct sim_call *c = &asked->calls[i];
        if (c->number && (!oldest || c->n < oldest->n))
            oldest = c;
    }
    return oldest;
}

/* Ask the simulated cloud for a token of a text that the session holds. */
static int ahead_ask(void *arg, const uint32_t *ids, size_t n, size_t want,
                     struct cloud_tally *tally, void **call, struct err *err)
{
    size_t held = session_length(session);
    if (want != 1)
        ahead_misused("ask: expected 1 token a call, found %zu", want);
    if (held < n)
        ahead_misused("ask: expected a session that holds all %zu ids of the prefix, found %zu", n,
                      held);
    if (memcmp(ids, session_ids(session), n * sizeof(*ids)) != 0)
        ahead_misused("ask: the session holds other ids than the prefix of %zu: roll it back "
                      "(session_rewind) where an answer was not the guess",
                      n);
    for (size_t i = 0; i < SIM_CALLS; i++) {
        const struct sim_call *c = &asked->calls[i];
        if (!c->number || c->n < n)
            continue;
        if (c->n == n && memcmp(ids, c->ids, n * sizeof(*ids)) == 0)
            ahead_misused("ask: the token after the same %zu ids is asked for twice", n);
        ahead_misused("ask: a call for the token after %zu other ids is still in flight, and these "
                      "are %zu: it was not dropped (port->drop) when an answer was not the guess",
                      c->n, n);
    }
    if (asked->live >= asked->window)
        ahead_misused(
            "ask: expected at most %zu calls in flight; the oldest is for the token after "
            "%zu ids, and these are %zu: take and commit it, or drop it",
            asked->window, ahead_oldest()->n, n);
    return sim_calls.ask(arg, ids, n, want, tally, call, err);
}

/* Say that a call has ended already. */
static void ahead_alive(const char *what, const struct sim_call *c)
{
    if (!c->number)
        ahead_misused("%s: this call was committed or dropped before", what);
}

static int ahead_take(void *call, uint32_t *id, struct err *err)
{
    const struct sim_call *oldest = ahead_oldest(), *c = call;
    ahead_alive("take", c);
    if (oldest->n < c->n)
        ahead_misused("take: expected the oldest call first, for the token after %zu ids, found "
                      "that after %zu",
                      oldest->n, c->n);
    return sim_calls.take(call, id, err);
}

static void ahead_commit(void *call)
{
    const struct sim_call *c = call;
    ahead_alive("commit", c);
    if (!c->heard)
        ahead_misused("commit: the answer of the call after %zu ids was not taken", c->n);
    if (c->n <= asked->last_commit)
        ahead_misused("commit: the token after %zu ids was committed before", c->n);
    sim_calls.commit(call);
}

static void ahead_drop(void *call)
{
    ahead_alive("drop", call);
    sim_calls.drop(call);
}

#endif
