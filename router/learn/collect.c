#include "router/learn/collect_internal.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/math.h"
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/texts/texts.h"
#include "router/texts/turn.h"

enum { KEEP_SEED = 1 }; /* rows in which both models agree */

/* The kinds of labels. */
static const struct label_kind {
    const char *name;
    bool asks;                    /* where the edge is wrong, the cloud says its token */
    enum collect_writer rolls_by; /* who writes an answer to its end after a token */
} kinds[] = { [COLLECT_MATCH] = { "match", false, COLLECT_EDGE },
              [COLLECT_CITER] = { "citer", true, COLLECT_EDGE },
              [COLLECT_DIVERGENT] = { "divergent", true, COLLECT_CLOUD },
              [COLLECT_GAIN] = { "gain", true, COLLECT_EDGE } };

const char *collect_labels_name(enum collect_labels l)
{
    return kinds[l].name;
}

bool collect_labels_parse(enum collect_labels *out, const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strcmp(name, kinds[i].name)) {
            *out = (enum collect_labels)i;
            return true;
        }
    return false;
}

/* True when two ids are equal or both end the text. */
static bool collect_same(const struct collect *c, int32_t a, int32_t b)
{
    return a == b ||
           (tokenizer_is_eog(c->tok, (uint32_t)a) && tokenizer_is_eog(c->tok, (uint32_t)b));
}

/* Begin with all texts, and leave out those that do not fit into the context. */
static int collect_fit(struct collect_run *r, struct collect_text *texts, struct err *err)
{
    struct sample_shard *s = r->s;
    const struct collect *c = r->c;
    size_t context = session_context(c->session);
    for (size_t i = 0; i < s->ntexts; i++) {
        struct collect_text *t = &texts[i];
        if (!t->prompt || t->n < t->prompt)
            return err_set(err, ERR_ARG, "collect: text %zu: the prompt is empty", s->first + i);
        t->left_out = t->n > context || (t->n == t->prompt && t->n == context);
        s->counts.too_long += t->left_out;
        if (!c->texts && t->n == t->prompt && !t->left_out)
            return err_set(err, ERR_ARG,
                           "collect: text %zu: there is neither a reference answer nor a cloud",
                           s->first + i);
        r->works[i] = (struct collect_work){
            .run = r, .text = t, .number = s->first + i, .read = { .dim = s->samples.dim }
        };
        r->works[i].too_long = t->left_out;
    }
    return OK;
}

void collect_row(struct sample_row *row, const struct collect_work *w, const struct collect *c,
                 const uint32_t *ids, size_t at, const float *logits)
{
    const struct kernels *k = session_model(c->session)->kernels;
    const struct features_text t = { c->tok, ids, at, w->text->prompt };
    float features[FEATURES];
    size_t size = tokenizer_size(c->tok);
    *row = (struct sample_row){ .edge = (int32_t)k->argmax_f32(logits, size),
                                .cloud = SAMPLE_NOT_ASKED,
                                .before = { at > 1 ? ids[at - 2] : SAMPLES_NONE, ids[at - 1] },
                                .text = (uint32_t)w->number,
                                .subject = w->text->subject };
    features_of(features, &t, logits, size, NULL, k);
    memcpy(row->features, features, sizeof(row->features));
}

/* Add the row of the token at ids[at], whose hidden state is `back` tokens ago. */
static int collect_add(struct collect_work *w, const struct collect *c, size_t at, size_t back,
                       struct err *err)
{
    const uint32_t *ids = w->text->ids;
    struct sample_row row;
    collect_row(&row, w, c, ids, at, session_logits(c->session, back));
    row.gold = (int32_t)ids[at];
    row.label = collect_same(c, row.edge, row.gold);
    row.way = (uint8_t)(row.label                       ? SAMPLE_EDGE_RIGHT
                        : c->o->labels == COLLECT_MATCH ? SAMPLE_EDGE_WRONG
                                                        : SAMPLE_UNDECIDED);
    return samples_add(&w->read, session_hidden(c->session, back), &row, err);
}

