/* Tests how samples are labelled: each definition is followed step by step here, token by token on
 * whole prefixes and without calls in flight, and all rows must be the same. Also that the cloud is
 * asked no more than needed, many calls at a time, that rollouts are drawn evenly, and what happens
 * when it fails. */
#include "router/mizzle.h"
#include "router/routing.h"
#include "tests/router/learn/collect_help.h"

/* Make texts whose reference answers are often the edge's tokens and sometimes the cloud's. Some
 * are special. */
static void make_texts(void)
{
    for (size_t i = 0; i < TEXTS; i++) {
        struct collect_text *t = &texts[i];
        size_t gold = i == LONG ? 240 : i == TOO_LONG ? TINY_CONTEXT : i == BARE ? 0 : 3 + i;
        t->ids = calloc(TINY_CONTEXT + 20, sizeof(*t->ids));
        CHECK(t->ids);
        t->prompt = i == 1 ? 1 : 4 + i % 3;
        t->subject = (uint32_t)(i / 2);
        for (size_t k = 0; k < t->prompt; k++)
            t->ids[k] = (uint32_t)rand_below(5, 10 * i + k, 250);
        if (i == REFUSED)
            t->ids[0] = REFUSED_ID;
        t->n = t->prompt;
        while (t->n < t->prompt + gold) {
            uint64_t draw = rand_below(6, 1000 * i + t->n, 100);
            uint32_t id = t->n >= TINY_CONTEXT || draw >= 85 ? (uint32_t)draw
                          : draw < 60                        ? edge_says(t->ids, t->n)
                                                             : cloud_says(t->ids, t->n);
            t->ids[t->n++] = is_end(id) ? 42 : id;
        }
        if (gold)
            t->ids[t->n - 1] = i % 2 ? TINY_EOS : TINY_IM_END;
    }
}

/* Continue ids[n] to the end: alone, with the router, or by the cloud. Judge the answer. */
enum writer { EDGE, ROUTED, CLOUD };
static bool ends_right(const uint32_t *from, size_t n, uint32_t first, enum writer by,
                       size_t prompt)
{
    uint32_t ids[TINY_CONTEXT + 1];
    size_t written = 0;
    memcpy(ids, from, n * sizeof(*ids));
    ids[n++] = first;
    size_t most = by == CLOUD ? TINY_CONTEXT : TINY_CONTEXT + 1; /* decode.h writes one more */
    while (!is_settled(ids + prompt, n - prompt) && !is_end(ids[n - 1]) && written < WRITTEN &&
           n < most) {
        reach(ids, n);
        bool asks = by == CLOUD;
        if (by == ROUTED)
            asks = router_score(router, session_hidden(plain, 0), scratch) < 0.5f;
        uint32_t id = asks ? cloud_says(ids, n) : edge_says(ids, n);
        ids[n++] = id;
        written++;
    }
    return is_right(ids + prompt, n - prompt);
}

static bool same(uint32_t a, uint32_t b)
{
    return a == b || (is_end(a) && is_end(b));
}

/* Label one token by the definition. */
static struct sample_row define(const struct collect_text *t, size_t at, enum collect_labels labels,
                                bool second)
{
    uint32_t gold = t->ids[at], edge = edge_says(t->ids, at), cloud;
    struct sample_row r = { .edge = (int32_t)edge, .cloud = -1, .gold = (int32_t)gold };
    r.label = same(edge, gold);
    r.way = r.label ? SAMPLE_EDGE_RIGHT : SAMPLE_EDGE_WRONG;
    if (r.label || labels == COLLECT_MATCH)
        return r;
    cloud = cloud_says(t->ids, at);
    r.cloud = (int32_t)cloud;
    if (labels == COLLECT_CITER && same(cloud, gold)) {
        r.way = SAMPLE_CLOUD_RIGHT;
    } else if (labels == COLLECT_CITER) {
        r.way = SAMPLE_ROLLOUT;
        r.label = ends_right(t->ids, at, edge, second ? ROUTED : EDGE, t->prompt);
    } else if (same(edge, cloud)) {
        r.way = SAMPLE_AGREED;
        r.label = 1;
    } else {
        r.way = SAMPLE_ROLLOUT;
        r.label = ends_right(t->ids, at, edge, CLOUD, t->prompt) ||
                  !ends_right(t->ids, at, cloud, CLOUD, t->prompt);
    }
    return r;
}

