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
enum { BIN_SHIFT = 42, BINS = 1 << 16, BIN_FIRST = (1023 - 20) << 10 };

/* What the server knows of a device. */
struct fleet_client {
    struct fleet_device device;
    double told;     /* when its last token came, or the call was made */
    uint64_t answer; /* whose text is held */
    size_t held;     /* places taken by its text; it has been read up to `read` */
    size_t read;
    size_t left, wants;    /* of the call: tokens to read and to write */
    uint32_t older, newer; /* list of texts by last use */
};

struct fleet {
    const struct fleet_options *o;
    size_t n;
    struct fleet_client *clients; /* [n + 1]; the last is head and end of the list of texts */
    uint32_t *heap;               /* [n] devices whose calls are on their way, soonest first */
    uint32_t *queue;              /* [n] ring of devices whose calls have arrived */
    uint32_t *active;             /* [n] admitted, in order of admission */
    size_t nheap, first, nqueue, nactive;
    size_t used, unread; /* places taken; tokens that the admitted calls have yet to read */
    double now, since;
    struct {
        uint32_t bins[2][BINS]; /* of first tokens of calls, of later ones */
        size_t told[2];
        size_t calls, passes, joined, tokens_read;
        double sum, work, busy;
        struct fleet_answers answers;
    } count; /* since `since` */
};

/* Return a random number in (0, 1]. */
static double fleet_draw(struct fleet_device *d)
{
    return 1 - rand_unit(d->key, d->drawn++);
}

/* Return the number of tokens before the next routed one, or o->tokens if there are more. */
static size_t fleet_gap(struct fleet_device *d, const struct fleet_options *o)
{
    if (o->routed >= 1)
        return 0;
    double gap = log_f64(fleet_draw(d)) / log_f64(1 - o->routed);
    return gap < (double)o->tokens ? (size_t)gap : o->tokens;
}

/* End the present answer, unless there is none yet, and begin answers until one makes a call. */
static void fleet_begin(struct fleet_device *d, const struct fleet_options *o, double now,
                        struct fleet_answers *ended)
{
    for (;;) {
        if (d->answer++) {
            ended->n++;
            ended->ms += now - d->start;
        }
        d->start = now - o->idle_ms * log_f64(fleet_draw(d));
        d->token = fleet_gap(d, o);
        if (d->token < o->tokens)
            break;
        now = d->start + o->edge_ms * (double)o->tokens;
    }
    d->asked = d->start + (o->routed < 1 ? o->edge_ms * (double)(d->token + 1) : 0);
}

void fleet_device(struct fleet_device *d, const struct fleet_options *o, size_t number,
                  struct fleet_answers *ended)
{
    *d = (struct fleet_device){ .key = rand_u64(SEED, number) };
    fleet_begin(d, o, 0, ended);
}

/* Return the time at which `token` is written if the text goes on from the called token at `from`.
 * For a token beyond the end it is that of the last one. */
static double fleet_writes(const struct fleet_device *d, const struct fleet_options *o,
                           size_t token, double from)
{
    size_t last = token < o->tokens ? token : o->tokens - 1;
    return from + o->edge_ms * (double)(last - d->token);
}

void fleet_hear(struct fleet_device *d, const struct fleet_options *o, double now,
                struct fleet_answers *ended)
{
    if (o->routed >= 1) {
        fleet_begin(d, o, now, ended);
        return;
    }
    size_t next = d->token + 1 + fleet_gap(d, o);
    double from = d->asked;
    if (fleet_draw(d) > o->agree) {
        /* A wrong guess is noticed after the step in progress, or at once while waiting. */
        double waits = fleet_writes(d, o, next, d->asked);
        double step = d->asked + o->edge_ms * (floor((now - d->asked) / o->edge_ms) + 1);
        from = now >= waits ? now : step < waits ? step : waits;
        next = d->token + 1 + fleet_gap(d, o);
    }
    double at = fleet_writes(d, o, next, from);
    at = at > now ? at : now;
    if (next >= o->tokens) {
        fleet_begin(d, o, at, ended);
    } else {
        d->asked = at;
        d->token = next;
    }
}

/* True if the call of a arrives before that of b. */
static bool fleet_before(const struct fleet *f, uint32_t a, uint32_t b)
{
    double x = f->clients[a].device.asked, y = f->clients[b].device.asked;
    return x < y || (x <= y && a < b);
}

/* Put a device whose call is on its way into the heap. */
static void fleet_send(struct fleet *f, uint32_t device)
{
    size_t i = f->nheap++;
    f->clients[device].told = f->clients[device].device.asked;
    for (; i && fleet_before(f, device, f->heap[(i - 1) / 2]); i = (i - 1) / 2)
        f->heap[i] = f->heap[(i - 1) / 2];
    f->heap[i] = device;
}

