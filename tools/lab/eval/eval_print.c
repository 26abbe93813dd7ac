#include "tools/lab/eval/eval_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/bench/row.h"
#include "tools/lab/eval/paper_table.h"

/* Return the accuracy by CITER's own rule, which milli's answers are not judged by: NaN. */
static double print_citer(const struct eval_options *o, const struct eval_result *r)
{
    return !strcmp(o->task.name, "milli") || !r->questions
               ? (double)NAN
               : (double)r->citer / (double)r->questions;
}

static double print_mean(double sum, const struct eval_result *r)
{
    return r->questions ? sum / (double)r->questions : 0;
}

int eval_print_json(const struct eval_options *o, const struct eval_result *r, struct err *err)
{
    struct row f = { .format = "jsonl", .flags = JSON_COMPACT | JSON_REAL_PRECISION(9) };
    const struct statistics_interval accuracy = eval_result_interval(r);
    const struct {
        const char *name;
        size_t n;
    } counts[] = {
        { "questions", r->questions }, { "left_out", r->left_out },
        { "right", r->right },         { "no_answer", r->no_answer },
        { "truncated", r->truncated }, { "tokens", r->sum.tokens },
        { "cloud", r->sum.cloud },     { "fallback", r->sum.fallback },
        { "memo", r->sum.memo },       { "prompt_tokens", r->sum.prompt_tokens },
        { "calls", r->work.calls },    { "prefilled", r->work.prefilled },
        { "cached", r->work.cached },  { "decoded", r->work.decoded },
    };
    char seed[24];
    snprintf(seed, sizeof(seed), "%" PRIu64, o->task.seed);
    row_text(&f, "task", NULL, o->task.name);
    row_text(&f, "policy", NULL, eval_entry_policy(r->entry));
#define X(name, bytes) \
    row_text(&f, #name, NULL, *r->entry->known.name ? r->entry->known.name : NULL);
    EVAL_ROUTER(X)
#undef X
    row_put(&f, "threshold", (double)r->threshold, -9); /* all digits of a float */
    row_put(&f, "tie", isnan(r->threshold) ? (double)NAN : (double)r->tie, 6);
    row_put(&f, "target", r->target, 6);
    row_text(&f, "seed", NULL, seed);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        row_put(&f, counts[i].name, (double)counts[i].n, 0);
    row_put(&f, "accuracy", eval_result_accuracy(r), 6);
    row_put(&f, "accuracy_low", accuracy.low, 6);
    row_put(&f, "accuracy_high", accuracy.high, 6);
    row_put(&f, "citer", print_citer(o, r), 6);
    row_put(&f, "pgr", r->pgr, 6);
    row_text(&f, "against", NULL, r->against ? r->against->label : NULL);
    row_put(&f, "difference", r->against ? r->difference : (double)NAN, 6);
    row_put(&f, "difference_low", r->against ? r->difference_interval.low : (double)NAN, 6);
    row_put(&f, "difference_high", r->against ? r->difference_interval.high : (double)NAN, 6);
    row_put(&f, "ms", print_mean(r->sum.total_ms, r), 3);
    row_put(&f, "edge_ms", print_mean(r->sum.edge_ms, r), 3);
    row_put(&f, "ttft_ms", eval_result_ttft(r), 3);
    row_put(&f, "routed", eval_result_share(r), 6);
    row_put(&f, "work", eval_result_work(r), 6);
    int rc = row_print(&f, err);
    fflush(stdout);
    return rc;
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

/* Return the width of the first column. */
static int print_width(const struct eval_result *r, size_t n)
{
    int width = 8;
    for (size_t i = 0; i < n; i++)
        if ((int)strlen(r[i].entry->label) > width)
            width = (int)strlen(r[i].entry->label);
    return width;
}

/* Print how results compare with the one of --against. */
static void print_against(FILE *to, const struct eval_result *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!r[i].against)
            continue;
        fprintf(to, "%s, against %s: accuracy %+.1f points", r[i].entry->label, r[i].against->label,
                100 * r[i].difference);
        if (!isnan(r[i].difference_interval.low))
            fprintf(to, " (95 %%: %+.1f to %+.1f)", 100 * r[i].difference_interval.low,
                    100 * r[i].difference_interval.high);
        putc('\n', to);
    }
}

