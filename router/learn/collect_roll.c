/* collect_roll.c - which answers are written to their end, and for labels citer how. */
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "model/text/tokenizer.h"
#include "router/decode/decode.h"
#include "router/learn/collect_internal.h"
#include "router/texts/turn.h"

/* Return how many rollouts all texts up to this one may have had. */
static uint64_t collect_budget(const struct collect_options *o, size_t number)
{
    uint64_t n = number + 1;
    return n >= o->texts ? o->rollouts
                         : o->rollouts / o->texts * n + o->rollouts % o->texts * n / o->texts;
}

void collect_draw(struct collect_work *w, const struct collect *c, uint64_t *drawn)
{
    struct samples *s = &w->read;
    size_t all = 0, seen = 0;
    for (size_t i = 0; i < s->n; i++)
        all += s->rows[i].way == SAMPLE_UNDECIDED;
    uint64_t budget = collect_budget(c->o, w->number);
    budget = budget > *drawn ? budget - *drawn : 0;
    size_t take = budget < all ? (size_t)budget : all;
    for (size_t i = 0; i < s->n; i++) {
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
    const struct collect_options *o;
    size_t number, prompt; /* of its text */
    uint32_t *ids;         /* [room]; the text, then what is written */
    size_t n, room;
    enum collect_verdict verdict;
    int rc; /* of judge, with err */
    struct err err;
};

static void rollout_judge(struct rollout *r, bool ended)
{
    if (r->verdict == COLLECT_OPEN && r->rc == OK)
        r->rc = r->o->judge(r->o->arg, &r->verdict, r->number, r->ids + r->prompt, r->n - r->prompt,
                            ended, &r->err);
}

/* Callback of the decoding loop. */
static bool collect_keep(void *arg, const struct decode_token *t)
{
    struct rollout *r = arg;
    r->ids[r->n++] = t->id;
    rollout_judge(r, false);
    return r->n < r->room && r->verdict == COLLECT_OPEN && r->rc == OK;
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
    struct turn *turn = o->router ? NULL : o->turn; /* a router waits for the cloud in between */
    int rc = OK;
    memcpy(r->ids, text->ids, at * sizeof(*r->ids));
    r->ids[at] = (uint32_t)row->edge;
    r->n = at + 1;
    r->verdict = COLLECT_OPEN;
    rollout_judge(r, tokenizer_is_eog(c->tok, r->ids[at]));
    turn_take(turn);
    if (r->verdict == COLLECT_OPEN && r->rc == OK)
        rc = decode_run(&stats, c->session, c->tok, c->sampler, o->router,
                        o->router ? c->cloud : NULL, r->ids, at + 1, &how, err);
    turn_give(turn);
    c->stats.calls += stats.calls;
    c->stats.known += stats.memo + stats.store;
    if (rc == ERR_TEXT) {
        text->left_out = true;
        c->refusal = *err;
        return OK;
    }
    rollout_judge(r, true);
    if (rc == OK && r->rc != OK)
        rc = err_set(err, r->rc, "%s", r->err.msg);
    row->label = r->verdict == COLLECT_RIGHT;
    row->way = SAMPLE_ROLLOUT;
    c->stats.rollouts++;
    if (rc == OK && o->progress)
        o->progress(o->arg, &c->stats);
    return rc;
}

int collect_roll_edge(struct collect_work *w, struct collect *c, struct err *err)
{
    struct collect_text *text = w->text;
    int rc = OK;
    struct rollout r = { .o = c->o,
                         .number = w->number,
                         .prompt = text->prompt,
                         .room = session_context(c->session) + 2 };
    r.ids = malloc(r.room * sizeof(*r.ids));
    if (!r.ids)
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    /* From the last to the first, so that the session rewinds and never reads the text again. */
    for (size_t i = w->read.n; rc == OK && !text->left_out && i-- > 0;)
        if (w->read.rows[i].way == SAMPLE_UNDECIDED)
            rc = collect_roll(&w->read.rows[i], &r, c, text, text->prompt + i, err);
    free(r.ids);
    return rc;
}
