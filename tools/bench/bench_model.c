/* bench_model.c - measures tokens per second of a file or of a shape with random weights, and what
 * a router's score costs and saves. */
#include "tools/bench/bench_model.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "model/session.h"
#include "router/router.h"
#include "tools/bench/bench_draft.h"
#include "tools/bench/energy.h"
#include "tools/bench/read_probe.h"
#include "tools/command.h"
#include "tools/cli/setup.h"

enum { MOST_TOKENS = 1 << 20, WARM = 16, DRAFTS = 2, GEN = 128 };
enum { TESTS = BENCH_LIST + BENCH_LIST * BENCH_LIST }; /* most at one depth */

int bench_list(struct bench_list *out, const char *option, const char *text, struct err *err)
{
    const char *p = text;
    for (out->n = 0; out->n < BENCH_LIST; p++) {
        size_t v = 0;
        const char *digits = p;
        for (; *p >= '0' && *p <= '9' && v <= MOST_TOKENS; p++)
            v = v * 10 + (size_t)(*p - '0');
        if (p == digits || v > MOST_TOKENS || (*p && *p != ','))
            break;
        out->at[out->n++] = v;
        if (!*p)
            return OK;
    }
    return err_set(err, ERR_ARG,
                   "%s: expected up to %d numbers of at most %d like 128,512, found %s", option,
                   BENCH_LIST, MOST_TOKENS, text);
}

/* Return the token that stands at the end of this text; the same place always has the same. */
static uint32_t bench_model_token(const struct session *s, size_t text, size_t ahead)
{
    return bench_draft_id(rand_unit(3 + text, session_length(s) + ahead),
                          model_config(session_model(s))->vocab);
}

/* Evaluate n random tokens as a prompt, with the logits of the last one. */
static int bench_model_read(struct session *s, size_t n, struct err *err)
{
    uint32_t ids[BATCH_ROWS];
    while (n) {
        size_t some = n < BATCH_ROWS ? n : BATCH_ROWS;
        for (size_t i = 0; i < some; i++)
            ids[i] = bench_model_token(s, 0, i);
        int rc = session_eval(s, ids, some, &interrupted, err);
        if (rc)
            return rc;
        n -= some;
    }
    session_logits(s, 0);
    return OK;
}

/* Append n random tokens to each of these texts: a pass evaluates one of each, with its logits. */
static int bench_model_write(struct batch *b, struct session *const *s, size_t texts, size_t n,
                             struct err *err)
{
    struct batch_part parts[BENCH_TEXTS];
    uint32_t ids[BENCH_TEXTS];
    size_t rows[BENCH_TEXTS];
    for (; n; n--) {
        for (size_t i = 0; i < texts; i++) {
            ids[i] = bench_model_token(s[i], i, 0);
            parts[i] = (struct batch_part){ .session = s[i], .ids = &ids[i], .n = 1 };
        }
        int rc = batch_eval(b, parts, texts, &interrupted, err);
        for (size_t i = 0; !rc && i < texts; i++) {
            rows[i] = parts[i].row;
            if (parts[i].rc)
                rc = err_set(err, parts[i].rc, "%s", parts[i].err.msg);
        }
        if (!rc)
            rc = batch_logits(b, rows, texts, err);
        if (rc)
            return rc;
    }
    return OK;
}

/* State of the tests with one number of threads. */
struct bench_run {
    const struct bench_options *o;
    struct engine *engine;
    struct batch *batch;
    struct session *s[BENCH_TEXTS];
    struct pool *pool;
    struct router *router;
    struct bench_draft *draft;
    float *scratch;
    struct energy energy;
    size_t peak; /* as in struct bench_test */
    struct read_probe *probe;
    double
        one[BENCH_LIST * TESTS]; /* tokens per second of each test on one thread, once measured */
};

/* Set all texts of the test back to its depth. */
static void run_rewind(struct bench_run *b, const struct bench_test *t, size_t depth)
{
    for (size_t i = 0; i < t->texts; i++)
        session_rewind(b->s[i], depth);
}

