/* eval_answers.c - compares policies on the items of a task, end to end: small model, router,
 * cloud. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/cloud.h"
#include "router/router.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/lab/eval/eval.h"
#include "tools/lab/eval/eval_journal.h"
#include "tools/lab/eval/eval_list.h"
#include "tools/lab/eval/eval_plan.h"
#include "tools/lab/eval/eval_print.h"
#include "tools/lab/eval/eval_run.h"
#include "tools/lab/eval/paper_table.h"
#include "tools/lab/eval/routed.h"

/* With fewer than FEW questions to find a threshold on, the user is told. */
enum { MILLI_TOKENS = 96, TOKENS = 512, FEW = 20 };

/* One run. The first two results are the baselines: each model alone. */
struct answers_run {
    const struct eval_options *o;
    struct eval_clock clock;
    struct eval_plan plan;
    struct eval_list list;
    struct asking asking;
    struct eval_run run;
    struct items_file items;
    json_t *settings;              /* what the answers depend on */
    struct eval_about about;       /* borrows from them */
    struct eval_entry edge, cloud; /* for baselines that are not in the list */
    struct eval_result *results;   /* [n] */
    bool *shown;                   /* [n] */
    size_t n, next;
    bool has_edge, has_cloud; /* results[0], results[1] are there */
};

/* Open models and routing for the policies of the list. */
static int answers_open_parts(struct answers_run *m, struct err *err)
{
    struct routing_options options;
    const char *needs = m->list.n ? eval_list_demanding(&m->list) : NULL;
    const struct asking_options ask = { .policy = needs,
                                        .required = m->o->required,
                                        .max_tokens = m->o->max_tokens ? m->o->max_tokens
                                                      : !strcmp(m->o->task.name, "milli")
                                                          ? MILLI_TOKENS
                                                          : TOKENS,
                                        .seed = m->o->task.seed,
                                        .step_ns = m->clock.step_ns,
                                        .clock = m->clock.is_virtual ? &m->clock.clock : NULL };
    int rc = setup_options(&options, err);
    if (rc == OK)
        rc = asking_open(&m->asking, &ask, err);
    if (rc != OK)
        return rc;
    if (!m->list.n) {
        struct eval_entry *e = &m->list.at[m->list.n++];
        e->policy = m->asking.routing.how.policy;
        snprintf(e->label, sizeof(e->label), "%s", policy_name(e->policy));
    }
    rc = eval_list_open(&m->list, &m->asking.engine, &options, m->asking.routing.how.policy,
                        m->o->repeats, err);
    if (rc == OK)
        eval_list_note(&m->list, m->asking.routing.router, &m->asking.engine, &options);
    return rc;
}

/* True when the models can be asked alone for comparison at no cost: the cloud is in this process,
 * nobody waits for a simulated network, and no limit would be used up. */
static bool answers_free(const struct answers_run *m)
{
    const struct network_options *n = &network_options; /* all 0 if the clock is virtual */
    bool here = m->asking.server || m->asking.routing.local;
    return here && !m->asking.routing.gate.quota && !m->clock.step_ns && !n->latency &&
           !n->bandwidth && !(n->loss > 0);
}

/* Wait until it is known what answers, if a server does. */
static int answers_cloud_ready(const struct answers_run *m, struct err *err)
{
    struct cloud *c = m->asking.routing.cloud;
    return c ? cloud_ready(c, err) : OK;
}

