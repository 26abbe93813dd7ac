#include "tools/stand_in/engine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "tools/stand_in/engine_internal.h"
#include "tools/stand_in/known_texts.h"

/* Append the job to the end of the list. */
static void stand_in_engine_append(struct list *l, struct stand_in_job *j)
{
    j->next = NULL;
    *l->end = j;
    l->end = &j->next;
}

/* Remove the job, which must be in the list. */
static void stand_in_engine_take_out(struct list *l, struct stand_in_job *j)
{
    struct stand_in_job **at = &l->first;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    if (!*at)
        l->end = at;
}

static void free_job(struct stand_in_job *j)
{
    pthread_cond_destroy(&j->news);
    free(j->at);
    free(j);
}

/* Mark the job finished and free its slot. Called with the lock held, like the functions around
 * it. */
static void stand_in_engine_finish(struct stand_in_job *j, int rc)
{
    j->state = FINISHED;
    j->text.finished = true;
    j->text.rc = rc;
    if (j->slot) {
        j->slot->job = NULL;
        j->engine->look = true;
        pthread_cond_signal(&j->engine->work);
    }
    pthread_cond_broadcast(&j->news);
}

/* Give slots to questions, in the order of the queue. */
static void stand_in_engine_admit(struct stand_in_engine *e)
{
    struct stand_in_job *next;
    e->look = false;
    for (struct stand_in_job *j = e->queue.first; j; j = next) {
        next = j->next;
        struct stand_in_slot *slot = stand_in_slots_choose(&e->slots, j->ids, j->n, j->wanted);
        if (!slot)
            continue;
        stand_in_engine_take_out(&e->queue, j);
        e->waiting--;
        j->slot = slot;
        j->text.slot = (size_t)(slot - e->slots.slot);
        slot->job = j;
        j->state = READY;
        stand_in_engine_append(&e->ready, j);
        pthread_cond_signal(&e->work);
    }
}

static double stand_in_engine_ms_since(uint64_t start)
{
    return (double)(os_now_ns() - start) / 1e6;
}

/* True if the token after the job's text, or why there is none, is known without computing. */
static bool stand_in_engine_knows(struct stand_in_job *j)
{
    struct stand_in_engine *e = j->engine;
    size_t have = j->n + j->text.n; /* only this thread changes it while the job runs */
    j->rc = atomic_load(&j->stop) ? ERR_STOP : OK;
    j->told = j->rc == OK;
    if (j->rc != OK)
        return true;
    if (e->oracle.next) {
        j->next_id = e->oracle.next(e->oracle.arg, j->ids, have);
        return true;
    }
    if (!e->known)
        return false;
    j->rc = known_texts_next(&j->next_id, e->known, j->ids, have);
    j->told = j->rc == OK;
    return j->rc != ERR_TEXT || !e->model;
}

/* Add the job's share to a pass that has room for `room` rows; return its rows. */
static size_t stand_in_engine_add(struct stand_in_job *j, struct batch_part *part, size_t room)
{
    size_t have = j->n + j->text.n;
    j->told = false;
    j->rc = OK;
    if (!j->fed) {
        j->fed = stand_in_slots_enter(&j->engine->slots, j->slot, j->ids, have);
        j->cached = j->fed < j->n ? j->fed : j->n;
    }
    size_t more = have - j->fed < room ? have - j->fed : room;
    *part = (struct batch_part){ .session = j->slot->session, .ids = j->ids + j->fed, .n = more };
    if (more) {
        j->slot->known = 0;
    } else {
        j->told = true;
        j->next_id = j->slot->next;
    }
    return more;
}

/* Take the results of a pass: the next token of each text that is complete now. Parts that were
 * left out have set the rc of their jobs. */
static void stand_in_engine_take(struct stand_in_engine *e, struct stand_in_job *const *jobs,
                                 const struct batch_part *parts, size_t n)
{
    struct batch *b = e->batch;
    size_t rows[SLOTS_MAX], wanted = 0;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].rc)
            continue;
        jobs[i]->fed += parts[i].n;
        if (jobs[i]->fed == jobs[i]->n + jobs[i]->text.n)
            rows[wanted++] = parts[i].row + parts[i].n - 1;
    }
    int rc = wanted ? batch_logits(b, rows, wanted, NULL) : OK;
    for (size_t i = 0; i < n; i++) {
        struct stand_in_job *j = jobs[i];
        if (parts[i].rc || j->fed < j->n + j->text.n)
            continue;
        j->rc = rc;
        j->told = rc == OK;
        if (rc != OK)
            continue;
        const float *logits = batch_logits_at(b, parts[i].row + parts[i].n - 1);
        j->next_id = (uint32_t)e->kernels.argmax_f32(logits, e->size);
        j->slot->next = j->next_id;
        j->slot->known = j->fed;
    }
}

