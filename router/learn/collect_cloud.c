/* collect_cloud.c - calls in flight together. They are made and committed in an order that does not
 * depend on when replies come, so a recording is the same each time. */
#include "router/learn/collect_internal.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "router/cloud_port.h"

/* Find the token after ids[n] without a call. */
static bool collect_known(struct collect *c, const uint32_t *ids, size_t n, uint32_t *id)
{
    const struct cloud_port *p = c->cloud;
    bool known = p->known(p->arg, ids, n, id) != ORIGIN_NONE && *id < tokenizer_size(c->tok);
    c->stats.known += known;
    return known;
}

/* Take and commit the answer of a call. *refused: the server refuses this text. */
static int collect_take(void **call, struct collect *c, uint32_t *id, bool *refused,
                        struct err *err)
{
    int rc = c->cloud->take(*call, id, err);
    *refused = rc == ERR_TEXT;
    if (*refused)
        c->refusal = *err;
    if (rc == OK || rc == ERR_TEXT)
        c->cloud->commit(*call);
    else
        c->cloud->drop(*call);
    *call = NULL;
    if (rc == OK && *id >= tokenizer_size(c->tok))
        return err_set(err, ERR_REMOTE, "cloud: expected an id below %zu, found %u",
                       tokenizer_size(c->tok), (unsigned)*id);
    return rc == ERR_TEXT ? OK : rc;
}

/* Wait for the oldest answer of the window. */
static int collect_window_next(struct collect_window *w, struct collect *c, struct sample_shard *s,
                               struct collect_text *texts, struct err *err)
{
    size_t row = w->at[w->first].row;
    void *call = w->at[w->first].call;
    uint32_t id;
    bool refused;
    w->first = (w->first + 1) % COLLECT_CALLS;
    w->n--;
    int rc = collect_take(&call, c, &id, &refused, err);
    if (rc != OK)
        return rc;
    if (refused)
        texts[(size_t)s->rows[row].text - s->first].left_out = true;
    else
        s->rows[row].cloud = (int32_t)id;
    return OK;
}

int collect_window_add(struct collect_window *w, struct collect *c, struct sample_shard *s,
                       struct collect_text *texts, size_t row, const uint32_t *ids, size_t n,
                       struct err *err)
{
    uint32_t id;
    int rc = OK;
    if (collect_known(c, ids, n, &id)) {
        s->rows[row].cloud = (int32_t)id;
        return OK;
    }
    if (w->n == COLLECT_CALLS)
        rc = collect_window_next(w, c, s, texts, err);
    if (rc != OK)
        return rc;
    size_t at = (w->first + w->n) % COLLECT_CALLS;
    rc = c->cloud->ask(c->cloud->arg, ids, n, 1, NULL, &w->at[at].call, err);
    if (rc != OK)
        return rc;
    w->at[at].row = row;
    w->n++;
    c->stats.calls++;
    return OK;
}

int collect_window_finish(struct collect_window *w, struct collect *c, struct sample_shard *s,
                          struct collect_text *texts, struct err *err)
{
    int rc = OK;
    while (rc == OK && w->n)
        rc = collect_window_next(w, c, s, texts, err);
    return rc;
}

void collect_window_drop(struct collect_window *w, const struct collect *c)
{
    for (; w->n; w->n--, w->first = (w->first + 1) % COLLECT_CALLS)
        c->cloud->drop(w->at[w->first].call);
}

int collect_chain_open(struct collect_chain *chain, const struct collect *c, const uint32_t *ids,
                       size_t n, const uint32_t *last, size_t more, struct err *err)
{
    size_t begun = n + (last != NULL), context = session_context(c->session);
    size_t most = more < context - begun ? begun + more : context;
    *chain = (struct collect_chain){ .n = begun, .most = most };
    chain->ids = malloc(most * sizeof(*chain->ids));
    if (!chain->ids)
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    memcpy(chain->ids, ids, n * sizeof(*ids));
    if (last)
        chain->ids[n] = *last;
    return OK;
}

void collect_chain_close(struct collect_chain *chain)
{
    free(chain->ids);
    *chain = (struct collect_chain){ 0 };
}

/* True when nothing more is written. */
static bool collect_chain_ended(const struct collect_chain *chain, const struct collect *c)
{
    return chain->refused || chain->n == chain->most ||
           tokenizer_is_eog(c->tok, chain->ids[chain->n - 1]);
}

/* Take the answer that is awaited, go on through what is known, and ask again. */
static int collect_chain_turn(struct collect_chain *chain, struct collect *c, struct err *err)
{
    const struct cloud_port *p = c->cloud;
    uint32_t id;
    if (chain->call) {
        int rc = collect_take(&chain->call, c, &id, &chain->refused, err);
        if (rc != OK)
            return rc;
        if (!chain->refused)
            chain->ids[chain->n++] = id;
    }
    while (!collect_chain_ended(chain, c) && collect_known(c, chain->ids, chain->n, &id))
        chain->ids[chain->n++] = id;
    if (collect_chain_ended(chain, c))
        return OK;
    size_t want = p->tokens(p->arg), left = chain->most - chain->n;
    int rc =
        p->ask(p->arg, chain->ids, chain->n, want < left ? want : left, NULL, &chain->call, err);
    c->stats.calls += rc == OK;
    return rc;
}

int collect_chains_run(struct collect_chain *chains, size_t n, struct collect *c, struct err *err)
{
    struct collect_chain *slots[COLLECT_CALLS] = { NULL };
    size_t next = 0, busy;
    int rc = OK;
    do {
        busy = 0;
        for (size_t i = 0; rc == OK && i < COLLECT_CALLS; i++) {
            if (slots[i])
                rc = collect_chain_turn(slots[i], c, err);
            while (rc == OK && (!slots[i] || !slots[i]->call) && next < n) {
                slots[i] = &chains[next++];
                if (!collect_chain_ended(slots[i], c))
                    rc = collect_chain_turn(slots[i], c, err);
            }
            if (slots[i] && !slots[i]->call)
                slots[i] = NULL;
            busy += slots[i] != NULL;
        }
    } while (rc == OK && busy);
    for (size_t i = 0; i < n; i++) /* after an error */
        if (chains[i].call)
            c->cloud->drop(chains[i].call);
    return rc;
}