/* Find out what the run is made with, and open the journal of --jsonl. */
static int answers_journal(struct answers_run *m, struct err *err)
{
    const struct asking *a = &m->asking;
    if (m->clock.is_virtual) /* sizes of requests depend on what answers */
        answers_cloud_ready(m, NULL);
    int rc = m->o->jsonl ? answers_cloud_ready(m, err) : OK;
    if (rc != OK) {
        const struct err why = *err;
        return err_set(err, rc, "%s: the journal must name what answers: %.300s", m->o->jsonl,
                       why.msg);
    }
    struct eval_origin origin;
    eval_origin_begin(&origin, a, m->plan.asked.task);
    m->plan.baselines = answers_free(m) && !m->o->items; /* they are items of another run */
    m->settings = eval_plan_settings(&m->plan, m->o, &m->list, a, &m->clock, &origin);
    if (!m->settings)
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    if (m->o->jsonl)
        rc = eval_journal_open(&m->run.journal, m->o->jsonl, m->settings,
                               a->routing.gate.quota != NULL, err);
    if (m->run.journal) /* other processes may have answered, too */
        json_object_set(m->settings, "on",
                        json_object_get(eval_journal_settings(m->run.journal), "on"));
    return rc;
}

/* Return at how many shares or thresholds each policy runs. */
static size_t answers_points(const struct answers_run *m)
{
    return m->plan.ntargets ? m->plan.ntargets : m->plan.paper ? PAPER_ROWS : 1;
}

/* Prepare the session for all items, and room for all results. */
static int answers_prepare(struct answers_run *m, struct err *err)
{
    const struct eval_items *a = &m->plan.asked, *c = &m->plan.calibration;
    m->run.progress = m->o->quiet ? NULL : progress_begin("reading", "the questions");
    int rc = asking_prepare(&m->asking, a->task, a->at, a->n, err);
    if (rc == OK && c->n)
        rc = asking_prepare(&m->asking, c->task, c->at, c->n, err);
    if (rc == OK && c->n && c->n < FEW)
        fprintf(stderr, "mizzle eval: thresholds are found on %zu questions only\n", c->n);
    if (rc == OK && !m->o->quiet)
        fprintf(stderr, "mizzle eval: %s, keys and values in %s\n", m->asking.engine.name,
                kvcache_name(m->asking.kv));
    return rc == OK ? answers_journal(m, err) : rc;
}

/* Return a text of the settings, "" if it is not there. */
static const char *answers_text(const json_t *from, const char *name)
{
    const char *text = json_string_value(json_object_get(from, name));
    return text ? text : "";
}

/* Make room for all results, and describe them. */
static int answers_begin(struct answers_run *m, struct err *err)
{
    m->n = 2;
    for (size_t i = 0; i < m->list.n; i++) {
        size_t points = eval_entry_scores(&m->list.at[i]) ? answers_points(m) : 1;
        m->n += points;
        m->run.all += points * eval_entry_trainings(&m->list.at[i]);
    }
    m->results = calloc(m->n, sizeof(*m->results));
    m->shown = calloc(m->n, sizeof(*m->shown));
    if (!m->results || !m->shown)
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    m->next = 2;
    m->run.plan = &m->plan;
    m->run.asking = &m->asking;
    m->run.points = answers_points(m);
    const json_t *on = json_object_get(m->settings, "on");
    const json_t *clock = json_object_get(m->settings, "clock");
    m->about = (struct eval_about){ .task = answers_text(m->settings, "task"),
                                    .clock = answers_text(clock, "kind"),
                                    .seed = answers_text(m->settings, "seed"),
                                    .parallel = (size_t)json_integer_value(
                                        json_object_get(on, "parallel")) };
    eval_origin_read(&m->about.origin, m->settings, on);
    if (!m->o->items)
        return OK;
    m->run.items = &m->items;
    return items_open(&m->items, m->o->items, m->settings, &m->about.origin, &m->list, err);
}

/* Ask all items with one model alone: results[at]. */
static int answers_baseline(struct answers_run *m, size_t at, enum policy policy, bool *has,
                            struct err *err)
{
    struct eval_entry *own = at ? &m->cloud : &m->edge;
    const struct eval_entry *listed = eval_list_find(&m->list, policy);
    *own = (struct eval_entry){ .policy = policy };
    snprintf(own->label, sizeof(own->label), "%s", policy_name(policy));
    eval_result_begin(&m->results[at], listed ? listed : own, (double)NAN);
    if (policy == POLICY_ALWAYS &&
        m->plan.asked.task) { /* else this would measure the small model */
        int rc = routing_port(&m->asking.routing)
                     ? answers_cloud_ready(m, err)
                     : err_set(err, ERR_NET, "policy always: there is no cloud");
        if (rc != OK)
            return rc;
    }
    *has = true;
    m->run.all += !listed;
    return eval_run_policy(&m->run, &m->results[at], err);
}

