#include "tools/lab/eval/eval_result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"

void eval_result_begin(struct eval_result *r, const struct eval_entry *e, double target)
{
    *r = (struct eval_result){ .entry = e,
                               .target = target,
                               .threshold = NAN,
                               .pgr = (double)NAN,
                               .relative_gain = (double)NAN,
                               .apgr7 = (double)NAN,
                               .apgr7_ratio = (double)NAN };
}

void eval_result_close(struct eval_result *r)
{
    buf_free(&r->rights);
    buf_free(&r->tokens_of);
    buf_free(&r->cloud_of);
    buf_free(&r->subjects);
    statistics_groups_close(&r->groups);
    free(r->apgr7_draws);
    buf_free(&r->ttft);
    buf_free(&r->tbt);
    *r = (struct eval_result){ 0 };
}

/* Keep what an answer has for the intervals. */
static bool result_add_answer(struct eval_result *r, const struct asked *one, uint64_t subject)
{
    const uint32_t tokens = (uint32_t)one->stats.tokens, cloud = (uint32_t)one->stats.cloud;
    const unsigned char right = one->right;
    bool first = !r->trainings; /* the others answer the same questions */
    r->answers++;
    r->questions += first;
    return buf_add(&r->rights, &right, sizeof(right)) &&
           buf_add(&r->tokens_of, &tokens, sizeof(tokens)) &&
           buf_add(&r->cloud_of, &cloud, sizeof(cloud)) &&
           (!first || buf_add(&r->subjects, &subject, sizeof(subject)));
}

int eval_result_add(struct eval_result *r, const struct asked *one, uint64_t subject,
                    struct err *err)
{
    if (one->left_out) {
        r->left_out += !r->trainings;
        return OK;
    }
    bool fits = result_add_answer(r, one, subject) &&
                buf_add(&r->ttft, &one->stats.ttft_ms, sizeof(one->stats.ttft_ms));
    size_t traced = one->trace ? one->stats.tokens : 0;
    for (size_t i = 1; fits && i < traced; i++)
        fits = buf_add(&r->tbt, &one->trace[i].ms, sizeof(one->trace[i].ms));
    if (!fits)
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    r->right += one->right;
    r->citer += one->citer;
    r->no_answer += !*one->answer;
    r->truncated += one->truncated;
    r->missing += one->missing;
    decode_stats_add(&r->sum, &one->stats);
    r->work.calls += one->work.calls;
    r->work.prefilled += one->work.prefilled;
    r->work.cached += one->work.cached;
    r->work.decoded += one->work.decoded;
    for (size_t i = 0; eval_entry_judges(r->entry) && i < traced; i++)
        signs_token(&r->signs, one->trace[i].source == SOURCE_CLOUD, one->trace[i].has_edge,
                    one->trace[i].agrees);
    r->signs.ms = r->sum.total_ms;
    r->signs.waited_ms = r->sum.total_ms - r->sum.edge_ms;
    return OK;
}

int eval_result_finish(struct eval_result *r, struct err *err)
{
    statistics_sort((void *)r->ttft.p, r->ttft.n / sizeof(double));
    statistics_sort((void *)r->tbt.p, r->tbt.n / sizeof(double));
    if (r->answers != (r->trainings + 1) * r->questions)
        return err_set(err, ERR_FORMAT,
                       "--jsonl: expected answers of each training to %zu questions, found %zu",
                       r->questions, r->answers - r->trainings * r->questions);
    if (r->trainings++)
        return OK;
    return statistics_groups_open(&r->groups, (const void *)r->subjects.p, r->questions, err);
}

static struct statistics_answers result_answers(const struct eval_result *r)
{
    return (struct statistics_answers){ (const void *)r->rights.p, (const void *)r->tokens_of.p,
                                        (const void *)r->cloud_of.p, r->trainings };
}

void eval_result_compare(struct eval_result *r, const struct eval_result *edge,
                         const struct eval_result *cloud)
{
    if (!r->questions || !edge)
        return;
    const struct statistics_answers own = result_answers(r), low = result_answers(edge);
    r->has_gain = true;
    r->gain = statistics_bootstrap_difference(&own, &low, &r->groups);
    double pgr, alone = eval_result_accuracy(edge);
    if (alone > 0)
        r->relative_gain = eval_result_accuracy(r) / alone - 1;
    r->has_relative_interval =
        statistics_bootstrap_pgr(&r->relative_interval, &own, &low, NULL, &r->groups);
    if (!cloud || (!cloud->trainings && cloud != r) ||
        !statistics_pgr(&pgr, eval_result_accuracy(r), eval_result_accuracy(edge),
                        eval_result_accuracy(cloud)))
        return;
    r->pgr = pgr;
    const struct statistics_answers high = result_answers(cloud);
    r->has_pgr_interval = statistics_bootstrap_pgr(&r->pgr_interval, &own, &low, &high, &r->groups);
}

