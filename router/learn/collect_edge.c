/* collect_edge.c - what the edge writes: the answers of labels gain, and answers to their end after
 * a token, for them and for citer.
 *
 * All texts of a shard are written together, between the looks for the cloud's tokens: so the cloud
 * has one user at a time. A slot writes on from the last place of a text to the first. Each
 * beginning is that of the one before, which the slot still holds. */
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/learn/collect_internal.h"
#include "router/texts/texts.h"

enum { KEEP_SEED = 1 }; /* rows in which both models agree */

bool collect_edge_writes(enum collect_labels l)
{
    return l == COLLECT_CITER || l == COLLECT_GAIN;
}

/* Callback of the edge's texts: keep the hidden state and what else is known before a token. */
static void edge_keep_row(void *arg, const uint32_t *ids, size_t n, const struct batch *b,
                          size_t row)
{
    struct collect_work *w = arg;
    const struct collect *c = w->run->c;
    size_t i = n - w->text->prompt, dim = w->read.dim;
    if (i >= w->read.room) /* of a draft that is longer than the text may be */
        return;
    collect_row(&w->read.rows[i], w, c, ids, n, batch_logits_at(b, row));
    float *x = w->read.x + i * dim;
    const float *states = batch_states(b, &c->o->taps, row, x);
    if (states != x)
        memcpy(x, states, dim * sizeof(*x));
}

/* Let the edge write a chain to its end, as the options say; or let the large model read one that
 * is not judged, and say what it would have written. */
static int edge_ask(struct collect_run *r, struct collect_work *w, struct collect_chain *chain,
                    size_t slot, struct err *err)
{
    const struct collect_options *o = r->c->o;
    bool reads = !chain->rolls, first = !reads && chain->begun == w->text->prompt;
    const struct text_routing how = { .policy = o->router ? POLICY_MLP : POLICY_NEVER,
                                      .router = o->router,
                                      .threshold = o->threshold,
                                      .ahead = o->router ? 1 : 0,
                                      .max_cloud_tokens = UINT64_MAX };
    const struct text_wish wish = { .prompt = chain->ids,
                                    .n = chain->n,
                                    .answer = w->text->prompt,
                                    .max = chain->most - chain->n,
                                    .sample = { .top_p = 1, .repeat_penalty = 1 },
                                    .apart = true,
                                    .model = reads ? TEXT_EDGE : TEXT_ROUTED,
                                    .required = true,
                                    .routing = &how,
                                    .edges = first,
                                    .top = reads,
                                    .score = reads ? w->text->prompt : 0,
                                    .slot = reads ? -1 : (long)slot,
                                    .row = first ? edge_keep_row : NULL,
                                    .row_arg = w,
                                    .news = collect_news,
                                    .news_arg = r };
    int rc = texts_ask(reads ? r->c->large : r->c->texts, &chain->text, &wish, err);
    if (!reads || rc != ERR_ARG)
        return rc;
    r->c->refusal = *err; /* as a server refuses what does not fit */
    w->text->left_out = chain->ended = true;
    return OK;
}

/* Keep which tokens the answer itself has, and which of them are the cloud's. */
static void edge_keep_answer(struct collect_work *w, const struct collect_chain *chain,
                             const struct text_view *v)
{
    w->run->c->stats.rollouts--; /* it is not one */
    w->right = chain->verdict == COLLECT_RIGHT;
    w->read.n = chain->n - chain->begun;
    for (size_t i = 0; i < w->read.n; i++) {
        struct sample_row *row = &w->read.rows[i];
        row->gold = (int32_t)v->tokens[i].t.id;
        row->right = w->right;
        if (v->tokens[i].t.source == SOURCE_CLOUD)
            row->cloud = row->gold;
    }
}

/* Keep the large model's tokens. */
static void edge_keep_cloud(struct collect_work *w, const struct collect_chain *chain,
                            const struct text_view *v)
{
    for (size_t i = 0; i < chain->row; i++)
        w->read.rows[i].cloud = (int32_t)v->score_tops[w->text->prompt + i].id;
    w->read.rows[chain->row].cloud = (int32_t)v->tokens[0].t.id;
}

