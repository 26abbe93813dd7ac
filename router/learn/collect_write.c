/* collect_write.c - what edge and cloud write: answers, tokens, and answers to their end after a
 * token. All of it is texts (router/texts/texts.h).
 *
 * A lane writes on from the last place of a text to the first. Each beginning is that of the one
 * before, which the lane's slot still holds. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/learn/collect_internal.h"
#include "router/texts/texts.h"

enum { STOP_SLICE_NS = 20000000 }; /* how often to look for an interruption */

/* See whether a chain has ended with its last id, number `at`. */
static int chain_see(struct collect_chain *chain, const struct collect_work *w, size_t at,
                     struct err *err)
{
    struct collect *c = w->run->c;
    size_t bytes, end, length, prompt = w->text->prompt;
    uint32_t id = chain->ids[at];
    const char *text =
        tokenizer_is_control(c->tok, id) ? NULL : tokenizer_bytes(c->tok, id, &bytes);
    bool stopped = text && stops_feed(&chain->stops, text, bytes, &end, &length);
    /* What stands in the reference answer ends nothing. */
    chain->ended = chain->ended || at + 1 == chain->most ||
                   (at >= chain->given && (stopped || tokenizer_is_eog(c->tok, id)));
    if (!chain->rolls || at < chain->given)
        return OK;
    int rc = c->o->judge(c->o->arg, &chain->verdict, w->number, chain->ids + prompt,
                         at + 1 - prompt, chain->ended, err);
    chain->ended = chain->ended || chain->verdict != COLLECT_OPEN;
    c->stats.rollouts += chain->ended;
    return rc;
}

int collect_chain(struct collect_work *w, enum collect_writer by, size_t given,
                  const uint32_t *last, size_t more, bool rolls, size_t row, struct err *err)
{
    const struct collect_text *t = w->text;
    struct collect *c = w->run->c;
    size_t begun = given + (last != NULL), context = session_context(c->session);
    /* decode.h writes one more, behind which the cloud is asked with labels gain. */
    context += by == COLLECT_EDGE || c->o->labels == COLLECT_GAIN;
    size_t most = more < context - begun ? begun + more : context;
    struct collect_chain *chains = array_grow(w->chains, &w->room, w->nchains, sizeof(*chains));
    if (!chains)
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    w->chains = chains;
    struct collect_chain *chain = &chains[w->nchains];
    *chain = (struct collect_chain){ .by = by,
                                     .given = given,
                                     .begun = begun,
                                     .n = begun,
                                     .most = most,
                                     .row = row,
                                     .rolls = rolls };
    chain->ids = malloc(most * sizeof(*chain->ids));
    if (!chain->ids)
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    w->nchains++;
    memcpy(chain->ids, t->ids, given * sizeof(*t->ids));
    if (last)
        chain->ids[given] = *last;
    int rc = stops_begin(&chain->stops, c->o->stops, err);
    for (size_t at = t->prompt; rc == OK && at < begun; at++)
        rc = chain_see(chain, w, at, err);
    return rc;
}

void collect_chains_drop(struct collect_work *w)
{
    for (size_t i = 0; i < w->nchains; i++)
        free(w->chains[i].ids);
    w->nchains = w->next = 0;
}

/* Callback of the edge's texts: keep the hidden state and what else is known before a token. */
static void write_keep_row(void *arg, const uint32_t *ids, size_t n, const struct batch *b,
                           size_t row)
{
    struct collect_work *w = arg;
    const struct collect *c = w->run->c;
    size_t i = n - w->text->prompt, dim = w->read.dim;
    if (i >= w->read.room) /* of a draft that is longer than the text may be */
        return;
    collect_row(&w->read.rows[i], w, c, ids, n, batch_logits_at(b, row));
    memcpy(w->read.x + i * dim, batch_hidden(b, row), dim * sizeof(*w->read.x));
}

