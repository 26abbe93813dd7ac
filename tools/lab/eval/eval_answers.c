/* eval_answers.c - compares policies on the items of a task, end to end: small model, router,
 * cloud. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/cloud.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/lab/eval/eval.h"
#include "tools/lab/eval/eval_calibrate.h"
#include "tools/lab/eval/eval_journal.h"

/* With fewer than FEW questions to find a threshold on, the user is told. */
enum { FEW = 20 };

struct answers_run {
    const struct eval_options *o;
    struct eval_plan plan;
    struct eval_list list;
    struct asking asking;
    struct eval_journal *journal;                            /* or NULL */
    struct progress *progress;                               /* or NULL */
    struct eval_result results[EVAL_POLICIES * EVAL_POINTS]; /* [next]; the last one is current */
    size_t next, all;                                        /* results of the whole run */
    size_t done, before; /* answers of the current one; of these, read from the journal */
    uint64_t since;      /* when the latest one began; 0: none yet */
    double share;        /* which the first policy with a threshold has routed; NaN: none yet */
};

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
    rc = settings ? eval_journal_open(&m->journal, m->o->jsonl, settings, err)
                  : err_set(err, ERR_NOMEM, "eval: out of memory");
    json_decref(settings);
    return rc;
}

/* Return at how many thresholds a policy runs. */
static size_t answers_points(const struct answers_run *m, const struct eval_entry *e)
{
    return m->plan.points && eval_entry_scores(e) ? m->plan.points : 1;
}

/* Prepare the texts for all items, and the journal. */
static int answers_prepare(struct answers_run *m, struct err *err)
{
    const struct eval_items *a = &m->plan.asked, *c = &m->plan.calibration;
    m->progress = m->o->quiet ? NULL : progress_begin("reading", "the questions");
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
        m->all += answers_points(m, &m->list.at[i]);
    return rc;
}

/* Say how far the current result is; policies differ in speed, so the time left is its own. */
static void answers_show(const struct answers_run *m, const struct eval_result *r)
{
    struct err line;
    char left[48];
    size_t n = m->plan.asked.n;
    progress_left(left, m->since, m->done - m->before, n - m->before);
    err_set(&line, OK, "%zu of %zu, %s: %zu of %zu, right %.1f %%, routed %.2f %%%s", m->next,
            m->all, r->entry->label, m->done, n, 100 * eval_result_accuracy(r),
            100 * eval_result_share(r), left);
    progress_say(m->progress, line.msg);
}

/* Take the answer to an item, for which as many as there is room for are sent, from *next on; or
 * read it from the journal. Add it to *r. */
static int answers_item(struct answers_run *m, struct eval_result *r, size_t item, size_t *next,
                        struct err *err)
{
    const struct eval_items *items = &m->plan.asked;
    const struct asking_how how = { r->entry, r->threshold, r->tie };
    struct asked one;
    int rc = OK;
    for (; rc == OK && *next < items->n && asking_has_room(&m->asking); ++*next)
        if (!eval_journal_has(m->journal, r, items->at[*next]))
            rc = asking_send(&m->asking, items->task, items->at[*next], &how, err);
    bool found = eval_journal_read(m->journal, r, item, &one);
    if (rc == OK && !found)
        rc = asking_take(&one, &m->asking, err);
    if (rc == OK && !found && m->journal)
        rc = eval_journal_write(m->journal, r, item, &one, err);
    m->before += found;
    return rc == OK ? eval_result_add(r, &one, err) : rc;
}

/* Ask all items under the policy of *r at its threshold. The cloud's memo is emptied first, so that
 * calls and bytes are those of this policy alone; without a journal the models forget what they
 * have read, too, so that times are. */
static int answers_policy(struct answers_run *m, struct eval_result *r, struct err *err)
{
    const struct eval_items *items = &m->plan.asked;
    size_t next = 0;
    int rc = OK;
    m->since = os_now_ns();
    m->before = 0;
    asking_begin(&m->asking, !m->journal);
    for (m->done = 0; rc == OK && m->done < items->n; m->done += rc == OK) {
        answers_show(m, r);
        rc = answers_item(m, r, items->at[m->done], &next, err);
    }
    answers_show(m, r);
    progress_keep(m->progress);
    if (rc == OK && !r->questions)
        rc = err_set(err, ERR_ARG,
                     "all %zu items are longer than the context of the model, %zu tokens", items->n,
                     m->asking.context);
    return rc;
}

