/* t_batch.c - many texts in one pass: each row has the bits that its text has alone, a token at a
 * time, by the fastest set. Random passes take pieces of some sessions, with drafts that are rolled
 * back; some parts cannot run, and some passes are interrupted. Sets, threads, types and ways
 * (tune.h) are drawn, and sessions are rewound and copied in between. BATCH_CASES passes are tried
 * (default 2,000; under a sanitizer or $RUN a tenth of it, with shorter texts). */
#include "kernels/sys/cpu.h"
#include "kernels/sys/pool.h"
#include "model/batch_internal.h"
#include "model/train/random.h"
#include "tests/support/test.h"

enum { TYPES = 4, KVS = 3, TEXTS = 3, MOST = 500, SESSIONS = 12, THREADS = 8, SETS = 16 };
enum { HIDDEN = 96, VOCAB = 150, PASSES = 25 };

static const struct model_config config = { 2,    HIDDEN, 6,    2,    16,    224,  VOCAB,
                                            4096, 1e-6f,  1e4f, true, false, { 0 } };
static const enum kvcache kvs[KVS] = { KVCACHE_F32, KVCACHE_F16, KVCACHE_Q8 };

/* What a text gives at each position, alone. */
struct truth {
    float logits[MOST][VOCAB], hidden[MOST][HIDDEN];
};
static struct truth truths[TYPES][KVS][TEXTS];

static struct kernels tables[SETS];
static void (*swiglu[SETS])(float *y, const float *g, const float *u, size_t n);
static size_t nsets, set_now;
static _Atomic int stop, stop_inside; /* the second one raises the first in the next layer */
static struct pool *pools[THREADS + 1];
static uint64_t draws;
static size_t most = MOST, ntexts = TEXTS; /* less where it is slow */

static size_t draw(size_t below)
{
    return (size_t)rand_below(17, draws++, below);
}

static bool once_in(size_t n)
{
    return draw(n) == 0;
}

static uint32_t id_at(size_t text, size_t pos)
{
    return (uint32_t)rand_below(100 + text, pos, VOCAB);
}

/* A kernel that every layer needs, and that interrupts the pass when told to. */
static void stopping_swiglu(float *y, const float *g, const float *u, size_t n)
{
    if (stop_inside)
        stop = 1;
    swiglu[set_now](y, g, u, n);
}

/* Fill a bias, which is zero in a random model. */
static void fill_bias(const float *bias, size_t n, size_t seed)
{
    float *to = (float *)(uintptr_t)bias;
    for (size_t i = 0; i < n; i++)
        to[i] = (float)rand_unit(200 + seed, i) - 0.5f;
}

static void fill_biases(const struct model *m)
{
    for (size_t i = 0; i < m->config.layers; i++) {
        const struct model_layer *l = &m->layers[i];
        fill_bias(l->bq, l->q.rows, 3 * i);
        fill_bias(l->bk, l->k.rows, 3 * i + 1);
        fill_bias(l->bv, l->v.rows, 3 * i + 2);
    }
}

static struct model *new_model(size_t type, size_t set)
{
    static const enum ptype types[TYPES] = { P_F32, P_BF16, P_Q8, P_Q4 };
    struct model *m;
    set_now = set;
    CHECK(model_random(&m, &config, types[type], &tables[set], NULL, 7, NULL) == OK);
    fill_biases(m);
    return m;
}

/* Evaluate every text alone, a token at a time. */
static void find_truth(struct truth *t, struct batch *b, enum kvcache kv, size_t text)
{
    struct session *s;
    CHECK(session_open(&s, b, most, kv, NULL) == OK);
    for (size_t i = 0; i < most; i++) {
        uint32_t id = id_at(text, i);
        CHECK(session_eval(s, &id, 1, NULL, NULL) == OK);
        memcpy(t->logits[i], session_logits(s, 0), sizeof(t->logits[i]));
        memcpy(t->hidden[i], session_hidden(s, 0), sizeof(t->hidden[i]));
    }
    session_close(s);
}

static void find_truths(void)
{
    for (size_t type = 0; type < TYPES; type++) {
        struct batch *b;
        struct model *m = new_model(type, nsets - 1);
        CHECK(batch_open(&b, m, NULL, NULL) == OK);
        for (size_t kv = 0; kv < KVS; kv++)
            for (size_t text = 0; text < ntexts; text++)
                find_truth(&truths[type][kv][text], b, kvs[kv], text);
        batch_close(b);
        model_close(m);
    }
}

/* One session of an episode. right: how many of its tokens are the text's. */
struct member {
    struct session *s;
    size_t text, kv, right;
};

struct episode {
    size_t type, set, threads;
    struct batch *batch;
    struct member member[SESSIONS];
    size_t n;
};

