#include "tools/lab/clock/fleet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"

/* At least so many answers and calls are counted, of all devices and of each on average; progress
 * is shown after so many passes. */
enum { SEED = 1, LEAST = 10000, LEAST_EACH = 4, PASSES_SHOWN = 1024 };

/* A histogram of positive times. Their binary form, cut to 10 bits of the mantissa, is the number
 * of the bin, so bins grow with the time and are 0.1 % wide. BIN_FIRST is that of 2^-20 ms. */
enum { BIN_SHIFT = 42, BIN_FIRST = (1023 - 20) << 10 };

/* Return a random number in (0, 1]. */
static double fleet_draw(struct fleet_device *d)
{
    return 1 - rand_unit(d->key, d->drawn++);
}

/* Return the number of tokens before the next routed one, or o->tokens if there are more. */
static size_t fleet_gap(const struct fleet *f, struct fleet_device *d)
{
    if (f->o->routed >= 1)
        return 0;
    double gap = log_f64(fleet_draw(d)) / log_f64(1 - f->o->routed);
    return gap < (double)f->o->tokens ? (size_t)gap : f->o->tokens;
}

/* End the present answer, unless there is none yet, and begin answers until one makes a call. */
static void fleet_begin(struct fleet *f, struct fleet_device *d, double now)
{
    const struct fleet_options *o = f->o;
    for (;;) {
        if (d->answer++) {
            f->count.answers++;
            f->count.answers_ms += now - d->start;
        }
        d->start = now - 1000 * o->idle * log_f64(fleet_draw(d));
        d->token = fleet_gap(f, d);
        if (d->token < o->tokens)
            break;
        now = d->start + o->edge_ms * (double)o->tokens;
    }
    d->asked = d->start + (o->routed < 1 ? o->edge_ms * (double)(d->token + 1) : 0);
}

/* Return the time at which `token` is written if the text goes on from the called token at `from`.
 * For a token beyond the end it is that of the last one. */
static double fleet_writes(const struct fleet *f, const struct fleet_device *d, size_t token,
                           double from)
{
    size_t last = token < f->o->tokens ? token : f->o->tokens - 1;
    return from + f->o->edge_ms * (double)(last - d->token);
}

void fleet_hear(struct fleet *f, struct fleet_device *d, double now)
{
    if (f->o->routed >= 1) {
        fleet_begin(f, d, now);
        return;
    }
    size_t next = d->token + 1 + fleet_gap(f, d);
    double from = d->asked;
    if (fleet_draw(d) > f->o->agree) {
        /* A wrong guess is noticed after the step in progress, or at once while waiting. */
        double waits = fleet_writes(f, d, next, d->asked);
        double edge = f->o->edge_ms, step = d->asked + edge * (floor((now - d->asked) / edge) + 1);
        from = now >= waits ? now : step < waits ? step : waits;
        next = d->token + 1 + fleet_gap(f, d);
    }
    double at = fleet_writes(f, d, next, from);
    at = at > now ? at : now;
    if (next >= f->o->tokens) {
        fleet_begin(f, d, at);
    } else {
        d->asked = at;
        d->token = next;
    }
}

/* True if the call of a arrives before that of b. */
static bool fleet_before(const struct fleet *f, uint32_t a, uint32_t b)
{
    double x = f->devices[a].asked, y = f->devices[b].asked;
    return x < y || (x <= y && a < b);
}

/* Put a device whose call is made into the heap. */
static void fleet_send(struct fleet *f, uint32_t device)
{
    size_t i = f->nheap++;
    f->devices[device].told = f->devices[device].asked;
    for (; i && fleet_before(f, device, f->heap[(i - 1) / 2]); i = (i - 1) / 2)
        f->heap[i] = f->heap[(i - 1) / 2];
    f->heap[i] = device;
}

/* Take the soonest out of the heap. */
static void fleet_receive(struct fleet *f)
{
    uint32_t last = f->heap[--f->nheap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < f->nheap; i = child) {
        if (child + 1 < f->nheap && fleet_before(f, f->heap[child + 1], f->heap[child]))
            child++;
        if (!fleet_before(f, f->heap[child], last))
            break;
        f->heap[i] = f->heap[child];
    }
    f->heap[i] = last;
}

/* Put the text before `next` in the list; its own number takes it out. The end is f->n. */
static void fleet_link(struct fleet *f, uint32_t device, uint32_t next)
{
    struct fleet_device *d = &f->devices[device];
    f->devices[d->older].newer = d->newer;
    f->devices[d->newer].older = d->older;
    d->newer = next;
    d->older = next == device ? device : f->devices[next].older;
    f->devices[d->older].newer = f->devices[next].older = device;
}

static void fleet_drop(struct fleet *f, uint32_t device)
{
    struct fleet_device *d = &f->devices[device];
    fleet_link(f, device, device);
    f->used -= d->held;
    d->held = d->read = 0;
}

/* Admit the soonest call. False: there is no room. */
static bool fleet_admit(struct fleet *f)
{
    uint32_t device = f->heap[0];
    struct fleet_device *d = &f->devices[device];
    const struct fleet_options *o = f->o;
    size_t text = o->prompt + d->token, wants = o->routed < 1 ? 1 : o->tokens;
    fleet_link(f, device, device);
    if (d->text != d->answer)
        fleet_drop(f, device);
    size_t more = text + wants - 1 - d->held;
    while (o->kv && f->used + more > o->kv) {
        if (f->devices[f->n].newer == f->n)
            return false;
        fleet_drop(f, f->devices[f->n].newer);
    }
    f->used += more;
    d->held += more;
    d->text = d->answer;
    d->left = text - d->read;
    d->wants = wants;
    f->unread += d->left;
    f->count.read += d->left;
    f->active[f->nactive++] = device;
    fleet_receive(f);
    return true;
}