static void write_news(void *arg)
{
    struct collect_run *r = arg;
    pthread_mutex_lock(&r->lock);
    atomic_fetch_add(&r->news, 1);
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

/* Wait for other news than `seen`, and see an interruption before the cloud does. */
static int write_wait(struct collect_run *r, uint32_t seen, struct err *err)
{
    const _Atomic int *stop = r->c->o->stop;
    pthread_mutex_lock(&r->lock);
    if (atomic_load(&r->news) == seen)
        os_cond_wait(&r->changed, &r->lock, os_now_ns() + STOP_SLICE_NS);
    pthread_mutex_unlock(&r->lock);
    return stop && *stop ? err_set(err, ERR_STOP, "interrupted") : OK;
}

/* Let a chain be written to its end. A cloud in this process writes as an edge does. */
static int write_ask(struct collect_work *w, struct collect_chain *chain, size_t lane,
                     struct err *err)
{
    struct collect *c = w->run->c;
    const struct collect_options *o = c->o;
    const bool edge = chain->by == COLLECT_EDGE, reads = chain->by == COLLECT_READS;
    const bool first = edge && w->text->n == w->text->prompt;
    const struct text_routing how = { .policy = !edge       ? POLICY_ALWAYS
                                                : o->router ? POLICY_MLP
                                                            : POLICY_NEVER,
                                      .router = o->router,
                                      .threshold = o->threshold,
                                      .ahead = edge && o->router,
                                      .max_cloud_tokens =
                                          edge || chain->most - chain->n > 1 ? UINT64_MAX : 1 };
    const struct text_wish wish = { .prompt = chain->ids,
                                    .n = chain->n,
                                    .answer = w->text->prompt,
                                    .max = chain->most - chain->n,
                                    .sample = { .top_p = 1, .repeat_penalty = 1 },
                                    .apart = true,
                                    .model = edge       ? TEXT_ROUTED
                                             : c->large ? TEXT_EDGE
                                                        : TEXT_CLOUD,
                                    .required = true,
                                    .alone = !edge,
                                    .routing = &how,
                                    .edges = first,
                                    .top = reads,
                                    .score = reads ? w->text->prompt : 0,
                                    .slot = edge ? (long)lane : -1,
                                    .row = first ? write_keep_row : NULL,
                                    .row_arg = w,
                                    .news = write_news,
                                    .news_arg = w->run };
    int rc = texts_ask(edge || !c->large ? c->texts : c->large, &chain->text, &wish, err);
    if (edge || rc != ERR_ARG)
        return rc;
    c->refusal = *err; /* as a server refuses what does not fit */
    w->text->left_out = chain->ended = true;
    return OK;
}

/* Labels gain: keep which tokens the answer itself has, and which of them are the cloud's. */
static void write_keep_answer(struct collect_work *w, const struct collect_chain *chain,
                              const struct text_view *v)
{
    w->run->c->stats.rollouts--; /* it is not one */
    w->right = chain->verdict == COLLECT_RIGHT;
    w->read.n = chain->n - chain->begun;
    for (size_t i = 0; i < w->read.n; i++) {
        struct sample_row *row = &w->read.rows[i];
        row->gold = (int32_t)v->tokens[i].t.id;
        row->right = w->right;
        row->way = SAMPLE_UNDECIDED;
        if (v->tokens[i].t.source == SOURCE_CLOUD)
            row->cloud = row->gold;
    }
}

/* Keep the large model's token of each row that lacks it, up to that of the chain. */
static void write_keep_cloud(struct collect_work *w, const struct collect_chain *chain,
                             const struct text_view *v)
{
    for (size_t i = chain->by == COLLECT_READS ? 0 : chain->row; i <= chain->row; i++) {
        struct sample_row *row = &w->read.rows[i];
        if (row->way == SAMPLE_UNDECIDED && row->cloud == SAMPLE_NOT_ASKED)
            row->cloud = (int32_t)(i < chain->row ? v->score_tops[w->text->prompt + i].id
                                                  : v->tokens[0].t.id);
    }
}

/* Take a finished text. */
static void write_finish(struct collect_work *w, struct collect_chain *chain,
                         const struct text_view *v)
{
    struct collect *c = w->run->c;
    const bool edge = chain->by == COLLECT_EDGE, answer = w->text->n == w->text->prompt;
    if (!w->text->left_out && edge && answer)
        write_keep_answer(w, chain, v);
    else if (!w->text->left_out && !chain->rolls && !answer)
        write_keep_cloud(w, chain, v);
    c->stats.calls += v->stats.calls + (!edge && c->large);
    c->stats.known += v->stats.memo + v->stats.store;
    c->stats.written += !edge && c->large ? v->n : v->stats.cloud;
    text_drop(chain->text);
    chain->text = NULL;
    w->run->moved = true;
}

/* Take what has been written of a chain, and end its text when the chain has ended. */
static int write_take(struct collect_work *w, struct collect_chain *chain, struct err *err)
{
    struct collect *c = w->run->c;
    const struct text_view v = text_look(chain->text);
    int rc = OK;
    chain->ended = chain->ended || w->text->left_out;
    for (size_t i; rc == OK && !chain->ended && (i = chain->n - chain->begun) < v.n;) {
        uint32_t id = v.tokens[i].t.id;
        if (id >= tokenizer_size(c->tok))
            return err_set(err, ERR_REMOTE, "cloud: expected an id below %zu, found %u",
                           tokenizer_size(c->tok), (unsigned)id);
        chain->ids[chain->n++] = id;
        rc = chain_see(chain, w, chain->n - 1, err);
    }
    if (rc == OK && !chain->ended && v.finished) {
        chain->ended = true;
        w->text->left_out = w->text->left_out || v.rc == ERR_TEXT;
        if (v.rc != OK)
            rc = err_set(v.rc == ERR_TEXT ? &c->refusal : err, v.rc, "%s", v.why);
        rc = rc == ERR_TEXT ? OK : rc;
    }
    if (rc == OK && v.finished)
        write_finish(w, chain, &v);
    else if (rc == OK && chain->ended)
        text_cancel(chain->text);
    return rc;
}

/* Return the next chain for a lane that has written one of *work: one of the same text, else of the
 * one with the most chains left. NULL: none is left. */
static struct collect_chain *write_next(struct collect_run *r, struct collect_work **work)
{
    struct collect_work *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < r->s->ntexts; i++) {
        struct collect_work *w = &r->works[i];
        while (w->next < w->nchains && (w->chains[w->next].ended || w->text->left_out))
            w->next++;
        size_t left = w->nchains - w->next;
        if (left > most || (left && w == *work)) {
            best = w;
            most = w == *work ? SIZE_MAX : left;
        }
    }
    if (!best)
        return NULL;
    *work = best;
    return &best->chains[best->next++];
}

