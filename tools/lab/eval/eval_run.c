#include "tools/lab/eval/eval_run.h"

#include <math.h>
#include <stdio.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "tools/cli/progress.h"

/* Say how far the current result is; policies differ in speed, so the time left is its own. */
static void run_show(const struct eval_run *run, const struct eval_result *r)
{
    struct err line;
    char left[48];
    size_t n = run->plan->asked.n;
    progress_left(left, run->since, run->done - run->before, n - run->before);
    err_set(&line, OK, "%zu of %zu, %s: %zu of %zu, right %.1f %%, routed %.2f %%%s", run->number,
            run->all, r->entry->label, run->done, n, 100 * eval_result_accuracy(r),
            100 * eval_result_share(r), left);
    progress_say(run->progress, line.msg);
}

/* Send items from *next on that are not in the journal, as many as there is room for. */
static int run_send(struct eval_run *run, const struct eval_result *r, size_t *next,
                    struct err *err)
{
    const struct eval_items *items = &run->plan->asked;
    const struct asking_how how = { r->entry, r->threshold, r->tie };
    int rc = OK;
    for (; rc == OK && *next < items->n && asking_has_room(run->asking); ++*next)
        if (!eval_journal_has(run->journal, r, items->at[*next]))
            rc = asking_send(run->asking, items->task, items->at[*next], &how, err);
    return rc;
}

/* Take the answer to the item at place `at`, which has been sent, or read it from the journal, and
 * add it to *r. */
static int run_item(struct eval_run *run, struct eval_result *r, size_t at, struct err *err)
{
    const struct eval_items *items = &run->plan->asked;
    struct asked one;
    size_t item = items->at[at];
    bool found = eval_journal_has(run->journal, r, item);
    int rc = found ? eval_journal_read(run->journal, r, item, &one, err)
                   : asking_take(&one, run->asking, err);
    if (rc == OK && run->journal && !found)
        rc = eval_journal_write(run->journal, r, item, items->subject[at], &one, err);
    run->before += found;
    return rc == OK ? eval_result_add(r, &one, items->subject[at], err) : rc;
}

int eval_run_policy(struct eval_run *run, struct eval_result *r, struct err *err)
{
    const struct eval_items *items = &run->plan->asked;
    size_t next = 0;
    int rc = OK;
    run->number++;
    run->since = os_now_ns();
    run->before = 0;
    r->closed = items->closed;
    asking_begin(run->asking, !run->journal);
    for (run->done = 0; rc == OK && run->done < items->n; run->done += rc == OK) {
        run_show(run, r);
        rc = run_send(run, r, &next, err);
        if (rc == OK)
            rc = run_item(run, r, run->done, err);
    }
    run_show(run, r);
    progress_keep(run->progress);
    if (rc == OK && !r->questions)
        rc = err_set(err, ERR_ARG,
                     "all %zu items are longer than the context of the model, %zu tokens", items->n,
                     run->asking->context);
    return rc == OK ? eval_result_finish(r, err) : rc;
}

/* Callback of calibration: send answer i at this threshold. */
static bool run_calibrate_begin(void *arg, size_t i, float threshold, int *rc, struct err *err)
{
    struct eval_run *run = arg;
    const struct eval_items *items = &run->plan->calibration;
    run->how.threshold = threshold;
    if (!asking_has_room(run->asking))
        return false;
    *rc = asking_send(run->asking, items->task, items->at[i], &run->how, err);
    return *rc == OK;
}

/* Callback of calibration: take the oldest answer, which is i. */
static int run_calibrate_answer(void *arg, size_t i, float threshold, struct calibrate_answer *out,
                                struct err *err)
{
    struct eval_run *run = arg;
    struct asked one;
    struct err line;
    char left[48];
    (void)threshold;
    if (!run->passes || i < run->answered) { /* a pass goes through the items in order */
        run->passes++;
        run->since = os_now_ns();
    }
    run->answered = i;
    int rc = asking_take(&one, run->asking, err);
    if (rc != OK)
        return rc;
    *out = (struct calibrate_answer){ .tokens = one.stats.tokens,
                                      .cloud = one.stats.cloud,
                                      .scores = one.scores,
                                      .right = one.right,
                                      .left_out = one.left_out };
    progress_left(left, run->since, ++run->answered, run->plan->calibration.n);
    err_set(&line, OK, "%zu of %zu, %s: calibrating, pass %zu: %zu of %zu%s", run->number + 1,
            run->all, run->how.entry->label, run->passes, run->answered, run->plan->calibration.n,
            left);
    progress_say(run->progress, line.msg);
    return OK;
}

struct calibrate_source eval_run_source(struct eval_run *run, const struct eval_entry *e)
{
    run->passes = 0;
    run->how = (struct asking_how){ .entry = e };
    return (struct calibrate_source){ .answer = run_calibrate_answer,
                                      .arg = run,
                                      .n = run->plan->calibration.n,
                                      .begin = run_calibrate_begin };
}

/* Find the threshold at which the policy routes this share. */
static int run_calibrate(struct eval_run *run, struct eval_result *r, double share, struct err *err)
{
    struct calibrate_result found = { .threshold = (float)share };
    if (r->entry->policy == POLICY_RANDOM) {
        r->threshold = found.threshold;
        return OK;
    }
    struct calibrate_source source = eval_run_source(run, r->entry);
    source.tie = &run->how.tie;
    int rc = calibrate_open(&run->calibration, &source, err);
    if (rc == OK)
        rc = calibrate_find(&found, run->calibration, share, err);
    progress_keep(run->progress);
    eval_run_end(run);
    r->threshold = found.threshold;
    r->tie = found.tie;
    return rc;
}

int eval_run_threshold(struct eval_run *run, struct eval_result *r, float given, double share,
                       struct err *err)
{
    bool known = false;
    int rc = run->journal ? eval_journal_read_threshold(run->journal, r, &known, err) : OK;
    if (rc != OK || known)
        return rc;
    r->threshold = given;
    if (isnan(given))
        rc = run_calibrate(run, r, share, err);
    if (rc == OK && run->journal)
        rc = eval_journal_write_threshold(run->journal, r, err);
    return rc;
}

void eval_run_end(struct eval_run *run)
{
    calibrate_close(run->calibration);
    run->calibration = NULL;
}
