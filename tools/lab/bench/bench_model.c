/* bench_model.c - measures tokens per second of a file or of a shape with random weights. */
#include "tools/lab/bench/bench_model.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "model/model.h"
#include "model/session.h"
#include "model/tuning.h"
#include "router/engine.h"
#include "tools/lab/bench/bench_ops.h"
#include "tools/lab/machine/limits.h"
#include "tools/lab/machine/read_probe.h"
#include "tools/command.h"
#include "tools/cli/setup.h"

enum { WARM = 16 };

/* Return the token that stands at the end of this text; the same place always has the same. As in a
 * text, the frequency of an id falls with its rank (Zipf's law). */
static uint32_t bench_model_token(const struct session *s, size_t text, size_t ahead)
{
    size_t vocab = session_model(s)->config.vocab;
    double draw = rand_unit(3 + text, session_length(s) + ahead);
    uint32_t id = (uint32_t)exp_f64(draw * log_f64((double)vocab + 1)) - 1;
    return id < vocab ? id : (uint32_t)vocab - 1;
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

/* Append n random tokens to each of these texts: a pass evaluates one of each, with its logits. A
 * pass that takes less ns than *least sets it, as does the first one where it is 0. */
static int bench_model_write(struct batch *b, struct session *const *s, size_t texts, size_t n,
                             double *least, struct err *err)
{
    struct batch_part parts[BENCH_TEXTS];
    uint32_t ids[BENCH_TEXTS];
    size_t rows[BENCH_TEXTS];
    for (; n; n--) {
        uint64_t begin = os_now_ns();
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
        double ns = (double)(os_now_ns() - begin);
        *least = *least <= 0 || ns < *least ? ns : *least;
    }
    return OK;
}

enum { BENCH_TESTS = BENCH_LIST + BENCH_LIST * BENCH_LIST }; /* most at one depth */

/* All lists of the command line, and the context that the largest test needs. */
struct bench_plan {
    struct bench_list prompt, gen, depth, threads, texts;
    enum kvcache kv;
    size_t context;
};

/* Parse the lists of the command line and compute the context. ERR_ARG. */
static int plan_make(struct bench_plan *p, const struct bench_options *o, struct err *err)
{
    const struct {
        struct bench_list *to;
        const char *option, *text;
    } lists[] = { { &p->prompt, "-p", o->prompt },
                  { &p->depth, "-d", o->depth },
                  { &p->gen, "-n", o->gen },
                  { &p->threads, "-t", o->each_threads },
                  { &p->texts, "--parallel", o->texts } };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        int rc = bench_list(lists[i].to, lists[i].option, lists[i].text, err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < p->texts.n; i++)
        if (p->texts.at[i] < 1 || p->texts.at[i] > BENCH_TEXTS)
            return err_set(err, ERR_ARG, "--parallel: expected 1 to %d, found %zu", BENCH_TEXTS,
                           p->texts.at[i]);
    size_t prompt = bench_list_most(&p->prompt), gen = bench_list_most(&p->gen);
    p->context = bench_list_most(&p->depth) + (prompt > gen ? prompt : gen);
    if (!prompt && !gen)
        return err_set(err, ERR_ARG, "-p, -n: expected one of them above 0");
    if (o->by_op && (bench_list_most(&p->texts) > 1 || *o->format == 'c'))
        return err_set(err, ERR_ARG, "--by-op: expected one text and not -o csv");
    if (o->shape && shared_options.engine.model)
        return err_set(err, ERR_ARG, "--shape: expected no -m, found %s",
                       shared_options.engine.model);
    return setup_kv(&p->kv, KVCACHE_F16, err);
}

/* Return test j at a depth, which is an index: the prompts come first, then those of each number of
 * tokens to generate, one for each number of texts. */
static struct bench_test plan_test(const struct bench_plan *p, size_t depth, size_t j,
                                   size_t threads)
{
    struct bench_test t = { .depth = p->depth.at[depth], .threads = threads, .texts = 1 };
    if (j < p->prompt.n) {
        t.prompt = p->prompt.at[j];
    } else {
        t.gen = p->gen.at[(j - p->prompt.n) / p->texts.n];
        t.texts = p->texts.at[(j - p->prompt.n) % p->texts.n];
    }
    return t;
}

/* State of the tests with one number of threads. */
struct bench_run {
    const struct bench_options *o;
    struct engine *engine;
    struct batch *batch;
    struct session *s[BENCH_TEXTS];
    struct pool *pool;
    size_t peak; /* as in struct bench_test */
    struct read_probe *probe;
    struct doubt_others others;
    struct bench_ops *ops;   /* NULL without --by-op */
    struct op_limits limits; /* for ops, once measured */
    double one[BENCH_LIST *
               BENCH_TESTS]; /* tokens per second of each test on one thread, once measured */
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
    return t->prompt ? bench_model_read(b->s[0], t->prompt, err)
                     : bench_model_write(b->batch, b->s, t->texts, n, &t->pass, err);
}

/* Evaluate the prompt, or generate a few of the tokens. */
static int run_few(struct bench_run *b, struct bench_test *t, struct err *err)
{
    return run_once(b, t, t->gen < WARM ? t->gen : WARM, err);
}

/* Generate until the batch has chosen how it walks the weights. */
static int run_tuning(struct bench_run *b, struct bench_test *t, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; !rc && i < TUNING_PASSES && !model_tuned(batch_tuning(b->batch)); i++) {
        run_rewind(b, t, t->depth);
        rc = run_few(b, t, err);
    }
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
    if (!rc)
        rc = run_few(b, t, err);
    return rc || t->prompt || t->texts > 1 ? rc : run_tuning(b, t, err);
}

