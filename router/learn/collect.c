#include "router/learn/collect_internal.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/cloud_port.h"

static const char *const label_names[] = { "match", "citer", "divergent" };

const char *collect_labels_name(enum collect_labels l)
{
    return label_names[l];
}

bool collect_labels_parse(enum collect_labels *out, const char *name)
{
    for (size_t i = 0; i < sizeof(label_names) / sizeof(*label_names); i++)
        if (!strcmp(name, label_names[i])) {
            *out = (enum collect_labels)i;
            return true;
        }
    return false;
}

bool collect_same(const struct collect *c, uint32_t a, uint32_t b)
{
    return a == b || (tokenizer_is_eog(c->tok, a) && tokenizer_is_eog(c->tok, b));
}

/* Leave out texts that do not fit into the context. */
static int collect_fit(struct sample_shard *s, const struct collect *c, struct collect_text *texts,
                       struct err *err)
{
    size_t context = session_context(c->session);
    for (size_t i = 0; i < s->ntexts; i++) {
        struct collect_text *t = &texts[i];
        if (!t->prompt || t->n < t->prompt)
            return err_set(err, ERR_ARG, "collect: text %zu: the prompt is empty", s->first + i);
        t->left_out = t->n > context || (t->n == t->prompt && t->n == context);
        s->counts.too_long += t->left_out;
    }
    return OK;
}

/* Let the cloud write the answers of the texts that have none. */
static int collect_write(struct sample_shard *s, struct collect *c, struct collect_text *texts,
                         struct err *err)
{
    size_t n = 0;
    int rc = OK;
    struct collect_chain *chains = calloc(s->ntexts + 1, sizeof(*chains));
    if (!chains)
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    for (size_t i = 0; rc == OK && i < s->ntexts; i++) {
        const struct collect_text *t = &texts[i];
        if (t->left_out || t->n > t->prompt)
            continue;
        if (!c->cloud)
            rc = err_set(err, ERR_ARG,
                         "collect: text %zu: there is neither a reference answer nor a cloud",
                         s->first + i);
        else
            rc = collect_chain_open(&chains[n], c, t->ids, t->n, NULL, c->o->max_tokens, err);
        chains[n++].row = i;
    }
    if (rc == OK)
        rc = collect_chains_run(chains, n, c, err);
    for (size_t i = 0; i < n; i++) {
        struct collect_text *t = &texts[chains[i].row];
        if (rc == OK && !chains[i].refused) {
            uint32_t *ids = t->ids;
            t->ids = chains[i].ids;
            t->n = chains[i].n;
            chains[i].ids = ids;
            s->counts.written++;
        }
        t->left_out = t->left_out || chains[i].refused;
        collect_chain_close(&chains[i]);
    }
    free(chains);
    return rc;
}

/* Add the row of the token at ids[at], whose hidden state is `back` tokens ago. */
static int collect_add(struct sample_shard *s, struct collect *c, const struct collect_text *text,
                       size_t number, size_t at, size_t back, struct err *err)
{
    const struct kernels *k = model_kernels(session_model(c->session));
    size_t edge = k->argmax_f32(session_logits(c->session, back), tokenizer_size(c->tok));
    uint32_t gold = text->ids[at];
    bool right = collect_same(c, (uint32_t)edge, gold);
    bool decided = right || c->o->labels == COLLECT_MATCH;
    const struct sample_row row = { .edge = (int32_t)edge,
                                    .cloud = SAMPLE_NOT_ASKED,
                                    .gold = (int32_t)gold,
                                    .before = { at > 1 ? (int32_t)text->ids[at - 2]
                                                       : SAMPLE_NOT_ASKED,
                                                (int32_t)text->ids[at - 1] },
                                    .text = (int32_t)number,
                                    .subject = text->subject,
                                    .label = right,
                                    .way = (uint8_t)(right     ? SAMPLE_EDGE_RIGHT
                                                     : decided ? SAMPLE_EDGE_WRONG
                                                               : SAMPLE_UNDECIDED) };
    return sample_shard_add(s, session_hidden(c->session, c->o->tap, back), &row, err);
}

