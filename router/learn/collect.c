#include "router/learn/collect_internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "net/cloud_port.h"
#include "router/texts/texts.h"
#include "router/texts/turn.h"

enum { STOP_SLICE_NS = 20000000 }; /* how often to look for an interruption */

static const char *const label_names[] = { "match", "citer", "divergent", "gain" };

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
        if (!c->cloud && t->n == t->prompt && !t->left_out)
            return err_set(err, ERR_ARG,
                           "collect: text %zu: there is neither a reference answer nor a cloud",
                           s->first + i);
        r->works[i] = (struct collect_work){
            .run = r, .text = t, .number = s->first + i, .read = { .dim = s->samples.dim }
        };
        r->works[i].too_long = t->left_out;
        r->works[i].stage = t->left_out ? COLLECT_DONE : COLLECT_NEW;
    }
    return OK;
}

void collect_row(struct sample_row *row, const struct collect_work *w, const struct collect *c,
                 const uint32_t *ids, size_t at, const float *logits)
{
    const struct kernels *k = model_kernels(session_model(c->session));
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
    row.label = collect_same(c, (uint32_t)row.edge, ids[at]);
    row.way = (uint8_t)(row.label                       ? SAMPLE_EDGE_RIGHT
                        : c->o->labels == COLLECT_MATCH ? SAMPLE_EDGE_WRONG
                                                        : SAMPLE_UNDECIDED);
    const struct batch *b = session_batch(c->session);
    float *room = w->read.x + w->read.n * w->read.dim;
    const float *x = batch_states(b, &c->o->taps, batch_rows(b) - 1 - back, room);
    return samples_add(&w->read, x, &row, err);
}

/* Run the edge over a text, add its rows, and begin to ask the cloud where the edge is wrong. */
static int collect_read(struct collect_run *r, struct collect_work *w, struct err *err)
{
    struct collect *c = r->c;
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
    c->stats.tokens += t->n - t->prompt;
    for (size_t i = 0; rc == OK && i < w->read.n; i++)
        if (w->read.rows[i].way == SAMPLE_UNDECIDED)
            rc = collect_chain_open(w, c, t->prompt + i, NULL, 1, false, i, err);
    return rc;
}

int collect_take_answer(struct collect_work *w, struct err *err)
{
    struct collect_text *t = w->text;
    const struct collect_chain *chain = &w->chains[w->first];
    size_t bytes = chain->n * sizeof(*t->ids);
    uint32_t *ids = realloc(t->ids, bytes);
    if (!ids)
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    memcpy(ids, chain->ids, bytes);
    t->ids = ids;
    t->n = chain->n;
    w->written = true;
    return OK;
}