/* One part of a pass: `right` tokens of the text, then a draft that is not. */
struct piece {
    struct member *member;
    size_t n, right, before;
    bool refused;
    uint32_t ids[BATCH_ROWS];
};

static const struct truth *truth_of(const struct episode *e, const struct member *m)
{
    return &truths[e->type][m->kv][m->text];
}

/* Compare the row of the token at pos, its logits too if they are there. */
static void check_row(const struct episode *e, const struct member *m, size_t row, size_t pos)
{
    const struct truth *t = truth_of(e, m);
    const float *logits = batch_logits_at(e->batch, row);
    if ((logits && memcmp(t->logits[pos], logits, sizeof(t->logits[pos])) != 0) ||
        memcmp(t->hidden[pos], batch_hidden(e->batch, row), sizeof(t->hidden[pos])) != 0) {
        printf("other bits: type %zu, set %s, %zu threads, kv %s, position %zu, row %zu of %zu\n",
               e->type, tables[e->set].isa, e->threads, kvcache_name(kvs[m->kv]), pos, row,
               batch_rows(e->batch));
        exit(1);
    }
}

/* Draw a part of at most `room` rows for this member. */
static void draw_piece(struct piece *p, struct member *m, size_t room)
{
    size_t longest = once_in(3) ? room : once_in(2) ? 9 : 1;
    *p = (struct piece){ .member = m, .before = session_length(m->s) };
    p->n = 1 + draw(longest < room ? longest : room);
    p->right = once_in(3) ? draw(p->n + 1) : p->n;
    for (size_t i = 0; i < p->n; i++) {
        uint32_t id = p->before + i < most ? id_at(m->text, p->before + i) : 0;
        p->ids[i] = i < p->right ? id : (id + 1 + (uint32_t)draw(VOCAB - 1)) % VOCAB;
    }
    if (once_in(40))
        p->ids[draw(p->n)] = VOCAB + (uint32_t)draw(9);
    p->refused = p->n > session_context(m->s) - p->before;
    for (size_t i = 0; i < p->n; i++)
        p->refused |= p->ids[i] >= VOCAB;
}

/* Check a part that was evaluated, and roll its draft back. */
static void check_piece(const struct episode *e, const struct piece *p,
                        const struct batch_part *part)
{
    struct member *m = p->member;
    CHECK(session_length(m->s) == p->before + p->n);
    CHECK(!memcmp(session_ids(m->s) + p->before, p->ids, p->n * sizeof(p->ids[0])));
    for (size_t i = 0; i < p->right; i++)
        check_row(e, m, part->row + i, p->before + i);
    session_rewind(m->s, p->before + p->right);
    m->right = p->before + p->right;
    if (p->right && once_in(4)) { /* what stands can still be read */
        const float *logits = session_logits(m->s, 0);
        CHECK(!memcmp(logits, truth_of(e, m)->logits[m->right - 1], VOCAB * sizeof(float)));
        CHECK(batch_logits_at(e->batch, part->row + p->right - 1) &&
              !session_hidden(m->s, p->right));
        CHECK(session_hidden(m->s, p->right - 1) == batch_hidden(e->batch, part->row));
    }
}

/* Ask for the logits of some rows: a few, or each row once, in any order. */
static void read_head(const struct episode *e)
{
    size_t rows[BATCH_ROWS], all = batch_rows(e->batch), n = 1 + draw(all < 20 ? all : 20);
    size_t first = draw(all), step = once_in(2) ? 1 : all - 1;
    for (size_t i = 0; i < n; i++)
        rows[i] = (first + i * step) % all;
    CHECK(batch_logits(e->batch, rows, n, NULL) == OK);
    for (size_t i = 0; i < n; i++)
        CHECK(batch_logits_at(e->batch, rows[i]));
}

/* A single logit can be computed from a hidden state of any earlier pass. */
static void check_logit(const struct episode *e)
{
    const struct member *m = &e->member[draw(e->n)];
    const struct truth *t = truth_of(e, m);
    size_t pos = draw(most), id = draw(VOCAB);
    float logit = batch_logit(e->batch, t->hidden[pos], (uint32_t)id);
    CHECK(!memcmp(&logit, &t->logits[pos][id], sizeof(logit)));
}