static unsigned slow = 40; /* as in fake */

static struct collect collect_with(const struct collect_options *o)
{
    return (
        struct collect){ .session = session, .tok = engine.tokenizer, .o = o, .texts = together };
}

static struct sample_shard shard_of(size_t first, size_t ntexts)
{
    return (struct sample_shard){ .first = first,
                                  .ntexts = ntexts,
                                  .samples = { .dim = engine.model->config.hidden } };
}

/* Collect the texts in two shards. Return the error's code of the first that fails. */
static int run(struct sample_shard s[2], const struct collect_options *o, size_t per_call,
               unsigned stored, struct collect_stats *stats)
{
    struct err err = { "" };
    struct collect c = collect_with(o);
    uint64_t drawn = 0;
    size_t fails_after = fake.fails_after;
    int rc = OK;
    fake = (struct fake){ .tokens = per_call,
                          .stored = stored,
                          .fails_after = fails_after,
                          .slow = slow,
                          .may = o->calls };
    for (size_t i = 0; i < 2; i++) {
        s[i] =
            shard_of(i * SAMPLE_FILES_TEXTS, i ? TEXTS - SAMPLE_FILES_TEXTS : SAMPLE_FILES_TEXTS);
        if (rc == OK)
            rc = collect_shard(&s[i], &c, texts + s[i].first, drawn, &err);
        drawn += s[i].counts.rollouts;
        CHECK(fake.live == 0 && fake.open == 0);
    }
    if (stats)
        *stats = c.stats;
    return rc;
}

static void close_shards(struct sample_shard s[2])
{
    samples_close(&s[0].samples);
    samples_close(&s[1].samples);
}

/* Give the bare text back its missing answer. */
static void bare_again(void)
{
    texts[BARE].n = texts[BARE].prompt;
}

static struct collect_options options(enum collect_labels labels, bool second)
{
    return (struct collect_options){ .labels = labels,
                                     .max_tokens = WRITTEN,
                                     .rollouts = SAMPLE_FILES_NO_LIMIT,
                                     .texts = TEXTS,
                                     .router = second ? router : NULL,
                                     .threshold = 0.5f,
                                     .judge = judge };
}

static bool same_row(const struct sample_row *a, const struct sample_row *b)
{
    return a->edge == b->edge && a->cloud == b->cloud && a->gold == b->gold &&
           a->before[0] == b->before[0] && a->before[1] == b->before[1] && a->text == b->text &&
           a->subject == b->subject && a->label == b->label && a->way == b->way &&
           !memcmp(a->features, b->features, sizeof(a->features));
}

/* With any number of calls in flight and tokens that come at any time: the same rows. */
static void check_again(const struct sample_shard s[2], const struct collect_options *o,
                        size_t per_call, unsigned stored)
{
    const struct {
        size_t calls;
        unsigned slow;
    } how[] = { { 1, 0 }, { 3, 90 }, { 40, 30 }, { 200, 95 } };
    for (size_t h = 0; h < sizeof(how) / sizeof(*how); h++) {
        struct collect_options other = *o;
        struct sample_shard again[2];
        other.calls = how[h].calls;
        slow = how[h].slow;
        bare_again();
        CHECK(run(again, &other, per_call, stored, NULL) == OK);
        for (size_t i = 0; i < 2; i++) {
            CHECK(again[i].samples.n == s[i].samples.n);
            CHECK(!memcmp(&again[i].counts, &s[i].counts, sizeof(s[i].counts)));
            for (size_t k = 0; k < s[i].samples.n; k++)
                CHECK(same_row(&again[i].samples.rows[k], &s[i].samples.rows[k]));
        }
        close_shards(again);
    }
    slow = 40;
    bare_again();
}

