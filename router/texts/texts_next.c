/* texts_next.c - texts that a function answers instead of the model. It may take its time, so it is
 * called from a few threads, which are started when they are needed, one token of each text in
 * turn. */
#include <math.h>

#include "kernels/sys/os.h"
#include "model/text/tokenizer.h"
#include "router/texts/texts_internal.h"

/* Ask the function for one token. ERR_STOP for a cancelled text. */
static int texts_next_token(struct text *t, struct err *err)
{
    struct texts *e = t->texts;
    if (atomic_load(&t->stop))
        return err_set(err, ERR_STOP, "interrupted");
    uint32_t id = t->wish.next(t->wish.next_arg, t->ids, t->n + t->view.n);
    const struct text_token token = {
        .t.id = id,
        .t.source = SOURCE_EDGE,
        .t.score = NAN,
        .t.eog = e->tokenizer && tokenizer_is_eog(e->tokenizer, id) && !t->wish.ignore_eos,
        .at = os_now_ns(),
        .logprob = (double)NAN,
    };
    texts_publish(t, &token);
    return OK;
}

/* True when the newest token ends the text. */
static bool texts_next_ended(const struct text *t)
{
    const struct text_token *last = &t->tokens[t->view.n - 1];
    return last->t.eog || texts_is_stop_id(t, last->t.id);
}

/* End the text. With the lock; releases it for a while. */
static void texts_next_end(struct text *t, size_t place, int rc, const char *why)
{
    struct texts *e = t->texts;
    bool ended = rc == OK && texts_next_ended(t), dropped = t->dropped;
    t->stats.finish = rc != OK ? FINISH_ERROR : ended ? FINISH_EOS : FINISH_LENGTH;
    texts_show_stats(t);
    t->view.ended = ended;
    e->nasking--;
    texts_finish(t, rc, why);
    texts_tell(t, place);
    if (dropped)
        texts_free(t);
}

/* Take the text one token further. With the lock; releases it meanwhile. */
static void texts_next_turn(struct text *t, size_t place)
{
    struct texts *e = t->texts;
    struct err err = { "" };
    if (e->stopped)
        atomic_store(&t->stop, 1);
    t->state = TEXT_ASKED;
    pthread_mutex_unlock(&e->lock);
    int rc = texts_next_token(t, &err);
    pthread_mutex_lock(&e->lock);
    if (rc != OK || t->dropped || texts_next_ended(t) || t->view.n == t->max) {
        texts_next_end(t, place, rc, err.msg);
        return;
    }
    texts_tell(t, place);
    if (t->dropped) {
        texts_next_end(t, place, ERR_STOP, "dropped");
        return;
    }
    t->state = TEXT_ASKING;
    texts_append(&e->asking, t);
}

/* Thread function: answer until the texts close. */
static void *texts_next_run(void *arg)
{
    struct texts *e = arg;
    pthread_mutex_lock(&e->lock);
    size_t place = ++e->places;
    while (!e->closing || e->asking.first) {
        struct text *t = e->asking.first;
        if (t) {
            texts_take_out(&e->asking, t);
            texts_next_turn(t, place);
        } else {
            e->idle++;
            pthread_cond_wait(&e->answers, &e->lock);
            e->idle--;
        }
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

int texts_next_ask(struct texts *e, struct text *t, struct err *err)
{
    if (!e->idle && e->nanswerers < TEXTS_ANSWERERS &&
        pthread_create(&e->answerers[e->nanswerers], NULL, texts_next_run, e) == 0)
        e->nanswerers++;
    if (!e->nanswerers)
        return err_set(err, ERR_NOMEM, "texts: no thread can be started");
    t->state = TEXT_ASKING;
    t->view.waiting = false;
    t->slot_at = t->asked_at;
    texts_append(&e->asking, t);
    e->nasking++;
    pthread_cond_signal(&e->answers);
    return OK;
}

void texts_next_close(struct texts *e)
{
    pthread_mutex_lock(&e->lock);
    pthread_cond_broadcast(&e->answers);
    pthread_mutex_unlock(&e->lock);
    for (size_t i = 0; i < e->nanswerers; i++)
        pthread_join(e->answerers[i], NULL);
}
