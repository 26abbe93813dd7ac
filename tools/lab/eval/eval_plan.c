#include "tools/lab/eval/eval_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/math.h"
#include "kernels/sys/base.h"

enum { MILLI_QUESTIONS = 1000, SPLIT = 5, LEAST_CALIBRATION = 48 };

int eval_plan_check(struct eval_plan *p, const struct eval_list *l, const struct eval_options *o,
                    float threshold, struct err *err)
{
    char *end;
    p->paper = o->as_paper && !o->target && isnan(threshold);
    p->target = o->target ? strtod(o->target, &end) : (double)NAN;
    p->target = round(p->target * 1e9) / 1e9; /* as a journal holds it */
    if (o->target && !isnan(threshold))
        return err_set(err, ERR_ARG, "--target-routed, --threshold: expected one of them");
    if (o->target && (!*o->target || *end || !(p->target >= 0 && p->target <= 1)))
        return err_set(err, ERR_ARG, "--target-routed: expected 0 to 1, found %s", o->target);
    bool given = o->target || p->paper || !isnan(threshold), known = given;
    for (size_t i = 0; i < l->n; i++) {
        const struct eval_entry *e = &l->at[i];
        known = known || policy_reads_router(e->policy);
        if (eval_entry_scores(e) && !known)
            return err_set(err, ERR_ARG,
                           "policy %s: give --threshold, --target-routed or a policy before it "
                           "whose share it takes",
                           e->label);
        if (eval_entry_scores(e) && !given && (o->first || o->count) &&
            !policy_reads_router(e->policy))
            return err_set(err, ERR_ARG,
                           "--first: policy %s: expected --target-routed with it, as the share "
                           "that another policy routes of all questions is not known in a part",
                           e->label);
    }
    return OK;
}

bool eval_plan_calibrates(const struct eval_plan *p, const struct eval_list *l, float threshold)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct eval_entry *e = &l->at[i];
        if (!eval_entry_scores(e) || e->policy == POLICY_RANDOM)
            continue;
        if (!isnan(p->target) || (!policy_reads_router(e->policy) && isnan(threshold) && !p->paper))
            return true;
    }
    return false;
}

static uint64_t plan_hash(const char *subject)
{
    uint64_t h = 0;
    for (; *subject; subject++)
        h = rand_u64(h, (unsigned char)*subject);
    return h;
}

/* Open the task and choose up to `most` items. split -1: of all; else those that are calibrated on
 * (1) or not (0). */
static int plan_choose(struct eval_items *out, const struct task_options *o, size_t most, int split,
                       struct err *err)
{
    size_t size, bytes;
    int rc = task_open(&out->task, o, err);
    if (rc != OK)
        return rc;
    size = task_size(out->task);
    most = most < size ? most : size;
    if (size_mul(&bytes, most + 1, sizeof(*out->subject))) {
        out->at = malloc(bytes);
        out->subject = malloc(bytes);
    }
    if (!out->at || !out->subject)
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    for (size_t i = 0; rc == OK && out->n < most && i < size; i++) {
        struct task_item item;
        rc = task_item(&item, out->task, i, err);
        uint64_t subject = rc == OK ? plan_hash(item.subject) : 0;
        out->at[out->n] = i;
        out->subject[out->n] = subject;
        out->n += split < 0 || (subject % SPLIT == 0) == split;
    }
    if (rc == OK && !out->n)
        rc = err_set(err, ERR_ARG, "--data %s: no item is left to %s", o->data,
                     split == 1 ? "calibrate on: give --calibration FILE or --threshold"
                                : "ask: give --calibration FILE");
    return rc;
}

int eval_plan_open(struct eval_plan *p, const struct eval_options *o, bool calibrates,
                   struct err *err)
{
    struct task_options t = o->task;
    struct eval_items *a = &p->asked;
    bool milli = !strcmp(t.name, "milli"), splits = calibrates && !milli && !o->calibrate;
    if (milli && o->calibrate)
        return err_set(err, ERR_ARG, "--calibration: milli makes its own questions");
    t.stream = TASK_TEST;
    int rc = task_form_parse(&t, t.prompt, err);
    if (rc == OK)
        rc = plan_choose(a, &t,
                         o->questions ? o->questions
                         : milli      ? MILLI_QUESTIONS
                                      : SIZE_MAX,
                         splits ? 0 : -1, err);
    t.stream = TASK_CALIBRATE;
    t.data = o->calibrate ? o->calibrate : t.data;
    /* Four times the questions: the error in the share is then nearly that of the measurement, as
     * sqrt(1 + 1/4) is 1.12. */
    size_t n = a->n < EVAL_CALIBRATION / 4 ? 4 * a->n : EVAL_CALIBRATION;
    if (rc == OK && calibrates)
        rc = plan_choose(&p->calibration, &t, n < LEAST_CALIBRATION ? LEAST_CALIBRATION : n,
                         splits ? 1 : -1, err);
    a->closed = milli;
    p->whole = a->n;
    p->first = o->first;
    if (rc == OK && o->first >= a->n)
        rc = err_set(err, ERR_ARG, "--first: expected less than the %zu questions, found %zu", a->n,
                     o->first);
    if (rc != OK)
        return rc;
    a->n -= o->first;
    a->n = o->count && o->count < a->n ? o->count : a->n;
    memmove(a->at, a->at + o->first, a->n * sizeof(*a->at));
    memmove(a->subject, a->subject + o->first, a->n * sizeof(*a->subject));
    return OK;
}

void eval_plan_close(struct eval_plan *p)
{
    task_close(p->asked.task);
    task_close(p->calibration.task);
    free(p->asked.at);
    free(p->calibration.at);
    free(p->asked.subject);
    free(p->calibration.subject);
    *p = (struct eval_plan){ 0 };
}