int collect_write(struct collect_run *r, enum collect_writer by, struct err *err)
{
    struct collect_lane *lane = r->lanes;
    const struct collect *c = r->c;
    size_t lanes = by == COLLECT_EDGE ? COLLECT_SLOTS : TEXTS_SLOTS;
    if ((by != COLLECT_EDGE || c->o->router) && r->calls < lanes)
        lanes = r->calls; /* a text has one call in flight */
    int rc = OK;
    for (bool busy = true; rc == OK && busy;) {
        uint32_t seen = atomic_load(&r->news);
        r->moved = busy = false;
        for (size_t i = 0; rc == OK && i < lanes; i++) {
            struct collect_chain **chain = &lane[i].chain;
            if (*chain && (*chain)->text)
                rc = write_take(lane[i].work, *chain, err);
            if (rc == OK && (!*chain || !(*chain)->text) && (*chain = write_next(r, &lane[i].work)))
                rc = write_ask(lane[i].work, *chain, i, err);
            busy = busy || *chain;
        }
        if (rc == OK && r->moved && c->o->progress)
            c->o->progress(c->o->arg, &c->stats);
        else if (rc == OK && busy && !r->moved)
            rc = write_wait(r, seen, err);
    }
    for (size_t i = 0; rc != OK && i < lanes; i++) {
        struct text *t = lane[i].chain ? lane[i].chain->text : NULL;
        if (!t)
            continue;
        text_cancel(t);
        text_wait(t, SIZE_MAX); /* for its rows, too */
        text_drop(t);
    }
    return rc;
}