/* One pass over parts of some sessions, in any order. */
static void run_pass(struct episode *e)
{
    static struct piece pieces[SESSIONS];
    struct batch_part parts[SESSIONS + 1];
    struct err err = { "" };
    stop = once_in(30);
    stop_inside = !stop && once_in(30);
    bool stopped = stop || stop_inside;
    size_t n = 1 + draw(e->n), first = draw(e->n), room = BATCH_ROWS, ran = 0;
    for (size_t i = 0; i < n; i++, room -= pieces[i - 1].n) {
        draw_piece(&pieces[i], &e->member[(first + i) % e->n], room - (n - 1 - i));
        parts[i] =
            (struct batch_part){ pieces[i].member->s, pieces[i].ids, pieces[i].n, 0, 1, { "" } };
        ran += !pieces[i].refused;
    }
    bool twice = room > 0 && !pieces[0].refused && once_in(20);
    if (twice)
        parts[n] = (struct batch_part){ pieces[0].member->s, pieces[0].ids, 1, 0, 1, { "" } };
    int rc = batch_eval(e->batch, parts, n + twice, &stop, &err);
    CHECK(rc == (stopped && ran ? ERR_STOP : OK));
    stop_inside = 0;
    CHECK(!twice || (parts[n].rc == ERR_ARG && strstr(parts[n].err.msg, "second")));
    if (rc == OK && ran && once_in(2))
        read_head(e);
    for (size_t i = 0; i < n; i++) {
        const struct piece *p = &pieces[i];
        CHECK(parts[i].rc == (p->refused ? ERR_ARG : OK) && !p->refused == !parts[i].err.msg[0]);
        if (p->refused || rc != OK)
            CHECK(session_length(p->member->s) == p->before &&
                  (rc == OK || !session_hidden(p->member->s, 0)));
        else
            check_piece(e, p, &parts[i]);
    }
    check_logit(e);
}

/* Rewind a session, or make it a copy of another one of its KV type. */
static void shuffle_members(struct episode *e)
{
    struct err err;
    struct member *to = &e->member[draw(e->n)], *from = &e->member[draw(e->n)];
    if (once_in(3)) {
        to->right = draw(to->right + 1);
        session_rewind(to->s, to->right);
    }
    if (once_in(4)) {
        size_t n = draw(from->right + 1);
        bool fits = to->kv == from->kv && n <= session_context(to->s);
        CHECK(session_copy(to->s, from->s, n, &err) == (fits ? OK : ERR_ARG));
        if (fits) {
            to->text = from->text;
            to->right = n;
        }
        CHECK(session_length(to->s) == to->right);
    }
}

/* Scalar code is slow, so it gets one episode in 16, the other sets the rest in turn. */
static void run_episode(size_t number)
{
    static const size_t runs[] = { 1, 1 << 17, 1 << 20 };
    struct episode e = { .type = draw(TYPES),
                         .set = number % 16 ? nsets - 1 - number % (nsets > 1 ? nsets - 1 : 1) : 0,
                         .threads = 1 + draw(THREADS),
                         .n = 1 + draw(SESSIONS) };
    tables[e.set].tune_fixed = once_in(2);
    for (size_t i = 0; i < P_TYPES; i++)
        tables[e.set].tune[i] = (struct tune){ 1 + draw(2), runs[draw(3)], once_in(2) ? 0 : 4096 };
    struct model *m = new_model(e.type, e.set);
    CHECK(batch_open(&e.batch, m, pools[e.threads], NULL) == OK);
    for (size_t i = 0; i < e.n; i++) {
        e.member[i] = (struct member){ .text = draw(ntexts), .kv = draw(KVS) };
        size_t context = once_in(4) ? 1 + draw(60) : most - draw(100);
        size_t bytes, cache;
        enum kvcache kv = kvs[e.member[i].kv];
        CHECK(session_open(&e.member[i].s, e.batch, context, kv, NULL) == OK);
        CHECK(session_size(&bytes, &cache, &config, context, kv, NULL) == OK);
        CHECK(bytes == e.member[i].s->bytes && cache >= 2 * context * config.layers &&
              cache < bytes);
    }
    for (size_t i = 0; i < PASSES; i++) {
        run_pass(&e);
        shuffle_members(&e);
    }
    for (size_t i = 0; i < e.n; i++)
        session_close(e.member[i].s);
    batch_close(e.batch);
    model_close(m);
}

static int open_once(const void *k)
{
    struct model *m = NULL;
    struct batch *b = NULL;
    struct session *s = NULL;
    int rc = model_random(&m, &config, P_Q8, k, NULL, 7, NULL);
    if (!rc)
        rc = batch_open(&b, m, NULL, NULL);
    if (!rc)
        rc = session_open(&s, b, 16, KVCACHE_F32, NULL);
    session_close(s);
    batch_close(b);
    model_close(m);
    return rc;
}

