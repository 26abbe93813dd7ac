#include "tools/lab/clock/virtual_clock.h"

#include <stdlib.h>

#include "kernels/sys/base.h"
#include "tools/lab/clock/ahead_model.h"

/* Return the ms that this many bytes take at a rate in bytes per second, 0: no limit. */
static double virtual_clock_sending(size_t bytes, uint64_t rate)
{
    return rate ? 1000 * (double)bytes / (double)rate : 0;
}

double virtual_clock_call(const struct virtual_clock *c, uint64_t key,
                          const struct virtual_size *size)
{
    double way = (double)stand_in_chance_way(&c->net, key, size->up, size->down) / 1e6;
    return way + c->cloud_ms + virtual_clock_sending(size->header + size->up, c->net.up) +
           virtual_clock_sending(size->down, c->net.down);
}

double virtual_clock_edge(const struct virtual_clock *c, size_t prompt, size_t n)
{
    double read = c->prefill_ms * (double)prompt;
    return (read > c->edge_ms ? read : c->edge_ms) + (double)(n - 1) * c->edge_ms;
}

/* Place the decisions of an answer that is written in drafts: a call leaves when its draft is
 * written, and all that it brings is decided as its answer is there. Ahead, the next draft is begun
 * as the call leaves; it stands if the whole one does, and the cloud's token after it is the small
 * model's own. */
static void virtual_clock_drafts(struct virtual_token *tokens, const struct virtual_clock *c,
                                 size_t prompt, size_t n)
{
    double now = virtual_clock_edge(c, prompt, 1) - c->edge_ms, ready = now;
    bool goes_on = false;
    for (size_t i = 0, end; i < n; i = end) {
        if (!tokens[i].shown) { /* the cloud was not asked about the first ones */
            now += c->edge_ms;
            tokens[i].ms = i ? c->edge_ms : now;
            end = i + 1;
            continue;
        }
        size_t draft = tokens[i].shown - 1, brought = 1;
        for (end = i + 1; end < n && !tokens[end].shown; end++)
            brought++;
        double wrote = goes_on ? ready + (double)(draft + 1) * c->edge_ms : 0;
        ready = now + (double)draft * c->edge_ms;
        if (goes_on)
            ready = wrote > now ? wrote : now;
        double answer = ready + tokens[i].call_ms;
        for (size_t k = i; k < end; k++)
            tokens[k].ms = 0;
        tokens[i].ms = answer - now + (i ? 0 : now);
        goes_on = c->ahead && brought == draft + 1 && tokens[end - 1].agrees;
        now = answer;
    }
}

int virtual_clock_answer(struct virtual_token *tokens, size_t *wasted,
                         const struct virtual_clock *c, size_t prompt, size_t n, struct err *err)
{
    bool drafts = false;
    for (size_t i = 0; i < n; i++)
        drafts = drafts || tokens[i].shown;
    if (drafts) {
        *wasted = 0;
        virtual_clock_drafts(tokens, c, prompt, n);
        return OK;
    }
    double *calls = calloc(n, sizeof(*calls)), *at = calloc(n, sizeof(*at));
    unsigned char *marks = calloc(n, 1);
    int rc = calls && at && marks ? OK : err_set(err, ERR_NOMEM, "eval: out of memory");
    for (size_t i = 0; rc == OK && i < n; i++) {
        calls[i] = tokens[i].call_ms;
        marks[i] = (unsigned char)((tokens[i].routed ? AHEAD_MODEL_ROUTED : 0) |
                                   (tokens[i].agrees ? AHEAD_MODEL_AGREES : 0));
    }
    if (rc == OK) {
        *wasted = ahead_model_decisions(at, marks, calls, n, c->edge_ms, c->ahead);
        tokens[0].ms = at[0] + virtual_clock_edge(c, prompt, 1);
        for (size_t i = 1; i < n; i++)
            tokens[i].ms = at[i] - at[i - 1];
    }
    free(marks);
    free(at);
    free(calls);
    return rc;
}
