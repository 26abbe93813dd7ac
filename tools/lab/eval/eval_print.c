#include "tools/lab/eval/eval_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/bench/row.h"
#include "tools/cli/output_file.h"
#include "tools/lab/eval/paper_table.h"

/* Add both ends of an interval; nothing unless there is one. */
static void print_interval(struct row *f, const char *low, const char *high, bool has,
                           const struct statistics_interval *i)
{
    row_put(f, low, has ? i->low : (double)NAN, 6);
    row_put(f, high, has ? i->high : (double)NAN, 6);
}

/* Return the accuracy by CITER's own rule, which milli's answers are not judged by: NaN. */
static double print_citer(const struct eval_about *about, const struct eval_result *r)
{
    return !strcmp(about->task, "milli") || !r->answers ? (double)NAN
                                                        : (double)r->citer / (double)r->answers;
}

/* Who answered what, and how well. */
static void print_quality(struct row *f, const struct eval_about *about,
                          const struct eval_result *r)
{
    const struct statistics_interval accuracy = eval_result_interval(r);
    row_text(f, "task", NULL, about->task);
    row_text(f, "policy", NULL, eval_entry_policy(r->entry));
#define X(name, bytes) \
    row_text(f, #name, NULL, *r->entry->known.name ? r->entry->known.name : NULL);
    EVAL_ROUTER(X)
#undef X
    row_put(f, "threshold", (double)r->threshold, -9); /* all digits of a float */
    row_put(f, "tie", isnan(r->threshold) ? (double)NAN : (double)r->tie, 6);
    row_put(f, "target", r->target, 6);
    row_text(f, "seed", NULL, about->seed);
    row_put(f, "questions", (double)r->questions, 0);
    row_put(f, "trainings", (double)r->trainings, 0);
    row_put(f, "left_out", (double)r->left_out, 0);
    row_put(f, "right", (double)r->right, 0);
    row_put(f, "accuracy", eval_result_accuracy(r), 6);
    print_interval(f, "accuracy_low", "accuracy_high", r->answers, &accuracy);
    print_interval(f, "gain_low", "gain_high", r->has_gain, &r->gain);
    row_put(f, "relative_gain", r->relative_gain, 6);
    print_interval(f, "relative_gain_low", "relative_gain_high", r->has_relative_interval,
                   &r->relative_interval);
    row_put(f, "pgr", r->pgr, 6);
    print_interval(f, "pgr_low", "pgr_high", r->has_pgr_interval, &r->pgr_interval);
    row_put(f, "apgr7", r->apgr7, 6);
    print_interval(f, "apgr7_low", "apgr7_high", r->has_apgr7_interval, &r->apgr7_interval);
    row_text(f, "against", NULL, r->against ? r->against->label : NULL);
    row_put(f, "difference", r->against ? r->difference : (double)NAN, 6);
    print_interval(f, "difference_low", "difference_high", r->against, &r->difference_interval);
    row_put(f, "equal_share", r->has_equal ? r->equal : (double)NAN, 6);
    print_interval(f, "equal_share_low", "equal_share_high", r->has_equal, &r->equal_interval);
    row_put(f, "apgr7_ratio", r->apgr7_ratio, 6);
    print_interval(f, "apgr7_ratio_low", "apgr7_ratio_high", r->has_ratio_interval,
                   &r->ratio_interval);
    row_put(f, "routed", eval_result_share(r), 6);
    row_put(f, "tokens", (double)r->sum.tokens, 0);
    row_put(f, "cloud", (double)r->sum.cloud, 0);
    row_put(f, "fallback", (double)r->sum.fallback, 0);
    row_put(f, "citer", print_citer(about, r), 6);
    row_put(f, "no_answer", (double)r->no_answer, 0);
    row_put(f, "truncated", (double)r->truncated, 0);
}

/* What it cost. */
static void print_cost(struct row *f, const struct eval_about *about, const struct eval_result *r)
{
    double n = (double)(r->answers ? r->answers : 1);
    row_put(f, "memo", (double)r->sum.memo, 0);
    row_put(f, "store", (double)r->sum.store, 0);
    row_put(f, "prompt_tokens", (double)r->sum.prompt_tokens, 0);
    row_put(f, "calls", (double)r->work.calls, 0);
    row_put(f, "prefilled", (double)r->work.prefilled, 0);
    row_put(f, "cached", (double)r->work.cached, 0);
    row_put(f, "decoded", (double)r->work.decoded, 0);
    row_put(f, "work", eval_result_work(r), 6);
    row_put(f, "calls_answer", (double)r->work.calls / n, 6);
    row_put(f, "cloud_answer", (double)r->sum.cloud / n, 6);
    row_put(f, "edge_answer", (double)(r->sum.tokens - r->sum.cloud) / n, 6);
    row_put(f, "cost", (double)r->work.calls / n, 9);
    row_text(f, "clock", NULL, about->clock);
    row_put(f, "parallel", about->parallel ? (double)about->parallel : (double)NAN, 0);
    row_put(f, "ms", r->sum.total_ms / n, 3);
    row_put(f, "edge_ms", r->sum.edge_ms / n, 3);
    row_put(f, "ttft_ms", eval_times_quantile(&r->ttft, 0.5), 3);
    row_put(f, "tbt_ms", eval_times_quantile(&r->tbt, 0.5), 3);
    row_put(f, "tbt_p95_ms", eval_times_quantile(&r->tbt, 0.95), 3);
    row_put(f, "tok_s", r->sum.total_ms > 0 ? 1000 * (double)r->sum.tokens / r->sum.total_ms : 0,
            3);
    row_put(f, "bytes_up", (double)r->sum.traffic.bytes_up, 0);
    row_put(f, "bytes_down", (double)r->sum.traffic.bytes_down, 0);
    row_text(f, "isa", NULL, about->origin.isa);
}

static int print_fields(struct row *f, const struct eval_about *about, const struct eval_result *r,
                        struct err *err)
{
    print_quality(f, about, r);
    print_cost(f, about, r);
    eval_origin_put(f, &about->origin);
    return row_print(f, err);
}

int eval_print_json(const struct eval_about *about, const struct eval_result *r, struct err *err)
{
    struct row f = { .format = "jsonl", .flags = JSON_COMPACT | JSON_REAL_PRECISION(9) };
    int rc = print_fields(&f, about, r, err);
    fflush(stdout);
    return rc;
}

int eval_print_csv(const char *path, const struct eval_about *about, const struct eval_result *r,
                   const bool *shown, size_t n, struct err *err)
{
    struct output_file out;
    int rc = output_file_open(&out, path, err);
    struct row f = { .format = "csv", .to = out.f };
    for (size_t k = 0; rc == OK && k < n; k++)
        rc = shown[k] ? print_fields(&f, about, &r[k], err) : OK;
    return rc == OK ? output_file_close(&out, true, err) : rc;
}

/* Write a number, or "-" for NaN. */
static const char *print_cell(char out[16], int digits, double x)
{
    if (isnan(x))
        snprintf(out, 16, "-");
    else
        snprintf(out, 16, "%.*f", digits, x);
    return out;
}

/* Print one row of the table, which fits into 100 columns. */
static void print_row(FILE *to, const struct eval_result *r, int width)
{
    char threshold[16], pgr[16];
    double n = (double)(r->answers ? r->answers : 1);
    const struct statistics_interval accuracy = eval_result_interval(r);
    fprintf(to,
            "%-*s %9s  %5.1f %%  %5.1f - %5.1f  %5s  %6.2f %%  %5.1f %%  %9.1f %6.1f %6.2f %6.1f\n",
            width, r->entry->label, print_cell(threshold, 4, (double)r->threshold),
            100 * eval_result_accuracy(r), 100 * accuracy.low, 100 * accuracy.high,
            print_cell(pgr, 3, r->pgr), 100 * eval_result_share(r), 100 * eval_result_work(r),
            r->sum.total_ms / n, eval_times_quantile(&r->ttft, 0.5),
            eval_times_quantile(&r->tbt, 0.5), eval_times_quantile(&r->tbt, 0.95));
}

/* Print for each row what else became of its answers, and what one of them took: a share also falls
 * when the small model writes more. */
static void print_answers(FILE *to, const struct eval_about *about, const struct eval_result *r,
                          const bool *shown, size_t n, int width)
{
    fprintf(to, "%-*s threshold  CITER's  no_answer  truncated   calls  cloud    edge\n", width,
            "");
    for (size_t i = 0; i < n; i++) {
        char threshold[16], citer[16];
        double answers = (double)(r[i].answers ? r[i].answers : 1);
        if (shown[i])
            fprintf(to, "%-*s %9s  %7s  %9zu  %9zu  %6.2f %6.2f  %6.1f\n", width, r[i].entry->label,
                    print_cell(threshold, 4, (double)r[i].threshold),
                    print_cell(citer, 1, 100 * print_citer(about, &r[i])), r[i].no_answer,
                    r[i].truncated, (double)r[i].work.calls / answers,
                    (double)r[i].sum.cloud / answers,
                    (double)(r[i].sum.tokens - r[i].sum.cloud) / answers);
    }
    fprintf(to, "CITER's: %% right by the rule of its published scores; truncated: at the limit of "
                "-n;\ncalls, and tokens of cloud and edge: of an answer\n");
}

/* Print the interval of a difference, in points. */
static void print_points(FILE *to, const struct statistics_interval *i)
{
    if (!isnan(i->low))
        fprintf(to, " (95 %%: %+.1f to %+.1f)", 100 * i->low, 100 * i->high);
}

/* Print the mean PGR with its interval. */
static void print_average(FILE *to, const struct eval_result *r)
{
    fprintf(to, "%s: mean PGR over shares from 0 to 7 %%: %.3f", r->entry->label, r->apgr7);
    if (r->has_apgr7_interval)
        fprintf(to, " (95 %%: %.3f to %.3f)", r->apgr7_interval.low, r->apgr7_interval.high);
    putc('\n', to);
}

/* Print how a result compares with the one of --against, and then at an equal share. */
static void print_against(FILE *to, const struct eval_result *r)
{
    double routed = eval_result_share(r), other = r->against_share;
    fputs(r->entry->label, to);
    if (!isnan(r->target))
        fprintf(to, ", %.2f %%", 100 * r->target);
    fprintf(to, ", against %s: accuracy %+.1f points", r->against->label, 100 * r->difference);
    print_points(to, &r->difference_interval);
    if (!isnan(r->apgr7_ratio))
        fprintf(to, "; mean PGR %.2f times", r->apgr7_ratio);
    if (r->has_ratio_interval)
        fprintf(to, " (%.2f to %.2f)", r->ratio_interval.low, r->ratio_interval.high);
    if (r->has_equal) {
        fprintf(to, "\n    at an equal share, %.2f %%: %+.1f points", 100 * routed, 100 * r->equal);
        print_points(to, &r->equal_interval);
        fprintf(to, ", between %.2f and %.2f %%", 100 * r->equal_from, 100 * r->equal_to);
    } else if (eval_entry_scores(r->entry) && eval_entry_scores(r->against))
        fprintf(to, "; shares of %.2f and %.2f %%", 100 * routed, 100 * other);
    putc('\n', to);
}

/* Print what is amiss with a policy at its own threshold. */
static void print_signs(FILE *to, const struct eval_result *r, const bool *shown, size_t n)
{
    char line[SIGNS_LINE];
    for (size_t i = 0; i < n; i++)
        if (shown[i] && isnan(r[i].target) && signs_tell(line, &r[i].signs))
            fprintf(to, "%s: %s\n", r[i].entry->label, line);
}

/* Print what the columns do not say. */
static void print_notes(FILE *to, const struct eval_result *r, const bool *shown, size_t n)
{
    bool query = false, pgr = false;
    size_t left_out = 0, questions = 0;
    for (size_t i = 0; i < n; i++) {
        pgr = pgr || (shown[i] && !isnan(r[i].pgr));
        questions = shown[i] && r[i].questions > questions ? r[i].questions : questions;
        if (shown[i] && r[i].sum.fallback)
            fprintf(to,
                    "%s: %zu of the tokens that were routed are the small model's: the cloud "
                    "failed, or a limit held\n",
                    r[i].entry->label, r[i].sum.fallback);
        query = query || (shown[i] && r[i].entry->query && isnan(r[i].target));
        left_out = r[i].left_out > left_out ? r[i].left_out : left_out;
        if (shown[i] && !isnan(r[i].apgr7))
            print_average(to, &r[i]);
        if (shown[i] && r[i].against)
            print_against(to, &r[i]);
    }
    fprintf(to,
            "%zu questions; times in ms: an answer (mean), its first token (median), the next "
            "(median, 95 %%)\n",
            questions);
    if (pgr)
        fprintf(to, "PGR: performance gap recovered, 0 as the small model alone, 1 as the large\n");
    fprintf(to, "work: ids that the large model computes, per id of prompt and answer; over 100 %% "
                "where\nit reads its replies again or they go unused\n");
    if (query)
        fprintf(to, "query: a threshold that was found for tokens says little of answers; "
                    "--target-routed\nfinds one\n");
    if (left_out)
        fprintf(to, "left out: %zu items whose prompts are longer than the context\n", left_out);
    print_signs(to, r, shown, n);
}

/* Return the width of the first column. */
static int print_width(const struct eval_result *r, size_t n)
{
    int width = 8;
    for (size_t i = 0; i < n; i++)
        if (r[i].entry && (int)strlen(r[i].entry->label) > width)
            width = (int)strlen(r[i].entry->label);
    return width;
}

void eval_print_table(FILE *to, const struct eval_about *about, const struct eval_result *r,
                      const bool *shown, size_t n)
{
    int width = print_width(r, n);
    fprintf(to,
            "%-*s threshold accuracy  95 %% interval    PGR    routed     work  ms/answer  first   "
            "next   95 %%\n",
            width, "policy");
    for (size_t i = 0; i < n; i++)
        if (shown[i])
            print_row(to, &r[i], width);
    print_answers(to, about, r, shown, n, width);
    print_notes(to, r, shown, n);
}

void eval_print_paper(FILE *to, const struct eval_result *r, const bool *shown, size_t n)
{
    int width = print_width(r, n);
    size_t questions = 0;
    fprintf(to, "%-*s threshold  routed    SLM s  TTFT s   TBT s  comm + LLM s  overall s\n", width,
            "policy");
    for (size_t i = 0; i < n; i++) {
        char threshold[16], tbt[16];
        if (!shown[i])
            continue;
        struct paper_row p = paper_row_make((double)r[i].threshold, r[i].sum.tokens, r[i].sum.cloud,
                                            r[i].sum.edge_ms, eval_times_quantile(&r[i].ttft, 0.5),
                                            r[i].sum.total_ms);
        fprintf(to, "%-*s %9s  %6.2f  %7.3f  %6.3f  %6s  %12.3f  %9.3f\n", width, r[i].entry->label,
                print_cell(threshold, 4, p.threshold), p.routed, p.edge_s, p.ttft_s,
                print_cell(tbt, 3, p.tbt_s), p.cloud_s, p.overall_s);
        questions = r[i].questions;
    }
    for (size_t i = 0; i < n; i++)
        if (shown[i] && r[i].against)
            print_against(to, &r[i]);
    fprintf(to,
            "%zu questions; routed tokens and seconds are for 100 tokens of answers, prompts "
            "included;\nTTFT: median; TBT: SLM s by token of the small model, as in the paper\n",
            questions);
}