/* Take what the edge has written of a chain, and end its text when the chain has ended. */
static int edge_take(struct collect_run *r, struct collect_work *w, struct collect_chain *chain,
                     struct err *err)
{
    struct collect *c = r->c;
    const struct text_view v = text_look(chain->text);
    int rc = OK;
    for (size_t i; rc == OK && !chain->ended && (i = chain->n - chain->begun) < v.n;) {
        chain->ids[chain->n++] = v.tokens[i].t.id;
        rc = collect_chain_see(chain, c, w->number, w->text->prompt, chain->n - 1, err);
    }
    if (rc == OK && !chain->ended && v.finished) {
        chain->ended = true;
        w->text->left_out = w->text->left_out || v.rc == ERR_TEXT;
        if (v.rc != OK)
            rc = err_set(v.rc == ERR_TEXT ? &c->refusal : err, v.rc, "%s", v.why);
        rc = rc == ERR_TEXT ? OK : rc;
    }
    if (rc != OK)
        return rc;
    if (!v.finished) {
        if (chain->ended)
            text_cancel(chain->text);
        return OK;
    }
    if (!chain->rolls)
        edge_keep_cloud(w, chain, &v);
    else if (chain->begun == w->text->prompt && !w->text->left_out)
        edge_keep_answer(w, chain, &v);
    c->stats.calls += v.stats.calls;
    c->stats.known += v.stats.memo + v.stats.store;
    text_drop(chain->text);
    chain->text = NULL;
    r->moved = true;
    return OK;
}

/* Return the next chain for a slot that holds a beginning of *work: one of the same text, else of
 * the one with the most chains left. NULL: none is left. */
static struct collect_chain *edge_next(struct collect_run *r, struct collect_work **work)
{
    struct collect_work *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < r->s->ntexts; i++) {
        struct collect_work *w = &r->works[i];
        while (w->first < w->nchains && (w->chains[w->first].ended || w->text->left_out))
            w->first++;
        size_t left = w->nchains - w->first;
        if (left > most || (left && w == *work)) {
            best = w;
            most = w == *work ? SIZE_MAX : left;
        }
    }
    if (!best)
        return NULL;
    *work = best;
    return &best->chains[best->first++];
}

/* Write all chains that have been opened. */
static int edge_write(struct collect_run *r, struct err *err)
{
    const struct collect *c = r->c;
    /* A text of a router has one call in flight. */
    size_t slots = c->o->router && r->calls < COLLECT_SLOTS ? r->calls : COLLECT_SLOTS;
    int rc = OK;
    for (bool busy = true; rc == OK && busy;) {
        uint32_t seen = atomic_load(&r->news);
        r->moved = busy = false;
        for (size_t i = 0; rc == OK && i < slots; i++) {
            struct collect_slot *s = &r->slots[i];
            if (s->chain)
                rc = edge_take(r, s->work, s->chain, err);
            if (rc == OK && (!s->chain || !s->chain->text) && (s->chain = edge_next(r, &s->work)))
                rc = edge_ask(r, s->work, s->chain, i, err);
            busy = busy || s->chain;
        }
        if (rc == OK && r->moved && c->o->progress)
            c->o->progress(c->o->arg, &c->stats);
        else if (rc == OK && busy && !r->moved)
            rc = collect_wait(r, seen, err);
    }
    for (size_t i = 0; rc != OK && i < slots; i++) {
        struct text *t = r->slots[i].chain ? r->slots[i].chain->text : NULL;
        if (!t)
            continue;
        text_cancel(t);
        text_wait(t, SIZE_MAX); /* for its rows, too */
        text_drop(t);
    }
    return rc;
}

/* Find the cloud's tokens where the router has not asked for them. A model of this process reads
 * each text once, and writes the last one. */