/* Run the models alone where the list wants it, or where it is free and something is compared. */
static int answers_baselines(struct answers_run *m, struct err *err)
{
    bool both = m->plan.baselines;
    int rc = OK;
    if (both || eval_list_find(&m->list, POLICY_NEVER))
        rc = answers_baseline(m, 0, POLICY_NEVER, &m->has_edge, err);
    if (rc == OK && (both || eval_list_find(&m->list, POLICY_ALWAYS)))
        rc = answers_baseline(m, 1, POLICY_ALWAYS, &m->has_cloud, err);
    if (m->has_edge)
        eval_result_compare(&m->results[0], &m->results[0], m->has_cloud ? &m->results[1] : NULL);
    if (m->has_edge && m->has_cloud)
        eval_result_compare(&m->results[1], &m->results[0], &m->results[1]);
    return rc;
}

/* Return the threshold that a policy has at its point i: --threshold, the paper's or its router's.
 * NaN: it must be found. */
static float answers_given(const struct answers_run *m, const struct eval_entry *e, size_t i)
{
    const struct router *router = e->router ? e->router : m->asking.routing.router;
    float given = m->plan.paper ? (float)paper_thresholds[i] : (float)shared_options.threshold;
    if (m->plan.ntargets)
        return NAN;
    if (!isnan(given) || !policy_reads_router(e->policy))
        return given;
    return router_threshold(router, &given) ? given : 0.5f;
}

/* Set the threshold of a policy at its point i, which is given, or found by the share it aims at.
 * Policies without one aim at --share, or at the share that the first policy with a threshold
 * routed. */
static int answers_threshold(struct answers_run *m, struct eval_result *r, size_t i, double first,
                             struct err *err)
{
    double share = isnan(m->o->share) ? first : (double)m->o->share;
    float given = m->plan.asked.task ? answers_given(m, r->entry, i) : NAN;
    return eval_run_threshold(&m->run, r, given, isnan(r->target) ? share : r->target, err);
}

/* Take the next result, for an entry at its point i. */
static void answers_next(struct answers_run *m, const struct eval_entry *e, size_t i)
{
    struct eval_result *r = &m->results[m->next];
    m->shown[m->next++] = true;
    bool aims = m->plan.ntargets && eval_entry_scores(e);
    eval_result_begin(r, e, aims ? m->plan.targets[i] : (double)NAN);
    r->point = i;
}

/* Show a result as soon as it is there, unless it is compared with another at the end. */
static int answers_print(const struct answers_run *m, const struct eval_result *r, struct err *err)
{
    return m->o->json && !m->o->against ? eval_print_json(&m->about, r, err) : OK;
}

/* Complete the result of a policy at its point i, which is result number `at`. */
static int answers_end(struct answers_run *m, size_t at, size_t i, double *first, struct err *err)
{
    struct eval_result *r = &m->results[at];
    int rc = OK;
    if (isnan(*first) && eval_entry_scores(r->entry))
        *first = eval_result_share(r);
    if (r->trainings > 1)
        r->threshold = NAN; /* each has its own */
    eval_result_compare(r, m->has_edge ? &m->results[0] : NULL,
                        m->has_cloud ? &m->results[1] : NULL);
    if (i + 1 == m->plan.ntargets && m->plan.sweeps && m->plan.targets[0] <= 0 &&
        m->plan.targets[i] >= 0.07)
        rc = eval_result_average(&m->results[at - i], i + 1, &m->results[0], &m->results[1], err);
    return rc == OK ? answers_print(m, r, err) : rc;
}

