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

int virtual_clock_answer(struct virtual_token *tokens, const struct virtual_clock *c, size_t prompt,
                         size_t n, struct err *err)
{
    double *calls = calloc(n, sizeof(*calls)), *at = calloc(n, sizeof(*at));
    unsigned char *marks = calloc(n, 1);
    int rc = calls && at && marks ? OK : err_set(err, ERR_NOMEM, "eval: out of memory");
    for (size_t i = 0; rc == OK && i < n; i++) {
        calls[i] = tokens[i].call_ms;
        marks[i] = (unsigned char)((tokens[i].routed ? AHEAD_MODEL_ROUTED : 0) |
                                   (tokens[i].agrees ? AHEAD_MODEL_AGREES : 0));
    }
    if (rc == OK) {
        ahead_model_decisions(at, marks, calls, n, c->edge_ms, c->ahead);
        tokens[0].ms = at[0] + virtual_clock_edge(c, prompt, 1);
        for (size_t i = 1; i < n; i++)
            tokens[i].ms = at[i] - at[i - 1];
    }
    free(marks);
    free(at);
    free(calls);
    return rc;
}
