/* collect_cloud.c - what the cloud writes: chains of calls, many in flight together. */
#include "router/learn/collect_internal.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "net/cloud_port.h"

int collect_chain_see(struct collect_chain *chain, struct collect *c, size_t number, size_t prompt,
                      size_t at, struct err *err)
{
    const struct tokenizer *tok = c->tok;
    size_t bytes, end, length;
    uint32_t id = chain->ids[at];
    const char *text = tokenizer_is_control(tok, id) ? NULL : tokenizer_bytes(tok, id, &bytes);
    bool stopped = text && stops_feed(&chain->stops, text, bytes, &end, &length);
    /* What stands in the reference answer ends nothing. */
    chain->ended = chain->ended || at + 1 == chain->most ||
                   (at >= chain->given && (stopped || tokenizer_is_eog(tok, id)));
    if (!chain->rolls || at < chain->given)
        return OK;
    int rc = c->o->judge(c->o->arg, &chain->verdict, number, chain->ids + prompt, at + 1 - prompt,
                         chain->ended, err);
    chain->ended = chain->ended || chain->verdict != COLLECT_OPEN;
    c->stats.rollouts += chain->ended;
    return rc;
}

int collect_chain_open(struct collect_work *w, struct collect *c, size_t given,
                       const uint32_t *last, size_t more, bool rolls, size_t row, struct err *err)
{
    const struct collect_text *t = w->text;
    size_t begun = given + (last != NULL), context = session_context(c->session);
    /* decode.h writes one more, behind which the cloud is asked with labels gain. */
    context += c->o->labels == COLLECT_GAIN || (rolls && c->o->labels == COLLECT_CITER);
    size_t most = more < context - begun ? begun + more : context;
    struct collect_chain *chains = array_grow(w->chains, &w->room, w->nchains, sizeof(*chains));
    if (!chains)
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    w->chains = chains;
    struct collect_chain *chain = &chains[w->nchains];
    *chain = (struct collect_chain){
        .given = given, .begun = begun, .n = begun, .most = most, .row = row, .rolls = rolls
    };
    chain->ids = malloc(most * sizeof(*chain->ids));
    if (!chain->ids)
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    w->nchains++;
    memcpy(chain->ids, t->ids, given * sizeof(*t->ids));
    if (last)
        chain->ids[given] = *last;
    int rc = stops_begin(&chain->stops, c->o->stops, err);
    for (size_t at = t->prompt; rc == OK && at < begun; at++)
        rc = collect_chain_see(chain, c, w->number, t->prompt, at, err);
    return rc;
}

/* Look for the token that follows a chain's ids in the text itself, in what the cloud has added to
 * the chains before it, and among the kept answers. CLOUD_COMING: such a chain may still get there.
 */
static enum cloud_sight collect_foresee(const struct collect_run *r, const struct collect_work *w,
                                        const struct collect_chain *chain, uint32_t *id)
{
    const struct collect_text *t = w->text;
    size_t n = chain->n, bytes = n * sizeof(*chain->ids);
    if (n < t->n && w->stage >= COLLECT_ASK && !memcmp(chain->ids, t->ids, bytes)) {
        int32_t cloud = w->read.rows[n - t->prompt].cloud;
        if (w->written || cloud != SAMPLE_NOT_ASKED) {
            *id = w->written ? t->ids[n] : (uint32_t)cloud;
            return CLOUD_MEMO;
        }
    }
    for (const struct collect_chain *o = w->chains + w->first; o < chain; o++) {
        size_t same = o->n < n ? o->n : n;
        if (n < o->begun || n >= o->most || (same == o->n && o->ended) ||
            memcmp(chain->ids, o->ids, same * sizeof(*o->ids)) != 0)
            continue;
        if (same == o->n)
            return CLOUD_COMING;
        *id = o->ids[n];
        return CLOUD_MEMO;
    }
    return cloud_port_known(r->c->cloud, chain->ids, n, false, id);
}

/* Return how many tokens a chain's next call may ask for. */
static size_t collect_wanted(const struct collect_chain *chain, size_t at, const struct collect *c)
{
    size_t want = c->cloud->info(c->cloud->arg).tokens, left = chain->most - at;
    return want < left ? want : left;
}

static int collect_ask(struct collect_run *r, struct collect_chain *chain, struct err *err)
{
    const struct cloud_port *p = r->c->cloud;
    struct collect_call *calls = realloc(chain->calls, (chain->ncalls + 1) * sizeof(*calls));
    if (!calls)
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    chain->calls = calls;
    struct collect_call *last = &calls[chain->ncalls];
    last->at = chain->n;
    last->tokens = collect_wanted(chain, chain->n, r->c);
    int rc = p->ask(p->arg, chain->ids, chain->n, last->tokens, NULL, &last->call, err);
    if (rc != OK)
        return rc;
    chain->ncalls++;
    chain->live = true;
    r->live++;
    r->c->stats.calls++;
    return OK;
}

