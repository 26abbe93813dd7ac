/* bench_model.c - measures tokens per second of a file or of a shape with random weights, and what
 * a router's score costs and saves. */
#include "tools/bench/bench_model.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "model/session.h"
#include "router/router.h"
#include "tools/bench/energy.h"
#include "tools/command.h"
#include "tools/cli/setup.h"

enum { MOST_TOKENS = 1 << 20 };

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

/* Evaluate n random tokens; the same position always gets the same token. */
static int bench_model_eval(struct session *s, size_t n, bool one_at_a_time, struct err *err)
{
    uint32_t ids[BATCH_ROWS];
    size_t vocab = model_config(session_model(s))->vocab;
    while (n) {
        size_t some = one_at_a_time ? 1 : n < BATCH_ROWS ? n : BATCH_ROWS;
        for (size_t i = 0; i < some; i++)
            ids[i] = (uint32_t)rand_below(3, session_length(s) + i, vocab);
        int rc = session_eval(s, ids, some, &interrupted, err);
        if (rc)
            return rc;
        if (one_at_a_time)
            session_logits(s, 0);
        n -= some;
    }
    session_logits(s, 0);
    return OK;
}

/* State of the tests with one number of threads. */
struct bench_run {
    const struct bench_options *o;
    struct engine *engine;
    struct batch *batch;
    struct session *s;
    struct pool *pool;
    struct router *router;
    float *scratch;
    struct energy energy;
    size_t peak; /* as in struct bench_test */
};

/* Take the samples of one test, after one unmeasured run that warms caches and clocks. */
static int run_test(struct bench_run *b, struct bench_test *t, struct err *err)
{
    size_t n = t->prompt + t->gen;
    session_rewind(b->s, 0);
    int rc = t->depth ? bench_model_eval(b->s, t->depth, false, err) : OK;
    if (!rc)
        rc = bench_model_eval(b->s, t->prompt ? n : 1, t->gen > 0, err); /* warm */
    b->peak = b->peak ? b->peak : os_peak_memory();
    t->peak = b->peak;
    t->probe = bench_probe(b->pool);
    energy_joules(&b->energy);
    for (t->samples = 0; !rc && t->samples < b->o->repeat; t->samples++) {
        session_rewind(b->s, t->depth);
        uint64_t begin = os_now_ns();
        rc = bench_model_eval(b->s, n, t->gen > 0, err);
        t->ns[t->samples] = (double)(os_now_ns() - begin);
    }
    t->joules = energy_joules(&b->energy) / (double)(t->samples * n);
    return rc;
}

/* Evaluate one token and its score and, where head is true, its logits. *ns is the total time,
 * *score that of the score. */
static int bench_model_step(struct bench_run *b, bool head, double *ns, double *score,
                            struct err *err)
{
    const struct session *s = b->s;
    uint32_t id = (uint32_t)rand_below(3, session_length(s), model_config(b->engine->model)->vocab);
    uint64_t begin = os_now_ns();
    int rc = session_eval(b->s, &id, 1, &interrupted, err);
    if (rc)
        return rc;
    uint64_t scoring = os_now_ns();
    float p = router_score(b->router, session_hidden(s, router_tap(b->router), 0), b->scratch);
    *score = (double)(os_now_ns() - scoring);
    if (head && p >= 0)
        session_logits(b->s, 0);
    *ns = (double)(os_now_ns() - begin);
    return OK;
}

