/* Tests labels gain on the demo pair: gains are found by brute force, each answer in an empty
 * session and one row a pass, and all rows must be the same; for any threads, slots and calls in
 * flight, with the large model behind a port or not. Also draws, faults and interruptions. */
#include "model/model.h"
#include "model/text/tokenizer.h"
#include "router/learn/collect.h"
#include "router/local_cloud.h"
#include "router/mizzle.h"
#include "router/policy.h"
#include "router/learn/form_save.h"
#include "router/routing.h"
#include "tests/support/port.h"
#include "tools/lab/tasks/task.h"
#include "tools/lab/demo/world.h"

#define EDGE   "weights/milli/edge-0.5.gguf"
#define LARGE  "weights/milli/cloud.gguf"
#define ROUTER "weights/milli/edge-0.5.router.safetensors"

enum { TEXTS = 8, TOO_LONG = 4, FULL = 7, WRITTEN = 36, CONTEXT = 96, ANSWER = 1 << 12 };
static const float threshold = 0.9f; /* some tokens on either side */

static const char *const stops[] = { "in the g", NULL };
static struct collect_text texts[TEXTS];
static struct engine edge, large; /* of the definitions */
static struct session *small_one, *large_one;
static const char *router_file = ROUTER;
static struct router *router;
static bool light; /* no texts by brute force, which takes no thread */
static float scratch[1 << 14];

/* What a collection is made with. */
struct way {
    size_t threads, slots, calls;
    bool past_port, second;
};

/* ---- by brute force ---- */

/* Read ids[n] from the beginning, a row a pass. */
static void read_alone(struct session *s, const uint32_t *ids, size_t n)
{
    session_rewind(s, 0);
    for (size_t i = 0; i < n; i++)
        CHECK(session_eval(s, ids + i, 1, NULL, NULL) == OK);
}

/* Return the greedy token after what the session holds. */
static uint32_t says(struct session *s, const struct engine *e)
{
    return (uint32_t)e->kernels.argmax_f32(session_logits(s, 0), tokenizer_size(e->tokenizer));
}

static bool is_right(const uint32_t *ids, size_t n)
{
    return rand_below(3, port_key(n, ids, n), 100) < 45;
}

static bool is_settled(const uint32_t *ids, size_t n)
{
    return rand_below(7, port_key(n, ids, n), 100) < 3;
}

/* True when an answer ends with its last token. */
static bool is_over(const uint32_t *ids, size_t n, size_t prompt)
{
    char text[ANSWER] = "";
    size_t at = 0, bytes;
    for (size_t i = 0; i < n; i++) {
        const char *b = tokenizer_is_control(edge.tokenizer, ids[i])
                            ? ""
                            : tokenizer_bytes(edge.tokenizer, ids[i], &bytes);
        bytes = *b ? bytes : 0;
        memcpy(text + at, b, bytes);
        at += bytes;
    }
    return tokenizer_is_eog(edge.tokenizer, ids[n - 1]) || strstr(text, stops[0]) || n == WRITTEN ||
           n + prompt == CONTEXT + 1;
}

/* Return what the router reads before the token after ids[n]. */
static const float *inputs(const float *x, const uint32_t *ids, size_t n, size_t prompt)
{
    float extra[FEATURES];
    const struct router_token t = { .text = { edge.tokenizer, ids, n, prompt },
                                    .logits = session_logits(small_one, 0),
                                    .hidden = x,
                                    .size = tokenizer_size(edge.tokenizer),
                                    .id = says(small_one, &edge) };
    if (router_extra(router))
        router_look(router, extra, &t);
    return router_inputs(router, x, extra, scratch);
}

/* Write on after ids[n], of which the prompt is the beginning, and judge the answer. */
static bool ends_right(uint32_t *ids, size_t *n, size_t prompt, bool second)
{
    while (*n == prompt || (!is_settled(ids + prompt, *n - prompt) &&
                            !is_over(ids + prompt, *n - prompt, prompt))) {
        read_alone(small_one, ids, *n);
        const float *x = session_hidden(small_one, 0);
        bool asks = second && router_score(router, inputs(x, ids, *n, prompt), scratch) < threshold;
        if (asks)
            read_alone(large_one, ids, *n);
        ids[*n] = asks ? says(large_one, &large) : says(small_one, &edge);
        ++*n;
    }
    return is_right(ids + prompt, *n - prompt);
}

static bool is_end(uint32_t id)
{
    return tokenizer_is_eog(edge.tokenizer, id);
}

/* Rows that were checked: by their gain + 1; of agreed tokens; and such tokens that are left out.
 */
struct seen {
    size_t gain[3], agreed, left_out;
};