/* Print what the columns do not say. */
static void print_notes(FILE *to, const struct eval_result *r, size_t n)
{
    bool query = false;
    for (size_t i = 0; i < n; i++) {
        query = query || (r[i].entry->query && isnan(r[i].target));
        if (r[i].sum.fallback)
            fprintf(to,
                    "%s: %zu of the tokens that were routed are the small model's: the cloud "
                    "failed\n",
                    r[i].entry->label, r[i].sum.fallback);
    }
    fprintf(to,
            "%zu questions; right, as a reader takes the answers; CITER's: by the rule of its "
            "scores;\nPGR: gap recovered, 0 as never, 1 as always; calls and ms: of an answer; "
            "work: ids that\nthe large model computes, per id of prompt and answer\n",
            r->questions);
    if (query)
        fprintf(to, "query: a threshold that was found for tokens says little of answers; "
                    "--target-routed\nfinds one\n");
    if (r->left_out)
        fprintf(to, "left out: %zu items whose prompts are longer than the context\n", r->left_out);
}

void eval_print_table(FILE *to, const struct eval_options *o, const struct eval_result *r, size_t n)
{
    int width = print_width(r, n);
    fprintf(to,
            "%-*s threshold    right  95 %% interval  CITER's    PGR    routed   calls     work  "
            "ms/answer\n",
            width, "policy");
    for (size_t i = 0; i < n; i++) {
        char threshold[16], citer[16], pgr[16];
        const struct statistics_interval accuracy = eval_result_interval(&r[i]);
        fprintf(to,
                "%-*s %9s  %5.1f %%  %5.1f - %5.1f  %7s  %5s  %6.2f %%  %6.2f  %5.1f %%  %9.1f\n",
                width, r[i].entry->label, print_cell(threshold, 4, (double)r[i].threshold),
                100 * eval_result_accuracy(&r[i]), 100 * accuracy.low, 100 * accuracy.high,
                print_cell(citer, 1, 100 * print_citer(o, &r[i])), print_cell(pgr, 3, r[i].pgr),
                100 * eval_result_share(&r[i]), print_mean((double)r[i].work.calls, &r[i]),
                100 * eval_result_work(&r[i]), print_mean(r[i].sum.total_ms, &r[i]));
    }
    print_against(to, r, n);
    print_notes(to, r, n);
}

void eval_print_paper(FILE *to, const struct eval_result *r, size_t n)
{
    int width = print_width(r, n);
    fprintf(to, "%-*s threshold  routed    SLM s  TTFT s   TBT s  comm + LLM s  overall s\n", width,
            "policy");
    for (size_t i = 0; i < n; i++) {
        char threshold[16], tbt[16];
        struct paper_row p =
            paper_row_make((double)r[i].threshold, r[i].sum.tokens, r[i].sum.cloud,
                           r[i].sum.edge_ms, eval_result_ttft(&r[i]), r[i].sum.total_ms);
        fprintf(to, "%-*s %9s  %6.2f  %7.3f  %6.3f  %6s  %12.3f  %9.3f\n", width, r[i].entry->label,
                print_cell(threshold, 4, p.threshold), p.routed, p.edge_s, p.ttft_s,
                print_cell(tbt, 3, p.tbt_s), p.cloud_s, p.overall_s);
    }
    print_against(to, r, n);
    fprintf(to,
            "%zu questions; routed tokens and seconds are for 100 tokens of answers, prompts "
            "included;\nTTFT: median; TBT: SLM s by token of the small model, as in the paper\n",
            r->questions);
}