/* Return what the probe reads now; it takes its memory when it is first used, after the peak of the
 * model's own has been noted. */
static int run_probe(struct bench_run *b, double *gb_s, struct err *err)
{
    b->peak = b->peak ? b->peak : limits_peak_memory();
    int rc = b->probe ? OK : read_probe_open(&b->probe, false, b->pool, err);
    *gb_s = rc ? 0 : read_probe_memory(b->probe, b->pool);
    return rc;
}

/* Find out which share of the time the threads wait for each other: in a few tokens, or in a part
 * of the prompt that is a pass. */
static int run_waiting(struct bench_run *b, struct bench_test *t, struct err *err)
{
    run_rewind(b, t, t->depth);
    pool_watch(b->pool);
    int rc = t->prompt
                 ? bench_model_read(b->s[0], t->prompt < BATCH_ROWS ? t->prompt : BATCH_ROWS, err)
                 : run_few(b, t, err);
    t->waiting = pool_waited(b->pool);
    return rc;
}

/* Take the samples of one test. */
static int run_test(struct bench_run *b, struct bench_test *t, struct err *err)
{
    doubt_look(&b->others);
    int rc = warm_up(b, t, err);
    if (!rc && t->threads > 1)
        rc = run_waiting(b, t, err);
    if (!rc)
        rc = run_probe(b, &t->before, err);
    t->l3 = rc ? 0 : read_probe_l3(b->probe, b->pool);
    t->peak = b->peak;
    t->pass = 0;
    double ran = doubt_ran(), all = 0;
    for (t->samples = 0; !rc && t->samples < b->o->repeat; t->samples++) {
        run_rewind(b, t, t->depth);
        uint64_t begin = os_now_ns();
        rc = run_once(b, t, t->gen, err);
        t->ns[t->samples] = (double)(os_now_ns() - begin);
        all += t->ns[t->samples] / 1e9;
    }
    t->on_cpu = (doubt_ran() - ran) / (all * (double)t->threads);
    rc = rc || !t->gen ? rc : run_probe(b, &t->after, err);
    doubt_look(&b->others);
    t->others = b->others.took;
    return rc;
}