/* Run a policy at all shares that are aimed at, or once if it has no threshold, with each of its
 * routers. */
static int answers_entry(struct answers_run *m, struct eval_entry *e, double *first,
                         struct err *err)
{
    bool scores = eval_entry_scores(e);
    size_t n = scores ? answers_points(m) : 1, from = m->next, trainings = eval_entry_trainings(e);
    int rc = OK;
    for (size_t i = 0; i < n; i++)
        answers_next(m, e, i);
    for (size_t k = 0; rc == OK && k < trainings * n; k++) {
        size_t i = k % n;
        eval_entry_train(e, k / n);
        if (scores)
            rc = answers_threshold(m, &m->results[from + i], i, *first, err);
        if (rc == OK)
            rc = eval_run_policy(&m->run, &m->results[from + i], err);
        if (rc == OK && k / n + 1 == trainings)
            rc = answers_end(m, from + i, i, first, err);
    }
    return rc;
}

/* Run all policies in order. */
static int answers_all(struct answers_run *m, struct err *err)
{
    double first = (double)NAN; /* share routed by the first policy with a threshold */
    int rc = answers_baselines(m, err);
    for (size_t i = 0; rc == OK && i < m->list.n; i++) {
        struct eval_entry *e = &m->list.at[i];
        if (!eval_entry_alone(e)) {
            rc = answers_entry(m, e, &first, err);
            continue;
        }
        size_t at = m->next++; /* a baseline, which is there already */
        m->results[at] = m->results[e->policy == POLICY_ALWAYS];
        m->shown[at] = true;
        rc = answers_print(m, &m->results[at], err);
    }
    eval_run_end(&m->run);
    progress_end(m->run.progress);
    m->run.progress = NULL;
    if (rc == OK && m->o->against)
        eval_results_compare(m->results, m->next, m->o->against, answers_points(m));
    for (size_t i = 2; rc == OK && m->o->against && m->o->json && i < m->next; i++)
        rc = eval_print_json(&m->about, &m->results[i], err);
    if (rc == OK && !m->o->json && m->o->as_paper)
        eval_print_paper(stdout, m->results, m->shown, m->n);
    else if (rc == OK && !m->o->json)
        eval_print_table(stdout, &m->about, m->results, m->shown, m->n);
    if (rc == OK && m->o->csv)
        rc = eval_print_csv(m->o->csv, &m->about, m->results, m->shown, m->n, err);
    return rc;
}

/* Check the options, before anything is loaded. */
static int answers_check(struct answers_run *m, struct err *err)
{
    const struct eval_options *o = m->o;
    int rc = setup_check_policy(err);
    if (rc == OK && o->policies)
        rc = eval_list_parse(&m->list, o->policies, err);
    if (rc == OK && o->against && !eval_list_has(&m->list, o->against))
        rc = err_set(err, ERR_ARG, "--against: expected one of the policies of --policy, found %s",
                     o->against);
    if (rc == OK)
        rc = eval_clock_read(&m->clock, err);
    if (rc == OK && m->clock.is_virtual && eval_list_has(&m->list, "slot"))
        rc = err_set(err, ERR_ARG,
                     "--clock virtual: expected without policy slot, which waits for "
                     "no small model");
    if (rc == OK)
        rc = eval_plan_shares(&m->plan, o, (float)shared_options.threshold, err);
    if (rc == OK)
        rc = eval_plan_list(&m->plan, &m->list, o, (float)shared_options.threshold, err);
    if (rc == OK)
        rc = eval_plan_check(&m->plan, &m->list, o, err);
    if (rc == OK)
        rc = eval_list_repeats(&m->list, o->repeats, err);
    if (rc == OK && o->csv)
        rc = output_file_check(o->csv, err);
    if (rc == OK)
        rc = eval_plan_open(
            &m->plan, o,
            m->list.n ? eval_plan_calibrates(&m->plan, &m->list, (float)shared_options.threshold)
                      : m->plan.ntargets > 0,
            err);
    return rc;
}