static int edge_ask_cloud(struct collect_run *r, struct err *err)
{
    bool reads = r->c->large;
    int rc = OK;
    for (size_t i = 0; i < r->s->ntexts; i++) {
        struct collect_work *w = &r->works[i];
        for (size_t k = reads && w->read.n ? w->read.n - 1 : 0; rc == OK && k < w->read.n; k++)
            if (reads || w->read.rows[k].cloud == SAMPLE_NOT_ASKED)
                rc = collect_chain_open(w, r->c, w->text->prompt + k, NULL, 1, false, k, err);
    }
    if (rc != OK || !reads)
        return rc;
    rc = edge_write(r, err);
    for (size_t i = 0; i < r->s->ntexts; i++) {
        struct collect_work *w = &r->works[i];
        w->stage = w->stage == COLLECT_DONE || w->text->left_out ? COLLECT_DONE : COLLECT_DRAW;
        collect_chains_drop(w, r->c);
    }
    return rc;
}

int collect_answers(struct collect_run *r, struct err *err)
{
    struct collect *c = r->c;
    int rc = OK;
    for (size_t i = 0; rc == OK && i < r->s->ntexts; i++) {
        struct collect_work *w = &r->works[i];
        if (w->stage == COLLECT_DONE)
            continue;
        rc = collect_chain_open(w, c, w->text->prompt, NULL, c->o->max_tokens, true, 0, err);
        if (rc == OK)
            rc = samples_reserve(&w->read, w->chains->most - w->text->prompt, err);
    }
    if (rc == OK)
        rc = edge_write(r, err);
    for (size_t i = 0; rc == OK && i < r->s->ntexts; i++) {
        struct collect_work *w = &r->works[i];
        w->first = 0;
        if (w->stage != COLLECT_DONE && !w->text->left_out)
            rc = collect_take_answer(w, err);
        w->stage = w->written ? COLLECT_ASK : COLLECT_DONE;
        w->written = false; /* by the cloud */
        c->stats.tokens += w->text->n - w->text->prompt;
        collect_chains_drop(w, c);
    }
    return rc == OK ? edge_ask_cloud(r, err) : rc;
}

void collect_compare(struct collect_work *w, const struct collect *c)
{
    for (size_t i = 0; i < w->read.n; i++) {
        struct sample_row *row = &w->read.rows[i];
        uint64_t place = (uint64_t)w->number << 32 | i;
        row->label = 1;
        row->way = SAMPLE_UNDECIDED;
        if (collect_same(c, (uint32_t)row->edge, (uint32_t)row->cloud))
            row->way =
                rand_below(KEEP_SEED, place, SAMPLE_AGREED_FOR) ? SAMPLE_UNKEPT : SAMPLE_AGREED;
    }
}

/* Take the verdicts on answers that were written on. */
static void edge_judge(struct collect_work *w, const struct collect *c)
{
    for (size_t i = 0; i < w->nchains; i++) {
        struct sample_row *row = &w->read.rows[w->chains[i].row];
        int other = w->chains[i].verdict == COLLECT_RIGHT, written = w->right;
        bool mends = row->gold == row->edge; /* the other is the answer with the cloud's token */
        if (c->o->labels == COLLECT_GAIN)
            row->gain = (int8_t)(mends ? other - written : written - other);
        row->label = c->o->labels == COLLECT_GAIN ? row->gain != 1 : other != 0;
        row->way = SAMPLE_ROLLOUT;
    }
}

int collect_roll_edge(struct collect_run *r, struct err *err)
{
    const struct collect_options *o = r->c->o;
    int rc = OK;
    for (size_t i = 0; rc == OK && i < r->s->ntexts; i++) {
        struct collect_work *w = &r->works[i];
        for (size_t k = w->text->left_out ? 0 : w->read.n; rc == OK && k-- > 0;) {
            const struct sample_row *row = &w->read.rows[k];
            uint32_t other = (uint32_t)(row->gold == row->edge ? row->cloud : row->edge);
            size_t more = o->max_tokens - (o->labels == COLLECT_GAIN ? k + 1 : 0);
            if (row->way == SAMPLE_UNDECIDED)
                rc = collect_chain_open(w, r->c, w->text->prompt + k, &other, more, true, k, err);
        }
    }
    if (rc == OK)
        rc = edge_write(r, err);
    for (size_t i = 0; rc == OK && i < r->s->ntexts; i++) {
        edge_judge(&r->works[i], r->c);
        rc = collect_complete(r, &r->works[i], err);
    }
    return rc;
}
