/* texts_run.c - the engine thread: rounds of asking every text what it wants, then one pass for all
 * that want one. */
#include <string.h>

#include "kernels/sys/os.h"
#include "model/model.h"
#include "model/sample.h"
#include "net/cloud.h"
#include "router/routing.h"
#include "router/texts/texts_internal.h"
#include "router/texts/turn.h"

enum { NAP_NS = 50000 /* between looks for a draft that is coming */ };

/* The texts that have a slot, the oldest first. */
struct texts_round {
    struct texts *e;
    struct text *list[TEXTS_SLOTS];
    size_t n;
    bool moved; /* something has changed that may change what others want */
    bool nap;   /* a text waits a moment for its draft */
};

/* Take the text out of the round: it has ended. */
static void texts_leave(struct texts_round *r, size_t i, int rc, const struct err *why)
{
    struct text *t = r->list[i];
    struct texts *e = r->e;
    struct err err = *why;
    if (t->step) {
        int end = step_close(t->step, &err);
        rc = rc == OK ? end : rc;
    }
    t->step = NULL;
    memmove(&r->list[i], &r->list[i + 1], (--r->n - i) * sizeof(r->list[0]));
    r->moved = true;
    pthread_mutex_lock(&e->lock);
    texts_show_stats(t);
    t->view.ended =
        rc == OK && t->view.n && (t->stats.finish == FINISH_EOS || t->stats.finish == FINISH_STOP);
    texts_finish(t, rc, err.msg);
    bool dropped = t->dropped;
    texts_tell(t);
    pthread_mutex_unlock(&e->lock);
    if (dropped)
        texts_free(t);
}

/* Open the text if its beginning is there, or nobody is about to read it. */
static int texts_try_begin(struct texts_round *r, struct text *t, struct err *err)
{
    struct texts *e = r->e;
    if (texts_waits(e, t))
        return OK;
    size_t same = texts_enter(e, t);
    int rc = texts_begin(t, err);
    if (rc != OK)
        return rc;
    pthread_mutex_lock(&e->lock);
    t->state = TEXT_OPEN;
    t->view.cached = t->view.read = same;
    t->fresh = t->fresh || same;
    e->count.cached_tokens += same;
    pthread_mutex_unlock(&e->lock);
    r->moved = true;
    return OK;
}

/* Ask text i what it wants; false: it has ended and left the round. */
static bool texts_look_at(struct texts_round *r, size_t i)
{
    static const struct step_need waits = { .want = STEP_CLOUD };
    struct text *t = r->list[i];
    struct err err = { "" };
    int rc = OK;
    if (!t->step && atomic_load(&t->stop))
        rc = err_set(&err, ERR_STOP, "interrupted");
    else if (!t->step)
        rc = texts_try_begin(r, t, &err);
    if (rc != OK) {
        texts_leave(r, i, rc, &err);
        return false;
    }
    t->need = t->step ? step_next(t->step) : &waits;
    if (t->need->want == STEP_DONE) {
        texts_leave(r, i, OK, &err);
        return false;
    }
    r->nap = r->nap || t->need->want == STEP_MOMENT;
    return true;
}

/* Return a number that is another one when any text has decided or asked something. */
static uint64_t texts_progress(const struct texts_round *r)
{
    uint64_t sum = r->e->routing ? r->e->routing->gate.out : 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct decode_stats *s = &r->list[i]->stats;
        const size_t counts[] = { s->tokens, s->calls, s->committed, s->failed };
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
            sum = 31 * sum + counts[k];
    }
    return sum;
}

/* A row whose head is wanted. */
struct texts_head {
    struct text *text;
    size_t at;
};

/* Read the head for these rows, and give it to their texts. */
static void texts_give_some(struct texts *e, const struct texts_head *h, size_t n)
{
    size_t rows[TEXTS_HEADS] = { 0 };
    struct err err;
    for (size_t i = 0; i < n; i++)
        session_row(&rows[i], h[i].text->slot->session, h[i].at);
    int rc = batch_logits(e->batch, rows, n, &err);
    for (size_t i = 0; i < n; i++) {
        struct text *t = h[i].text;
        int code = rc;
        if (code == OK) {
            const float *logits = batch_logits_at(e->batch, rows[i]);
            sampler_set(e->sampler, &t->wish.sample);
            if (t->wish.row)
                t->wish.row(t->wish.row_arg, session_ids(t->slot->session), h[i].at, e->batch,
                            rows[i]);
            step_give_head(t->step, h[i].at, logits);
            if (t->wish.logprobs)
                code = texts_note_head(t, h[i].at, logits, batch_hidden(e->batch, rows[i]), &err);
        }
        if (code != OK)
            step_fail(t->step, code, &err);
    }
}