/* Let the models write what a text lacks: its answer. */
static int collect_answers(struct collect_run *r, struct err *err)
{
    const struct collect *c = r->c;
    const bool gain = c->o->labels == COLLECT_GAIN;
    const enum collect_writer by = gain ? COLLECT_EDGE : COLLECT_CLOUD;
    int rc = OK;
    for (size_t i = 0; rc == OK && i < r->s->ntexts; i++) {
        struct collect_work *w = &r->works[i];
        if (w->text->left_out || w->text->n > w->text->prompt)
            continue;
        rc = collect_chain(w, by, w->text->prompt, NULL, c->o->max_tokens, gain, 0, err);
        if (rc == OK && gain)
            rc = samples_reserve(&w->read, w->chains->most - w->text->prompt, err);
    }
    if (rc == OK)
        rc = collect_write(r, by, err);
    for (size_t i = 0; rc == OK && i < r->s->ntexts; i++) {
        struct collect_work *w = &r->works[i];
        struct collect_text *t = w->text;
        if (!w->nchains || t->left_out)
            continue;
        free(t->ids);
        t->ids = w->chains->ids;
        t->n = w->chains->n;
        w->chains->ids = NULL;
        w->written = !gain;
        collect_chains_drop(w);
    }
    return rc;
}

/* Run the edge over a text, and add its rows. */
static int collect_read(struct collect_work *w, struct collect *c, struct err *err)
{
    const struct collect_text *t = w->text;
    size_t at = session_sync(c->session, t->ids, t->prompt - 1), n;
    int rc = samples_reserve(&w->read, t->n - t->prompt, err);
    turn_take(c->o->turn);
    /* The last id of the text is not needed. */
    for (; rc == OK && at + 1 < t->n; at += n) {
        n = t->n - 1 - at < BATCH_ROWS ? t->n - 1 - at : BATCH_ROWS;
        rc = session_eval(c->session, t->ids + at, n, c->o->stop, err);
        for (size_t j = at + 1 < t->prompt ? t->prompt - 1 - at : 0; rc == OK && j < n; j++)
            rc = collect_add(w, c, at + 1 + j, n - 1 - j, err);
    }
    turn_give(c->o->turn);
    return rc;
}

/* Ask for the cloud's tokens in a text's undecided rows. A model of this process reads the text
 * once, and writes the last one. */
static int collect_ask(struct collect_work *w, const struct collect *c, struct err *err)
{
    size_t last = SIZE_MAX;
    int rc = OK;
    for (size_t i = 0; rc == OK && i < w->read.n; i++) {
        struct sample_row *row = &w->read.rows[i];
        if (w->written)
            row->cloud = row->way == SAMPLE_UNDECIDED ? row->gold : row->cloud;
        if (row->way != SAMPLE_UNDECIDED || row->cloud != SAMPLE_NOT_ASKED)
            continue;
        last = i;
        if (!c->large)
            rc = collect_chain(w, COLLECT_CLOUD, w->text->prompt + i, NULL, 1, false, i, err);
    }
    return rc != OK || !c->large || last == SIZE_MAX
               ? rc
               : collect_chain(w, COLLECT_READS, w->text->prompt + last, NULL, 1, false, last, err);
}

/* Decide the rows that need nothing but the cloud's tokens. */
static void collect_decide(struct collect_work *w, const struct collect *c)
{
    const enum collect_labels labels = c->o->labels;
    for (size_t i = 0; i < w->read.n; i++) {
        struct sample_row *row = &w->read.rows[i];
        if (row->way != SAMPLE_UNDECIDED)
            continue;
        bool agreed = labels != COLLECT_CITER && collect_same(c, row->edge, row->cloud);
        row->label = agreed || labels == COLLECT_GAIN;
        if (labels == COLLECT_CITER && collect_same(c, row->cloud, row->gold))
            row->way = SAMPLE_CLOUD_RIGHT;
        else if (agreed)
            row->way =
                labels == COLLECT_GAIN &&
                        rand_below(KEEP_SEED, (uint64_t)w->number << 32 | i, SAMPLE_AGREED_FOR)
                    ? SAMPLE_UNKEPT
                    : SAMPLE_AGREED;
    }
}

/* Return how many rollouts all texts up to this one may have had. */
static uint64_t collect_budget(const struct collect_options *o, size_t number)
{
    uint64_t n = number + 1;
    return n >= o->texts ? o->rollouts
                         : o->rollouts / o->texts * n + o->rollouts % o->texts * n / o->texts;
}

/* Mark the undecided rows of a text that are not drawn; those that are drawn are spread evenly. */
static void collect_draw(struct collect_work *w, const struct collect *c, uint64_t *drawn)
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

/* Write on at the undecided rows of all texts, each from one of its tokens: labels gain from the
 * one that the answer does not have, others from the edge's, or, in a second turn, the cloud's. */