/* Take the soonest out of the heap. */
static uint32_t fleet_receive(struct fleet *f)
{
    uint32_t top = f->heap[0], last = f->heap[--f->nheap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < f->nheap; i = child) {
        if (child + 1 < f->nheap && fleet_before(f, f->heap[child + 1], f->heap[child]))
            child++;
        if (!fleet_before(f, f->heap[child], last))
            break;
        f->heap[i] = f->heap[child];
    }
    f->heap[i] = last;
    return top;
}

static void fleet_unlink(struct fleet *f, const struct fleet_client *c)
{
    f->clients[c->older].newer = c->newer;
    f->clients[c->newer].older = c->older;
}

/* Make the text the one that was used last. */
static void fleet_link(struct fleet *f, uint32_t device)
{
    struct fleet_client *c = &f->clients[device], *end = &f->clients[f->n];
    c->older = end->older;
    c->newer = (uint32_t)f->n;
    f->clients[c->older].newer = device;
    end->older = device;
}

/* Drop a text that is in the list. */
static void fleet_drop(struct fleet *f, struct fleet_client *c)
{
    fleet_unlink(f, c);
    f->used -= c->held;
    c->held = c->read = 0;
}

/* Return the number of tokens that a call asks for. */
static size_t fleet_wants(const struct fleet_options *o)
{
    return o->routed < 1 ? 1 : o->tokens;
}

/* Admit the call at the head of the queue. False: there is no room. */
static bool fleet_admit(struct fleet *f)
{
    uint32_t device = f->queue[f->first];
    struct fleet_client *c = &f->clients[device];
    size_t text = f->o->prompt + c->device.token;
    if (c->held && c->answer != c->device.answer)
        fleet_drop(f, c);
    size_t more = text + fleet_wants(f->o) - 1 - c->held;
    for (uint32_t old; f->o->kv && f->used + more > f->o->kv;) {
        old = f->clients[f->n].newer == device ? c->newer : f->clients[f->n].newer;
        if (old == f->n)
            return false;
        fleet_drop(f, &f->clients[old]);
    }
    if (c->held)
        fleet_unlink(f, c);
    f->used += more;
    c->held += more;
    c->answer = c->device.answer;
    c->left = text - c->read;
    c->wants = fleet_wants(f->o);
    f->unread += c->left;
    f->count.tokens_read += c->left;
    f->active[f->nactive++] = device;
    f->first = f->first + 1 < f->n ? f->first + 1 : 0;
    f->nqueue--;
    return true;
}

/* Count a token that reaches its device at `now`. */
static void fleet_count(struct fleet *f, struct fleet_client *c, double now)
{
    double ms = now - c->told;
    uint64_t bits;
    memcpy(&bits, &ms, sizeof(bits));
    size_t bin = (size_t)(bits >> BIN_SHIFT);
    bin = bin > BIN_FIRST ? bin - BIN_FIRST : 0;
    size_t later = c->wants + 1 < fleet_wants(f->o);
    f->count.bins[later][bin < BINS ? bin : BINS - 1]++;
    f->count.told[later]++;
    f->count.sum += ms;
    c->told = now;
}

/* The call is answered: keep or drop its text, and let its device go on. */
static void fleet_finish(struct fleet *f, uint32_t device, double now)
{
    struct fleet_client *c = &f->clients[device];
    fleet_link(f, device);
    c->read = c->held;
    if (!f->o->cache)
        fleet_drop(f, c);
    f->count.calls++;
    fleet_hear(&c->device, f->o, now, &f->count.answers);
    fleet_send(f, device);
}

/* Run one pass over the admitted calls. */
static void fleet_pass(struct fleet *f)
{
    size_t budget = f->o->chunk ? f->o->chunk : SIZE_MAX, read = 0, written = 0, stay = 0;
    size_t n = f->nactive;
    for (size_t i = 0; i < n; i++) {
        struct fleet_client *c = &f->clients[f->active[i]];
        size_t take = c->left < budget - read ? c->left : budget - read;
        written += !c->left;
        c->wants -= take == c->left;
        c->left -= take;
        read += take;
    }
    double work = 1000 * ((double)read / f->o->prefill + (double)written / f->o->decode);
    double ms = work > f->o->step_ms ? work : f->o->step_ms;
    f->now += ms;
    f->count.work += work;
    f->count.busy += ms;
    f->count.passes++;
    f->count.joined += n;
    f->unread -= read;
    for (size_t i = 0; i < n; i++) {
        uint32_t device = f->active[i];
        struct fleet_client *c = &f->clients[device];
        double now = f->now + f->o->latency_ms / 2;
        if (!c->left)
            fleet_count(f, c, now);
        if (c->left || c->wants)
            f->active[stay++] = device;
        else
            fleet_finish(f, device, now);
    }
    f->nactive = stay;
}

/* Run until enough answers and calls have ended since counting began, which is the first or the
 * second such part of a simulation. */