/* Run the edge over a text, add its rows, and ask the cloud where the edge is wrong. */
static int collect_read(struct sample_shard *s, struct collect *c, struct collect_window *w,
                        struct collect_text *texts, size_t i, struct err *err)
{
    const struct collect_text *t = &texts[i];
    size_t at = t->prompt; /* the token whose hidden state comes next */
    session_rewind(c->session, 0);
    int rc = at > 1 ? session_eval(c->session, t->ids, at - 1, c->o->stop, err) : OK;
    while (rc == OK && at < t->n) {
        size_t n = t->n - at < BATCH_ROWS ? t->n - at : BATCH_ROWS, row = s->n;
        rc = session_eval(c->session, t->ids + at - 1, n, c->o->stop, err);
        for (size_t j = 0; rc == OK && j < n; j++)
            rc = collect_add(s, c, t, s->first + i, at + j, n - 1 - j, err);
        for (size_t j = 0; rc == OK && j < n && !t->left_out; j++)
            if (s->rows[row + j].way == SAMPLE_UNDECIDED)
                rc = collect_window_add(w, c, s, texts, row + j, t->ids, at + j, err);
        at += n;
    }
    c->stats.tokens += t->n - t->prompt;
    if (rc == OK && c->o->progress)
        c->o->progress(c->o->arg, &c->stats);
    return rc;
}

/* Decide the rows from `first` on that need only the cloud's token. */
static void collect_decide(struct sample_shard *s, const struct collect *c, size_t first)
{
    for (size_t i = first; i < s->n; i++) {
        struct sample_row *r = &s->rows[i];
        if (r->way != SAMPLE_UNDECIDED || r->cloud == SAMPLE_NOT_ASKED)
            continue;
        uint32_t cloud = (uint32_t)r->cloud;
        if (c->o->labels == COLLECT_CITER && collect_same(c, cloud, (uint32_t)r->gold)) {
            r->way = SAMPLE_CLOUD_RIGHT;
        } else if (c->o->labels == COLLECT_DIVERGENT && collect_same(c, cloud, (uint32_t)r->edge)) {
            r->way = SAMPLE_AGREED;
            r->label = 1;
        }
    }
}

/* Collect all texts of a shard. The rollouts of citer need the session at their text, so each text
 * is finished before the next one; otherwise calls of several texts are in flight together. */
static int collect_texts(struct sample_shard *s, struct collect *c, struct collect_window *w,
                         struct collect_text *texts, uint64_t drawn, struct err *err)
{
    int rc = OK;
    bool citer = c->o->labels == COLLECT_CITER;
    for (size_t i = 0; rc == OK && i < s->ntexts; i++) {
        size_t first = s->n;
        if (texts[i].left_out)
            continue;
        rc = collect_read(s, c, w, texts, i, err);
        if (rc == OK && citer)
            rc = collect_window_finish(w, c, s, texts, err);
        if (rc != OK || !citer || texts[i].left_out)
            continue;
        collect_decide(s, c, first);
        rc = collect_roll_edge(s, c, &texts[i], first, s->first + i, &drawn, err);
    }
    if (rc == OK)
        rc = collect_window_finish(w, c, s, texts, err);
    if (rc != OK || c->o->labels != COLLECT_DIVERGENT)
        return rc;
    collect_decide(s, c, 0);
    return collect_roll_cloud(s, c, texts, &drawn, err);
}

struct dropped {
    const struct sample_shard *s;
    const struct collect_text *texts;
};

/* True for a row that is not a sample. */
static bool collect_drops(const void *arg, size_t row)
{
    const struct dropped *d = arg;
    const struct sample_row *r = &d->s->rows[row];
    return d->texts[(size_t)r->text - d->s->first].left_out || r->way >= SAMPLE_WAYS;
}

/* Count what became of all rows, and drop those that are not samples. */
static void collect_count(struct sample_shard *s, const struct collect_text *texts)
{
    struct sample_counts *n = &s->counts;
    const struct dropped dropped = { s, texts };
    for (size_t i = 0; i < s->ntexts; i++)
        n->refused += texts[i].left_out;
    n->refused -= n->too_long;
    for (size_t i = 0; i < s->n; i++)
        n->left_out +=
            s->rows[i].way == SAMPLE_UNDRAWN && !texts[(size_t)s->rows[i].text - s->first].left_out;
    sample_shard_drop(s, collect_drops, &dropped);
    n->samples = s->n;
    for (size_t i = 0; i < s->n; i++) {
        n->texts += !i || s->rows[i].text != s->rows[i - 1].text;
        n->right += s->rows[i].label;
        n->rollouts += s->rows[i].way == SAMPLE_ROLLOUT;
    }
}

int collect_shard(struct sample_shard *s, struct collect *c, struct collect_text *texts,
                  uint64_t drawn, struct err *err)
{
    struct collect_window w = { .n = 0 };
    int rc = collect_fit(s, c, texts, err);
    if (rc == OK && !c->cloud && c->o->labels != COLLECT_MATCH)
        rc = err_set(err, ERR_ARG, "collect: labels %s need a cloud",
                     collect_labels_name(c->o->labels));
    if (rc == OK)
        rc = collect_write(s, c, texts, err);
    if (rc == OK)
        rc = collect_texts(s, c, &w, texts, drawn, err);
    if (rc == OK)
        collect_count(s, texts);
    else
        collect_window_drop(&w, c);
    return rc;
}