/* Find the threshold at which the policy routes this share of the tokens, on the items for
 * calibration; for policy random that is the share itself. */
static int answers_calibrate(struct answers_run *m, struct eval_result *r, double share,
                             struct err *err)
{
    struct eval_calibration c = { .asking = &m->asking,
                                  .items = &m->plan.calibration,
                                  .progress = m->progress,
                                  .number = m->next,
                                  .all = m->all };
    struct calibrate_result found = { .threshold = (float)share };
    struct calibration *calibration = NULL;
    struct calibrate_source source = eval_calibration_source(&c, r->entry);
    bool finds = r->entry->policy != POLICY_RANDOM;
    source.tie = &c.how.tie;
    int rc = finds ? calibrate_open(&calibration, &source, err) : OK;
    if (rc == OK && finds)
        rc = calibrate_find(&found, calibration, share, err);
    progress_keep(m->progress);
    calibrate_close(calibration);
    r->threshold = found.threshold;
    r->tie = found.tie;
    return rc;
}

/* Set the threshold of *r to that of its point or, if there is none, find it; one that is in the
 * journal is read from it. */
static int answers_threshold(struct answers_run *m, struct eval_result *r, struct err *err)
{
    int rc = OK;
    if (eval_journal_read_threshold(m->journal, r))
        return OK;
    r->threshold = eval_plan_threshold(&m->plan, r->entry, r->point);
    if (isnan(r->threshold))
        rc = answers_calibrate(m, r, isnan(r->target) ? m->share : r->target, err);
    if (rc == OK && m->journal)
        rc = eval_journal_write_threshold(m->journal, r, err);
    return rc;
}

/* Run a policy at its point i. */
static int answers_point(struct answers_run *m, const struct eval_entry *e, size_t i,
                         struct err *err)
{
    struct eval_result *r = &m->results[m->next++];
    bool scores = eval_entry_scores(e);
    int rc = OK;
    eval_result_begin(r, e, scores ? m->plan.target : (double)NAN);
    r->point = i;
    m->done = 0;
    if (e->policy == POLICY_ALWAYS) { /* else this would measure the small model */
        rc = routing_port(&m->asking.routing)
                 ? answers_cloud_ready(m, err)
                 : err_set(err, ERR_NET, "policy always: there is no cloud");
    }
    if (rc == OK && scores)
        rc = answers_threshold(m, r, err);
    if (rc == OK)
        rc = answers_policy(m, r, err);
    if (isnan(m->share) && scores)
        m->share = eval_result_share(r);
    return rc;
}

/* Run all policies in order, and print the results. */
static int answers_all(struct answers_run *m, struct err *err)
{
    int rc = OK;
    m->share = (double)NAN;
    for (size_t i = 0; rc == OK && i < m->list.n; i++)
        for (size_t k = 0; rc == OK && k < answers_points(m, &m->list.at[i]); k++)
            rc = answers_point(m, &m->list.at[i], k, err);
    progress_end(m->progress);
    m->progress = NULL;
    if (rc != OK)
        return rc;
    eval_results_compare(m->results, m->next, m->o->against);
    return eval_print(m->o, m->results, m->next, err);
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
        rc = eval_plan_open(&m->plan, o, err);
    return rc;
}

/* Say how far a run has come that a fault of the cloud has ended. */
static int answers_stopped(const struct answers_run *m, int rc, struct err *err)
{
    const struct err why = *err;
    return err_set(err, rc,
                   "%.300s; a token was not given, after %zu of %zu answers of result %zu of %zu%s",
                   why.msg, m->done, m->plan.asked.n, m->next, m->all,
                   m->journal ? "; the same command continues"
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
        rc = asking_open(&m->asking, &m->list, o->max_tokens, o->task.seed, err);
    if (rc == OK)
        rc = answers_prepare(m, err);
    if (rc == OK)
        rc = answers_all(m, err);
    if ((rc == ERR_NET || rc == ERR_REMOTE || rc == ERR_TEXT) && m->since)
        rc = answers_stopped(m, rc, err);
    progress_end(m->progress);
    eval_journal_close(m->journal);
    for (size_t i = 0; i < m->next; i++)
        eval_result_close(&m->results[i]);
    asking_close(&m->asking); /* before the routers that its texts read */
    eval_list_close(&m->list);
    eval_plan_close(&m->plan);
    free(m);
    return rc;
}
