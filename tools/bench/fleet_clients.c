#include "tools/bench/fleet_clients.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "model/text/tokenizer.h"
#include "net/cloud.h"
#include "tools/bench/bench.h"
#include "tools/bench/synthetic_vocab.h"
#include "tools/cli/setup.h"
#include "tools/stand_in/stand_in.h"

enum { VOCAB = 4096, TIMEOUT_MS = 60000, NAP_MS = 50, ANSWER = 7 };

/* A call that the server computes. */
struct fleet_ticket {
    size_t read; /* tokens */
    bool done;
    struct fleet_ticket *next;
};

/* The server's computing: calls wait in a list, and one of their threads runs the next pass. */
struct fleet_passes {
    const struct fleet_server *s;
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct fleet_ticket *first, **end;
    bool running;
    struct {
        uint32_t answer;
        size_t read;
    } texts[FLEET_CLIENTS]; /* what the cache holds of each client */
};

struct fleet_worker {
    pthread_t thread;
    struct fleet_crowd *crowd;
    struct fleet_device device;
    struct cloud *cloud;
    uint32_t *ids; /* [prompt + tokens] */
    double *times; /* [ncalls] */
    size_t ncalls, room;
    struct fleet_answers answers;
    int rc;
    struct err err;
};

/* What all clients share. */
struct fleet_crowd {
    const struct fleet_habits *h;
    uint64_t start;  /* os_now_ns at the script's time 0 */
    double from, to; /* ms of the measurement */
    _Atomic int stop;
    struct fleet_worker workers[FLEET_CLIENTS];
};

static void fleet_clients_sleep(double ms)
{
    uint64_t ns = ms > 0 ? (uint64_t)(ms * 1e6) : 0;
    const struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    nanosleep(&t, NULL);
}

/* Run a pass over the first calls of the list. Called with the lock, which it releases while the
 * pass takes its time. */
static void fleet_clients_pass(struct fleet_passes *p)
{
    struct fleet_ticket *first = p->first, *last = first;
    size_t read = first->read;
    for (size_t n = 1; n < p->s->batch && last->next; n++) {
        last = last->next;
        read += last->read;
    }
    p->first = last->next;
    if (!p->first)
        p->end = &p->first;
    last->next = NULL;
    double ms = 1000 * (double)read / p->s->prefill;
    p->running = true;
    pthread_mutex_unlock(&p->lock);
    fleet_clients_sleep(ms > p->s->step_ms ? ms : p->s->step_ms);
    pthread_mutex_lock(&p->lock);
    p->running = false;
    while (first) {
        struct fleet_ticket *next = first->next;
        first->done = true;
        first = next;
    }
    pthread_cond_broadcast(&p->change);
}

/* The oracle of the stand-in: wait for a pass. ids[0] is the client, ids[1] its answer. */
static uint32_t fleet_clients_next(void *arg, const uint32_t *ids, size_t n)
{
    struct fleet_passes *p = arg;
    struct fleet_ticket mine = { .read = n };
    size_t client = ids[0] % FLEET_CLIENTS;
    pthread_mutex_lock(&p->lock);
    if (p->s->cache && p->texts[client].answer == ids[1] && p->texts[client].read < n)
        mine.read = n - p->texts[client].read;
    p->texts[client].answer = ids[1];
    p->texts[client].read = n;
    *p->end = &mine;
    p->end = &mine.next;
    while (!mine.done)
        if (p->running)
            pthread_cond_wait(&p->change, &p->lock);
        else
            fleet_clients_pass(p);
    pthread_mutex_unlock(&p->lock);
    return ANSWER;
}

/* Return the script's time. */
static double fleet_clients_now(const struct fleet_crowd *c)
{
    return (double)(os_now_ns() - c->start) / 1e6;
}

/* Sleep until then, in naps, so that an interrupt is noticed. False: the run is over. */
static bool fleet_clients_until(struct fleet_crowd *c, double then)
{
    double left;
    while ((left = then - fleet_clients_now(c)) > 0) {
        if (interrupted || atomic_load(&c->stop) || fleet_clients_now(c) > c->to)
            return false;
        fleet_clients_sleep(left < NAP_MS ? left : NAP_MS);
    }
    return !interrupted && !atomic_load(&c->stop) && fleet_clients_now(c) <= c->to;
}

/* Note the time of a call that ended within the measurement. False: out of memory. */
static bool fleet_clients_note(struct fleet_worker *w, double ms)
{
    if (w->ncalls == w->room) {
        size_t room = 2 * w->room + 64;
        double *more = realloc(w->times, room * sizeof(*more));
        if (!more)
            return false;
        w->times = more;
        w->room = room;
    }
    w->times[w->ncalls++] = ms;
    return true;
}

/* Thread of a client. */
static void *fleet_clients_work(void *arg)
{
    struct fleet_worker *w = arg;
    struct fleet_crowd *c = w->crowd;
    struct fleet_answers early = { 0 };
    while (w->rc == OK && fleet_clients_until(c, w->device.asked)) {
        uint32_t id;
        double asked = fleet_clients_now(c);
        w->ids[1] = (uint32_t)(w->device.answer % VOCAB);
        w->rc = cloud_next(w->cloud, w->ids, c->h->prompt + w->device.token, &id, &w->err);
        double now = fleet_clients_now(c);
        bool counts = now >= c->from && now <= c->to;
        if (w->rc == OK && counts && !fleet_clients_note(w, now - asked))
            w->rc = err_set(&w->err, ERR_NOMEM, "fleet: out of memory");
        w->device.asked = asked;
        fleet_device_hear(&w->device, c->h, now, counts ? &w->answers : &early);
    }
    if (w->rc)
        atomic_store(&c->stop, 1);
    return NULL;
}