/* Evaluate the prompt of the test, or generate n tokens of each text. */
static int run_once(struct bench_run *b, struct bench_test *t, size_t n, struct err *err)
{
    struct decode_stats stats = { .passes = 0 };
    enum draft_kind kind;
    if (t->prompt)
        return bench_model_read(b->s[0], t->prompt, err);
    if (!t->draft)
        return bench_model_write(b->batch, b->s, t->texts, n, err);
    draft_parse(&kind, t->draft);
    int rc = bench_draft_write(b->draft, &stats, b->s[0], t->depth, n, kind, t->repeats, err);
    t->passes = stats.passes;
    t->accepted = stats.accepted;
    return rc;
}

/* Fill the caches to the depth of the test, then warm up: with the prompt, or with a few of the
 * tokens that are to be generated. */
static int warm_up(struct bench_run *b, struct bench_test *t, struct err *err)
{
    run_rewind(b, t, 0);
    int rc = t->depth ? bench_model_read(b->s[0], t->depth, err) : OK;
    for (size_t i = 1; !rc && i < t->texts; i++)
        rc = session_copy(b->s[i], b->s[0], t->depth, err);
    return rc ? rc : run_once(b, t, t->gen < WARM ? t->gen : WARM, err);
}

/* Return what the probe reads now; it takes its memory when it is first used, after the peak of the
 * model's own has been noted. */
static int run_probe(struct bench_run *b, double *gb_s, struct err *err)
{
    b->peak = b->peak ? b->peak : os_peak_memory();
    int rc = b->probe ? OK : read_probe_open(&b->probe, b->pool, err);
    *gb_s = rc ? 0 : read_probe_memory(b->probe, b->pool);
    return rc;
}

