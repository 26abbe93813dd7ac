#include "tools/lab/eval/eval_result.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/bench/row.h"

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

static const char *print_text(const char *text)
{
    return *text ? text : NULL;
}

int eval_print_json(const struct eval_options *o, const struct eval_result *r, struct err *err)
{
    struct row f = { .format = "jsonl", .flags = JSON_COMPACT | JSON_REAL_PRECISION(9) };
    const struct statistics_interval accuracy = eval_result_interval(r);
    const struct eval_entry *e = r->entry;
    char seed[24];
    snprintf(seed, sizeof(seed), "%" PRIu64, o->task.seed);
    const char *const texts[][2] = {
        { "task", o->task.name },
        { "policy", eval_entry_policy(e) },
        { "router", print_text(e->known.name) },
        { "router_sha256", print_text(e->known.sha256) },
        { "router_fingerprint", print_text(e->known.fingerprint) },
        { "seed", seed },
        { "against", r->against ? r->against->label : NULL },
    };
    const struct {
        const char *name;
        double value;
        int digits;
    } numbers[] = {
        { "threshold", (double)r->threshold, -9 }, /* all digits of a float */
        { "tie", isnan(r->threshold) ? (double)NAN : (double)r->tie, 6 },
        { "target", r->target, 6 },
        { "questions", (double)r->questions, 0 },
        { "left_out", (double)r->left_out, 0 },
        { "right", (double)r->right, 0 },
        { "no_answer", (double)r->no_answer, 0 },
        { "truncated", (double)r->truncated, 0 },
        { "tokens", (double)r->sum.tokens, 0 },
        { "cloud", (double)r->sum.cloud, 0 },
        { "fallback", (double)r->sum.fallback, 0 },
        { "memo", (double)r->sum.memo, 0 },
        { "prompt_tokens", (double)r->sum.prompt_tokens, 0 },
        { "calls", (double)r->work.calls, 0 },
        { "prefilled", (double)r->work.prefilled, 0 },
        { "cached", (double)r->work.cached, 0 },
        { "decoded", (double)r->work.decoded, 0 },
        { "accuracy", eval_result_accuracy(r), 6 },
        { "accuracy_low", accuracy.low, 6 },
        { "accuracy_high", accuracy.high, 6 },
        { "citer", print_citer(o, r), 6 },
        { "pgr", r->pgr, 6 },
        { "difference", r->difference, 6 },
        { "difference_low", r->difference_interval.low, 6 },
        { "difference_high", r->difference_interval.high, 6 },
        { "ms", print_mean(r->sum.total_ms, r), 3 },
        { "edge_ms", print_mean(r->sum.edge_ms, r), 3 },
        { "ttft_ms", eval_result_ttft(r), 3 },
        { "routed", eval_result_share(r), 6 },
        { "work", eval_result_work(r), 6 },
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        row_text(&f, texts[i][0], NULL, texts[i][1]);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        row_put(&f, numbers[i].name, numbers[i].value, numbers[i].digits);
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

/* Print a line of the usual table, behind policy and threshold. */
static void print_row(FILE *to, const struct eval_options *o, const struct eval_result *r)
{
    char citer[16], pgr[16];
    const struct statistics_interval accuracy = eval_result_interval(r);
    fprintf(to, "  %5.1f %%  %5.1f - %5.1f  %7s  %5s  %6.2f %%  %6.2f  %5.1f %%  %9.1f\n",
            100 * eval_result_accuracy(r), 100 * accuracy.low, 100 * accuracy.high,
            print_cell(citer, 1, 100 * print_citer(o, r)), print_cell(pgr, 3, r->pgr),
            100 * eval_result_share(r), print_mean((double)r->work.calls, r),
            100 * eval_result_work(r), print_mean(r->sum.total_ms, r));
}

/* Print a line of the paper's table. */
static void print_paper_row(FILE *to, const struct eval_result *r)
{
    char tbt[16];
    double all = r->sum.tokens ? (double)r->sum.tokens : 1, own = all - (double)r->sum.cloud;
    double seconds = 0.1 / all; /* a ms of these tokens, in seconds of 100 tokens */
    fprintf(to, "  %6.2f  %7.3f  %6.3f  %6s  %12.3f  %9.3f\n", 100 * eval_result_share(r),
            r->sum.edge_ms * seconds, eval_result_ttft(r) / 1000,
            print_cell(tbt, 3, own > 0 ? r->sum.edge_ms / 1000 / own : (double)NAN),
            (r->sum.total_ms - r->sum.edge_ms) * seconds, r->sum.total_ms * seconds);
}

void eval_print_table(FILE *to, const struct eval_options *o, const struct eval_result *r, size_t n)
{
    size_t width = strlen("policy  ");
    for (size_t i = 0; i < n; i++)
        width = strlen(r[i].entry->label) > width ? strlen(r[i].entry->label) : width;
    fprintf(to, "%-*s threshold%s\n", (int)width, "policy",
            o->as_paper ? "  routed    SLM s  TTFT s   TBT s  comm + LLM s  overall s"
                        : "    right  95 % interval  CITER's    PGR    routed   calls     work  "
                          "ms/answer");
    for (size_t i = 0; i < n; i++) {
        char threshold[16];
        fprintf(to, "%-*s %9s", (int)width, r[i].entry->label,
                print_cell(threshold, 4, (double)r[i].threshold));
        if (o->as_paper)
            print_paper_row(to, &r[i]);
        else
            print_row(to, o, &r[i]);
    }
    print_against(to, r, n);
    if (!o->as_paper)
        print_notes(to, r, n);
    else
        fprintf(to,
                "%zu questions; routed tokens and seconds are for 100 tokens of answers, prompts "
                "included;\nTTFT: median; TBT: SLM s by token of the small model, as in the "
                "paper\n",
                r->questions);
}