/* Every row is what the definition says, and nothing is asked that is not needed. */
static void check_labels(enum collect_labels labels, bool second, size_t per_call, unsigned stored)
{
    struct sample_shard s[2];
    struct collect_stats stats;
    const struct collect_options o = options(labels, second);
    size_t wrong = 0, row = 0, ways[SAMPLE_WAYS][2] = { { 0 } };
    CHECK(run(s, &o, per_call, stored, &stats) == OK);
    for (size_t i = 0; i < TEXTS; i++) {
        const struct collect_text *t = &texts[i];
        const struct samples *in = &s[i >= SAMPLE_FILES_TEXTS].samples;
        row = i % SAMPLE_FILES_TEXTS ? row : 0;
        CHECK(t->left_out == (i == TOO_LONG || (i == REFUSED && labels != COLLECT_MATCH)));
        for (size_t at = t->prompt; !t->left_out && at < t->n; at++, row++) {
            const struct sample_row *r = &in->rows[row], want = define(t, at, labels, second);
            CHECK(row < in->n && r->text == i && r->subject == t->subject);
            CHECK(r->edge == want.edge && r->cloud == want.cloud && r->gold == want.gold);
            CHECK(r->way == want.way && r->label == want.label);
            CHECK(r->before[1] == t->ids[at - 1]);
            CHECK(r->before[0] == (at > 1 ? t->ids[at - 2] : SAMPLES_NONE));
            reach(t->ids, at);
            CHECK(
                !memcmp(in->x + row * in->dim, session_hidden(plain, 0), in->dim * sizeof(float)));
            float features[FEATURES];
            features_of(
                features, &(struct features_text){ engine.tokenizer, t->ids, at, t->prompt },
                session_logits(plain, 0), tokenizer_size(engine.tokenizer), NULL, &engine.kernels);
            CHECK(!memcmp(r->features, features, sizeof(r->features)));
            CHECK(features[FEATURE_P1] >= features[FEATURE_P2] && features[FEATURE_P2] > 0);
            CHECK(fabsf(expf(features[FEATURE_POSITION]) - (float)(1 + at - t->prompt)) < 1e-3f);
            wrong += !same((uint32_t)want.edge, t->ids[at]);
            ways[want.way][want.label]++;
        }
        CHECK((i + 1 != SAMPLE_FILES_TEXTS && i + 1 != TEXTS) || row == in->n);
    }
    const struct sample_counts *n = &s[0].counts;
    CHECK(n->too_long == 1 && n->written == 1 && n->refused == (labels != COLLECT_MATCH));
    CHECK(n->samples == s[0].samples.n && n->texts == (labels == COLLECT_MATCH ? 15 : 14));
    CHECK(n->left_out == 0);
    /* The refused text and the answer that the cloud writes take some more. */
    if (labels == COLLECT_CITER && !second)
        CHECK(stats.calls + stats.known <= wrong + texts[REFUSED].n + WRITTEN);
    if (labels == COLLECT_MATCH)
        CHECK(stats.calls + stats.known <= WRITTEN);
    /* Every way of a label is seen, and rollouts end both ways. */
    CHECK(ways[SAMPLE_EDGE_RIGHT][1] && (labels != COLLECT_MATCH || ways[SAMPLE_EDGE_WRONG][0]));
    CHECK(labels != COLLECT_CITER || ways[SAMPLE_CLOUD_RIGHT][0]);
    CHECK(labels != COLLECT_DIVERGENT || ways[SAMPLE_AGREED][1]);
    CHECK(labels == COLLECT_MATCH || (ways[SAMPLE_ROLLOUT][0] && ways[SAMPLE_ROLLOUT][1]));
    check_again(s, &o, per_call, stored);
    close_shards(s);
}

/* Tokens of one text are asked for at once: none of them waits for what follows another one. */
static void check_at_once(void)
{
    struct collect_options o = options(COLLECT_CITER, false);
    struct sample_shard s = shard_of(LONG, 1);
    struct collect c = collect_with(&o);
    o.calls = 200;
    o.rollouts = 0;
    fake = (struct fake){ .tokens = 1, .fails_after = SIZE_MAX, .may = o.calls, .hold = 50 };
    CHECK(collect_shard(&s, &c, texts + LONG, 0, NULL) == OK && c.stats.calls > 60);
    CHECK(fake.most >= 50);
    samples_close(&s.samples);
}