/* Free all results; those of the list may share the memory of the baselines. */
static void answers_close_results(struct answers_run *m)
{
    for (size_t i = 0; m->results && i < m->n; i++)
        if (i < 2 || (m->results[i].entry && !eval_entry_alone(m->results[i].entry)))
            eval_result_close(&m->results[i]);
    free(m->results);
    free(m->shown);
}

/* Say how far a run has come that a fault of the cloud has ended. */
static int answers_stopped(const struct answers_run *m, int rc, struct err *err)
{
    const struct err why = *err;
    return err_set(err, rc,
                   "%.300s; a token was not given, after %zu of %zu answers of result %zu of %zu%s",
                   why.msg, m->run.done, m->plan.asked.n, m->run.number, m->run.all,
                   rc == ERR_TEXT   ? "; --cloud auto has the small model's in its place"
                   : m->run.journal ? "; the same command continues"
                                    : "; with --jsonl FILE, the same command would continue");
}

/* Say how many tokens the cloud has failed to give, with --cloud auto: the rows are not those of
 * the policies. */
static int answers_missing(const struct answers_run *m, struct err *err)
{
    size_t missing = 0;
    for (size_t i = 0; i < m->next; i++)
        if (i < 2 || !eval_entry_alone(m->results[i].entry))
            missing += m->results[i].missing;
    return missing ? err_set(err, ERR_NET,
                             "%zu tokens were not given by the cloud, and are the small model's%s",
                             missing,
                             m->run.journal ? "; the same command asks these answers again" : "")
                   : OK;
}

/* Open models and journal, and choose what is asked. */
static int answers_ask(struct answers_run *m, struct err *err)
{
    int rc = answers_check(m, err);
    if (rc == OK)
        rc = answers_open_parts(m, err);
    return rc == OK ? answers_prepare(m, err) : rc;
}

/* Open the parts of a run, whose answers are all there. */
static int answers_merge(struct answers_run *m, struct err *err)
{
    const struct eval_options *o = m->o;
    int rc = eval_journal_merge(&m->run.journal, o->parts, o->nparts, err);
    if (rc != OK)
        return rc;
    m->settings = json_incref((json_t *)(size_t)eval_journal_settings(m->run.journal));
    rc = eval_plan_read(&m->plan, &m->list, &m->asking, m->run.journal, err);
    if (rc == OK && o->against && !eval_list_has(&m->list, o->against))
        rc = err_set(err, ERR_ARG, "--against: expected one of the policies, found %s", o->against);
    return rc;
}

int eval_answers(const struct eval_options *o, struct err *err)
{
    struct answers_run *m = calloc(1, sizeof(*m));
    if (!m)
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    m->o = o;
    int rc = o->nparts ? answers_merge(m, err) : answers_ask(m, err);
    if (rc == OK && o->items && m->plan.paper)
        rc = err_set(err, ERR_ARG,
                     "--items: expected without --as-paper, as shares tell its rows apart");
    if (rc == OK)
        rc = answers_begin(m, err);
    if (rc == OK)
        rc = answers_all(m, err);
    if ((rc == ERR_NET || rc == ERR_REMOTE || rc == ERR_TEXT) && m->run.number)
        rc = answers_stopped(m, rc, err);
    if (rc == OK)
        rc = answers_missing(m, err);
    int kept = output_file_close(&m->items.out, rc == OK, rc == OK ? err : NULL);
    rc = rc == OK ? kept : rc;
    eval_run_end(&m->run);
    progress_end(m->run.progress);
    eval_journal_close(m->run.journal);
    answers_close_results(m);
    eval_list_close(&m->list);
    eval_plan_close(&m->plan);
    json_decref(m->settings);
    asking_close(&m->asking);
    free(m);
    return rc;
}
