/* watched_cloud.h - the simulated cloud of exercise 12, which says in words where it is misused;
 * left to itself, sim.c names a line of its own. */
#ifndef TESTS_EXERCISES_WATCHED_CLOUD_H
#define TESTS_EXERCISES_WATCHED_CLOUD_H

#include "tests/router/ahead_help.h"

static struct cloud_port sim_calls; /* the functions of the simulated cloud */
static struct sim *asked;
static uint64_t round_seed;

/* The time of a text, if an evaluation takes STEP ms. */
enum { STEP = 40, TRIPS = 5 };
static const double trips[TRIPS] = { 0, 50, 100, 200, 500 }; /* ms of a call */
static struct ahead_time {
    double in_step[TRIPS], ahead[TRIPS];
} ahead_time;
static size_t evaluated;    /* ids of the session that have been counted */
static size_t asked_at;     /* length of the session when the call was made */
static size_t asked_most;   /* length of the longest prefix behind which a guess is evaluated */
static const char *program; /* its path */

/* End the program where the cloud is misused, with what is wrong. */
static _Noreturn void ahead_misused(const char *fmt, ...)
{
    va_list args;
    printf("FAIL ahead: ");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("; in the round with round_seed %llu of %s\n", (unsigned long long)round_seed, program);
    exit(1);
}

/* Count the evaluations since the latest call. */
static void ahead_steps(void)
{
    size_t length = session_length(session);
    for (size_t i = 0; i < TRIPS; i++)
        ahead_time.ahead[i] += length > evaluated ? STEP * (double)(length - evaluated) : 0;
    evaluated = length;
}

/* Ask the simulated cloud for a token of a text whose beginning the session holds. */
static int ahead_ask(void *arg, const uint32_t *ids, size_t n, size_t want,
                     struct cloud_tally *tally, void **call, struct err *err)
{
    size_t held = session_length(session);
    if (want != 1)
        ahead_misused("ask: expected 1 token a call, found %zu", want);
    if (memcmp(ids, session_ids(session), (held < n ? held : n) * sizeof(*ids)) != 0)
        ahead_misused("ask: the session holds other ids than the prefix of %zu: roll it back "
                      "(session_rewind) where an answer was not the guess",
                      n);
    for (size_t i = 0; i < SIM_CALLS; i++)
        if (asked->calls[i].number)
            ahead_misused("ask: the call for the token after %zu ids is still in flight, and these "
                          "are %zu: take and end it first",
                          asked->calls[i].n, n);
    ahead_steps();
    asked_at = held;
    return sim_calls.ask(arg, ids, n, want, tally, call, err);
}

/* Say that a call has ended already. */
static void ahead_alive(const char *what, const struct sim_call *c)
{
    if (!c->number)
        ahead_misused("%s: this call was ended before", what);
}

static int ahead_take(void *call, size_t at, uint32_t *id, struct err *err)
{
    const struct sim_call *c = call;
    ahead_alive("take", c);
    if (at != 0)
        ahead_misused("take: expected token 0, the only one of a call, found %zu", at);
    size_t held = session_length(session);
    if (held <= asked_at && c->n < asked_most)
        ahead_misused("take: expected a session that holds the guess after the prefix of %zu ids: "
                      "go on while the call is in flight",
                      c->n);
    ahead_steps();
    for (size_t i = 0; i < TRIPS; i++) {
        double wrote = STEP * (double)(held - asked_at);
        ahead_time.ahead[i] += trips[i] > wrote ? trips[i] - wrote : 0;
        ahead_time.in_step[i] += trips[i];
    }
    int rc = sim_calls.take(call, at, id, err);
    if (rc == OK && held > c->n && session_ids(session)[c->n] != *id)
        evaluated = c->n; /* what follows is written again */
    return rc;
}

static void ahead_end(void *call, enum cloud_end how)
{
    const struct sim_call *c = call;
    ahead_alive("end", c);
    if (how == CLOUD_USE && !c->heard)
        ahead_misused("end: the answer of the call after %zu ids was not taken", c->n);
    if (how == CLOUD_USE && c->n <= asked->last_commit)
        ahead_misused("end: the token after %zu ids was used before", c->n);
    sim_calls.end(call, how);
}

#endif
