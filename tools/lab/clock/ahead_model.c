#include "tools/lab/clock/ahead_model.h"

#include <stdbool.h>

/* State of the event model: the requests in flight are a ring of `out` calls from `oldest` on. */
struct window {
    const unsigned char *marks;
    const double *calls; /* [n] ms of each token's call */
    double *at;          /* [n] */
    size_t n;
    double t, now;  /* ms */
    size_t decided; /* number of tokens that are part of the text */
    size_t next;    /* token to write next */
    size_t oldest, out, wasted;
    struct {
        size_t token;
        double due;
    } flight[AHEAD_MODEL_MOST];
};

/* Decide the tokens before `end`. */
static void ahead_model_settle(struct window *w, size_t end)
{
    for (; w->decided < end; w->decided++)
        w->at[w->decided] = w->now;
}

/* Continue after `token`: the next token needs this one evaluated, except after the last. */
static void ahead_model_step(struct window *w, size_t token)
{
    w->next = token + 1;
    if (!w->out)
        ahead_model_settle(w, w->next);
    if (w->next < w->n)
        w->now += w->t;
}

/* Accept the oldest answer; if it differs from the guess, drop all later requests and go back. */
static void ahead_model_hear(struct window *w)
{
    size_t token = w->flight[w->oldest].token;
    w->oldest = (w->oldest + 1) % AHEAD_MODEL_MOST;
    w->out--;
    if (w->marks[token] & AHEAD_MODEL_AGREES) {
        ahead_model_settle(w, w->out ? w->flight[w->oldest].token : w->next);
        return;
    }
    w->wasted += w->out;
    w->out = 0;
    ahead_model_step(w, token);
}

/* Request the next token. */
static void ahead_model_ask(struct window *w)
{
    size_t at = (w->oldest + w->out++) % AHEAD_MODEL_MOST;
    w->flight[at].token = w->next;
    w->flight[at].due = w->now + w->calls[w->next];
}

/* Write the whole text with up to `ahead` requests in flight. */
static void ahead_model_write(struct window *w, size_t ahead)
{
    while (w->next < w->n || w->out) {
        bool routed = w->next < w->n && w->marks[w->next] & AHEAD_MODEL_ROUTED;
        double due = w->out ? w->flight[w->oldest].due : 0;
        bool waits = w->out && (w->next == w->n || (routed && w->out == ahead));
        if (waits && due > w->now)
            w->now = due;
        /* What comes just as a step ends is seen after the next: a real call takes a little more.
         */
        if (w->out && (waits ? due <= w->now : due < w->now)) {
            ahead_model_hear(w);
            continue;
        }
        if (routed && ahead)
            ahead_model_ask(w);
        else if (routed)
            w->now += w->calls[w->next];
        ahead_model_step(w, w->next);
    }
}

size_t ahead_model_decisions(double *at, const unsigned char *marks, const double *calls, size_t n,
                             double t, size_t ahead)
{
    struct window w = { .marks = marks, .calls = calls, .at = at, .n = n, .t = t };
    ahead_model_write(&w, ahead);
    return w.wasted;
}