/* Give the texts the heads that they want, TEXTS_HEADS at a time; false: none wants any. */
static bool texts_give_heads(struct texts_round *r)
{
    struct texts_head list[TEXTS_HEADS];
    size_t count = 0;
    bool any = false;
    for (size_t i = 0; i < r->n; i++) {
        const struct step_need *need = r->list[i]->need;
        size_t n = need->want == STEP_HEAD ? need->n : 0;
        for (size_t k = 0; k < n; k++) {
            list[count++] = (struct texts_head){ r->list[i], need->at[k] };
            if (count == TEXTS_HEADS) {
                texts_give_some(r->e, list, count);
                count = 0;
            }
        }
        any = any || n;
    }
    if (count)
        texts_give_some(r->e, list, count);
    return any;
}

/* Take the texts that have a slot, the oldest first. With the lock. */
static void texts_gather(struct texts_round *r)
{
    struct texts *e = r->e;
    r->n = 0;
    for (size_t i = 0; i < TEXTS_SLOTS; i++) {
        struct text *t = e->slot[i].text;
        size_t at = r->n;
        if (!t)
            continue;
        for (; at && r->list[at - 1]->age > t->age; at--)
            r->list[at] = r->list[at - 1];
        r->list[at] = t;
        r->n++;
    }
}

/* Ask the texts what they want, and read the head for all at once, until they want passes or the
 * cloud. */
static void texts_settle(struct texts_round *r)
{
    do {
        r->nap = false;
        for (size_t i = 0; i < r->n;)
            i += texts_look_at(r, i);
        pthread_mutex_lock(&r->e->lock);
        for (size_t i = 0; i < r->n; i++)
            texts_tell(r->list[i]);
        pthread_mutex_unlock(&r->e->lock);
    } while (texts_give_heads(r));
}

/* Notice that the cloud refuses, and after a while let it be asked again. */
static void texts_forgive(struct texts *e)
{
    struct routing *r = e->routing;
    uint64_t now = os_now_ns();
    if (!r || !r->gate.refused) {
        e->refused_at = 0;
    } else if (!e->refused_at) {
        e->refused_at = now;
    } else if (now - e->refused_at >= e->again_ns) {
        gate_forgive(&r->gate);
        if (r->cloud)
            cloud_forgive(r->cloud);
    }
}

/* Do one round. False: there is nothing to do until somebody wakes the thread. */
static bool texts_go_round(struct texts_round *r)
{
    uint64_t before = texts_progress(r), start = os_now_ns();
    texts_forgive(r->e);
    texts_settle(r);
    bool passed = texts_pass(r->e, r->list, r->n);
    if (passed)
        texts_settle(r);
    bool busy = passed || r->moved || texts_progress(r) != before;
    pthread_mutex_lock(&r->e->lock);
    r->e->count.busy_ns += os_now_ns() - start;
    pthread_mutex_unlock(&r->e->lock);
    if (busy)
        return true;
    if (r->nap)
        os_nap(NAP_NS);
    return r->nap;
}

/* End the texts of the queue that have been cancelled. With the lock. */
static void texts_sweep(struct texts *e)
{
    for (struct text *t = e->queue, *next; t; t = next) {
        next = t->next;
        if (!e->stopped && !atomic_load(&t->stop))
            continue;
        texts_take_out(e, t);
        e->count.waiting--;
        texts_finish(t, ERR_STOP, "interrupted");
        texts_tell(t); /* without the lock for a while: begin again */
        next = e->queue;
    }
    for (size_t i = 0; e->stopped && i < TEXTS_SLOTS; i++)
        if (e->slot[i].text)
            atomic_store(&e->slot[i].text->stop, 1);
}

/* Show what the routing says of the cloud. With the lock. */
static void texts_count_cloud(struct texts *e)
{
    if (!e->routing)
        return;
    e->count.refused = e->routing->gate.refused;
    e->count.again = (e->refused_at ? e->refused_at : os_now_ns()) + e->again_ns;
    e->count.paused = e->routing->gate.breaker.pause > 0;
    e->count.lost = e->routing->gate.lost;
    e->count.why = e->routing->gate.fault;
}

/* A turn lasts from one pass to what follows from it. When it is over, all texts have told their
 * news and asked what they want to know, so whoever comes next finds it all and has it in one pass;
 * else texts that began at different times would never share one. */
void *texts_run(void *arg)
{
    struct texts *e = arg;
    struct texts_round r = { .e = e };
    for (bool open = true; open;) {
        turn_take(e->turn);
        pthread_mutex_lock(&e->lock);
        e->woken = false;
        texts_sweep(e);
        texts_admit(e);
        texts_gather(&r);
        texts_count_cloud(e);
        open = !e->closing || r.n;
        pthread_mutex_unlock(&e->lock);
        r.moved = false;
        bool busy = r.n && texts_go_round(&r);
        turn_give(e->turn);
        pthread_mutex_lock(&e->lock);
        while (open && !busy && !e->woken)
            pthread_cond_wait(&e->work, &e->lock);
        pthread_mutex_unlock(&e->lock);
    }
    return NULL;
}
