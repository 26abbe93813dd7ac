#include "tools/clock/fleet_model.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"

/* At least so many answers and calls are counted, of all devices and of each on average; progress
 * is shown after so many passes. */
enum { LEAST = 10000, LEAST_EACH = 4, PASSES_SHOWN = 1024 };

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
    const struct fleet_habits *h;
    const struct fleet_server *s;
    size_t n;
    struct fleet_client *clients; /* [n + 1]; the last is head and end of the list of texts */
    uint32_t *heap;               /* [n] devices whose calls are on their way, soonest first */
    uint32_t *queue;              /* [n] ring of devices whose calls have arrived */
    uint32_t *active;             /* [n] admitted, in order of admission */
    size_t nheap, first, nqueue, nactive;
    size_t used;   /* places taken */
    size_t unread; /* of the admitted calls */
    double now;
    /* counted: */
    uint32_t *bins; /* [2][BINS]: of first tokens of calls, of later ones */
    size_t told[2];
    size_t calls, passes, joined, tokens_read;
    double sum, work, busy, since;
    struct fleet_answers answers;
};

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

/* Admit the call at the head of the queue. False: there is no room. */
static bool fleet_admit(struct fleet *f)
{
    uint32_t device = f->queue[f->first];
    struct fleet_client *c = &f->clients[device];
    size_t text = f->h->prompt + c->device.token, wants = fleet_device_wants(f->h);
    if (c->held && c->answer != c->device.answer)
        fleet_drop(f, c);
    size_t more = text + wants - 1 - c->held;
    for (uint32_t old; f->s->kv && f->used + more > f->s->kv;) {
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
    c->wants = wants;
    f->unread += c->left;
    f->tokens_read += c->left;
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
    size_t later = c->wants + 1 < fleet_device_wants(f->h);
    f->bins[later * BINS + (bin < BINS ? bin : BINS - 1)]++;
    f->told[later]++;
    f->sum += ms;
    c->told = now;
}

/* The call is answered: keep or drop its text, and let its device go on. */
static void fleet_finish(struct fleet *f, uint32_t device, double now)
{
    struct fleet_client *c = &f->clients[device];
    fleet_link(f, device);
    c->read = c->held;
    if (!f->s->cache)
        fleet_drop(f, c);
    f->calls++;
    fleet_device_hear(&c->device, f->h, now, &f->answers);
    c->told = c->device.asked;
    fleet_send(f, device);
}

/* Run one pass over the admitted calls. */
static void fleet_pass(struct fleet *f)
{
    size_t budget = f->s->chunk ? f->s->chunk : SIZE_MAX, read = 0, written = 0, stay = 0;
    size_t n = f->nactive;
    for (size_t i = 0; i < n; i++) {
        struct fleet_client *c = &f->clients[f->active[i]];
        size_t take = c->left < budget - read ? c->left : budget - read;
        written += !c->left;
        c->wants -= take == c->left;
        c->left -= take;
        read += take;
    }
    double work = 1000 * ((double)read / f->s->prefill + (double)written / f->s->decode);
    double ms = work > f->s->step_ms ? work : f->s->step_ms;
    f->now += ms;
    f->work += work;
    f->busy += ms;
    f->passes++;
    f->joined += n;
    f->unread -= read;
    for (size_t i = 0; i < n; i++) {
        uint32_t device = f->active[i];
        struct fleet_client *c = &f->clients[device];
        double now = f->now + f->s->latency_ms / 2;
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
    double way = f->s->latency_ms / 2;
    while ((done = f->answers.n < f->calls ? f->answers.n : f->calls) < enough) {
        if (interrupted)
            return err_set(err, ERR_STOP, "interrupted");
        if (shown && f->passes % PASSES_SHOWN == 0)
            progress_counted(shown, part * enough + done, 2 * enough);
        if (!f->nactive && !f->nqueue && f->now < f->clients[f->heap[0]].device.asked + way)
            f->now = f->clients[f->heap[0]].device.asked + way;
        while (f->nheap && f->clients[f->heap[0]].device.asked + way <= f->now)
            f->queue[(f->first + f->nqueue++) % f->n] = fleet_receive(f);
        while (f->nqueue && (!f->s->batch || f->nactive < f->s->batch) &&
               (!f->s->chunk || f->unread < f->s->chunk) && fleet_admit(f))
            ;
        fleet_pass(f);
    }
    return OK;
}

/* Begin to count. */
static void fleet_reset(struct fleet *f)
{
    memset(f->bins, 0, 2 * (size_t)BINS * sizeof(*f->bins));
    f->told[0] = f->told[1] = 0;
    f->calls = f->passes = f->joined = f->tokens_read = 0;
    f->sum = f->work = f->busy = 0;
    f->since = f->now;
    f->answers = (struct fleet_answers){ 0 };
}

/* Return the time below which this share of the first or later tokens' times lies; 0 if there are
 * none. */
static double fleet_quantile(const struct fleet *f, size_t later, double share)
{
    const uint32_t *bins = f->bins + later * BINS;
    size_t below = 0, bin = 0;
    if (!f->told[later])
        return 0;
    while (bin < BINS - 1 && (double)(below += bins[bin]) < share * (double)f->told[later])
        bin++;
    uint64_t bits = ((uint64_t)(bin + BIN_FIRST) << BIN_SHIFT) + (UINT64_C(1) << (BIN_SHIFT - 1));
    double ms;
    memcpy(&ms, &bits, sizeof(ms));
    return ms;
}

static double fleet_larger(const struct fleet *f, double share)
{
    double first = fleet_quantile(f, 0, share), later = fleet_quantile(f, 1, share);
    return first > later ? first : later;
}

static void fleet_describe(struct fleet_load *out, const struct fleet *f)
{
    double s = (f->now - f->since) / 1000;
    *out = (struct fleet_load){
        .load = f->work / (1000 * s),
        .busy = f->busy / (1000 * s),
        .calls = (double)f->calls / s,
        .batch = (double)f->joined / (double)f->passes,
        .read = (double)f->tokens_read / (double)f->calls,
        .p50 = fleet_larger(f, 0.5),
        .p95 = fleet_larger(f, 0.95),
        .mean = f->sum / (double)(f->told[0] + f->told[1]),
        .answers = (double)f->answers.n / s,
        .answer_ms = f->answers.n ? f->answers.ms / (double)f->answers.n : 0,
    };
}

static void fleet_close(struct fleet *f)
{
    free(f->clients);
    free(f->heap);
    free(f->queue);
    free(f->active);
    free(f->bins);
}

/* Allocate the fleet, and let every device make its first call. */
static int fleet_open(struct fleet *f, struct err *err)
{
    f->clients = calloc(f->n + 1, sizeof(*f->clients));
    f->heap = calloc(f->n, sizeof(*f->heap));
    f->queue = calloc(f->n, sizeof(*f->queue));
    f->active = calloc(f->n, sizeof(*f->active));
    f->bins = calloc(2 * (size_t)BINS, sizeof(*f->bins));
    if (!f->clients || !f->heap || !f->queue || !f->active || !f->bins) {
        fleet_close(f);
        return err_set(err, ERR_NOMEM, "fleet: out of memory");
    }
    f->clients[f->n].older = f->clients[f->n].newer = (uint32_t)f->n;
    for (size_t i = 0; i < f->n; i++) {
        struct fleet_client *c = &f->clients[i];
        fleet_device_open(&c->device, f->h, i, &f->answers);
        c->told = c->device.asked;
        fleet_send(f, (uint32_t)i);
    }
    return OK;
}

int fleet_model_run(struct fleet_load *out, const struct fleet_habits *h,
                    const struct fleet_server *s, size_t n, struct progress_count *shown,
                    struct err *err)
{
    struct fleet f = { .h = h, .s = s, .n = n };
    if (s->kv && h->prompt + h->tokens > s->kv)
        return err_set(err, ERR_ARG, "--kv: expected room for prompt and answer, found %zu", s->kv);
    int rc = fleet_open(&f, err);
    if (rc)
        return rc;
    rc = fleet_until_enough(&f, 0, shown, err);
    fleet_reset(&f);
    if (rc == OK)
        rc = fleet_until_enough(&f, 1, shown, err);
    if (rc == OK)
        fleet_describe(out, &f);
    fleet_close(&f);
    return rc;
}

int fleet_model_carries(size_t *devices, struct fleet_load *at, const struct fleet_habits *h,
                        const struct fleet_server *s, double p95_ms, struct progress_count *shown,
                        struct err *err)
{
    size_t low = 0, high = 1;
    *at = (struct fleet_load){ 0 };
    /* low carries, high does not once it has been tried: doubled first, then halved. */
    for (bool found = false; !found || high - low > 1 + low / 100;) {
        struct fleet_load load;
        size_t n = found ? low + (high - low) / 2 : high;
        int rc = fleet_model_run(&load, h, s, n, shown, err);
        if (rc)
            return rc;
        if (load.p95 <= p95_ms) {
            low = n;
            *at = load;
        } else {
            high = n;
            found = true;
        }
        if (!found && low == FLEET_MOST)
            break;
        if (!found)
            high = 2 * low < FLEET_MOST ? 2 * low : FLEET_MOST;
    }
    *devices = low;
    return OK;
}