/* Take the cloud's tokens, and decide the rows that need nothing else. */
static void collect_take_tokens(struct collect_work *w, const struct collect *c)
{
    for (size_t i = w->first; i < w->nchains; i++) {
        const struct collect_chain *chain = &w->chains[i];
        struct sample_row *r = &w->read.rows[chain->row];
        uint32_t cloud = chain->ids[chain->n - 1];
        r->cloud = (int32_t)cloud;
        if (c->o->labels == COLLECT_CITER && collect_same(c, cloud, (uint32_t)r->gold)) {
            r->way = SAMPLE_CLOUD_RIGHT;
        } else if (c->o->labels == COLLECT_DIVERGENT && collect_same(c, cloud, (uint32_t)r->edge)) {
            r->way = SAMPLE_AGREED;
            r->label = 1;
        }
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

/* Begin chains at the drawn rows of a text, each with the edge's token, or with the cloud's. */
static int collect_roll_open(struct collect_work *w, struct collect *c, bool from_edge,
                             struct err *err)
{
    int rc = OK;
    /* From the last to the first: a model in this process keeps the beginning that they share. */
    for (size_t i = w->read.n; rc == OK && i-- > 0;) {
        const struct sample_row *row = &w->read.rows[i];
        uint32_t last = (uint32_t)(from_edge ? row->edge : row->cloud);
        if (row->way == SAMPLE_UNDECIDED)
            rc = collect_chain_open(w, c, w->text->prompt + i, &last, c->o->max_tokens, true, i,
                                    err);
    }
    return rc;
}

/* Take the verdicts of these chains: a token of the edge may stand if its answer is right, or if
 * that after the cloud's own is not. */
static void collect_roll_judge(struct collect_work *w, bool from_edge)
{
    for (size_t i = w->first; i < w->nchains; i++) {
        struct sample_row *row = &w->read.rows[w->chains[i].row];
        bool right = w->chains[i].verdict == COLLECT_RIGHT;
        if (from_edge && !right)
            continue; /* the cloud's own token decides */
        row->label = from_edge || !right;
        row->way = SAMPLE_ROLLOUT;
    }
}

/* True when a text may begin. Few are in progress at a time, so that their answers share what a
 * model in this process has read; and of two that begin alike, the second finds what the first has
 * asked. */
static bool collect_may_begin(const struct collect_run *r, size_t i)
{
    const struct collect_text *t = r->works[i].text;
    size_t most = r->c->o->labels == COLLECT_DIVERGENT ? r->calls / 4 + 1 : r->calls;
    size_t busy = 0;
    for (size_t k = r->head; k < i; k++) {
        const struct collect_text *o = r->works[k].text;
        size_t n = o->prompt < t->prompt ? o->prompt : t->prompt;
        busy += r->works[k].stage != COLLECT_DONE;
        if (!memcmp(o->ids, t->ids, n * sizeof(*t->ids)))
            return false;
    }
    return busy < most;
}

/* Go on to the next stage of a text; the chains of this one have ended. */
static int collect_next_stage(struct collect_run *r, struct collect_work *w, struct err *err)
{
    struct collect *c = r->c;
    size_t first = w->nchains;
    switch (w->stage++) {
    case COLLECT_NEW:
        if (w->text->n > w->text->prompt)
            w->stage = COLLECT_READ;
        else
            return collect_chain_open(w, c, w->text->prompt, NULL, c->o->max_tokens, false, 0, err);
        break;
    case COLLECT_WRITE:
        return collect_take_answer(w, err);
    case COLLECT_READ:
        w->first = first;
        return collect_read(r, w, err);
    case COLLECT_ASK:
        collect_take_tokens(w, c);
        break;
    case COLLECT_DRAW:
        w->first = first;
        if (c->o->labels == COLLECT_GAIN)
            collect_compare(w, c);
        collect_draw(w, c, &r->drawn);
        if (c->o->labels == COLLECT_DIVERGENT)
            return collect_roll_open(w, c, true, err);
        w->stage = COLLECT_DONE;
        break;
    case COLLECT_ROLL:
        collect_roll_judge(w, true);
        w->first = first;
        return collect_roll_open(w, c, false, err);
    case COLLECT_ROLL_OWN:
        collect_roll_judge(w, false);
        break;
    case COLLECT_DONE:
        break;
    }
    return OK;
}

/* True while a text must wait for those before it. */
static bool collect_waits(const struct collect_run *r, size_t i)
{
    enum collect_stage stage = r->works[i].stage;
    bool waits = stage == COLLECT_NEW && !collect_may_begin(r, i);
    for (size_t k = r->head; stage == COLLECT_DRAW && k < i; k++)
        waits = waits || r->works[k].stage <= COLLECT_DRAW;
    return waits;
}

/* Bring a text as far as it goes without waiting. */
static int collect_advance(struct collect_run *r, size_t i, struct err *err)
{
    struct collect_work *w = &r->works[i];
    int rc = OK;
    while (rc == OK && w->stage != COLLECT_DONE && !collect_waits(r, i)) {
        bool ended, refused;
        rc = collect_chains_turn(r, w, &ended, &refused, err);
        if (rc != OK || !ended)
            break;
        r->moved = true;
        if (refused)
            w->stage = COLLECT_DONE;
        else
            rc = collect_next_stage(r, w, err);
        w->text->left_out = w->text->left_out || refused;
    }
    return rc;
}

int collect_complete(struct collect_run *r, struct collect_work *w, struct err *err)
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
    samples_close(&w->read);
    r->c->stats.texts++;
    return rc;
}

void collect_news(void *arg)
{
    struct collect_run *r = arg;
    pthread_mutex_lock(&r->lock);
    atomic_fetch_add(&r->news, 1);
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

int collect_wait(struct collect_run *r, uint32_t seen, struct err *err)
{
    const _Atomic int *stop = r->c->o->stop;
    pthread_mutex_lock(&r->lock);
    if (atomic_load(&r->news) == seen)
        os_cond_wait(&r->changed, &r->lock, os_now_ns() + STOP_SLICE_NS);
    pthread_mutex_unlock(&r->lock);
    return stop && *stop ? err_set(err, ERR_STOP, "interrupted") : OK;
}

/* Bring all texts to their last stage, the earlier ones first where there is not room for all
 * calls. */
static int collect_texts(struct collect_run *r, struct err *err)
{
    struct collect *c = r->c;
    const struct cloud_port *p = c->cloud;
    int rc = OK;
    if (p && p->notify)
        p->notify(p->arg, collect_news, r);
    while (rc == OK && r->head < r->s->ntexts) {
        uint32_t seen = atomic_load(&r->news);
        r->moved = false;
        for (size_t i = r->head; rc == OK && i < r->s->ntexts; i++)
            rc = collect_advance(r, i, err);
        while (rc == OK && r->head < r->s->ntexts && r->works[r->head].stage == COLLECT_DONE) {
            struct collect_work *w = &r->works[r->head++];
            rc = collect_chains_settle(r, w, err);
            if (rc == OK && !collect_edge_writes(c->o->labels))
                rc = collect_complete(r, w, err);
        }
        if (rc == OK && r->moved && c->o->progress)
            c->o->progress(c->o->arg, &c->stats);
        else if (rc == OK && !r->moved)
            rc = collect_wait(r, seen, err);
    }
    if (p && p->notify)
        p->notify(p->arg, NULL, NULL);
    if (c->texts)
        texts_listen(c->texts);
    return rc;
}

int collect_shard(struct sample_shard *s, struct collect *c, struct collect_text *texts,
                  uint64_t drawn, struct err *err)
{
    bool gain = c->o->labels == COLLECT_GAIN;
    if (!c->cloud && c->o->labels != COLLECT_MATCH)
        return err_set(err, ERR_ARG, "collect: labels %s need a cloud",
                       collect_labels_name(c->o->labels));
    struct collect_run r = {
        .c = c, .s = s, .drawn = drawn, .calls = c->o->calls ? c->o->calls : COLLECT_CALLS
    };
    r.works = calloc(s->ntexts + 1, sizeof(*r.works));
    if (!r.works || !os_cond_open(&r.changed)) {
        free(r.works);
        return err_set(err, ERR_NOMEM, "collect: out of memory");
    }
    pthread_mutex_init(&r.lock, NULL);
    for (size_t i = 0; gain && i < s->ntexts; i++)
        texts[i].n = texts[i].prompt; /* the edge writes its own answer */
    int rc = collect_fit(&r, texts, err);
    if (rc == OK && gain)
        rc = collect_answers(&r, err);
    if (rc == OK)
        rc = collect_texts(&r, err);
    if (rc == OK && collect_edge_writes(c->o->labels))
        rc = collect_roll_edge(&r, err);
    for (size_t i = 0; i < s->ntexts; i++) {
        collect_chains_drop(&r.works[i], c);
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
            float *x = all->x + *row * all->dim;
            const struct batch *b = session_batch(edge);
            const float *states = batch_states(b, &c->o->taps, batch_rows(b) - 1, x);
            if (states != x)
                memcpy(x, states, all->dim * sizeof(*x));
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