/* Check the rows of text i from rows[*at] on. */
static void check_text(const struct samples *s, size_t i, size_t *at, bool second,
                       struct seen *seen)
{
    uint32_t ids[CONTEXT + 2], other[CONTEXT + 2];
    size_t prompt = texts[i].prompt, n = prompt, m;
    memcpy(ids, texts[i].ids, n * sizeof(*ids));
    bool right = ends_right(ids, &n, prompt, second);
    for (size_t k = prompt; k < n; k++) {
        const struct sample_row *row = &s->rows[*at];
        float features[FEATURES];
        read_alone(small_one, ids, k);
        read_alone(large_one, ids, k);
        uint32_t e = says(small_one, &edge), c = says(large_one, &large);
        bool same = e == c || (is_end(e) && is_end(c));
        features_of(features, &(struct features_text){ edge.tokenizer, ids, k, prompt },
                    session_logits(small_one, 0), tokenizer_size(edge.tokenizer), NULL,
                    &edge.kernels);
        bool same_state = *at < s->n && !memcmp(s->x + *at * s->dim, session_hidden(small_one, 0),
                                                s->dim * sizeof(float));
        bool here = *at < s->n && row->text == i &&
                    row->features[FEATURE_POSITION] == features[FEATURE_POSITION];
        CHECK(here || same);
        seen->left_out += same && !here;
        if (!here)
            continue;
        int gain = 0;
        if (!same) {
            memcpy(other, ids, k * sizeof(*ids));
            other[k] = ids[k] == e ? c : e;
            m = k + 1;
            int its = ends_right(other, &m, prompt, second);
            gain = ids[k] == e ? its - right : right - its;
        }
        CHECK(row->edge == (int32_t)e && row->cloud == (int32_t)c && row->gold == (int32_t)ids[k]);
        CHECK(row->way == (same ? SAMPLE_AGREED : SAMPLE_ROLLOUT) && row->right == right);
        CHECK(row->gain == gain && row->label == (gain != 1));
        CHECK(row->subject == texts[i].subject && row->before[0] == ids[k - 2] &&
              row->before[1] == ids[k - 1]);
        CHECK(!memcmp(row->features, features, sizeof(row->features)));
        CHECK(same_state);
        seen->gain[gain + 1] += !same;
        seen->agreed += same;
        ++*at;
    }
}

/* ---- collected ---- */

static int judge(void *arg, enum collect_verdict *verdict, size_t text, const uint32_t *ids,
                 size_t n, bool ended, struct err *err)
{
    CHECK(n && n <= WRITTEN && text < TEXTS);
    if (arg && !--*(int *)arg)
        return err_set(err, ERR_NOMEM, "judge: out of memory");
    *verdict = !ended && !is_settled(ids, n) ? COLLECT_OPEN
               : is_right(ids, n)            ? COLLECT_RIGHT
                                             : COLLECT_WRONG;
    return OK;
}

/* Everything that a collection needs. */
struct parts {
    struct engine engine;
    struct routing routing;
    struct collect c;
    struct collect_options o;
};

static void open_parts(struct parts *p, const struct way *w)
{
    struct routing_options o = routing_defaults;
    struct err err = { "" };
    memset(p, 0, sizeof(*p));
    o.engine = (struct engine_options){ .model = EDGE, .threads = w->threads, .kv = "f32" };
    CHECK(engine_open(&p->engine, &o.engine, true, &err) == OK);
    o.cloud_model = LARGE;
    o.cloud = "required";
    o.policy = w->second ? "mlp" : "always";
    o.router = w->second ? router_file : NULL;
    o.threshold = (double)threshold;
    CHECK_MSG(routing_open(&p->routing, &p->engine, &o, NULL, &err) == OK, "%s", err.msg);
    p->o = (struct collect_options){ .labels = COLLECT_GAIN,
                                     .calls = w->calls,
                                     .max_tokens = WRITTEN,
                                     .rollouts = SAMPLE_FILES_NO_LIMIT,
                                     .texts = TEXTS,
                                     .router = p->routing.router,
                                     .threshold = threshold,
                                     .stops = stops,
                                     .turn = p->routing.turn,
                                     .judge = judge };
    p->c = (struct collect){ .tok = p->engine.tokenizer,
                             .o = &p->o,
                             .large = w->past_port ? local_cloud_texts(p->routing.local) : NULL };
    CHECK(session_open(&p->c.session, p->engine.batch, CONTEXT, KVCACHE_F32, &err) == OK);
    const struct texts_options t = { .engine = &p->engine,
                                     .routing = &p->routing,
                                     .slots = w->slots,
                                     .queue = TEXTS_SLOTS,
                                     .context = CONTEXT,
                                     .kv = KVCACHE_F32,
                                     .turn = p->routing.turn };
    CHECK(texts_open(&p->c.texts, &t, &err) == OK);
}

