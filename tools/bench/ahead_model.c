#include "tools/bench/ahead_model.h"

#include <stdbool.h>
#include <stdlib.h>

#include "kernels/math.h"

enum { LONG_TEXT = 1 << 20 };

/* State of the event model: the requests in flight are a ring of `out` calls from `oldest` on. */
struct window {
    double now, first; /* ms; first: when the first token was decided, < 0: not yet */
    size_t next;       /* token to decide next */
    size_t oldest, out, wasted;
    struct {
        size_t token;
        double due;
    } calls[AHEAD_MODEL_MOST];
};

double ahead_model_formula(double t, double routed, double agree, double latency, size_t ahead)
{
    return t + routed * (ahead ? 1 - agree : 1) * latency;
}

/* Continue after `token`: the next token needs this one evaluated, except after the last. */
static void ahead_model_step(struct window *w, size_t token, size_t n, double t)
{
    w->next = token + 1;
    if (w->next < n)
        w->now += t;
}

/* Accept the oldest answer; if it differs from the guess, drop all later requests and go back. */
static void ahead_model_hear(struct window *w, const unsigned char *marks, size_t n, double t)
{
    size_t token = w->calls[w->oldest].token;
    w->oldest = (w->oldest + 1) % AHEAD_MODEL_MOST;
    w->out--;
    if (token == 0)
        w->first = w->now;
    if (marks[token] & AHEAD_MODEL_AGREES)
        return;
    w->wasted += w->out;
    w->out = 0;
    ahead_model_step(w, token, n, t);
}

/* Request the next token. */
static void ahead_model_ask(struct window *w, double latency)
{
    size_t at = (w->oldest + w->out++) % AHEAD_MODEL_MOST;
    w->calls[at].token = w->next;
    w->calls[at].due = w->now + latency;
}

double ahead_model_text(const unsigned char *marks, size_t n, double t, double latency,
                        size_t ahead, size_t *wasted)
{
    struct window w = { .first = -1 };
    while (w.next < n || w.out) {
        bool routed = w.next < n && marks[w.next] & AHEAD_MODEL_ROUTED;
        double due = w.out ? w.calls[w.oldest].due : 0;
        if (w.out && due > w.now && (w.next == n || (routed && w.out == ahead)))
            w.now = due;
        if (w.out && due <= w.now) {
            ahead_model_hear(&w, marks, n, t);
            continue;
        }
        if (routed && ahead)
            ahead_model_ask(&w, latency);
        else if (routed)
            w.now += latency;
        if (w.next == 0 && !(routed && ahead))
            w.first = w.now;
        ahead_model_step(&w, w.next, n, t);
    }
    if (wasted)
        *wasted = w.wasted;
    return (w.now - w.first) / (double)(n - 1);
}

double ahead_model_expected(double t, double routed, double agree, double latency, size_t ahead)
{
    unsigned char *marks = calloc(LONG_TEXT, 1);
    if (!marks)
        return 0;
    for (size_t i = 0; i < LONG_TEXT; i++)
        marks[i] = (unsigned char)((rand_unit(1, i) < routed ? AHEAD_MODEL_ROUTED : 0) |
                                   (rand_unit(2, i) < agree ? AHEAD_MODEL_AGREES : 0));
    double ms = ahead_model_text(marks, LONG_TEXT, t, latency, ahead, NULL);
    free(marks);
    return ms;
}