/* Return the seconds that the threads of this process have run so far. */
static double seconds_run(void)
{
    struct timespec t = { 0 };
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Take the samples of one test. */
static int run_test(struct bench_run *b, struct bench_test *t, struct err *err)
{
    int rc = warm_up(b, t, err);
    if (!rc)
        rc = run_probe(b, &t->before, err);
    t->peak = b->peak;
    energy_joules(&b->energy);
    double ran = seconds_run(), all = 0;
    for (t->samples = 0; !rc && t->samples < b->o->repeat; t->samples++) {
        run_rewind(b, t, t->depth);
        uint64_t begin = os_now_ns();
        rc = run_once(b, t, t->gen, err);
        t->ns[t->samples] = (double)(os_now_ns() - begin);
        all += t->ns[t->samples] / 1e9;
    }
    t->on_cpu = (seconds_run() - ran) / (all * (double)t->threads);
    t->joules = energy_joules(&b->energy) / (double)(t->samples * (t->prompt + t->gen) * t->texts);
    return rc || !t->gen ? rc : run_probe(b, &t->after, err);
}

/* Evaluate one token and its score and, where head is true, its logits. *ns is the total time,
 * *score that of the score. */
static int bench_model_step(struct bench_run *b, bool head, double *ns, double *score,
                            struct err *err)
{
    struct session *s = b->s[0];
    uint32_t id = bench_model_token(s, 0, 0);
    uint64_t begin = os_now_ns();
    int rc = session_eval(s, &id, 1, &interrupted, err);
    if (rc)
        return rc;
    uint64_t scoring = os_now_ns();
    float p = router_score(b->router, session_hidden(s, router_tap(b->router), 0), b->scratch);
    *score = (double)(os_now_ns() - scoring);
    if (head && p >= 0)
        session_logits(s, 0);
    *ns = (double)(os_now_ns() - begin);
    return OK;
}

/* Alternate tokens with and without the output head, so that both see the same conditions. */
static int run_router(struct bench_run *b, struct bench_test *t, struct err *err)
{
    int rc = OK;
    size_t n = t->gen < BENCH_PAIRS ? t->gen : BENCH_PAIRS;
    session_rewind(b->s[0], t->depth);
    for (t->pairs = 0; !rc && t->pairs < n; t->pairs++) {
        size_t i = t->pairs;
        rc = bench_model_step(b, true, &t->edge[i], &t->score[2 * i], err);
        if (!rc)
            rc = bench_model_step(b, false, &t->routed[i], &t->score[2 * i + 1], err);
    }
    return rc;
}

/* Make a router of CITER's form, h -> 2h -> 1, with random weights. */
static int bench_model_open_router(struct bench_run *b, struct err *err)
{
    struct router_form f;
    size_t h = model_config(b->engine->model)->hidden;
    int rc = router_form_open(&f, h, 2 * h, err);
    for (size_t i = 0; !rc && i < 2 * h * h; i++)
        f.w1[i] = (float)(rand_unit(5, i) - 0.5) * 0.1f;
    for (size_t i = 0; !rc && i < 2 * h; i++)
        f.w2[i] = (float)(rand_unit(6, i) - 0.5) * 0.1f;
    if (!rc)
        rc = router_make(&b->router, &f, "router of random weights", &b->engine->kernels, err);
    router_form_close(&f);
    if (rc)
        return rc;
    b->scratch = calloc(router_scratch(b->router), sizeof(*b->scratch));
    return b->scratch ? OK : err_set(err, ERR_NOMEM, "bench: out of memory");
}

static bool parse_type(unsigned *out, const char *name)
{
    for (unsigned p = 0; p < MODEL_TYPES; p++)
        if (!strcasecmp(name, model_random_type(p))) {
            *out = p;
            return true;
        }
    return false;
}

int bench_model_shape(struct model_config *out, unsigned *type, const char *shape, const char *name,
                      struct err *err)
{
    if (!model_shape(out, shape))
        return err_set(err, ERR_ARG,
                       "--shape: expected qwen2.5-0.5b, -1.5b, -3b, -7b, qwen3-0.6b, -1.7b, "
                       "-4b or -8b, found %s",
                       shape);
    if (!parse_type(type, name))
        return err_set(err, ERR_ARG,
                       "--type: expected f32, bf16, a type of GGUF or q4_k_m, found %s", name);
    return OK;
}

/* Open a model of a known shape with random weights instead of a file. */
static int open_shape(struct engine *e, const struct bench_model_options *m, struct err *err)
{
    struct model_config c;
    unsigned type;
    int rc = bench_model_shape(&c, &type, m->shape, m->type, err);
    if (!rc)
        rc = setup_kernels(&e->kernels, err);
    if (!rc)
        rc = pool_open(&e->pool, engine_options.threads, err);
    if (!rc)
        rc = model_random(&e->model, &c, type, &e->kernels, e->pool, 1, err);
    if (!rc)
        rc = batch_open(&e->batch, e->model, e->pool, err);
    return rc;
}

int bench_model_open(struct engine *e, const struct bench_model_options *m, struct err *err)
{
    return m->shape ? open_shape(e, m, err) : setup_engine(e, NULL, false, err);
}

/* All lists of the command line, and the context that the largest test needs. */
struct plan {
    struct bench_list prompt, gen, depth, threads, texts;
    const char *draft[DRAFTS]; /* names of draft kinds */
    size_t ndrafts;            /* 0: without the decoding loop */
    enum kvcache kv;
    size_t context;
};

static size_t largest(const struct bench_list *l)
{
    size_t most = 0;
    for (size_t i = 0; i < l->n; i++)
        most = l->at[i] > most ? l->at[i] : most;
    return most;
}

static size_t least(const struct bench_list *l)
{
    size_t least = l->at[0];
    for (size_t i = 1; i < l->n; i++)
        least = l->at[i] < least ? l->at[i] : least;
    return least;
}

/* Parse the list of draft kinds, and check that a text can repeat as much as is written. */
static int plan_drafts(struct plan *p, const char *text, struct err *err)
{
    static const char *const names[] = { "off", "lookup" };
    for (const char *at = text; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        size_t n = strcspn(at, ","), i = 0;
        while (i < 2 && (strlen(names[i]) != n || strncmp(at, names[i], n) != 0))
            i++;
        if (i == 2 || p->ndrafts == DRAFTS)
            return err_set(err, ERR_ARG, "--draft: expected off, lookup or off,lookup, found %s",
                           text);
        p->draft[p->ndrafts++] = names[i];
    }
    size_t half = least(&p->depth) / 2;
    if (p->ndrafts && half < 2)
        return err_set(err, ERR_ARG, "--draft: expected -d of 4 or more, found %zu",
                       least(&p->depth));
    for (size_t i = 0; p->ndrafts && i < p->gen.n; i++)
        if (p->gen.at[i] == 1 || p->gen.at[i] > half)
            return err_set(err, ERR_ARG, "--draft: expected -n of 2 to %zu, half of -d, found %zu",
                           half, p->gen.at[i]);
    if (p->ndrafts && largest(&p->texts) > 1)
        return err_set(err, ERR_ARG, "--draft writes one text: leave --texts out");
    return OK;
}

/* Parse the lists and compute the context. */
static int make_plan(struct plan *p, const struct bench_model_options *m, struct err *err)
{
    int rc = bench_list(&p->prompt, "-p", m->prompt, err);
    if (!rc)
        rc = bench_list(&p->depth, "-d", m->depth, err);
    if (!rc && m->gen)
        rc = bench_list(&p->gen, "-n", m->gen, err);
    if (!rc)
        rc = bench_list(&p->texts, "--texts", m->texts, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < p->texts.n; i++)
        if (p->texts.at[i] < 1 || p->texts.at[i] > BENCH_TEXTS)
            return err_set(err, ERR_ARG, "--texts: expected 1 to %d, found %zu", BENCH_TEXTS,
                           p->texts.at[i]);
    size_t half = least(&p->depth) / 2;
    if (!m->gen)
        p->gen = (struct bench_list){ .at = { half < GEN ? half : GEN }, .n = 1 };
    size_t prompt = largest(&p->prompt), gen = largest(&p->gen);
    p->threads = m->threads.n ? m->threads : (struct bench_list){ .n = 1 };
    gen = gen && gen < 2 * BENCH_PAIRS ? 2 * BENCH_PAIRS : gen;
    p->context = largest(&p->depth) + (prompt > gen ? prompt : gen);
    rc = plan_drafts(p, m->drafts, err);
    if (rc)
        return rc;
    if (!prompt && !gen)
        return err_set(err, ERR_ARG, "-p, -n: expected one of them above 0");
    return setup_kv(&p->kv, KVCACHE_F16, err);
}

/* Return how many tests there are for each number of tokens to generate: one for each number of
 * texts, or for each kind of draft two texts. */
static size_t plan_each(const struct plan *p)
{
    return p->ndrafts ? 2 * p->ndrafts : p->texts.n;
}

/* Return test j at a depth: the prompts come first, then those of each number of tokens to
 * generate. */
static struct bench_test plan_test(const struct plan *p, size_t depth, size_t j, size_t threads)
{
    struct bench_test t = { .depth = p->depth.at[depth], .threads = threads, .texts = 1 };
    if (j < p->prompt.n) {
        t.prompt = p->prompt.at[j];
    } else {
        size_t i = (j - p->prompt.n) % plan_each(p);
        t.gen = p->gen.at[(j - p->prompt.n) / plan_each(p)];
        if (p->ndrafts) {
            t.draft = p->draft[i % p->ndrafts];
            t.repeats = i < p->ndrafts;
        } else {
            t.texts = p->texts.at[i];
        }
    }
    return t;
}

/* Run all tests with one number of threads. */
static int run_tests(struct bench_run *b, const struct plan *p, struct model_report *report,
                     struct err *err)
{
    static struct bench_test t;
    struct model_figures f;
    size_t n = p->prompt.n + p->gen.n * plan_each(p);
    for (size_t i = 0; i < p->depth.n; i++)
        for (size_t j = 0; j < n && !report->closed; j++) {
            double *one = &b->one[i * TESTS + j];
            t = plan_test(p, i, j, pool_threads(b->pool));
            if (!t.prompt && !t.gen)
                continue;
            int rc = run_test(b, &t, err);
            if (!rc && t.gen && t.gen == largest(&p->gen) && t.texts == 1 && !t.draft)
                rc = run_router(b, &t, err);
            if (rc)
                return rc;
            t.one = *one;
            model_figures(&f, &t, model_pass_bytes(b->engine->model));
            model_report_row(report, &t, &f);
            *one = t.threads == 1 ? f.ts : *one;
        }
    return OK;
}

/* Open the batch, and as many sessions as the texts of the largest test. */
static int bench_model_open_texts(struct bench_run *b, const struct plan *p, struct err *err)
{
    int rc = batch_open(&b->batch, b->engine->model, b->pool, err);
    for (size_t i = 0; !rc && i < largest(&p->texts); i++)
        rc = session_open(&b->s[i], b->batch, p->context, p->kv, err);
    return rc;
}

static void bench_model_close_texts(struct bench_run *b)
{
    for (size_t i = 0; i < BENCH_TEXTS; i++) {
        session_close(b->s[i]);
        b->s[i] = NULL;
    }
    batch_close(b->batch);
    b->batch = NULL;
}

/* Run the tests with each number of threads; each gets a pool, a batch and sessions of its own. */
static int bench_model_run_all(struct bench_run *b, const struct plan *p,
                               struct model_report *report, struct err *err)
{
    int rc = bench_model_open_router(b, err);
    if (!rc && p->ndrafts)
        rc = bench_draft_open(&b->draft, b->engine, err);
    model_report_begin(report);
    for (size_t i = 0; !rc && !report->closed && i < p->threads.n; i++) {
        rc = pool_open(&b->pool, p->threads.at[i], err);
        if (!rc)
            rc = bench_model_open_texts(b, p, err);
        router_threads(b->router, b->pool);
        if (!rc)
            rc = run_tests(b, p, report, err);
        bench_model_close_texts(b);
        pool_close(b->pool);
        b->pool = NULL;
    }
    model_report_end(report);
    read_probe_close(b->probe);
    bench_draft_close(b->draft);
    router_close(b->router);
    free(b->scratch);
    return rc;
}

int bench_model(const struct bench_options *o, const struct bench_model_options *m, struct err *err)
{
    struct plan p = { .ndrafts = 0 };
    struct engine e = { .model = NULL };
    struct err line;
    int rc = make_plan(&p, m, err);
    if (rc)
        return rc;
    engine_options.threads = largest(&p.threads);
    rc = bench_model_open(&e, m, err);
    if (!rc && (rc = model_check_context(model_config(e.model), p.context, &line)) != OK)
        err_set(err, rc, "-d with -p or -n: %s", line.msg);
    if (!rc) {
        const char *model = m->shape               ? m->shape
                            : engine_options.model ? engine_options.model
                                                   : "demo";
        char why[ENERGY_WHY] = "";
        static struct bench_run b;
        b = (struct bench_run){ .o = o, .engine = &e };
        struct model_report report = { .format = o->format,
                                       .model = model,
                                       .kv = kvcache_name(p.kv),
                                       .no_joules = why,
                                       .engine = &e,
                                       .texts = largest(&p.texts) > 1,
                                       .drafts = p.ndrafts > 0 };
        energy_open(&b.energy, ENERGY_ROOT, why);
        rc = bench_model_run_all(&b, &p, &report, err);
    }
    if (e.model || e.pool)
        engine_close(&e);
    return rc;
}