/* Take as many samples again, watched and not in turn, so that both see the same conditions. */
static int run_ops(struct bench_run *b, struct bench_test *t, enum kvcache kv, struct err *err)
{
    struct bench_ops *o = b->ops;
    struct engine limited = *b->engine;
    limited.pool = b->pool;
    bench_ops_open(o, b->engine->model, kv);
    o->tokens = t->gen;
    int rc = b->limits.level ? OK : op_limits_measure(&b->limits, &limited, err);
    o->limits = &b->limits;
    for (; !rc && o->samples < b->o->repeat; o->samples++)
        for (size_t i = 0; !rc && i < 2; i++) {
            run_rewind(b, t, t->depth);
            o->times.at = t->depth;
            batch_watch(b->batch, i ? &o->timing : NULL);
            uint64_t begin = os_now_ns();
            rc = run_once(b, t, t->gen, err);
            double ns = (double)(os_now_ns() - begin);
            if (i == 0)
                o->plain[o->samples] = ns;
            else
                bench_ops_timed(o, ns);
        }
    batch_watch(b->batch, NULL);
    return rc;
}

/* Run all tests with one number of threads. */
static int run_tests(struct bench_run *b, const struct bench_plan *p, struct model_report *report,
                     struct err *err)
{
    static struct bench_test t;
    struct model_figures f;
    size_t n = p->prompt.n + p->gen.n * p->texts.n;
    for (size_t i = 0; i < p->depth.n; i++)
        for (size_t j = 0; j < n && !report->closed; j++) {
            double *one = &b->one[i * BENCH_TESTS + j];
            t = plan_test(p, i, j, pool_threads(b->pool));
            if (!t.prompt && !t.gen)
                continue;
            int rc = run_test(b, &t, err);
            if (!rc && b->ops)
                rc = run_ops(b, &t, p->kv, err);
            if (rc)
                return rc;
            doubt_look(&b->others); /* the operations are of this row, too */
            t.others = b->others.took > t.others ? b->others.took : t.others;
            t.one = *one;
            model_figures(&f, &t, op_pass_bytes(b->engine->model));
            report->tuning = batch_tuning(b->batch);
            rc = model_report_row(report, &t, &f, b->ops, err);
            if (rc)
                return rc;
            *one = t.threads == 1 ? f.ts : *one;
        }
    return OK;
}

/* Run the tests with each number of threads; each gets a pool, a batch and sessions of its own. */
static int bench_model_run_all(struct bench_run *b, const struct bench_plan *p,
                               struct model_report *report, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; !rc && !report->closed && i < p->threads.n; i++) {
        rc = pool_open(&b->pool, p->threads.at[i], err);
        if (!rc)
            rc = batch_open(&b->batch, b->engine->model, b->pool, err);
        for (size_t k = 0; !rc && k < bench_list_most(&p->texts); k++)
            rc = session_open(&b->s[k], b->batch, p->context, p->kv, err);
        if (!rc)
            rc = run_tests(b, p, report, err);
        for (size_t k = 0; k < BENCH_TEXTS; k++)
            session_close(b->s[k]);
        batch_close(b->batch);
        pool_close(b->pool);
        memset(b->s, 0, sizeof(b->s));
        b->batch = NULL;
        b->pool = NULL;
        b->limits.level = NULL; /* other threads have others */
    }
    model_report_end(report);
    read_probe_close(b->probe);
    return rc;
}

int bench_model(const struct bench_options *o, struct err *err)
{
    struct bench_plan p = { .context = 0 };
    struct engine e = { .model = NULL };
    struct err line;
    int rc = plan_make(&p, o, err);
    if (rc)
        return rc;
    shared_options.engine.threads = bench_list_most(&p.threads);
    rc = bench_model_open(&e, o, err);
    if (!rc && (rc = model_check_context(&e.model->config, p.context, &line)) != OK)
        err_set(err, rc, "-d with -p or -n: %s", line.msg);
    if (!rc) {
        const char *model = o->shape                      ? o->shape
                            : shared_options.engine.model ? shared_options.engine.model
                                                          : "demo";
        static struct bench_run b;
        static struct bench_ops ops;
        b = (struct bench_run){ .o = o, .engine = &e, .ops = o->by_op ? &ops : NULL };
        struct model_report report = { .row.format = o->format,
                                       .model = model,
                                       .kv = kvcache_name(p.kv),
                                       .engine = &e,
                                       .texts = bench_list_most(&p.texts) > 1,
                                       .threads = p.threads.n > 1 };
        rc = bench_model_run_all(&b, &p, &report, err);
    }
    if (e.model || e.pool)
        engine_close(&e);
    return rc;
}