/* Take these n jobs, which need the model, a step further, without the lock: one token or a piece
 * of the prompt each, in one pass. Of many prompts, the later ones may have to wait for the next
 * pass. */
static void stand_in_engine_step(struct stand_in_engine *e, struct stand_in_job *const *jobs,
                                 size_t n)
{
    struct stand_in_job *in[SLOTS_MAX];
    struct batch_part parts[SLOTS_MAX];
    size_t count = 0, room = BATCH_ROWS - n;
    for (size_t i = 0; i < n; i++) {
        size_t rows = stand_in_engine_add(jobs[i], &parts[count], room + 1);
        room -= rows ? rows - 1 : 0;
        if (rows)
            in[count++] = jobs[i];
    }
    if (!count)
        return;
    int rc = batch_eval(e->batch, parts, count, count == 1 ? &in[0]->stop : &e->halt, NULL);
    for (size_t i = 0; i < count; i++)
        in[i]->rc = rc ? rc : parts[i].rc;
    if (rc == OK)
        stand_in_engine_take(e, in, parts, count);
}

/* Record the result of a step. Return true if the job is finished; it may have been freed. */
static bool stand_in_engine_settle(struct stand_in_job *j, uint64_t start)
{
    j->text.cached = j->cached;
    *(j->text.n ? &j->text.text_ms : &j->text.prompt_ms) += stand_in_engine_ms_since(start);
    if (j->told) {
        j->ids[j->n + j->text.n] = j->next_id;
        j->at[j->text.n++] = os_now_ns();
        j->text.ended = tokenizer_is_eog(j->engine->tokenizer, j->next_id) && !j->go_on;
        pthread_cond_broadcast(&j->news);
    }
    if (!j->rc && !j->dropped && !j->text.ended && j->text.n < j->max)
        return false;
    stand_in_engine_finish(j, j->rc);
    if (j->dropped)
        free_job(j);
    return true;
}

/* Tell the job what is known without the model; without a model one token, so that others get their
 * turns. Return true if the job needs no more in this turn. */
static bool stand_in_engine_tell(struct stand_in_job *j)
{
    struct stand_in_engine *e = j->engine;
    for (uint64_t start = os_now_ns(); stand_in_engine_knows(j); start = os_now_ns()) {
        pthread_mutex_lock(&e->lock);
        bool finished = stand_in_engine_settle(j, start);
        if (!finished && !e->batch) {
            j->state = READY;
            stand_in_engine_append(&e->ready, j);
            finished = true;
        }
        pthread_mutex_unlock(&e->lock);
        if (finished)
            return true;
    }
    return false;
}

/* Run one turn of these n jobs, without the lock: nobody whose text is known waits for a pass. */
static void stand_in_engine_turn(struct stand_in_engine *e, struct stand_in_job **jobs, size_t n)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (!stand_in_engine_tell(jobs[i]))
            jobs[left++] = jobs[i];
    uint64_t start = os_now_ns();
    if (left)
        stand_in_engine_step(e, jobs, left);
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < left; i++)
        if (!stand_in_engine_settle(jobs[i], start)) {
            jobs[i]->state = READY;
            stand_in_engine_append(&e->ready, jobs[i]);
        }
    pthread_mutex_unlock(&e->lock);
}

