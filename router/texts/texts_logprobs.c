/* texts_logprobs.c - log-softmax of the small model's logits, for tokens and for prompts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "router/engine.h"
#include "router/policy.h"
#include "router/texts/texts_internal.h"

/* Write the `top` likeliest of `size` ids, the likeliest first, the lower id of equals. */
static void texts_find_top(struct text_top *out, size_t top, const float *logits, size_t size,
                           double lse)
{
    uint32_t best[TEXTS_TOP];
    size_t n = 0;
    for (size_t id = 0; id < size && top; id++) {
        if (n == top ? !(logits[id] > logits[best[n - 1]]) : isnan(logits[id]))
            continue;
        size_t at = n < top ? n++ : n - 1;
        for (; at && logits[id] > logits[best[at - 1]]; at--)
            best[at] = best[at - 1];
        best[at] = (uint32_t)id;
    }
    for (size_t i = 0; i < top; i++) /* fewer ids than that may be in use */
        out[i] = i < n ? (struct text_top){ best[i], (double)logits[best[i]] - lse }
                       : (struct text_top){ 0, (double)-INFINITY };
}

/* Make room for the hidden state of token pos, besides those of the tokens that are not decided
 * yet. */
static bool texts_hidden_room(struct text *t, size_t pos, size_t dim)
{
    size_t cap = t->hidden_cap, decided = t->view.n, bytes;
    if (pos < decided + cap)
        return true;
    size_t more = cap ? 2 * cap : 8;
    while (pos >= decided + more)
        more *= 2;
    float *rows = size_mul(&bytes, more, dim * sizeof(float)) ? malloc(bytes) : NULL;
    if (!rows)
        return false;
    for (size_t i = decided; i < decided + cap; i++)
        memcpy(rows + i % more * dim, t->hidden + i % cap * dim, dim * sizeof(float));
    free(t->hidden);
    t->hidden = rows;
    t->hidden_cap = more;
    return true;
}

int texts_note_head(struct text *t, size_t at, const float *logits, const float *hidden,
                    struct err *err)
{
    const struct texts *e = t->texts;
    size_t pos = at - t->n, dim = e->engine->model->config.hidden;
    if (pos >= t->max) /* of a draft that is longer than the text will be */
        return OK;
    if (!texts_hidden_room(t, pos, dim))
        return err_set(err, ERR_NOMEM, "logprobs: out of memory");
    memcpy(t->hidden + pos % t->hidden_cap * dim, hidden, dim * sizeof(float));
    t->lse[pos] = policy_logsum(logits, e->size, &e->engine->kernels);
    texts_find_top(t->tops + pos * t->wish.top, t->wish.top, logits, e->size, t->lse[pos]);
    return OK;
}

double texts_logprob(const struct text *t, size_t pos, uint32_t id)
{
    const struct texts *e = t->texts;
    size_t dim = e->engine->model->config.hidden;
    const float *hidden = t->hidden + pos % t->hidden_cap * dim;
    return (double)batch_logit(e->batch, hidden, id) - t->lse[pos];
}

/* A row that scores an id of a prompt. */
struct texts_scored {
    struct text *text;
    size_t row, index; /* of the pass; of the id in the prompt */
};

struct texts_scoring {
    const struct texts *e;
    struct texts_scored list[TEXTS_HEADS];
    size_t n;
};

/* Work of the pool: score some of the rows. */
static void texts_score_some(void *arg, size_t thread, size_t first, size_t last)
{
    const struct texts_scoring *s = arg;
    const struct texts *e = s->e;
    (void)thread;
    for (size_t i = first; i < last; i++) {
        struct text *t = s->list[i].text;
        size_t index = s->list[i].index;
        const float *logits = batch_logits_at(e->batch, s->list[i].row);
        double lse = policy_logsum(logits, e->size, &e->engine->kernels);
        t->scores[index] = (double)logits[t->ids[index]] - lse;
        texts_find_top(t->score_tops + index * t->wish.top, t->wish.top, logits, e->size, lse);
    }
}

/* Read the head for the rows, and score them. */
static void texts_score_rows(struct texts_scoring *s)
{
    size_t rows[TEXTS_HEADS] = { 0 };
    struct err err;
    for (size_t i = 0; i < s->n; i++)
        rows[i] = s->list[i].row;
    int rc = batch_logits(s->e->batch, rows, s->n, &err);
    if (rc == OK)
        pool_for(s->e->engine->pool, s->n, 1, texts_score_some, s);
    for (size_t i = 0; i < s->n; i++) {
        struct text *t = s->list[i].text;
        if (rc != OK)
            step_fail(t->step, rc, &err);
    }
    s->n = 0;
}

void texts_score(struct texts *e, struct text *const *list, size_t n)
{
    struct texts_scoring s = { .e = e };
    for (size_t i = 0; i < n; i++) {
        struct text *t = list[i];
        for (size_t k = 0; t->wish.score && k < t->rows; k++) {
            size_t index = t->before + k + 1;
            if (index >= t->n)
                break;
            if (index < t->wish.score)
                continue;
            s.list[s.n++] = (struct texts_scored){ t, t->row + k, index };
            if (s.n == TEXTS_HEADS)
                texts_score_rows(&s);
        }
    }
    if (s.n)
        texts_score_rows(&s);
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < n; i++)
        if (list[i]->wish.score)
            list[i]->view.nscores = list[i]->view.read;
    pthread_mutex_unlock(&e->lock);
}
