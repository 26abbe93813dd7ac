/* collect_rollout.c - answers that are written to their end, to see whether they come out right. */
#include "router/learn/collect_internal.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "router/cloud_port.h"
#include "router/decode/decode.h"

/* Return how many rollouts all texts up to this one may have had. */
static uint64_t collect_budget(const struct collect_options *o, size_t number)
{
    uint64_t n = number + 1;
    return n >= o->texts ? o->rollouts
                         : o->rollouts / o->texts * n + o->rollouts % o->texts * n / o->texts;
}

/* Draw rows of one text: mark the undecided ones among rows [first, end) for which there is no
 * budget as undrawn, so that the others are spread evenly. */
static void collect_draw(struct sample_shard *s, const struct collect *c, size_t first, size_t end,
                         size_t number, uint64_t *drawn)
{
    size_t all = 0, seen = 0;
    for (size_t i = first; i < end; i++)
        all += s->rows[i].way == SAMPLE_UNDECIDED;
    uint64_t budget = collect_budget(c->o, number);
    budget = budget > *drawn ? budget - *drawn : 0;
    size_t take = budget < all ? (size_t)budget : all;
    for (size_t i = first; i < end; i++) {
        if (s->rows[i].way != SAMPLE_UNDECIDED)
            continue;
        bool in = (seen + 1) * take / all > seen * take / all;
        seen++;
        if (!in)
            s->rows[i].way = SAMPLE_UNDRAWN;
    }
    *drawn += take;
}

/* An answer while the edge writes it. */
struct rollout {
    uint32_t *ids; /* [room]; the text, then what is written */
    size_t n, room;
};

/* Callback of the decoding loop. */
static bool collect_keep(void *arg, const struct decode_token *t)
{
    struct rollout *r = arg;
    r->ids[r->n++] = t->id;
    return r->n < r->room;
}

/* Let the edge write to the end after row's token, and set the row's label. at: where the row's
 * token is in the text. */
static int collect_roll(struct sample_row *row, struct rollout *r, struct collect *c,
                        struct collect_text *text, size_t at, struct err *err)
{
    const struct collect_options *o = c->o;
    struct decode_stats stats = { 0 };
    const struct decode_options how = { .policy = o->router ? POLICY_MLP : POLICY_NEVER,
                                        .threshold = o->threshold,
                                        .ahead = o->router ? 1 : 0,
                                        .cloud_required = true,
                                        .max_tokens = o->max_tokens,
                                        .stops = o->stops,
                                        .stop = o->stop,
                                        .emit = collect_keep,
                                        .arg = r };
    int rc = OK;
    bool right = false;
    memcpy(r->ids, text->ids, at * sizeof(*r->ids));
    r->ids[at] = (uint32_t)row->edge;
    r->n = at + 1;
    if (!tokenizer_is_eog(c->tok, r->ids[at]))
        rc = decode_run(&stats, c->session, c->tok, c->sampler, o->router,
                        o->router ? c->cloud : NULL, r->ids, at + 1, &how, err);
    c->stats.calls += stats.calls;
    c->stats.known += stats.memo_hits + stats.store_hits;
    if (rc == ERR_TEXT) {
        text->left_out = true;
        c->refusal = *err;
        return OK;
    }
    if (rc == OK)
        rc = o->judge(o->arg, &right, (size_t)row->text, r->ids + text->prompt, r->n - text->prompt,
                      err);
    row->label = right;
    row->way = SAMPLE_ROLLOUT;
    if (rc == OK && o->progress)
        o->progress(o->arg, &c->stats);
    return rc;
}

int collect_roll_edge(struct sample_shard *s, struct collect *c, struct collect_text *text,
                      size_t first_row, size_t number, uint64_t *drawn, struct err *err)
{
    int rc = OK;
    collect_draw(s, c, first_row, s->n, number, drawn);
    struct rollout r = { .room = session_context(c->session) + 2 };
    r.ids = malloc(r.room * sizeof(*r.ids));
    if (!r.ids)
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    /* From the last to the first, so that the session rewinds and never reads the text again. */
    for (size_t i = s->n; rc == OK && !text->left_out && i-- > first_row;)
        if (s->rows[i].way == SAMPLE_UNDECIDED)
            rc = collect_roll(&s->rows[i], &r, c, text, text->prompt + (i - first_row), err);
    free(r.ids);
    return rc;
}