void *stand_in_engine_work(void *arg)
{
    struct stand_in_engine *e = arg;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        if (e->look)
            stand_in_engine_admit(e);
        struct stand_in_job *j = e->ready.first;
        if (!j && e->closing)
            break;
        if (!j) {
            pthread_cond_wait(&e->work, &e->lock);
            continue;
        }
        struct stand_in_job *jobs[SLOTS_MAX];
        size_t n = 0;
        for (; j && n < (e->batch ? SLOTS_MAX : 1); j = e->ready.first) {
            stand_in_engine_take_out(&e->ready, j);
            j->state = RUNNING;
            jobs[n++] = j;
        }
        pthread_mutex_unlock(&e->lock);
        stand_in_engine_turn(e, jobs, n);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

void stand_in_engine_close(struct stand_in_engine *e)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    e->closing = true;
    pthread_cond_broadcast(&e->work);
    pthread_mutex_unlock(&e->lock);
    for (size_t i = 0; i < e->nworkers; i++)
        pthread_join(e->workers[i], NULL);
    stand_in_slots_close(&e->slots);
    batch_close(e->batch);
    model_close(e->model);
    known_texts_close(e->known);
    tokenizer_close(e->own);
    pool_close(e->pool);
    pthread_cond_destroy(&e->work);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

size_t stand_in_engine_vocab(const struct stand_in_engine *e)
{
    return e->vocab;
}

size_t stand_in_engine_context(const struct stand_in_engine *e)
{
    return e->slots.context;
}

size_t stand_in_engine_trained(const struct stand_in_engine *e)
{
    return e->trained;
}

size_t stand_in_engine_slots(struct stand_in_engine *e)
{
    pthread_mutex_lock(&e->lock);
    size_t n = e->slots.n;
    pthread_mutex_unlock(&e->lock);
    return n;
}

bool stand_in_engine_busy(struct stand_in_engine *e, size_t i)
{
    pthread_mutex_lock(&e->lock);
    bool busy = i < e->slots.n && e->slots.slot[i].job;
    pthread_mutex_unlock(&e->lock);
    return busy;
}

size_t stand_in_engine_waiting(struct stand_in_engine *e)
{
    pthread_mutex_lock(&e->lock);
    size_t n = e->waiting;
    pthread_mutex_unlock(&e->lock);
    return n;
}

const struct tokenizer *stand_in_engine_tokenizer(const struct stand_in_engine *e)
{
    return e->tokenizer;
}

void stand_in_engine_stop(struct stand_in_engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->stopped = true;
    atomic_store(&e->halt, 1);
    while (e->queue.first) {
        struct stand_in_job *j = e->queue.first;
        stand_in_engine_take_out(&e->queue, j);
        stand_in_engine_finish(j, ERR_STOP);
    }
    e->waiting = 0;
    for (size_t i = 0; i < SLOTS_MAX; i++)
        if (e->slots.slot[i].job)
            atomic_store(&e->slots.slot[i].job->stop, 1);
    pthread_mutex_unlock(&e->lock);
}

/* Allocate a job with room for all its tokens; NULL if there is no memory. */
static struct stand_in_job *new_job(struct stand_in_engine *e, const struct stand_in_wish *wish)
{
    size_t bytes;
    if (!size_add(&bytes, wish->n, wish->max) || !size_mul(&bytes, bytes, sizeof(uint32_t)) ||
        !size_add(&bytes, bytes, sizeof(struct stand_in_job)))
        return NULL;
    struct stand_in_job *j = calloc(1, bytes);
    if (!j)
        return NULL;
    j->at = calloc(wish->max, sizeof(*j->at));
    if (!j->at) {
        free(j);
        return NULL;
    }
    pthread_cond_init(&j->news, NULL);
    memcpy(j->ids, wish->prompt, wish->n * sizeof(uint32_t));
    j->engine = e;
    j->n = wish->n;
    j->max = wish->max;
    j->go_on = wish->go_on;
    j->wanted = wish->slot;
    j->text.ids = j->ids + j->n;
    j->text.at = j->at;
    return j;
}

int stand_in_engine_ask(struct stand_in_engine *e, struct stand_in_job **out,
                        const struct stand_in_wish *wish, struct err *err)
{
    int rc = OK;
    *out = NULL;
    if (!wish->n || !wish->max)
        return err_set(err, ERR_ARG, "an empty question");
    struct stand_in_job *j = new_job(e, wish);
    if (!j)
        return err_set(err, ERR_NOMEM, "out of memory");
    pthread_mutex_lock(&e->lock);
    if (e->stopped)
        rc = err_set(err, ERR_STOP, "the server is stopping");
    else if (e->waiting >= e->limit)
        rc = err_set(err, ERR_NET, "The request queue is full.");
    if (rc == OK) {
        stand_in_engine_append(&e->queue, j);
        e->waiting++;
        e->look = true;
        pthread_cond_signal(&e->work);
    }
    pthread_mutex_unlock(&e->lock);
    if (rc)
        free_job(j);
    else
        *out = j;
    return rc;
}

/* Return the time in ms milliseconds, for pthread_cond_timedwait. */
static struct timespec after_ms(unsigned ms)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

struct stand_in_text stand_in_engine_wait(struct stand_in_job *j, size_t have, unsigned ms)
{
    struct timespec until = after_ms(ms);
    pthread_mutex_lock(&j->engine->lock);
    while (j->text.n <= have && !j->text.finished &&
           pthread_cond_timedwait(&j->news, &j->engine->lock, &until) == 0)
        ;
    struct stand_in_text text = j->text;
    pthread_mutex_unlock(&j->engine->lock);
    return text;
}

void stand_in_engine_drop(struct stand_in_job *j)
{
    if (!j)
        return;
    struct stand_in_engine *e = j->engine;
    pthread_mutex_lock(&e->lock);
    bool running = j->state == RUNNING;
    if (j->state == WAITING) {
        stand_in_engine_take_out(&e->queue, j);
        e->waiting--;
    } else if (j->state == READY) {
        stand_in_engine_take_out(&e->ready, j);
        stand_in_engine_finish(j, ERR_STOP);
    } else if (running) { /* its worker will free it */
        j->dropped = true;
        atomic_store(&j->stop, 1);
    }
    pthread_mutex_unlock(&e->lock);
    if (!running)
        free_job(j);
}