/* A stop string in the reference answer ends no call: the cloud is asked behind it. */
static void check_stops(void)
{
    struct sample_shard s[2];
    struct collect_options o = options(COLLECT_DIVERGENT, false);
    const struct collect_text *t = &texts[0];
    char stop[32];
    const char *const stops[] = { stop, NULL };
    size_t n, asked = 0;
    const char *bytes = tokenizer_bytes(engine.tokenizer, t->ids[t->prompt], &n);
    CHECK(n && snprintf(stop, sizeof(stop), "%.*s", (int)n, bytes) == (int)n);
    o.stops = stops;
    CHECK(run(s, &o, 3, 20, NULL) == OK);
    for (size_t k = 0; k < s[0].samples.n && s[0].samples.rows[k].text == 0; k++) {
        const struct sample_row *r = &s[0].samples.rows[k];
        if (r->way == SAMPLE_EDGE_RIGHT)
            continue;
        CHECK(r->cloud == (int32_t)cloud_says(t->ids, t->prompt + k));
        asked++;
    }
    CHECK(asked);
    close_shards(s);
    bare_again();
}

/* Drawn rollouts are as many as asked for, spread over the texts, and labelled as without a
 * limit. */
static void check_draw(enum collect_labels labels)
{
    struct sample_shard all[2], some[2];
    struct collect_options o = options(labels, false);
    CHECK(run(all, &o, 3, 20, NULL) == OK);
    bare_again();
    uint64_t candidates = all[0].counts.rollouts + all[1].counts.rollouts;
    CHECK(candidates > 2 * TEXTS);
    const uint64_t limits[] = { 0, 1, TEXTS / 2, TEXTS + 3, candidates, candidates + 9 };
    for (size_t l = 0; l < sizeof(limits) / sizeof(*limits); l++) {
        o.rollouts = limits[l];
        CHECK(run(some, &o, 3, 20, NULL) == OK);
        bare_again();
        uint64_t drawn = some[0].counts.rollouts + some[1].counts.rollouts;
        CHECK(drawn + some[0].counts.left_out + some[1].counts.left_out == candidates);
        CHECK(drawn <= limits[l] && drawn >= (limits[l] > 1 && limits[l] < candidates));
        CHECK(limits[l] < 2 * TEXTS ? drawn + 3 >= limits[l] : true);
        uint64_t budget = limits[l] * SAMPLE_FILES_TEXTS / TEXTS; /* of the first shard */
        CHECK(some[0].counts.rollouts <= budget && budget <= some[0].counts.rollouts + candidates);
        for (size_t i = 0; i < 2; i++) {
            const struct samples *a = &all[i].samples, *b = &some[i].samples;
            for (size_t j = 0, k = 0; j < b->n; j++, k++) {
                while (!same_row(&a->rows[k], &b->rows[j])) {
                    CHECK(a->rows[k].way == SAMPLE_ROLLOUT && k + 1 < a->n);
                    k++;
                }
                CHECK(a->x[k * a->dim] == b->x[j * b->dim]);
            }
        }
        close_shards(some);
    }
    close_shards(all);
}

/* A cloud that dies ends the collection with its error, wherever that is; nothing is left over. */
static void check_death(enum collect_labels labels)
{
    struct sample_shard s[2];
    const struct collect_options o = options(labels, labels == COLLECT_CITER);
    CHECK(run(s, &o, 3, 0, NULL) == OK);
    size_t all = fake.asked;
    close_shards(s);
    for (size_t i = 0; i < all; i += 1 + i / 3) {
        bare_again();
        fake.fails_after = i;
        int rc = run(s, &o, 3, 0, NULL);
        CHECK(rc == ERR_NET || (o.router && rc == OK)); /* it may have made calls beyond the end */
        close_shards(s);
    }
    bare_again();
    fake.fails_after = SIZE_MAX;
}

/* Without a cloud, only match works, and only with a reference. */
static void check_without(void)
{
    struct err err;
    struct collect_options o = options(COLLECT_MATCH, false);
    struct collect c = collect_with(&o);
    c.texts = NULL;
    struct sample_shard s = shard_of(0, 4);
    CHECK(collect_shard(&s, &c, texts, 0, &err) == OK && s.counts.texts == 3);
    samples_close(&s.samples);
    s = shard_of(0, 6);
    CHECK(collect_shard(&s, &c, texts, 0, &err) == ERR_ARG && strstr(err.msg, "text 5"));
    samples_close(&s.samples);
    o.labels = COLLECT_DIVERGENT;
    s = shard_of(0, 1);
    CHECK(collect_shard(&s, &c, texts, 0, &err) == ERR_ARG && strstr(err.msg, "divergent"));
    const _Atomic int stop = 1;
    o = options(COLLECT_MATCH, false);
    o.stop = &stop;
    CHECK(collect_shard(&s, &c, texts, 0, &err) == ERR_STOP);
    samples_close(&s.samples);
    /* Nor is a cloud awaited that never says anything. */
    fake = (struct fake){ .tokens = 3, .fails_after = SIZE_MAX, .slow = SILENT };
    c.texts = together;
    s = shard_of(BARE, 1);
    CHECK(collect_shard(&s, &c, texts + BARE, 0, &err) == ERR_STOP && fake.asked <= 1);
    CHECK(!fake.open);
    samples_close(&s.samples);
}

