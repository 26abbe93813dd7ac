/* eval_answers.c - compares policies on the items of a task, end to end: small model, router,
 * cloud. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/cloud.h"
#include "router/router.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/lab/eval/eval.h"
#include "tools/lab/eval/eval_run.h"
#include "tools/lab/eval/routed.h"

/* With fewer than FEW questions to find a threshold on, the user is told. */
enum { MILLI_TOKENS = 96, TOKENS = 512, FEW = 20, PAPER_ROWS = 8 };

/* Of the paper's Table 1; its demo compares scores with half of it. */
static const float paper_thresholds[PAPER_ROWS] = {
    0.4f, 0.5f, 0.6f, 0.7f, 0.72f, 0.76f, 0.8f, 0.9f
};

struct answers_run {
    const struct eval_options *o;
    struct eval_plan plan;
    struct eval_list list;
    struct asking asking;
    struct eval_run run;
    struct eval_result results[EVAL_POLICIES * PAPER_ROWS]; /* [next] */
    size_t next;
};

/* Open models and routing for the policies of the list. */
static int answers_open_parts(struct answers_run *m, struct err *err)
{
    struct routing_options options;
    bool milli = !strcmp(m->o->task.name, "milli");
    const struct asking_options ask = {
        .policy = eval_list_demanding(&m->list),
        .max_tokens = m->o->max_tokens ? m->o->max_tokens
                      : milli          ? MILLI_TOKENS
                                       : TOKENS,
        .seed = m->o->task.seed,
    };
    int rc = setup_options(&options, err);
    if (rc == OK)
        rc = asking_open(&m->asking, &ask, err);
    if (rc == OK)
        rc = eval_list_open(&m->list, &m->asking.engine, &options, &m->asking.routing, err);
    return rc;
}

/* Wait until it is known what answers, if a server does. */
static int answers_cloud_ready(const struct answers_run *m, struct err *err)
{
    struct cloud *c = m->asking.routing.cloud;
    return c ? cloud_ready(c, err) : OK;
}

/* Find out what the run is made with, and open the journal. */
static int answers_journal(struct answers_run *m, struct err *err)
{
    int rc = answers_cloud_ready(m, err);
    if (rc != OK) {
        const struct err why = *err;
        return err_set(err, rc, "%s: the journal must name what answers: %.300s", m->o->jsonl,
                       why.msg);
    }
    json_t *settings = eval_settings(&m->plan, m->o, &m->list, &m->asking);
    rc = settings ? eval_journal_open(&m->run.journal, m->o->jsonl, settings, err)
                  : err_set(err, ERR_NOMEM, "eval: out of memory");
    json_decref(settings);
    return rc;
}

/* Return at how many thresholds a policy runs. */
static size_t answers_points(const struct answers_run *m, const struct eval_entry *e)
{
    return m->plan.paper && eval_entry_scores(e) ? PAPER_ROWS : 1;
}

/* Prepare the texts for all items, and room for all results. */
static int answers_prepare(struct answers_run *m, struct err *err)
{
    const struct eval_items *a = &m->plan.asked, *c = &m->plan.calibration;
    m->run = (struct eval_run){
        .plan = &m->plan,
        .asking = &m->asking,
        .progress = m->o->quiet ? NULL : progress_begin("reading", "the questions"),
    };
    int rc = asking_prepare(&m->asking, a->task, a->at, a->n, err);
    if (rc == OK && c->n)
        rc = asking_prepare(&m->asking, c->task, c->at, c->n, err);
    if (rc == OK && c->n && c->n < FEW)
        fprintf(stderr, "mizzle eval: thresholds are found on %zu questions only\n", c->n);
    if (rc == OK && !m->o->quiet)
        fprintf(stderr, "mizzle eval: %s, keys and values in %s\n", m->asking.engine.name,
                kvcache_name(m->asking.kv));
    if (rc == OK && m->o->jsonl)
        rc = answers_journal(m, err);
    for (size_t i = 0; i < m->list.n; i++)
        m->run.all += answers_points(m, &m->list.at[i]);
    return rc;
}

/* Return the threshold that a policy has at its point i: --threshold, the paper's or its router's.
 * NaN: it must be found. */
static float answers_given(const struct answers_run *m, const struct eval_entry *e, size_t i)
{
    const struct router *router = e->router ? e->router : m->asking.routing.router;
    float given = m->plan.paper ? paper_thresholds[i] : (float)shared_options.threshold;
    if (!isnan(m->plan.target))
        return NAN;
    if (!isnan(given) || !policy_reads_router(e->policy))
        return given;
    return router_threshold(router, &given) ? given : 0.5f;
}