/* A session alone refuses what it cannot take, and stays as it is. */
static void check_refused(struct session *s, struct batch *b)
{
    struct err err;
    struct session *none;
    _Atomic int stopped = 1;
    const uint32_t ids[BATCH_ROWS] = { 1, 2, 9999 };
    size_t bytes, cache, length = session_length(s);
    CHECK(session_eval(s, ids, 3, NULL, &err) == ERR_ARG && strstr(err.msg, "9999"));
    CHECK(session_eval(s, ids, 2, &stopped, &err) == ERR_STOP);
    CHECK(session_eval(s, ids, 0, NULL, &err) == ERR_ARG && session_length(s) == length);
    CHECK(session_eval(s, ids + 3, BATCH_ROWS - 3, NULL, &err) == OK);
    CHECK(session_eval(s, ids + 3, BATCH_ROWS - 3, NULL, &err) == ERR_ARG);
    CHECK(strstr(err.msg, "300 positions"));
    CHECK(session_open(&none, b, 0, KVCACHE_F32, &err) == ERR_ARG && !none);
    CHECK(session_size(&bytes, &cache, &config, 0, KVCACHE_F32, &err) == ERR_ARG);
    torture_each(open_once, &tables[0]);
}

/* Limits of a pass, sessions of another batch, and memory that runs out. */
static void check_errors(void)
{
    struct err err;
    struct model *m = new_model(2, nsets - 1);
    struct batch *b, *other;
    struct session *s, *t;
    uint32_t ids[BATCH_ROWS + 1] = { 1 };
    size_t rows[12] = { 0 };
    CHECK(batch_open(&b, m, NULL, &err) == OK && batch_open(&other, m, NULL, &err) == OK);
    CHECK(session_open(&s, b, 300, KVCACHE_F16, &err) == OK);
    CHECK(session_open(&t, other, 300, KVCACHE_F16, &err) == OK);
    struct batch_part parts[2] = { { .session = s, .ids = ids, .n = BATCH_ROWS },
                                   { .session = t, .ids = ids, .n = 1 } };
    CHECK(batch_eval(b, parts, 2, NULL, &err) == ERR_ARG && strstr(err.msg, "192"));
    CHECK(session_length(s) == 0);
    parts[0].n = 12;
    CHECK(batch_eval(b, parts, 2, NULL, &err) == OK);
    CHECK(parts[0].rc == OK && parts[1].rc == ERR_ARG && session_length(t) == 0);
    for (size_t i = 0; i < 12; i++)
        rows[i] = i;
    torture_begin(1);
    CHECK(batch_logits(b, rows, 12, &err) == ERR_NOMEM && torture_end());
    CHECK(batch_logits(b, rows, 3, &err) == OK && !batch_logits_at(b, 3));
    CHECK(session_logits(s, 0) == batch_logits_at(b, 11) && !batch_logits_at(b, 0));
    CHECK(batch_logits(b, rows, 9, &err) == OK);
    torture_begin(1); /* the first nine made room for more */
    CHECK(batch_logits(b, rows, 12, &err) == OK && !torture_end());
    CHECK(session_copy(t, s, 10, &err) == OK && session_length(t) == 10);
    CHECK(session_eval(t, ids + 10, 2, NULL, &err) == OK &&
          session_eval(s, ids, 1, NULL, &err) == OK);
    session_rewind(s, 10);
    CHECK(session_eval(s, ids + 10, 2, NULL, &err) == OK);
    CHECK(!memcmp(session_logits(t, 0), session_logits(s, 0), VOCAB * sizeof(float)));
    session_close(t);
    batch_close(other);
    torture_begin(2); /* the first one is the session's own */
    CHECK(session_open(&t, b, 1 << 12, KVCACHE_F16, &err) == ERR_NOMEM && !t && torture_end());
    CHECK(session_eval(s, ids, 7, NULL, &err) == OK && session_length(s) == 19);
    check_refused(s, b);
    session_close(s);
    batch_close(b);
    model_close(m);
}

int main(void)
{
    const char *text = getenv("BATCH_CASES"), *run = getenv("RUN");
    size_t cases = text ? strtoul(text, NULL, 10) : 2000;
    if (SANITIZED || (run && *run)) {
        cases /= 10;
        most = 270; /* still long enough that attention is split */
        ntexts = 1;
    }
    for (size_t i = 0; i < kernels_nsets; i++)
        if (kernels_runs(kernels_sets[i], cpu_detect()) &&
            !(kernels_sets[i]->needs & CPU_INEXACT)) {
            CHECK(nsets < SETS);
            CHECK(kernels_pick(&tables[nsets], kernels_sets[i]->isa, cpu_detect(), NULL) == OK);
            swiglu[nsets] = tables[nsets].swiglu_f32;
            tables[nsets++].swiglu_f32 = stopping_swiglu;
        }
    for (size_t i = 1; i <= THREADS; i++)
        CHECK(pool_open(&pools[i], i, NULL) == OK);
    find_truths();
    for (size_t i = 0; i * PASSES < cases; i++)
        run_episode(i);
    check_errors();
    for (size_t i = 1; i <= THREADS; i++)
        pool_close(pools[i]);
    printf("%zu random passes, %zu sets, 1 to %d threads\n", cases, nsets, THREADS);
    return 0;
}
