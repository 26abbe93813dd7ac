#include "tools/lab/eval/eval_result.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/bench/row.h"

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
    buf_free(&r->ttft);
    *r = (struct eval_result){ 0 };
}

int eval_result_add(struct eval_result *r, const struct asked *one, struct err *err)
{
    const unsigned char right = one->right;
    r->left_out += one->left_out;
    if (one->left_out)
        return OK;
    if (!buf_add(&r->rights, &right, sizeof(right)) ||
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
            (const void *)r->rights.p, (const void *)other->rights.p, r->questions);
    }
}

/* Return part/all, or 0 if all is 0. */
static double result_ratio(double part, size_t all)
{
    return all ? part / (double)all : 0;
}

double eval_result_share(const struct eval_result *r)
{
    return result_ratio((double)r->sum.cloud, r->sum.tokens);
}

double eval_result_accuracy(const struct eval_result *r)
{
    return result_ratio((double)r->right, r->questions);
}

static const char *print_text(const char *text)
{
    return *text ? text : NULL;
}

/* Add what a result was asked with and what it counts, most of it to JSON alone. */
static void print_counts(struct row *f, const struct eval_options *o, const struct eval_result *r,
                         const char *seed)
{
    const struct eval_entry *e = r->entry;
    row_text(f, "task", NULL, o->task.name);
    row_text(f, "policy", NULL, eval_entry_policy(e));
    row_text(f, NULL, "policy", e->label);
    row_text(f, "router", NULL, print_text(e->known.name));
    row_text(f, "router_sha256", NULL, print_text(e->known.sha256));
    row_text(f, "router_fingerprint", NULL, print_text(e->known.fingerprint));
    row_text(f, "seed", NULL, seed);
    row_text(f, "against", NULL, r->against ? r->against->label : NULL);
    row_named(f, "threshold", "threshold", (double)r->threshold, 4);
    row_named(f, "tie", NULL, isnan(r->threshold) ? (double)NAN : (double)r->tie, 6);
    row_named(f, "target", NULL, r->target, 6);
    row_named(f, "questions", NULL, (double)r->questions, 0);
    row_named(f, "left_out", NULL, (double)r->left_out, 0);
    row_named(f, "right", NULL, (double)r->right, 0);
    row_named(f, "no_answer", NULL, (double)r->no_answer, 0);
    row_named(f, "truncated", NULL, (double)r->truncated, 0);
    row_named(f, "tokens", NULL, (double)r->sum.tokens, 0);
    row_named(f, "cloud", NULL, (double)r->sum.cloud, 0);
    row_named(f, "fallback", NULL, (double)r->sum.fallback, 0);
    row_named(f, "memo", NULL, (double)r->sum.memo, 0);
    row_named(f, "prompt_tokens", NULL, (double)r->sum.prompt_tokens, 0);
    row_named(f, "calls", NULL, (double)r->work.calls, 0);
    row_named(f, "prefilled", NULL, (double)r->work.prefilled, 0);
    row_named(f, "cached", NULL, (double)r->work.cached, 0);
    row_named(f, "decoded", NULL, (double)r->work.decoded, 0);
}

/* Add the figures that follow from the counts. */
static void print_figures(struct row *f, const struct eval_options *o, const struct eval_result *r)
{
    size_t n = r->questions;
    const struct statistics_interval accuracy = statistics_wilson(r->right, n);
    bool citer = strcmp(o->task.name, "milli") != 0; /* it judges no answers of milli */
    /* How many ids passed through the cloud's model, as a share of those of prompts and answers:
     * about 1 if it writes everything, less if prompts share a beginning. The pass over the prefix
     * of a call gives its first token. */
    double work = result_ratio((double)(r->work.prefilled + r->work.decoded - r->work.calls),
                               r->sum.prompt_tokens + r->sum.tokens);
    row_named(f, "accuracy", "right", eval_result_accuracy(r), 3);
    row_named(f, "accuracy_low", "from", accuracy.low, 3);
    row_named(f, "accuracy_high", "to", accuracy.high, 3);
    row_named(f, "citer", "CITER's", citer ? result_ratio((double)r->citer, n) : (double)NAN, 3);
    row_named(f, "pgr", "PGR", r->pgr, 3);
    row_named(f, "difference", NULL, r->difference, 6);
    row_named(f, "difference_low", NULL, r->difference_interval.low, 6);
    row_named(f, "difference_high", NULL, r->difference_interval.high, 6);
    row_named(f, "ms", NULL, result_ratio(r->sum.total_ms, n), 3);
    row_named(f, "edge_ms", NULL, result_ratio(r->sum.edge_ms, n), 3);
    row_named(f, "ttft_ms", NULL, statistics_quantile((void *)r->ttft.p, n, 0.5), 3);
    row_named(f, "routed", "routed", eval_result_share(r), 4);
    row_named(f, NULL, "calls", result_ratio((double)r->work.calls, n), 2);
    row_named(f, "work", "work", work, 3);
    row_named(f, NULL, "ms", result_ratio(r->sum.total_ms, n), 1);
}