static int fleet_until_enough(struct fleet *f, size_t part, struct progress_count *shown,
                              struct err *err)
{
    size_t enough = f->n > LEAST / LEAST_EACH ? LEAST_EACH * f->n : LEAST, done;
    const size_t *answers = &f->count.answers.n, *calls = &f->count.calls;
    double way = f->o->latency_ms / 2;
    while ((done = *answers < *calls ? *answers : *calls) < enough) {
        if (interrupted)
            return err_set(err, ERR_STOP, "interrupted");
        if (shown && f->count.passes % PASSES_SHOWN == 0)
            progress_counted(shown, part * enough + done, 2 * enough);
        if (!f->nactive && !f->nqueue && f->now < f->clients[f->heap[0]].device.asked + way)
            f->now = f->clients[f->heap[0]].device.asked + way;
        while (f->nheap && f->clients[f->heap[0]].device.asked + way <= f->now)
            f->queue[(f->first + f->nqueue++) % f->n] = fleet_receive(f);
        while (f->nqueue && (!f->o->batch || f->nactive < f->o->batch) &&
               (!f->o->chunk || f->unread < f->o->chunk) && fleet_admit(f))
            ;
        fleet_pass(f);
    }
    return OK;
}

/* Return the time below which this share of the times of first or later tokens lies, whichever is
 * the larger; 0 for those that there are none of. */
static double fleet_quantile(const struct fleet *f, double share)
{
    double most = 0;
    for (size_t later = 0; later < 2; later++) {
        size_t below = 0, bin = 0, all = f->count.told[later];
        while (bin < BINS - 1 && (double)(below += f->count.bins[later][bin]) < share * (double)all)
            bin++;
        uint64_t bits =
            ((uint64_t)(bin + BIN_FIRST) << BIN_SHIFT) + (UINT64_C(1) << (BIN_SHIFT - 1));
        double ms;
        memcpy(&ms, &bits, sizeof(ms));
        most = all && ms > most ? ms : most;
    }
    return most;
}

static void fleet_describe(struct fleet_load *out, const struct fleet *f)
{
    double s = (f->now - f->since) / 1000, calls = (double)f->count.calls;
    size_t answers = f->count.answers.n;
    *out = (struct fleet_load){
        .load = f->count.work / (1000 * s),
        .busy = f->count.busy / (1000 * s),
        .calls = calls / s,
        .batch = (double)f->count.joined / (double)f->count.passes,
        .read = (double)f->count.tokens_read / calls,
        .p50 = fleet_quantile(f, 0.5),
        .p95 = fleet_quantile(f, 0.95),
        .mean = f->count.sum / (double)(f->count.told[0] + f->count.told[1]),
        .answers = (double)answers / s,
        .answer_ms = answers ? f->count.answers.ms / (double)answers : 0,
    };
}

/* Let every device make its first call, and run both parts. */
static int fleet_simulate(struct fleet *f, struct progress_count *shown, struct err *err)
{
    f->clients[f->n].older = f->clients[f->n].newer = (uint32_t)f->n;
    for (size_t i = 0; i < f->n; i++) {
        fleet_device(&f->clients[i].device, f->o, i, &f->count.answers);
        fleet_send(f, (uint32_t)i);
    }
    int rc = fleet_until_enough(f, 0, shown, err);
    memset(&f->count, 0, sizeof(f->count));
    f->since = f->now;
    return rc ? rc : fleet_until_enough(f, 1, shown, err);
}

int fleet_run(struct fleet_load *out, const struct fleet_options *o, size_t n,
              struct progress_count *shown, struct err *err)
{
    if (o->kv && o->prompt + o->tokens > o->kv)
        return err_set(err, ERR_ARG, "--kv: expected room for prompt and answer, found %zu", o->kv);
    struct fleet *f = calloc(1, sizeof(*f));
    struct fleet_client *clients = calloc(n + 1, sizeof(*clients));
    uint32_t *lists = calloc(3 * n, sizeof(*lists));
    int rc = f && clients && lists ? OK : err_set(err, ERR_NOMEM, "fleet: out of memory");
    if (rc == OK) {
        f->o = o;
        f->n = n;
        f->clients = clients;
        f->heap = lists;
        f->queue = lists + n;
        f->active = lists + 2 * n;
        rc = fleet_simulate(f, shown, err);
    }
    if (rc == OK)
        fleet_describe(out, f);
    free(lists);
    free(clients);
    free(f);
    return rc;
}

int fleet_carries(size_t *devices, const struct fleet_options *o, double p95_ms,
                  struct progress_count *shown, struct err *err)
{
    size_t low = 0, high = 0; /* low carries; high does not, and is 0 until that is found */
    while (low < FLEET_MOST && (!high || high - low > 1 + low / 100)) {
        struct fleet_load load;
        size_t doubled = 2 * low < FLEET_MOST ? 2 * low : FLEET_MOST;
        size_t n = high ? low + (high - low) / 2 : low ? doubled : 1;
        int rc = fleet_run(&load, o, n, shown, err);
        if (rc)
            return rc;
        if (load.p95 <= p95_ms)
            low = n;
        else
            high = n;
    }
    *devices = low;
    return OK;
}
