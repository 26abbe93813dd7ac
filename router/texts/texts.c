#include "router/texts/texts.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/os.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/engine.h"
#include "router/routing.h"
#include "router/texts/texts_internal.h"

enum {
    PIECE_MS = 40,
    AGAIN_MS = 600000,
    KEEP = 8,
    LOOK_NS = 20000000 /* between looks at `stop` */
};

void texts_take_out(struct texts *e, struct text *t)
{
    struct text **at = &e->queue;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    if (!*at)
        e->queue_end = at;
}

/* Callback of the cloud: an answer may be there. */
static void texts_wake(void *arg)
{
    struct texts *e = arg;
    pthread_mutex_lock(&e->lock);
    e->woken = true;
    pthread_cond_signal(&e->work);
    pthread_mutex_unlock(&e->lock);
}

void texts_finish(struct text *t, int rc, const char *why)
{
    struct texts *e = t->texts;
    const struct decode_stats *s = &t->view.stats;
    t->state = TEXT_FINISHED;
    t->view.finished = t->fresh = true;
    t->view.waiting = false;
    t->view.rc = rc;
    err_set(&t->err, rc, "%s", rc == OK ? "" : why);
    if (t->slot) {
        t->slot->text = NULL;
        e->count.busy--;
    }
    t->slot = NULL;
    *(rc == OK ? &e->count.finished : rc == ERR_STOP ? &e->count.stopped : &e->count.failed) += 1;
    e->count.calls += s->calls;
    pthread_cond_broadcast(&t->news);
}

void texts_tell(struct text *t)
{
    struct texts *e = t->texts;
    t->shown = t->view.n;
    if (!t->fresh || t->dropped)
        return;
    t->fresh = false;
    pthread_cond_broadcast(&t->news);
    if (!t->wish.news)
        return;
    e->telling = t;
    pthread_mutex_unlock(&e->lock);
    t->wish.news(t->wish.news_arg);
    pthread_mutex_lock(&e->lock);
    e->telling = NULL;
    pthread_cond_broadcast(&e->told);
}

/* Open what the engine thread computes with. */
static int texts_open_model(struct texts *e, const struct texts_options *o, struct err *err)
{
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    e->batch = o->engine->batch;
    e->vocab = o->engine->model->config.vocab;
    e->size = tokenizer_size(o->engine->tokenizer);
    int rc = session_open(&e->slot[0].session, e->batch, e->context, e->kv, err);
    if (rc == OK)
        rc = sampler_open(&e->sampler, &greedy, e->size, &o->engine->kernels, err);
    if (rc != OK)
        return rc;
    e->runs = pthread_create(&e->thread, NULL, texts_run, e) == 0;
    if (!e->runs)
        return err_set(err, ERR_NOMEM, "texts: no thread can be started");
    if (e->port)
        e->port->notify(e->port->arg, texts_wake, e);
    return OK;
}

int texts_fit(size_t *out, const struct engine *e, size_t context, enum kvcache kv, struct err *err)
{
    enum { MEMORY_SHARE = 8 };
    size_t bytes = 0, cache;
    int rc = session_size(&bytes, &cache, &e->model->config, context, kv, err);
    uint64_t fit = rc == OK ? os_memory() / MEMORY_SHARE / bytes : 1;
    *out = fit < 1 ? 1 : fit < TEXTS_SLOTS ? (size_t)fit : (size_t)TEXTS_SLOTS;
    return rc;
}

int texts_open(struct texts **out, const struct texts_options *o, struct err *err)
{
    *out = NULL;
    if (!o->slots || o->slots > TEXTS_SLOTS || !o->context)
        return err_set(err, ERR_ARG, "texts: expected 1 to %d slots and a context, found %zu",
                       TEXTS_SLOTS, o->slots);
    struct texts *e = calloc(1, sizeof(*e));
    if (!e)
        return err_set(err, ERR_NOMEM, "texts: out of memory");
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    pthread_cond_init(&e->told, NULL);
    e->queue_end = &e->queue;
    e->engine = o->engine;
    e->routing = o->routing;
    e->port = o->routing ? routing_port(o->routing) : NULL;
    e->nslots = o->slots;
    e->limit = o->queue;
    e->keep = o->keep ? o->keep : (size_t)KEEP;
    e->turn = o->turn ? o->turn : o->routing ? o->routing->turn : NULL;
    e->context = o->context;
    e->kv = o->kv;
    e->piece_ns = (o->piece_ms ? o->piece_ms : PIECE_MS) * UINT64_C(1000000);
    e->stop = o->stop;
    e->again_ns = (o->again_ms ? o->again_ms : AGAIN_MS) * UINT64_C(1000000);
    int rc = texts_open_model(e, o, err);
    if (rc != OK) {
        texts_close(e);
        return rc;
    }
    *out = e;
    return OK;
}

/* End every text. With the lock. */
static void texts_end_all(struct texts *e)
{
    e->stopped = e->woken = true;
    atomic_store(&e->halt, 1);
    pthread_cond_signal(&e->work);
}