/* Alternate tokens with and without the output head, so that both see the same conditions. */
static int run_router(struct bench_run *b, struct bench_test *t, struct err *err)
{
    int rc = OK;
    size_t n = t->gen < BENCH_PAIRS ? t->gen : BENCH_PAIRS;
    session_rewind(b->s, t->depth);
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

static bool parse_type(enum ptype *out, const char *name)
{
    for (enum ptype p = P_F32; p <= P_Q4; p++)
        if (!strcasecmp(name, panels_type_name(p))) {
            *out = p;
            return true;
        }
    return false;
}

int bench_model_shape(struct model_config *out, enum ptype *type, const char *shape,
                      const char *name, struct err *err)
{
    if (!model_shape(out, shape))
        return err_set(err, ERR_ARG, "--shape: expected qwen2.5-0.5b, -1.5b, -3b or -7b, found %s",
                       shape);
    if (!parse_type(type, name))
        return err_set(err, ERR_ARG, "--type: expected f32, bf16, q8_0 or q4_0, found %s", name);
    return OK;
}

/* Open a model of a known shape with random weights instead of a file. */
static int open_shape(struct engine *e, const struct bench_model_options *m, struct err *err)
{
    struct model_config c;
    enum ptype type;
    int rc = bench_model_shape(&c, &type, m->shape, m->type, err);
    if (!rc)
        rc = setup_kernels(&e->kernels, err);
    if (!rc)
        rc = pool_open(&e->pool, engine_options.threads, err);
    if (!rc)
        rc = model_random(&e->model, &c, type, &e->kernels, e->pool, 1, err);
    return rc;
}

int bench_model_open(struct engine *e, const struct bench_model_options *m, struct err *err)
{
    return m->shape ? open_shape(e, m, err) : setup_engine(e, NULL, false, err);
}

/* All lists of the command line, and the context that the largest test needs. */
struct plan {
    struct bench_list prompt, gen, depth, threads;
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

/* Parse the lists and compute the context. */
static int make_plan(struct plan *p, const struct bench_model_options *m, struct err *err)
{
    int rc = bench_list(&p->prompt, "-p", m->prompt, err);
    if (!rc)
        rc = bench_list(&p->gen, "-n", m->gen, err);
    if (!rc)
        rc = bench_list(&p->depth, "-d", m->depth, err);
    if (rc)
        return rc;
    size_t prompt = largest(&p->prompt), gen = largest(&p->gen);
    p->threads = m->threads.n ? m->threads : (struct bench_list){ .n = 1 };
    gen = gen && gen < 2 * BENCH_PAIRS ? 2 * BENCH_PAIRS : gen;
    p->context = largest(&p->depth) + (prompt > gen ? prompt : gen);
    if (!prompt && !gen)
        return err_set(err, ERR_ARG, "-p, -n: expected one of them above 0");
    return setup_kv(&p->kv, KVCACHE_F16, err);
}

/* Run all tests with one number of threads. */
static int run_tests(struct bench_run *b, const struct plan *p, struct model_report *report,
                     struct err *err)
{
    static struct bench_test t;
    int rc = OK;
    for (size_t i = 0; i < p->depth.n; i++)
        for (size_t j = 0; !rc && !report->closed && j < p->prompt.n + p->gen.n; j++) {
            t = (struct bench_test){ .depth = p->depth.at[i], .threads = pool_threads(b->pool) };
            if (j < p->prompt.n)
                t.prompt = p->prompt.at[j];
            else
                t.gen = p->gen.at[j - p->prompt.n];
            if (!t.prompt && !t.gen)
                continue;
            rc = run_test(b, &t, err);
            if (!rc && t.gen && t.gen == largest(&p->gen))
                rc = run_router(b, &t, err);
            if (!rc)
                model_report_row(report, &t);
        }
    return rc;
}

/* Run the tests with each number of threads; each gets a pool and a session of its own. */
static int bench_model_run_all(struct bench_run *b, const struct plan *p,
                               struct model_report *report, struct err *err)
{
    int rc = bench_model_open_router(b, err);
    model_report_begin(report);
    for (size_t i = 0; !rc && !report->closed && i < p->threads.n; i++) {
        rc = pool_open(&b->pool, p->threads.at[i], err);
        if (!rc)
            rc = batch_open(&b->batch, b->engine->model, b->pool, err);
        if (!rc)
            rc = session_open(&b->s, b->batch, p->context, p->kv, err);
        router_threads(b->router, b->pool);
        if (!rc)
            rc = run_tests(b, p, report, err);
        session_close(b->s);
        batch_close(b->batch);
        pool_close(b->pool);
        b->s = NULL;
        b->batch = NULL;
        b->pool = NULL;
    }
    model_report_end(report);
    router_close(b->router);
    free(b->scratch);
    return rc;
}

int bench_model(const struct bench_options *o, const struct bench_model_options *m, struct err *err)
{
    struct plan p;
    struct engine e = { .model = NULL };
    int rc = make_plan(&p, m, err);
    if (rc)
        return rc;
    engine_options.threads = largest(&p.threads);
    rc = bench_model_open(&e, m, err);
    if (!rc) {
        const char *model = m->shape               ? m->shape
                            : engine_options.model ? engine_options.model
                                                   : "demo";
        char why[ENERGY_WHY] = "";
        struct bench_run b = { .o = o, .engine = &e };
        struct model_report report = { .format = o->format,
                                       .model = model,
                                       .kv = kvcache_name(p.kv),
                                       .no_joules = why,
                                       .engine = &e };
        energy_open(&b.energy, ENERGY_ROOT, why);
        rc = bench_model_run_all(&b, &p, &report, err);
    }
    if (e.model || e.pool)
        engine_close(&e);
    return rc;
}
