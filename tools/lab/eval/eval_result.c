#include "tools/lab/eval/eval_result.h"

#include <math.h>
#include <string.h>

#include "kernels/sys/base.h"

void eval_result_begin(struct eval_result *r, const struct eval_entry *e, double target)
{
    const double none = (double)NAN;
    *r = (struct eval_result){ .entry = e,
                               .target = target,
                               .threshold = NAN,
                               .pgr = none,
                               .difference = none,
                               .difference_interval = { none, none } };
}

void eval_result_close(struct eval_result *r)
{
    buf_free(&r->rights);
    buf_free(&r->subjects);
    buf_free(&r->ttft);
    statistics_groups_close(&r->groups);
    *r = (struct eval_result){ 0 };
}

int eval_result_add(struct eval_result *r, const struct asked *one, uint64_t subject,
                    struct err *err)
{
    const unsigned char right = one->right;
    r->left_out += one->left_out;
    if (one->left_out)
        return OK;
    if (!buf_add(&r->rights, &right, sizeof(right)) ||
        !buf_add(&r->subjects, &subject, sizeof(subject)) ||
        !buf_add(&r->ttft, &one->stats.ttft_ms, sizeof(one->stats.ttft_ms)))
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    r->questions++;
    r->right += one->right;
    r->citer += one->citer;
    r->no_answer += !*one->answer;
    r->truncated += one->truncated;
    decode_stats_add(&r->sum, &one->stats);
    r->work.calls += one->work.calls;
    r->work.prefilled += one->work.prefilled;
    r->work.cached += one->work.cached;
    r->work.decoded += one->work.decoded;
    return OK;
}

int eval_result_finish(struct eval_result *r, struct err *err)
{
    return statistics_groups_open(&r->groups, (const void *)r->subjects.p, r->questions, err);
}

/* Return the result of a policy with this label, at the point of r or at its only one; or NULL. */
static const struct eval_result *result_find(const struct eval_result *results, size_t n,
                                             const char *label, const struct eval_result *r)
{
    const struct eval_result *any = NULL;
    for (size_t i = 0; label && i < n; i++) {
        const struct eval_result *k = &results[i];
        if (strcmp(k->entry->label, label) != 0 || k->questions != r->questions)
            continue;
        if (k->point == r->point)
            return k;
        any = any || eval_entry_scores(k->entry) ? any : k;
    }
    return any;
}

void eval_results_compare(struct eval_result *results, size_t n, const char *against)
{
    for (size_t i = 0; i < n; i++) {
        struct eval_result *r = &results[i];
        const struct eval_result *edge = result_find(results, n, "never", r);
        const struct eval_result *cloud = result_find(results, n, "always", r);
        const struct eval_result *other = result_find(results, n, against, r);
        if (edge && cloud && cloud->right > edge->right)
            r->pgr = (eval_result_accuracy(r) - eval_result_accuracy(edge)) /
                     (eval_result_accuracy(cloud) - eval_result_accuracy(edge));
        if (!other || other->entry == r->entry)
            continue;
        r->against = other->entry;
        r->difference = eval_result_accuracy(r) - eval_result_accuracy(other);
        r->difference_interval = statistics_bootstrap_difference(
            (const void *)r->rights.p, (const void *)other->rights.p, &r->groups);
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
    return result_ratio(r->right, r->questions);
}

struct statistics_interval eval_result_interval(const struct eval_result *r)
{
    return r->questions ? statistics_accuracy((const void *)r->rights.p, &r->groups, !r->closed)
                        : (struct statistics_interval){ 0, 1 };
}

double eval_result_work(const struct eval_result *r)
{
    /* The pass over the prefix of a call gives its first token. */
    size_t ids = r->work.prefilled + r->work.decoded - r->work.calls;
    return result_ratio(ids, r->sum.prompt_tokens + r->sum.tokens);
}

double eval_result_ttft(const struct eval_result *r)
{
    return r->questions ? statistics_quantile((void *)r->ttft.p, r->questions, 0.5) : 0;
}