/* Make the clients and their connections. */
static int fleet_clients_open(struct fleet_crowd *c, size_t n, const char *url, struct err *err)
{
    const struct cloud_options o = { .url = url,
                                     .api = CLOUD_SGLANG,
                                     .vocab = VOCAB,
                                     .timeout_ms = TIMEOUT_MS,
                                     .stop = &interrupted };
    size_t room = c->h->prompt + c->h->tokens;
    int rc = OK;
    for (size_t i = 0; i < n && rc == OK; i++) {
        struct fleet_worker *w = &c->workers[i];
        struct fleet_answers none = { 0 };
        w->crowd = c;
        w->ids = calloc(room, sizeof(*w->ids));
        if (!w->ids)
            return err_set(err, ERR_NOMEM, "fleet: out of memory");
        for (size_t k = 1; k < room; k++)
            w->ids[k] = SYNTHETIC_VOCAB_WORDS + (uint32_t)(k % (VOCAB - SYNTHETIC_VOCAB_WORDS));
        w->ids[0] = (uint32_t)i;
        fleet_device_open(&w->device, c->h, i, &none);
        rc = cloud_open(&w->cloud, &o, err);
        if (rc == OK)
            rc = cloud_ready(w->cloud, err);
    }
    return rc;
}

/* Let the clients run, and collect what they measured. */
static int fleet_clients_measure(struct fleet_load *out, struct fleet_crowd *c, size_t n,
                                 double seconds, struct err *err)
{
    size_t started = 0, calls = 0;
    struct fleet_answers answers = { 0 };
    int rc = OK;
    c->from = 250 * seconds;
    c->to = 1250 * seconds;
    c->start = os_now_ns();
    for (; started < n && rc == OK; started++)
        if (pthread_create(&c->workers[started].thread, NULL, fleet_clients_work,
                           &c->workers[started])) {
            atomic_store(&c->stop, 1);
            rc = err_set(err, ERR_IO, "fleet: threads cannot be made");
            break;
        }
    for (size_t i = 0; i < started; i++)
        pthread_join(c->workers[i].thread, NULL);
    for (size_t i = 0; i < n; i++) {
        const struct fleet_worker *w = &c->workers[i];
        calls += w->ncalls;
        answers.n += w->answers.n;
        answers.ms += w->answers.ms;
        if (w->rc && rc == OK) {
            rc = w->rc;
            *err = w->err;
        }
    }
    if (rc == OK && interrupted)
        rc = err_set(err, ERR_STOP, "interrupted");
    double *times = rc == OK && calls ? malloc(calls * sizeof(*times)) : NULL;
    if (!times)
        return rc ? rc : err_set(err, ERR_ARG, "--real: expected time for at least one call");
    size_t at = 0;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < c->workers[i].ncalls; k++)
            sum += times[at++] = c->workers[i].times[k];
    bench_median(times, calls); /* sorts */
    *out = (struct fleet_load){ .calls = (double)calls / seconds,
                                .p50 = times[calls / 2],
                                .p95 = times[(size_t)(0.95 * (double)calls)],
                                .mean = sum / (double)calls,
                                .answers = (double)answers.n / seconds,
                                .answer_ms = answers.n ? answers.ms / (double)answers.n : 0 };
    free(times);
    return OK;
}

int fleet_clients_run(struct fleet_load *out, const struct fleet_habits *h,
                      const struct fleet_server *s, size_t n, double seconds, struct err *err)
{
    struct fleet_passes passes = { .s = s,
                                   .lock = PTHREAD_MUTEX_INITIALIZER,
                                   .change = PTHREAD_COND_INITIALIZER };
    struct fleet_crowd *c = calloc(1, sizeof(*c));
    struct tokenizer *vocab = NULL;
    struct stand_in *server = NULL;
    passes.end = &passes.first;
    if (!c)
        return err_set(err, ERR_NOMEM, "fleet: out of memory");
    c->h = h;
    int rc = synthetic_vocab_open(&vocab, VOCAB, err);
    const struct stand_in_oracle oracle = { fleet_clients_next, &passes, vocab };
    const struct stand_in_options o = { .oracle = &oracle,
                                        .server = STAND_IN_SGLANG,
                                        .slots = FLEET_CLIENTS,
                                        .latency_ms = (unsigned)s->latency_ms,
                                        .context = h->prompt + h->tokens };
    if (rc == OK)
        rc = stand_in_open(&server, &o, err);
    if (rc == OK)
        rc = fleet_clients_open(c, n, stand_in_url(server), err);
    if (rc == OK)
        rc = fleet_clients_measure(out, c, n, seconds, err);
    for (size_t i = 0; i < FLEET_CLIENTS; i++) {
        cloud_close(c->workers[i].cloud);
        free(c->workers[i].ids);
        free(c->workers[i].times);
    }
    stand_in_close(server);
    tokenizer_close(vocab);
    free(c);
    return rc;
}