/* Without memory, collecting ends with that error, and nothing leaks. */
static void check_memory(enum collect_labels labels)
{
    const struct collect_options o = options(labels, labels == COLLECT_CITER);
    struct err err;
    int reached = 1;
    for (long n = 1; reached; n++) {
        struct sample_shard s = shard_of(BARE, 4);
        struct collect c = collect_with(&o);
        uint32_t *ids = texts[BARE].ids;
        fake = (struct fake){ .tokens = 3, .fails_after = SIZE_MAX };
        torture_begin(n);
        int rc = collect_shard(&s, &c, texts + BARE, 0, &err);
        samples_close(&s.samples);
        reached = torture_end();
        CHECK(rc == OK || (reached && rc == ERR_NOMEM)); /* fewer slots will do */
        CHECK(fake.live == 0);
        CHECK(torture_live() == 0 || texts[BARE].ids != ids); /* the answer that was written */
        bare_again();
    }
}

/* Make a router whose scores fall on both sides of 0.5. */
static void make_router(void)
{
    struct router_form f;
    size_t dim = engine.model->config.hidden;
    CHECK(router_form_open(&f, dim, 8, NULL) == OK);
    for (size_t i = 0; i < 8 * dim; i++)
        f.w1[i] = (float)(rand_unit(7, i) - 0.5);
    for (size_t i = 0; i < 8; i++)
        f.w2[i] = i % 2 ? 1 : -1;
    CHECK(router_make(&router, &f, "test", &engine.kernels, NULL) == OK);
    CHECK(router_scratch(router) <= sizeof(scratch) / sizeof(*scratch));
    router_form_close(&f);
}

int main(void)
{
    struct engine_options o = { 0 };
    o.model = tiny_make();
    o.threads = 1;
    CHECK(engine_open(&engine, &o, true, NULL) == OK);
    CHECK(session_open(&session, engine.batch, TINY_CONTEXT, KVCACHE_F32, NULL) == OK);
    CHECK(batch_open(&plains, engine.model, NULL, NULL) == OK);
    CHECK(session_open(&plain, plains, TINY_CONTEXT, KVCACHE_F32, NULL) == OK);
    make_router();
    struct routing routing = { .port = port, .how.policy = POLICY_MLP };
    struct texts_options t = { .engine = &engine,
                               .routing = &routing,
                               .slots = TEXTS_SLOTS,
                               .queue = TEXTS_SLOTS,
                               .context = TINY_CONTEXT,
                               .kv = KVCACHE_F32 };
    CHECK(texts_open(&together, &t, NULL) == OK);
    make_texts();
    fake.fails_after = SIZE_MAX;
    check_labels(COLLECT_MATCH, false, 1, 0);
    check_labels(COLLECT_CITER, false, 1, 0);
    check_labels(COLLECT_CITER, false, 5, 30);
    check_labels(COLLECT_CITER, true, 1, 0);
    check_labels(COLLECT_DIVERGENT, false, 1, 0);
    check_labels(COLLECT_DIVERGENT, false, 4, 20);
    check_at_once();
    check_stops();
    check_draw(COLLECT_CITER);
    check_draw(COLLECT_DIVERGENT);
    check_death(COLLECT_CITER);
    check_death(COLLECT_DIVERGENT);
    check_without();
    check_memory(COLLECT_CITER);
    check_memory(COLLECT_DIVERGENT);
    for (size_t i = 0; i < TEXTS; i++)
        free(texts[i].ids);
    texts_close(together);
    router_close(router);
    session_close(plain);
    batch_close(plains);
    session_close(session);
    engine_close(&engine);
    return 0;
}