int eval_result_average(struct eval_result *r, size_t n, const struct eval_result *edge,
                        const struct eval_result *cloud, struct err *err)
{
    struct statistics_point points[STATISTICS_POINTS];
    struct statistics_answers at[STATISTICS_POINTS];
    double draws[STATISTICS_DRAWS];
    for (size_t i = 0; i < n; i++) {
        points[i] = (struct statistics_point){ eval_result_share(&r[i]), r[i].pgr };
        at[i] = result_answers(&r[i]);
        if (isnan(r[i].pgr))
            return OK;
    }
    struct eval_result *last = &r[n - 1];
    last->apgr7 = statistics_apgr7(points, n);
    last->apgr7_draws = malloc(sizeof(draws));
    if (!last->apgr7_draws)
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    const struct statistics_answers low = result_answers(edge), high = result_answers(cloud);
    statistics_draw_apgr7(draws, at, n, &low, &high, &last->groups);
    memcpy(last->apgr7_draws, draws, sizeof(draws));
    last->has_apgr7_interval = statistics_draws_interval(&last->apgr7_interval, draws);
    return OK;
}

void eval_result_against(struct eval_result *r, const struct eval_result *other)
{
    double ratio[STATISTICS_DRAWS];
    if (!r->questions)
        return;
    r->against = other->entry;
    r->against_share = eval_result_share(other);
    r->difference = eval_result_accuracy(r) - eval_result_accuracy(other);
    const struct statistics_answers own = result_answers(r), its = result_answers(other);
    r->difference_interval = statistics_bootstrap_difference(&own, &its, &r->groups);
    if (!r->apgr7_draws || !other->apgr7_draws)
        return;
    if (other->apgr7 > 0)
        r->apgr7_ratio = r->apgr7 / other->apgr7;
    statistics_draws_ratio(ratio, r->apgr7_draws, other->apgr7_draws);
    r->has_ratio_interval = statistics_draws_interval(&r->ratio_interval, ratio);
}

void eval_result_equal(struct eval_result *r, const struct eval_result *below,
                       const struct eval_result *above)
{
    const struct statistics_answers own = result_answers(r);
    const struct statistics_answers low = result_answers(below), high = result_answers(above);
    r->has_equal = true;
    r->equal_from = eval_result_share(below);
    r->equal_to = eval_result_share(above);
    r->equal_interval = statistics_bootstrap_equal(&r->equal, &own, &low, &high, &r->groups);
}

/* True when r may be compared with the result of another policy: one at the same point, or that of
 * one without a threshold, which has one for all points. A model alone is compared with a policy at
 * its own threshold. */
static bool result_comparable(const struct eval_result *r, const struct eval_result *other,
                              size_t points)
{
    if (!eval_entry_scores(other->entry))
        return true;
    return eval_entry_scores(r->entry)
               ? r->point == other->point
               : points == 1 && (isnan(other->target) || !eval_entry_alone(r->entry));
}

/* Compare r with the other policy at an equal share, between the nearest ones that were measured;
 * each model alone is an end of every policy. */
static void result_nearest(struct eval_result *r, const struct eval_result *results, size_t n)
{
    const struct eval_result *below = NULL, *above = NULL;
    double share = eval_result_share(r);
    if (!eval_entry_scores(r->entry) || !eval_entry_scores(r->against))
        return;
    for (size_t i = 0; i < n; i++) {
        const struct eval_result *k = &results[i];
        double at = eval_result_share(k);
        if (i < 2 ? !k->answers : k->entry != r->against)
            continue;
        if (at <= share && (!below || at > eval_result_share(below)))
            below = k;
        if (at >= share && (!above || at < eval_result_share(above)))
            above = k;
    }
    if (below && above)
        eval_result_equal(r, below, above);
}

void eval_results_compare(struct eval_result *results, size_t n, const char *against, size_t points)
{
    for (size_t i = 2; i < n; i++) {
        struct eval_result *r = &results[i];
        for (size_t k = 2; k < n && !r->against; k++)
            if (r->entry != results[k].entry && !strcmp(results[k].entry->label, against) &&
                result_comparable(r, &results[k], points))
                eval_result_against(r, &results[k]);
        if (r->against)
            result_nearest(r, results, n);
    }
}

/* Return part/all, or 0 if all is 0. */
static double result_ratio(size_t part, size_t all)
{
    return all ? (double)part / (double)all : 0;
}

double eval_result_share(const struct eval_result *r)
{
    return result_ratio(r->sum.cloud, r->sum.tokens);
}

double eval_result_accuracy(const struct eval_result *r)
{
    return result_ratio(r->right, r->answers);
}

struct statistics_interval eval_result_interval(const struct eval_result *r)
{
    const struct statistics_answers own = result_answers(r);
    return r->answers ? statistics_accuracy(&own, &r->groups, !r->closed)
                      : (struct statistics_interval){ 0, 1 };
}

double eval_result_work(const struct eval_result *r)
{
    /* The pass over the prefix of a call gives its first token. */
    size_t ids = r->work.prefilled + r->work.decoded - r->work.calls;
    return result_ratio(ids, r->sum.prompt_tokens + r->sum.tokens);
}

double eval_times_quantile(const struct buf *times, double q)
{
    return times->n ? statistics_quantile((const void *)times->p, times->n / sizeof(double), q) : 0;
}