void texts_stop(struct texts *e)
{
    pthread_mutex_lock(&e->lock);
    texts_end_all(e);
    pthread_mutex_unlock(&e->lock);
}

void texts_forget(struct texts *e)
{
    pthread_mutex_lock(&e->lock);
    e->forgets = true; /* before the next text gets a slot */
    pthread_mutex_unlock(&e->lock);
}

void texts_close(struct texts *e)
{
    if (!e)
        return;
    texts_stop(e);
    pthread_mutex_lock(&e->lock);
    e->closing = true;
    pthread_mutex_unlock(&e->lock);
    texts_wake(e);
    if (e->runs && e->port)
        e->port->notify(e->port->arg, NULL, NULL);
    if (e->runs)
        pthread_join(e->thread, NULL);
    for (size_t i = 0; i < TEXTS_SLOTS; i++)
        session_close(e->slot[i].session);
    sampler_close(e->sampler);
    pthread_cond_destroy(&e->told);
    pthread_cond_destroy(&e->work);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

/* Put a text that has been made into a queue. With the lock. */
static int texts_enqueue(struct texts *e, struct text *t, struct err *err)
{
    if (e->stopped)
        return err_set(err, ERR_STOP, "texts: stopping");
    if (e->count.waiting + e->count.busy >= e->limit + e->nslots)
        return err_set(err, ERR_NET, "The request queue is full.");
    *e->queue_end = t;
    e->queue_end = &t->next;
    e->count.waiting++;
    e->count.asked++;
    e->woken = true;
    pthread_cond_signal(&e->work);
    return OK;
}

int texts_ask(struct texts *e, struct text **out, const struct text_wish *wish, struct err *err)
{
    struct text *t;
    *out = NULL;
    int rc = texts_make(&t, e, wish, err);
    if (rc != OK)
        return rc;
    pthread_mutex_lock(&e->lock);
    rc = texts_enqueue(e, t, err);
    pthread_mutex_unlock(&e->lock);
    if (rc == OK)
        *out = t;
    else
        texts_free(t);
    return rc;
}

/* Return what the caller may see: the latest tokens only once it is known whether the text goes on
 * after them. With the lock. */
static struct text_view texts_visible(const struct text *t)
{
    struct text_view view = t->view;
    if (!view.finished)
        view.n = view.stats.tokens = t->shown;
    return view;
}

struct text_view text_look(struct text *t)
{
    pthread_mutex_lock(&t->texts->lock);
    struct text_view view = texts_visible(t);
    pthread_mutex_unlock(&t->texts->lock);
    return view;
}

struct text_view text_wait(struct text *t, size_t have)
{
    struct texts *e = t->texts;
    pthread_mutex_lock(&e->lock);
    while (t->shown <= have && !t->view.finished) {
        os_cond_wait(&t->news, &e->lock, os_now_ns() + LOOK_NS);
        if (e->stop && *e->stop && !e->stopped)
            texts_end_all(e);
    }
    struct text_view view = texts_visible(t);
    pthread_mutex_unlock(&e->lock);
    return view;
}

size_t text_events(struct text *t, size_t from, struct decode_event *out, size_t room)
{
    pthread_mutex_lock(&t->texts->lock);
    size_t n = from < t->view.nevents ? t->view.nevents - from : 0;
    n = n < room ? n : room;
    if (n)
        memcpy(out, t->events + from, n * sizeof(*out));
    pthread_mutex_unlock(&t->texts->lock);
    return n;
}

/* Make the engine thread notice that the text is to end. With the lock. */
static void texts_interrupt(struct text *t)
{
    struct texts *e = t->texts;
    atomic_store(&t->stop, 1);
    if (e->single == t)
        atomic_store(&e->halt, 1);
    e->woken = true;
    pthread_cond_signal(&e->work);
}

void text_cancel(struct text *t)
{
    pthread_mutex_lock(&t->texts->lock);
    texts_interrupt(t);
    pthread_mutex_unlock(&t->texts->lock);
}

void text_drop(struct text *t)
{
    if (!t)
        return;
    struct texts *e = t->texts;
    pthread_mutex_lock(&e->lock);
    while (e->telling == t)
        pthread_cond_wait(&e->told, &e->lock);
    t->dropped = true;
    if (t->state == TEXT_QUEUED) {
        texts_take_out(e, t);
        e->count.waiting--;
        texts_finish(t, ERR_STOP, "dropped");
    }
    bool mine = t->state == TEXT_FINISHED; /* else the engine thread frees it */
    if (!mine)
        texts_interrupt(t);
    pthread_mutex_unlock(&e->lock);
    if (mine)
        texts_free(t);
}

struct texts_counts texts_count(struct texts *e)
{
    pthread_mutex_lock(&e->lock);
    struct texts_counts count = e->count;
    count.slots = e->nslots;
    pthread_mutex_unlock(&e->lock);
    return count;
}

bool texts_busy(struct texts *e, size_t i)
{
    pthread_mutex_lock(&e->lock);
    bool busy = i < e->nslots && e->slot[i].text;
    pthread_mutex_unlock(&e->lock);
    return busy;
}