/* Let the cloud continue all chains, and judge the answers. */
static int collect_judge_chains(bool *right, struct collect_chain *chains, size_t n,
                                struct sample_shard *s, struct collect *c,
                                struct collect_text *texts, struct err *err)
{
    int rc = collect_chains_run(chains, n, c, err);
    for (size_t i = 0; rc == OK && i < n; i++) {
        size_t number = (size_t)s->rows[chains[i].row].text;
        struct collect_text *text = &texts[number - s->first];
        right[i] = false;
        if (chains[i].refused)
            text->left_out = true;
        else
            rc = c->o->judge(c->o->arg, &right[i], number, chains[i].ids + text->prompt,
                             chains[i].n - text->prompt, err);
    }
    return rc;
}

/* Begin chains at the undecided rows, each with the edge's token, or with the cloud's. */
static int collect_open_chains(struct collect_chain *chains, size_t *n, struct sample_shard *s,
                               const struct collect *c, const struct collect_text *texts,
                               bool from_edge, struct err *err)
{
    int rc = OK;
    size_t at = 0;
    *n = 0;
    for (size_t i = 0; rc == OK && i < s->n; i++) {
        const struct sample_row *row = &s->rows[i];
        const struct collect_text *text = &texts[(size_t)row->text - s->first];
        at = i && row->text == row[-1].text ? at + 1 : text->prompt;
        uint32_t last = (uint32_t)(from_edge ? row->edge : row->cloud);
        if (row->way != SAMPLE_UNDECIDED || text->left_out)
            continue;
        rc = collect_chain_open(&chains[*n], c, text->ids, at, &last, c->o->max_tokens, err);
        chains[(*n)++].row = i;
    }
    return rc;
}

/* Decide the drawn rows. First the cloud continues after the edge's tokens; where that ends wrong,
 * it continues after its own. */
static int collect_roll_drawn(struct collect_chain *chains, bool *right, struct sample_shard *s,
                              struct collect *c, struct collect_text *texts, struct err *err)
{
    int rc = OK;
    for (size_t pass = 0; rc == OK && pass < 2; pass++) {
        size_t n;
        rc = collect_open_chains(chains, &n, s, c, texts, pass == 0, err);
        if (rc == OK)
            rc = collect_judge_chains(right, chains, n, s, c, texts, err);
        for (size_t i = 0; i < n; i++) {
            struct sample_row *row = &s->rows[chains[i].row];
            if (rc == OK && (right[i] || pass)) {
                row->label = pass ? !right[i] : 1;
                row->way = SAMPLE_ROLLOUT;
            }
            collect_chain_close(&chains[i]);
        }
        if (rc == OK && c->o->progress)
            c->o->progress(c->o->arg, &c->stats);
    }
    return rc;
}

int collect_roll_cloud(struct sample_shard *s, struct collect *c, struct collect_text *texts,
                       uint64_t *drawn, struct err *err)
{
    size_t n = 0;
    for (size_t i = 0, end; i < s->n; i = end) {
        for (end = i; end < s->n && s->rows[end].text == s->rows[i].text; end++)
            ;
        if (!texts[(size_t)s->rows[i].text - s->first].left_out)
            collect_draw(s, c, i, end, (size_t)s->rows[i].text, drawn);
    }
    for (size_t i = 0; i < s->n; i++)
        n += s->rows[i].way == SAMPLE_UNDECIDED;
    struct collect_chain *chains = calloc(n + 1, sizeof(*chains));
    bool *right = calloc(n + 1, sizeof(*right));
    int rc = chains && right ? collect_roll_drawn(chains, right, s, c, texts, err)
                             : err_set(err, ERR_NOMEM, "collect: out of memory");
    free(chains);
    free(right);
    return rc;
}