/* Add the columns of the paper's table. */
static void print_paper(struct row *f, const struct eval_result *r)
{
    double all = r->sum.tokens ? (double)r->sum.tokens : 1, own = all - (double)r->sum.cloud;
    double seconds = 0.1 / all; /* a ms of these tokens, in seconds of 100 tokens */
    double edge = r->sum.edge_ms;
    row_text(f, NULL, "policy", r->entry->label);
    row_put(f, "threshold", (double)r->threshold, 4);
    row_put(f, "routed", 100 * eval_result_share(r), 2);
    row_put(f, "SLM s", edge * seconds, 3);
    row_put(f, "TTFT s", statistics_quantile((void *)r->ttft.p, r->questions, 0.5) / 1000, 3);
    row_put(f, "TBT s", own > 0 ? edge / 1000 / own : (double)NAN, 3);
    row_put(f, "comm + LLM s", (r->sum.total_ms - edge) * seconds, 3);
    row_put(f, "overall s", r->sum.total_ms * seconds, 3);
}

/* Print how a result compares with the one of --against, and which calls failed. */
static void print_below(const struct eval_result *r)
{
    const struct statistics_interval *d = &r->difference_interval;
    if (r->against)
        printf("%s, against %s: accuracy %+.1f points", r->entry->label, r->against->label,
               100 * r->difference);
    if (r->against && !isnan(d->low))
        printf(" (95 %%: %+.1f to %+.1f)", 100 * d->low, 100 * d->high);
    fputs(r->against ? "\n" : "", stdout);
    if (r->sum.fallback)
        printf("%s: %zu of the tokens that were routed are the small model's: the cloud failed\n",
               r->entry->label, r->sum.fallback);
}

/* Print a row of the table, or its titles. */
static void print_line(const struct row *f, int width, bool titles)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct row_cell *c = &f->cells[i];
        char number[32] = "-";
        if (!c->title)
            continue;
        if (isfinite(c->value))
            snprintf(number, sizeof(number), "%.*f", c->digits, c->value);
        if (c->text)
            printf("%-*s", width, titles ? c->title : c->text);
        else
            printf("  %*s", strlen(c->title) > 7 ? (int)strlen(c->title) : 7,
                   titles ? c->title : number);
    }
    putchar('\n');
}

/* Print what stands below the table. */
static void print_notes(const struct eval_options *o, const struct eval_result *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        print_below(&r[i]);
    printf(o->as_paper
               ? "%zu questions; routed tokens and seconds are for 100 tokens of answers, prompts "
                 "included;\nTTFT: median; TBT: SLM s by token of the small model, as in the "
                 "paper\n"
               : "%zu questions; right, as a reader takes the answers, from and to: its 95 %% "
                 "interval; CITER's:\nby the rule of its scores; PGR: gap recovered, 0 as never, "
                 "1 as always; calls and ms: of an\nanswer; work: ids that the large model "
                 "computes, per id of prompt and answer\n",
           r->questions);
    if (r->left_out)
        printf("left out: %zu items whose prompts are longer than the context\n", r->left_out);
}

int eval_print(const struct eval_options *o, const struct eval_result *r, size_t n, struct err *err)
{
    struct row f = { .format = "jsonl", .flags = JSON_COMPACT | JSON_REAL_PRECISION(9) };
    size_t width = strlen("policy");
    char seed[24];
    int rc = OK;
    snprintf(seed, sizeof(seed), "%" PRIu64, o->task.seed);
    for (size_t i = 0; i < n; i++)
        width = strlen(r[i].entry->label) > width ? strlen(r[i].entry->label) : width;
    for (size_t i = 0; rc == OK && i < n; i++) {
        f.n = 0;
        if (o->as_paper && !o->json) {
            print_paper(&f, &r[i]);
        } else {
            print_counts(&f, o, &r[i], seed);
            print_figures(&f, o, &r[i]);
        }
        if (o->json)
            rc = row_print(&f, err);
        else if (!i)
            print_line(&f, (int)width, true);
        if (!o->json)
            print_line(&f, (int)width, false);
    }
    if (!o->json)
        print_notes(o, r, n);
    return rc;
}
