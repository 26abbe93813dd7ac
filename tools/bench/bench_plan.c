#include "tools/bench/bench_plan.h"

#include "kernels/sys/base.h"
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

size_t bench_list_most(const struct bench_list *l)
{
    size_t most = 0;
    for (size_t i = 0; i < l->n; i++)
        most = l->at[i] > most ? l->at[i] : most;
    return most;
}

int bench_plan_make(struct bench_plan *p, const struct bench_model_options *m, struct err *err)
{
    int rc = bench_list(&p->prompt, "-p", m->prompt, err);
    if (!rc)
        rc = bench_list(&p->depth, "-d", m->depth, err);
    if (!rc)
        rc = bench_list(&p->gen, "-n", m->gen, err);
    if (!rc)
        rc = bench_list(&p->texts, "--texts", m->texts, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < p->texts.n; i++)
        if (p->texts.at[i] < 1 || p->texts.at[i] > BENCH_TEXTS)
            return err_set(err, ERR_ARG, "--texts: expected 1 to %d, found %zu", BENCH_TEXTS,
                           p->texts.at[i]);
    size_t prompt = bench_list_most(&p->prompt), gen = bench_list_most(&p->gen);
    p->threads = m->threads.n ? m->threads : (struct bench_list){ .n = 1 };
    gen = gen && gen < 2 * BENCH_PAIRS ? 2 * BENCH_PAIRS : gen;
    p->context = bench_list_most(&p->depth) + (prompt > gen ? prompt : gen);
    if (!prompt && !gen)
        return err_set(err, ERR_ARG, "-p, -n: expected one of them above 0");
    return setup_kv(&p->kv, KVCACHE_F16, err);
}

struct bench_test bench_plan_test(const struct bench_plan *p, size_t depth, size_t j,
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