static void close_parts(struct parts *p)
{
    texts_close(p->c.texts);
    session_close(p->c.session);
    routing_close(&p->routing);
    engine_close(&p->engine);
}

/* Collect texts [first, first + n). */
static int collect(struct sample_shard *s, struct parts *p, size_t first, size_t n, struct err *err)
{
    *s = (struct sample_shard){ .first = first,
                                .ntexts = n,
                                .samples.dim = p->engine.model->config.hidden };
    return collect_shard(s, &p->c, texts + first, 0, err);
}

static void same_shards(const struct sample_shard *a, const struct sample_shard *b)
{
    const struct samples *x = &a->samples, *y = &b->samples;
    CHECK(x->n == y->n && !memcmp(&a->counts, &b->counts, sizeof(a->counts)));
    CHECK(!memcmp(x->x, y->x, x->n * x->dim * sizeof(float)));
    for (size_t i = 0; i < x->n; i++)
        CHECK(!memcmp(&x->rows[i], &y->rows[i], offsetof(struct sample_row, right) + 1));
}

/* Hidden states come back to their own samples alone; t_router_collect.sh has whole folders. */
static void check_states(struct sample_shard *s, struct parts *p)
{
    float *feature = &s->samples.rows[2].features[0], kept = *feature;
    struct err err = { "" };
    CHECK_MSG(collect_states(s, &p->c, texts, &err) == OK, "%s", err.msg);
    *feature += 0.25f;
    CHECK(collect_states(s, &p->c, texts, &err) == ERR_FORMAT);
    CHECK_MSG(strstr(err.msg, ": sample 2: expected one of text "), "%s", err.msg);
    *feature = kept;
}

static void check_rows(bool second)
{
    const struct way ways[] = { { 1, 16, 0, true, second },
                                { 2, 3, 40, false, second },
                                { 1, 1, 1, false, second } };
    struct sample_shard s[3];
    struct err err = { "" };
    struct seen seen = { .agreed = 0 };
    size_t at = 0;
    for (size_t i = 0; i < 3; i++) {
        struct parts p;
        open_parts(&p, &ways[i]);
        CHECK_MSG(collect(&s[i], &p, 0, TEXTS, &err) == OK, "%s", err.msg);
        const struct texts_counts did = texts_count(p.c.texts);
        CHECK(did.busy == 0 && p.c.stats.texts == TEXTS);
        size_t least = s[i].counts.rollouts; /* of each, the token that is tried */
        for (size_t k = 0; k < TEXTS; k++)
            least += k == TOO_LONG ? 0 : texts[k].prompt;
        CHECK(i > 0 || did.prompt_tokens <= least); /* beginnings are read once */
        check_states(&s[i], &p);
        close_parts(&p);
        same_shards(&s[0], &s[i]);
    }
    const struct sample_counts *n = &s[0].counts;
    CHECK(n->samples == s[0].samples.n && n->too_long == 1 && !n->written);
    for (size_t i = 0; i < TEXTS && !light; i++)
        if (i != TOO_LONG)
            check_text(&s[0].samples, i, &at, second, &seen);
    for (size_t i = 0; i < 3; i++)
        samples_close(&s[i].samples);
    if (light)
        return;
    CHECK(n->samples == at);
    CHECK(n->rollouts == seen.gain[0] + seen.gain[1] + seen.gain[2]);
    CHECK(n->right == n->samples - seen.gain[2]);
    /* Gains both ways, and one in ten of the others is kept. */
    CHECK(seen.gain[0] && seen.gain[1] && seen.gain[2]);
    CHECK(seen.agreed && seen.left_out > 4 * seen.agreed);
}

/* Rollouts that are not drawn are left out, and whatever fails, nothing is in flight behind it. */
static void check_faults(void)
{
    const struct way way = { 1, 16, 0, true, false };
    const _Atomic int stop = 1;
    struct sample_shard all, s;
    struct parts p;
    struct err err = { "" };
    int reached = 1, calls;
    open_parts(&p, &way);
    CHECK(collect(&all, &p, 0, 4, &err) == OK && all.counts.rollouts > 4);
    p.o.rollouts = 2;
    p.o.texts = 4;
    CHECK(collect(&s, &p, 0, 4, &err) == OK && s.counts.rollouts == 2);
    CHECK(s.counts.left_out + 2 == all.counts.rollouts && s.samples.n < all.samples.n);
    samples_close(&s.samples);
    samples_close(&all.samples);
    p.o.rollouts = SAMPLE_FILES_NO_LIMIT;
    for (int i = 1, rc = ERR_NOMEM; rc != OK; i += 1 + i / 4) {
        calls = i;
        p.o.arg = &calls;
        rc = collect(&s, &p, 0, 2, &err);
        CHECK(calls == 0 ? rc == ERR_NOMEM && strstr(err.msg, "judge") : rc == OK);
        CHECK(texts_count(p.c.texts).busy == 0 || rc != OK);
        samples_close(&s.samples);
    }
    p.o.arg = NULL;
    for (long i = 1; reached; i += 1 + i / 8) {
        torture_begin(i);
        int rc = collect(&s, &p, 0, 2, &err);
        reached = torture_end();
        CHECK(rc == OK || (rc == ERR_NOMEM && reached));
        samples_close(&s.samples);
    }
    p.o.stop = &stop;
    CHECK(collect(&s, &p, 0, 2, &err) == ERR_STOP);
    samples_close(&s.samples);
    close_parts(&p);
}

