#include "tools/clock/fleet_device.h"

#include <math.h>

#include "kernels/math.h"

/* Return a random number in (0, 1]. */
static double fleet_device_draw(struct fleet_device *d)
{
    return 1 - rand_unit(d->key, d->drawn++);
}

/* Return the number of tokens before the next routed one; h->tokens stands for any larger number.
 */
static size_t fleet_device_gap(struct fleet_device *d, const struct fleet_habits *h)
{
    if (h->routed >= 1)
        return 0;
    double gap = log_f64(fleet_device_draw(d)) / log_f64(1 - h->routed);
    return gap < (double)h->tokens ? (size_t)gap : h->tokens;
}

/* End the present answer, unless there is none yet, and begin answers until one makes a call. */
static void fleet_device_begin(struct fleet_device *d, const struct fleet_habits *h, double now,
                               struct fleet_answers *ended)
{
    for (;;) {
        if (d->answer++) {
            ended->n++;
            ended->ms += now - d->start;
        }
        d->start = now - h->idle_ms * log_f64(fleet_device_draw(d));
        d->token = fleet_device_gap(d, h);
        if (d->token < h->tokens)
            break;
        now = d->start + h->edge_ms * (double)h->tokens;
    }
    d->asked = d->start + (h->routed < 1 ? h->edge_ms * (double)(d->token + 1) : 0);
}

void fleet_device_open(struct fleet_device *d, const struct fleet_habits *h, size_t number,
                       struct fleet_answers *ended)
{
    *d = (struct fleet_device){ .key = rand_u64(h->seed, number) };
    fleet_device_begin(d, h, 0, ended);
}

size_t fleet_device_wants(const struct fleet_habits *h)
{
    return h->routed < 1 ? 1 : h->tokens;
}

/* Return the time at which `token` is written if the text goes on from the called token at `from`.
 * For a token beyond the end it is that of the last one. */
static double fleet_device_writes(const struct fleet_device *d, const struct fleet_habits *h,
                                  size_t token, double from)
{
    size_t last = token < h->tokens ? token : h->tokens - 1;
    return from + h->edge_ms * (double)(last - d->token);
}

void fleet_device_hear(struct fleet_device *d, const struct fleet_habits *h, double now,
                       struct fleet_answers *ended)
{
    if (h->routed >= 1) {
        fleet_device_begin(d, h, now, ended);
        return;
    }
    size_t next = d->token + 1 + fleet_device_gap(d, h);
    double from = h->ahead ? d->asked : now;
    if (h->ahead && fleet_device_draw(d) > h->agree) {
        /* A wrong guess is noticed after the step in progress, or at once while waiting. */
        double waits = fleet_device_writes(d, h, next, d->asked);
        double step = d->asked + h->edge_ms * (floor((now - d->asked) / h->edge_ms) + 1);
        from = now >= waits ? now : step < waits ? step : waits;
        next = d->token + 1 + fleet_device_gap(d, h);
    }
    double at = fleet_device_writes(d, h, next, from);
    at = at > now ? at : now;
    if (next >= h->tokens) {
        fleet_device_begin(d, h, at, ended);
    } else {
        d->asked = at;
        d->token = next;
    }
}