void fleet_tell(struct fleet *f, struct fleet_device *d, size_t later, double now)
{
    double ms = now - d->told;
    uint64_t bits;
    memcpy(&bits, &ms, sizeof(bits));
    size_t bin = (size_t)(bits >> BIN_SHIFT);
    bin = bin > BIN_FIRST ? bin - BIN_FIRST : 0;
    f->count.bins[later][bin < FLEET_BINS ? bin : FLEET_BINS - 1]++;
    f->count.told[later]++;
    d->told = now;
}

double fleet_work(struct fleet *f, size_t n, size_t read, size_t written)
{
    double work = 1000 * ((double)read / f->o->prefill + (double)written / f->o->decode);
    double ms = work > f->o->step_ms ? work : f->o->step_ms;
    f->count.work += work;
    f->count.busy += ms;
    f->count.passes++;
    f->count.joined += n;
    return ms;
}

/* Run one pass over the admitted calls. Those that are answered keep or drop their texts, and their
 * devices go on. */
static void fleet_pass(struct fleet *f)
{
    const struct fleet_options *o = f->o;
    size_t read = 0, written = 0, stay = 0, n = f->nactive;
    size_t budget = o->chunk ? o->chunk : SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        struct fleet_device *d = &f->devices[f->active[i]];
        size_t take = d->left < budget - read ? d->left : budget - read;
        written += !d->left;
        d->wants -= take == d->left;
        d->left -= take;
        read += take;
    }
    f->now += fleet_work(f, n, read, written);
    f->unread -= read;
    for (size_t i = 0; i < n; i++) {
        uint32_t device = f->active[i];
        struct fleet_device *d = &f->devices[device];
        double now = f->now + (double)o->latency / 2;
        if (!d->left)
            fleet_tell(f, d, o->routed >= 1 && d->wants + 1 < o->tokens, now);
        if (d->left || d->wants) {
            f->active[stay++] = device;
            continue;
        }
        fleet_link(f, device, (uint32_t)f->n);
        d->read = d->held;
        if (o->no_cache)
            fleet_drop(f, device);
        f->count.calls++;
        fleet_hear(f, d, now);
        fleet_send(f, device);
    }
    f->nactive = stay;
}

void fleet_count(struct fleet *f)
{
    memset(&f->count, 0, sizeof(f->count));
    f->since = f->now;
}

int fleet_run(struct fleet *f, struct progress_count *shown, struct err *err)
{
    const struct fleet_options *o = f->o;
    const size_t *answers = &f->count.answers, *calls = &f->count.calls;
    size_t enough = f->n > LEAST / LEAST_EACH ? LEAST_EACH * f->n : LEAST;
    double way = (double)o->latency / 2;
    for (size_t part = 0; part < 2; part++) {
        if (part)
            fleet_count(f);
        while (*answers < enough || *calls < enough) {
            if (interrupted)
                return err_set(err, ERR_STOP, "interrupted");
            if (shown && f->count.passes % PASSES_SHOWN == 0)
                progress_counted(shown, part * enough + (*answers < *calls ? *answers : *calls),
                                 2 * enough);
            if (!f->nactive && f->now < f->devices[f->heap[0]].asked + way)
                f->now = f->devices[f->heap[0]].asked + way;
            while (f->nheap && f->devices[f->heap[0]].asked + way <= f->now &&
                   (!o->batch || f->nactive < o->batch) && (!o->chunk || f->unread < o->chunk) &&
                   fleet_admit(f))
                ;
            fleet_pass(f);
        }
    }
    return OK;
}

double fleet_quantile(const struct fleet *f, double share)
{
    double most = 0;
    for (size_t later = 0; later < 2; later++) {
        size_t below = 0, bin = 0, all = f->count.told[later];
        while (bin < FLEET_BINS - 1 &&
               (double)(below += f->count.bins[later][bin]) < share * (double)all)
            bin++;
        uint64_t bits =
            ((uint64_t)(bin + BIN_FIRST) << BIN_SHIFT) + (UINT64_C(1) << (BIN_SHIFT - 1));
        double ms;
        memcpy(&ms, &bits, sizeof(ms));
        most = all && ms > most ? ms : most;
    }
    return most;
}

int fleet_open(struct fleet **out, const struct fleet_options *o, size_t n, struct err *err)
{
    struct fleet *f = *out =
        calloc(1, sizeof(*f) + (n + 1) * sizeof(*f->devices) + 2 * n * sizeof(*f->heap));
    if (!f)
        return err_set(err, ERR_NOMEM, "fleet: out of memory");
    f->o = o;
    f->n = n;
    f->heap = (uint32_t *)(void *)&f->devices[n + 1];
    f->active = f->heap + n;
    for (uint32_t i = 0; i <= n; i++)
        f->devices[i] = (struct fleet_device){ .key = rand_u64(SEED, i), .older = i, .newer = i };
    for (uint32_t i = 0; i < n; i++) {
        fleet_begin(f, &f->devices[i], 0);
        fleet_send(f, i);
    }
    return OK;
}