/* Append a token. */
static int collect_append(struct collect_run *r, struct collect_work *w,
                          struct collect_chain *chain, uint32_t id, struct err *err)
{
    if (id >= tokenizer_size(r->c->tok))
        return err_set(err, ERR_REMOTE, "cloud: expected an id below %zu, found %u",
                       tokenizer_size(r->c->tok), (unsigned)id);
    chain->ids[chain->n++] = id;
    r->moved = true;
    return collect_chain_see(chain, r->c, w->number, w->text->prompt, chain->n - 1, err);
}

/* Take a token of a chain's call, if one has come. *waits: none has. */
static int collect_listen(struct collect_run *r, struct collect_work *w,
                          struct collect_chain *chain, bool *waits, struct err *err)
{
    const struct cloud_port *p = r->c->cloud;
    const struct collect_call *last = &chain->calls[chain->ncalls - 1];
    size_t have = chain->n - last->at;
    uint32_t id;
    *waits = have < last->tokens && !p->done(last->call, have);
    if (*waits)
        return OK;
    int rc = have < last->tokens ? p->take(last->call, have, &id, err) : ERR_NET;
    bool over = rc != OK;
    if (rc == OK) {
        rc = collect_append(r, w, chain, id, err);
        r->c->stats.written++;
        /* A stream that ends by itself leaves its connection open. */
        bool full = chain->n == chain->most || tokenizer_is_eog(r->c->tok, id);
        if (chain->ended && !full && have + 1 < last->tokens)
            p->end(last->call, CLOUD_ENOUGH);
    } else if (have) { /* a part of what was asked for is an answer, too */
        rc = OK;
    } else if (rc == ERR_TEXT) {
        chain->refused = chain->ended = true;
        r->c->refusal = *err;
        rc = OK;
    }
    if (over || chain->ended) {
        chain->live = false;
        r->live--;
        r->moved = true;
    }
    return rc;
}

int collect_chains_turn(struct collect_run *r, struct collect_work *w, bool *ended, bool *refused,
                        struct err *err)
{
    int rc = OK;
    *refused = false;
    *ended = true;
    for (size_t i = w->first; rc == OK && i < w->nchains; i++) {
        struct collect_chain *chain = &w->chains[i];
        bool waits = *refused;
        if (*refused && chain->live) {
            r->c->cloud->end(chain->calls[--chain->ncalls].call, CLOUD_DROP);
            chain->live = false;
            r->live--;
        }
        while (rc == OK && !waits && !chain->ended) {
            uint32_t id;
            if (chain->live) {
                rc = collect_listen(r, w, chain, &waits, err);
                continue;
            }
            enum cloud_sight sight = collect_foresee(r, w, chain, &id);
            waits = sight == CLOUD_COMING || (sight == CLOUD_UNKNOWN && r->live >= r->calls);
            if (cloud_port_here(sight))
                rc = collect_append(r, w, chain, id, err);
            else if (!waits)
                rc = collect_ask(r, chain, err);
        }
        *refused = *refused || chain->refused;
        *ended = *ended && (chain->ended || *refused);
    }
    return rc;
}

/* Commit what a chain has used, and ask again for what nobody keeps any longer. */
static int collect_chain_settle(struct collect_chain *chain, struct collect *c, struct err *err)
{
    const struct cloud_port *p = c->cloud;
    size_t k = 0;
    int rc = OK;
    for (size_t at = chain->begun; rc == OK && at < chain->n + chain->refused; at++) {
        uint32_t id;
        if (cloud_port_here(cloud_port_known(p, chain->ids, at, true, &id))) {
            c->stats.known++;
            continue;
        }
        while (k < chain->ncalls && chain->calls[k].at < at)
            p->end(chain->calls[k++].call, CLOUD_DROP);
        void *call = NULL;
        if (k < chain->ncalls && chain->calls[k].at == at)
            call = chain->calls[k++].call;
        else
            rc = p->ask(p->arg, chain->ids, at, collect_wanted(chain, at, c), NULL, &call, err);
        if (rc == OK)
            rc = p->take(call, 0, &id, err);
        if (call)
            p->end(call, rc == OK || rc == ERR_TEXT ? CLOUD_USE : CLOUD_DROP);
        if (rc == ERR_TEXT) {
            chain->refused = true;
            rc = OK;
            break;
        }
    }
    while (k < chain->ncalls)
        p->end(chain->calls[k++].call, CLOUD_DROP);
    chain->ncalls = 0;
    return rc;
}

int collect_chains_settle(struct collect_run *r, struct collect_work *w, struct err *err)
{
    int rc = OK;
    bool refused = false;
    for (size_t i = 0; rc == OK && !refused && i < w->nchains; i++) {
        rc = collect_chain_settle(&w->chains[i], r->c, err);
        refused = w->chains[i].refused;
    }
    w->text->left_out = w->text->left_out || refused;
    collect_chains_drop(w, r->c);
    return rc;
}

void collect_chains_drop(struct collect_work *w, const struct collect *c)
{
    for (size_t i = 0; i < w->nchains; i++) {
        for (size_t k = 0; k < w->chains[i].ncalls; k++)
            c->cloud->end(w->chains[i].calls[k].call, CLOUD_DROP);
        free(w->chains[i].calls);
        free(w->chains[i].ids);
    }
    w->nchains = w->first = 0;
}