static int collect_roll(struct collect_run *r, bool again, struct err *err)
{
    const struct collect_options *o = r->c->o;
    const enum collect_writer by = kinds[o->labels].rolls_by;
    const bool gain = o->labels == COLLECT_GAIN;
    int rc = OK;
    for (size_t i = 0; rc == OK && i < r->s->ntexts; i++) {
        struct collect_work *w = &r->works[i];
        /* From the last to the first: who writes keeps the beginning that they share. */
        for (size_t k = w->text->left_out ? 0 : w->read.n; rc == OK && k-- > 0;) {
            const struct sample_row *row = &w->read.rows[k];
            uint32_t last =
                (uint32_t)(again || (gain && row->gold == row->edge) ? row->cloud : row->edge);
            if (row->way == SAMPLE_UNDECIDED)
                rc = collect_chain(w, by, w->text->prompt + k, &last,
                                   o->max_tokens - (gain ? k + 1 : 0), true, k, err);
        }
    }
    return rc == OK ? collect_write(r, by, err) : rc;
}

/* Take the verdicts on these answers. */
static void collect_judge(struct collect_work *w, const struct collect_options *o, bool again)
{
    for (size_t i = 0; i < w->nchains; i++) {
        struct sample_row *row = &w->read.rows[w->chains[i].row];
        int other = w->chains[i].verdict == COLLECT_RIGHT, written = w->right;
        bool mends = row->gold == row->edge; /* the other is the answer with the cloud's token */
        if (o->labels == COLLECT_DIVERGENT && !again && !other)
            continue; /* the cloud's own token decides */
        if (o->labels == COLLECT_GAIN)
            row->gain = (int8_t)(mends ? other - written : written - other);
        row->label = o->labels == COLLECT_GAIN ? row->gain != 1 : (other != 0) != again;
        row->way = SAMPLE_ROLLOUT;
    }
    collect_chains_drop(w);
}

/* Add the samples of a text to the shard, and count it. */
static int collect_complete(struct collect_run *r, struct collect_work *w, struct err *err)
{
    struct sample_counts *n = &r->s->counts;
    const struct samples *read = &w->read;
    struct samples *s = &r->s->samples;
    size_t before = s->n;
    int rc = OK;
    n->written += w->written;
    n->refused += w->text->left_out && !w->too_long;
    for (size_t i = 0; rc == OK && !w->text->left_out && i < read->n; i++) {
        const struct sample_row *row = &read->rows[i];
        n->left_out += row->way == SAMPLE_UNDRAWN;
        if (row->way >= SAMPLE_WAYS)
            continue;
        n->right += row->label;
        n->rollouts += row->way == SAMPLE_ROLLOUT;
        rc = samples_add(s, read->x + i * read->dim, row, err);
    }
    n->texts += s->n > before;
    n->samples = s->n;
    r->c->stats.texts++;
    return rc;
}

/* Label all texts: what each step writes is there before the next one begins. */
static int collect_label(struct collect_run *r, uint64_t drawn, struct err *err)
{
    struct collect *c = r->c;
    const enum collect_labels labels = c->o->labels;
    const size_t n = r->s->ntexts;
    int rc = c->texts ? collect_answers(r, err) : OK;
    for (size_t i = 0; rc == OK && i < n; i++) {
        struct collect_work *w = &r->works[i];
        if (w->text->left_out)
            continue;
        c->stats.tokens += w->text->n - w->text->prompt;
        if (labels != COLLECT_GAIN)
            rc = collect_read(w, c, err);
        if (rc == OK && kinds[labels].asks)
            rc = collect_ask(w, c, err);
        if (rc == OK && c->o->progress)
            c->o->progress(c->o->arg, &c->stats);
    }
    if (rc == OK && kinds[labels].asks)
        rc = collect_write(r, c->large ? COLLECT_READS : COLLECT_CLOUD, err);
    for (size_t i = 0; rc == OK && i < n; i++) {
        struct collect_work *w = &r->works[i];
        collect_chains_drop(w);
        if (w->text->left_out)
            continue;
        collect_decide(w, c);
        collect_draw(w, c, &drawn);
    }
    for (int turn = 0; rc == OK && turn <= (labels == COLLECT_DIVERGENT); turn++) {
        rc = collect_roll(r, turn, err);
        for (size_t i = 0; rc == OK && i < n; i++)
            collect_judge(&r->works[i], c->o, turn);
    }
    for (size_t i = 0; rc == OK && i < n; i++)
        rc = collect_complete(r, &r->works[i], err);
    return rc;
}

