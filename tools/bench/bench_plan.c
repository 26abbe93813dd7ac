#include "tools/bench/bench_plan.h"

#include <string.h>

#include "kernels/sys/base.h"
#include "tools/cli/setup.h"

enum { MOST_TOKENS = 1 << 20, GEN = 128 };

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

static size_t plan_least(const struct bench_list *l)
{
    size_t least = l->at[0];
    for (size_t i = 1; i < l->n; i++)
        least = l->at[i] < least ? l->at[i] : least;
    return least;
}

/* Parse the list of draft kinds, and check that a text can repeat as much as is written. */
static int plan_drafts(struct bench_plan *p, const char *text, struct err *err)
{
    static const char *const names[] = { "off", "lookup" };
    for (const char *at = text; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        size_t n = strcspn(at, ","), i = 0;
        while (i < 2 && (strlen(names[i]) != n || strncmp(at, names[i], n) != 0))
            i++;
        if (i == 2 || p->ndrafts == BENCH_DRAFTS)
            return err_set(err, ERR_ARG, "--draft: expected off, lookup or off,lookup, found %s",
                           text);
        p->draft[p->ndrafts++] = names[i];
    }
    size_t half = plan_least(&p->depth) / 2;
    if (p->ndrafts && half < 2)
        return err_set(err, ERR_ARG, "--draft: expected -d of 4 or more, found %zu",
                       plan_least(&p->depth));
    for (size_t i = 0; p->ndrafts && i < p->gen.n; i++)
        if (p->gen.at[i] == 1 || p->gen.at[i] > half)
            return err_set(err, ERR_ARG, "--draft: expected -n of 2 to %zu, half of -d, found %zu",
                           half, p->gen.at[i]);
    if (p->ndrafts && bench_list_most(&p->texts) > 1)
        return err_set(err, ERR_ARG, "--draft writes one text: leave --texts out");
    return OK;
}

int bench_plan_make(struct bench_plan *p, const struct bench_model_options *m, struct err *err)
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
    size_t half = plan_least(&p->depth) / 2;
    if (!m->gen)
        p->gen = (struct bench_list){ .at = { half < GEN ? half : GEN }, .n = 1 };
    size_t prompt = bench_list_most(&p->prompt), gen = bench_list_most(&p->gen);
    p->threads = m->threads.n ? m->threads : (struct bench_list){ .n = 1 };
    gen = gen && gen < 2 * BENCH_PAIRS ? 2 * BENCH_PAIRS : gen;
    p->context = bench_list_most(&p->depth) + (prompt > gen ? prompt : gen);
    rc = plan_drafts(p, m->drafts, err);
    if (rc)
        return rc;
    if (!prompt && !gen)
        return err_set(err, ERR_ARG, "-p, -n: expected one of them above 0");
    return setup_kv(&p->kv, KVCACHE_F16, err);
}

size_t bench_plan_each(const struct bench_plan *p)
{
    return p->ndrafts ? 2 * p->ndrafts : p->texts.n;
}

struct bench_test bench_plan_test(const struct bench_plan *p, size_t depth, size_t j,
                                  size_t threads)
{
    struct bench_test t = { .depth = p->depth.at[depth], .threads = threads, .texts = 1 };
    if (j < p->prompt.n) {
        t.prompt = p->prompt.at[j];
    } else {
        size_t i = (j - p->prompt.n) % bench_plan_each(p);
        t.gen = p->gen.at[(j - p->prompt.n) / bench_plan_each(p)];
        if (p->ndrafts) {
            t.draft = p->draft[i % p->ndrafts];
            t.repeats = i < p->ndrafts;
        } else {
            t.texts = p->texts.at[i];
        }
    }
    return t;
}