/* Go on with a router that reads features, the place in the answer among them, too. */
static void read_features(void)
{
    static char path[] = "/tmp/t_collect_gain_XXXXXX";
    struct router_form f, mix, table;
    size_t dim;
    int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0 && router_form_read(&f, ROUTER, NULL) == OK);
    dim = f.dim;
    CHECK(router_form_open(&mix, dim + FEATURES, f.width + 1, NULL) == OK);
    for (size_t i = 0; i < f.width; i++) {
        memcpy(mix.w1 + i * mix.dim, f.w1 + i * dim, dim * sizeof(*f.w1));
        mix.b1[i] = f.b1[i];
        mix.w2[i] = f.w2[i];
    }
    mix.w1[f.width * mix.dim + dim + FEATURE_POSITION] = 1;
    mix.w2[f.width] = -2; /* the later, the lower */
    mix.b2[0] = f.b2[0];
    CHECK(router_form_open_contexts(&table, 1, NULL) == OK);
    *table.contexts = (struct router_context){ -1, -1, 0.5f };
    mix.contexts = table.contexts;
    mix.ncontexts = 1;
    CHECK(form_save(path, &mix, NULL) == OK);
    router_close(router);
    CHECK(router_open(&router, path, &edge.kernels, NULL) == OK && router_extra(router));
    CHECK(router_scratch(router) <= sizeof(scratch) / sizeof(*scratch));
    router_form_close(&mix);
    router_form_close(&f);
    router_file = path;
}

int main(void)
{
    const struct task_options milli = {
        .name = "milli", .stream = TASK_TRAIN, .seed = 1, .world = WORLD_SEED
    };
    struct engine_options o = { .model = EDGE };
    struct task *task;
    struct task_item item;
    light = SANITIZED || (getenv("RUN") && *getenv("RUN"));
    if (access(EDGE, R_OK) || access(LARGE, R_OK))
        SKIP("no demo pair in weights/milli");
    CHECK(engine_open(&edge, &o, true, NULL) == OK);
    o.model = LARGE;
    CHECK(engine_open(&large, &o, true, NULL) == OK);
    CHECK(session_open(&small_one, edge.batch, CONTEXT, KVCACHE_F32, NULL) == OK);
    CHECK(session_open(&large_one, large.batch, CONTEXT, KVCACHE_F32, NULL) == OK);
    CHECK(router_open(&router, ROUTER, &edge.kernels, NULL) == OK);
    CHECK(router_scratch(router) <= sizeof(scratch) / sizeof(*scratch));
    CHECK(task_open(&task, &milli, NULL) == OK);
    for (size_t i = 0; i < TEXTS; i++) {
        struct collect_text *t = &texts[i];
        CHECK(task_item(&item, task, i, NULL) == OK);
        CHECK(task_encode(&t->ids, &t->prompt, task, &item, edge.tokenizer, NULL, NULL) == OK);
        CHECK((t->ids = realloc(t->ids, 2 * CONTEXT * sizeof(*t->ids))) && t->prompt < CONTEXT);
        for (size_t k = t->prompt; (i == TOO_LONG || i == FULL) && k < CONTEXT; k++)
            t->ids[k] = 5;
        t->prompt = i == TOO_LONG ? CONTEXT : i == FULL ? CONTEXT - 2 : t->prompt;
        t->n = t->prompt + 2; /* a reference that does not count */
        t->subject = (uint32_t)i / 2;
    }
    check_rows(false);
    check_rows(true);
    read_features();
    check_rows(true);
    CHECK(unlink(router_file) == 0);
    check_faults();
    for (size_t i = 0; i < TEXTS; i++)
        free(texts[i].ids);
    task_close(task);
    router_close(router);
    session_close(small_one);
    session_close(large_one);
    engine_close(&edge);
    engine_close(&large);
    return 0;
}