int collect_shard(struct sample_shard *s, struct collect *c, struct collect_text *texts,
                  uint64_t drawn, struct err *err)
{
    if (!c->texts && kinds[c->o->labels].asks)
        return err_set(err, ERR_ARG, "collect: labels %s need a cloud",
                       collect_labels_name(c->o->labels));
    struct collect_run r = { .c = c, .s = s, .calls = c->o->calls ? c->o->calls : COLLECT_CALLS };
    r.works = calloc(s->ntexts + 1, sizeof(*r.works));
    if (!r.works || !os_cond_open(&r.changed)) {
        free(r.works);
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    }
    pthread_mutex_init(&r.lock, NULL);
    for (size_t i = 0; c->o->labels == COLLECT_GAIN && i < s->ntexts; i++)
        texts[i].n = texts[i].prompt; /* the edge writes its own answer */
    int rc = collect_fit(&r, texts, err);
    if (rc == OK)
        rc = collect_label(&r, drawn, err);
    for (size_t i = 0; i < s->ntexts; i++) {
        collect_chains_drop(&r.works[i]);
        free(r.works[i].chains);
        samples_close(&r.works[i].read);
    }
    pthread_mutex_destroy(&r.lock);
    pthread_cond_destroy(&r.changed);
    free(r.works);
    return rc;
}

/* Compute the states of a text's samples, which are at *row and after it; ids [context] is scratch.
 * A sample is known by what stands before it and by its features. Where there is none, the text
 * goes on with its reference, or else with the edge's own token. */
static int collect_text_states(struct sample_shard *s, size_t *row, struct collect_work *w,
                               struct collect *c, uint32_t *ids, struct err *err)
{
    const struct collect_text *t = w->text;
    struct samples *all = &s->samples;
    struct session *edge = c->session;
    size_t at = session_sync(c->session, t->ids, t->prompt - 1), n = t->prompt,
           context = session_context(edge);
    int rc = OK;
    memcpy(ids, t->ids, n * sizeof(*ids));
    while (rc == OK && *row < all->n && all->rows[*row].text == w->number) {
        if (n > context)
            return err_set(err, ERR_FORMAT,
                           "%s: sample %zu: expected one of text %zu, found another", s->meta.dir,
                           *row, w->number);
        for (size_t k; rc == OK && at < n; at += k) {
            k = n - at < BATCH_ROWS ? n - at : BATCH_ROWS;
            rc = session_eval(edge, ids + at, k, c->o->stop, err);
        }
        if (rc != OK)
            break;
        const struct sample_row *want = &all->rows[*row];
        struct sample_row here;
        collect_row(&here, w, c, ids, n, session_logits(edge, 0));
        uint32_t id = n < t->n ? t->ids[n] : (uint32_t)here.edge;
        if (!memcmp(here.before, want->before, sizeof(here.before)) && here.edge == want->edge &&
            !memcmp(here.features, want->features, sizeof(here.features))) {
            memcpy(all->x + *row * all->dim, session_hidden(edge, 0), all->dim * sizeof(*all->x));
            id = (uint32_t)want->gold;
            ++*row;
        }
        ids[n++] = id;
    }
    return rc;
}

int collect_states(struct sample_shard *s, struct collect *c, const struct collect_text *texts,
                   struct err *err)
{
    uint32_t *ids = malloc((session_context(c->session) + 1) * sizeof(*ids));
    size_t row = 0;
    int rc = ids ? OK : err_set(err, ERR_NOMEM, "collect: out of memory");
    turn_take(c->o->turn);
    for (size_t i = 0; rc == OK && i < s->ntexts; i++) {
        struct collect_text t = texts[i];
        struct collect_work w = { .text = &t, .number = s->first + i };
        t.n = c->o->labels == COLLECT_GAIN ? t.prompt : t.n; /* as in collect_shard */
        if (t.prompt && t.prompt < session_context(c->session))
            rc = collect_text_states(s, &row, &w, c, ids, err);
        c->stats.texts++;
    }
    turn_give(c->o->turn);
    free(ids);
    if (rc == OK && row < s->samples.n)
        rc = err_set(err, ERR_FORMAT,
                     "%s: sample %zu: expected one of texts %llu to %llu, found "
                     "another",
                     s->meta.dir, row, (unsigned long long)s->first,
                     (unsigned long long)(s->first + s->ntexts - 1));
    s->no_states = rc != OK;
    return rc;
}