/* Run a policy at its point i. *first is the share that the first policy with a threshold has
 * routed, which others without one aim at. */
static int answers_point(struct answers_run *m, const struct eval_entry *e, size_t i, double *first,
                         struct err *err)
{
    struct eval_result *r = &m->results[m->next];
    bool scores = eval_entry_scores(e);
    int rc = OK;
    eval_result_begin(r, e, scores ? m->plan.target : (double)NAN);
    m->next++;
    r->point = i;
    if (e->policy == POLICY_ALWAYS) { /* else this would measure the small model */
        rc = routing_port(&m->asking.routing)
                 ? answers_cloud_ready(m, err)
                 : err_set(err, ERR_NET, "policy always: there is no cloud");
    }
    if (rc == OK && scores)
        rc = eval_run_threshold(&m->run, r, answers_given(m, e, i),
                                isnan(r->target) ? *first : r->target, err);
    if (rc == OK)
        rc = eval_run_policy(&m->run, r, err);
    if (isnan(*first) && scores)
        *first = eval_result_share(r);
    return rc;
}

/* Run all policies in order, and print the results. */
static int answers_all(struct answers_run *m, struct err *err)
{
    double first = (double)NAN;
    int rc = OK;
    for (size_t i = 0; rc == OK && i < m->list.n; i++)
        for (size_t k = 0; rc == OK && k < answers_points(m, &m->list.at[i]); k++)
            rc = answers_point(m, &m->list.at[i], k, &first, err);
    progress_end(m->run.progress);
    m->run.progress = NULL;
    if (rc != OK)
        return rc;
    eval_results_compare(m->results, m->next, m->o->against);
    for (size_t i = 0; rc == OK && m->o->json && i < m->next; i++)
        rc = eval_print_json(m->o, &m->results[i], err);
    if (!m->o->json)
        eval_print_table(stdout, m->o, m->results, m->next);
    return rc;
}

/* Check the options, before anything is loaded. */
static int answers_check(struct answers_run *m, struct err *err)
{
    const struct eval_options *o = m->o;
    const char *cloud = shared_options.cloud;
    float threshold = (float)shared_options.threshold;
    bool keeps = !strcmp(cloud, "auto");
    int rc = setup_check_policy(err);
    if (rc == OK && !keeps && strcmp(cloud, "required") != 0)
        rc = err_set(err, ERR_ARG, "--cloud: expected required or auto, found %s", cloud);
    if (rc == OK && keeps && o->jsonl)
        rc = err_set(err, ERR_ARG,
                     "--cloud auto: expected without --jsonl, since an answer that "
                     "lacks tokens is none of its policy");
    if (rc == OK)
        rc = eval_list_parse(&m->list, o->policies, err);
    bool has = !o->against;
    for (size_t i = 0; i < m->list.n; i++)
        has = has || !strcmp(m->list.at[i].label, o->against);
    if (rc == OK && !has)
        rc = err_set(err, ERR_ARG, "--against: expected one of the policies of --policy, found %s",
                     o->against);
    if (rc == OK)
        rc = eval_plan_check(&m->plan, &m->list, o, threshold, err);
    if (rc == OK)
        rc = eval_plan_open(&m->plan, o, eval_plan_calibrates(&m->plan, &m->list, threshold), err);
    return rc;
}

/* Say how far a run has come that a fault of the cloud has ended. */
static int answers_stopped(const struct answers_run *m, int rc, struct err *err)
{
    const struct err why = *err;
    return err_set(err, rc,
                   "%.300s; a token was not given, after %zu of %zu answers of result %zu of %zu%s",
                   why.msg, m->run.done, m->plan.asked.n, m->run.number, m->run.all,
                   m->run.journal ? "; the same command continues"
                                  : "; with --jsonl FILE, the same command would continue");
}

int eval_answers(const struct eval_options *o, struct err *err)
{
    struct answers_run *m = calloc(1, sizeof(*m));
    if (!m)
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    m->o = o;
    int rc = answers_check(m, err);
    if (rc == OK)
        rc = answers_open_parts(m, err);
    if (rc == OK)
        rc = answers_prepare(m, err);
    if (rc == OK)
        rc = answers_all(m, err);
    if ((rc == ERR_NET || rc == ERR_REMOTE || rc == ERR_TEXT) && m->run.number)
        rc = answers_stopped(m, rc, err);
    progress_end(m->run.progress);
    eval_journal_close(m->run.journal);
    for (size_t i = 0; i < m->next; i++)
        eval_result_close(&m->results[i]);
    eval_list_close(&m->list);
    eval_plan_close(&m->plan);
    asking_close(&m->asking);
    free(m);
    return rc;
}
