/* eval_loglik.c - the small model alone picks the likeliest choice, as lm-evaluation-harness does.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "model/model.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/eval/eval.h"
#include "tools/eval/eval_origin.h"
#include "tools/eval/eval_plan.h"
#include "tools/eval/eval_result.h"
#include "tools/eval/loglik.h"

struct choices_run {
    const struct eval_options *o;
    struct eval_plan plan;
    struct engine engine;
    struct session *session;
    enum kvcache kv;
    struct eval_result result; /* by likelihood; without tokens and times */
    size_t right_norm, tokens;
    double ms;
};

/* Return how many ids the longest item takes: its prompt and its longest choice. */
static int choices_longest(size_t *longest, struct choices_run *m, struct err *err)
{
    const struct eval_items *items = &m->plan.asked;
    *longest = 0;
    for (size_t i = 0; i < items->n; i++) {
        struct task_item item;
        uint32_t *ids = NULL;
        size_t n = 0;
        int rc = task_item(&item, items->task, items->at[i], err);
        if (rc == OK)
            rc =
                task_encode(&ids, &n, items->task, &item, m->engine.tokenizer, m->engine.chat, err);
        free(ids);
        if (rc != OK)
            return rc;
        size_t most = 0;
        for (size_t k = 0; k < item.nchoices; k++)
            most = strlen(item.choices[k]) > most ? strlen(item.choices[k]) : most;
        n += most + 1; /* no more ids than bytes */
        *longest = n > *longest ? n : *longest;
    }
    return OK;
}

/* Score all items. */
static int choices_score(struct choices_run *m, struct err *err)
{
    const struct eval_items *items = &m->plan.asked;
    static const struct eval_entry never = { .policy = POLICY_NEVER, .label = "never" };
    struct progress_count shown = { .what = "likelihoods", .since = os_now_ns() };
    int rc = OK;
    eval_result_begin(&m->result, &never, (double)NAN);
    for (size_t i = 0; rc == OK && i < items->n; i++) {
        struct task_item item;
        struct loglik one = { 0 };
        rc = task_item(&item, items->task, items->at[i], err);
        if (rc == OK)
            rc = loglik_item(&one, m->session, m->engine.tokenizer, items->task, &item,
                             &interrupted, err);
        const struct asked asked = { .left_out = one.left_out, .right = one.acc };
        if (rc == OK)
            rc = eval_result_add(&m->result, &asked, items->subject[i], err);
        m->right_norm += one.acc_norm;
        m->tokens += one.tokens;
        if (!m->o->quiet)
            progress_counted(&shown, i + 1, items->n);
    }
    m->ms = (double)(os_now_ns() - shown.since) / 1e6;
    progress_wipe(&shown);
    if (rc == OK)
        rc = eval_result_finish(&m->result, err);
    if (rc == OK && !m->result.questions)
        rc = err_set(err, ERR_ARG, "all %zu items are longer than the context of the model",
                     items->n);
    return rc;
}

/* Print the result; nothing is routed. */
static void choices_print(const struct choices_run *m)
{
    const struct eval_result *r = &m->result;
    double n = (double)r->questions, acc = (double)r->right / n, norm = (double)m->right_norm / n;
    struct statistics_interval i = eval_result_interval(r);
    if (m->o->json) {
        printf("{\"task\":\"%s\",\"score\":\"loglik\",\"policy\":\"never\",\"threshold\":null,"
               "\"questions\":%zu,\"left_out\":%zu,\"right\":%zu,\"accuracy\":%.6f,"
               "\"accuracy_low\":%.6f,\"accuracy_high\":%.6f,\"acc_norm\":%.6f,\"routed\":0,"
               "\"tokens\":%zu,\"pgr\":null,\"ms\":%.3f,\"isa\":\"%s\"",
               m->o->task, r->questions, r->left_out, r->right, acc, i.low, i.high, norm, m->tokens,
               m->ms / n, m->engine.kernels.isa);
        eval_origin_end(&m->engine, m->kv, NULL, task_form_name(m->plan.asked.task));
    } else
        printf("%s by likelihood: %zu questions, accuracy %.1f %% (%.1f - %.1f %%), by "
               "characters %.1f %%, %zu left out\n",
               m->o->task, r->questions, 100 * acc, 100 * i.low, 100 * i.high, 100 * norm,
               r->left_out);
}

int eval_loglik(const struct eval_options *o, struct err *err)
{
    struct choices_run m = { .o = o };
    size_t longest = 0;
    if (o->policies && strcmp(o->policies, "never"))
        return err_set(err, ERR_ARG,
                       "--score loglik is the small model alone: expected --policy "
                       "never, found %.64s",
                       o->policies);
    int rc = eval_plan_open(&m.plan, o, false, err);
    if (rc == OK)
        rc = setup_engine(&m.engine, NULL, true, err);
    if (rc == OK)
        rc = setup_kv(&m.kv, engine_best_kv(&m.engine), err);
    if (rc == OK)
        rc = choices_longest(&longest, &m, err);
    if (rc == OK) {
        size_t most = model_config(m.engine.model)->context;
        rc = session_open(&m.session, m.engine.batch, longest < most ? longest : most, m.kv, err);
    }
    if (rc == OK)
        rc = choices_score(&m, err);
    if (rc == OK)
        choices_print(&m);
    eval_result_close(&m.result);
    session_close(m.session);
    engine_close(&m.engine);
    eval_plan_close(&m.plan);
    return rc;
}
