/* eval_figures.c - computes what policies achieved from lines of items.h, without a model. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tools/lab/eval/eval.h"
#include "tools/lab/eval/items.h"

static const char HEADER[] =
    "task,form,pair,policy,share,score,questions,runs,accuracy,accuracy_low,accuracy_high,routed,"
    "tokens,cloud,calls,read,pgr,pgr_low,pgr_high,gain,gain_low,gain_high,relative_gain,against,"
    "against_routed,difference,difference_low,difference_high,equal,equal_low,equal_high\n";

/* One row: a policy at a share, in a form of a task, with one pair. */
struct figures_row {
    const struct items_line *at; /* [runs][n] */
    size_t n, runs;
};

struct figures {
    struct items items;
    struct figures_row *rows; /* [n] */
    size_t n;
    const char *against; /* or NULL */
    bool all;            /* it is every other policy, of rows with a router */
    bool compares;       /* a row has this policy */
    struct output_file out;
};

/* Of a row: itself, each model alone, and the policy that it is compared with. */
enum { OWN, EDGE, LARGE, OTHER, RESULTS };

/* Find the rows, in which each run has answered the same questions. */
static int figures_rows(struct figures *f, struct err *err)
{
    const struct items_line *at = f->items.at;
    f->rows = calloc(f->items.n, sizeof(*f->rows));
    if (!f->rows)
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    for (size_t i = 0, end; i < f->items.n; i = end) {
        struct figures_row *row = &f->rows[f->n++];
        row->at = &at[i];
        f->compares = f->compares || (f->against && !strcmp(at[i].policy, f->against));
        for (end = i; end < f->items.n && !strcmp(at[i].row, at[end].row); end++)
            row->n += at[end].run == at[i].run;
        row->runs = (end - i + row->n - 1) / row->n;
        for (size_t k = 0; k < row->runs * row->n; k++) {
            const struct items_line *of = &row->at[k % row->n], *is = &row->at[k];
            if (i + k < end && is->is.settings != row->at->is.settings)
                return err_set(err, ERR_ARG,
                               "%s: line %zu: policy %s: expected settings %016" PRIx64
                               ", as in %s: line %zu, found %016" PRIx64,
                               is->path, is->number, is->policy, row->at->is.settings,
                               row->at->path, row->at->number, is->is.settings);
            if (i + k < end && is->run == k / row->n + 1 && !strcmp(is->id, of->id))
                continue;
            return err_set(err, ERR_ARG,
                           "%s: line %zu: policy %s: expected its answer in run %zu, found none",
                           of->path, of->number, of->policy, k / row->n + 1);
        }
    }
    return !f->against || f->all || f->compares
               ? OK
               : err_set(err, ERR_ARG, "--against: expected one of the policies, found %s",
                         f->against);
}

/* True if both rows are of one form and pair, and at one share if both have one. */
static bool figures_beside(const struct figures_row *a, const struct figures_row *b)
{
    const struct items_line *x = a->at, *y = b->at;
    return !strcmp(x->of, y->of) && (!*x->share || !*y->share || !strcmp(x->share, y->share));
}

/* Return the one row of this policy beside another row. NULL: there is none, or there are several.
 */
static const struct figures_row *figures_find(const struct figures *f,
                                              const struct figures_row *beside, const char *policy)
{
    const struct figures_row *found = NULL;
    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->rows[i].at->policy, policy) != 0 || !figures_beside(beside, &f->rows[i]))
            continue;
        if (found)
            return NULL;
        found = &f->rows[i];
    }
    return found;
}

/* Let *r be what a row has achieved on the questions of another one; without questions if it lacks
 * one of them. */
static int figures_fill(struct eval_result *r, const struct eval_entry *e,
                        const struct figures_row *row, const struct figures_row *asked, bool citer,
                        struct err *err)
{
    int rc = OK;
    eval_result_begin(r, e, (double)NAN);
    r->closed = !strncmp(asked->at->of, "milli,", 6);
    for (size_t run = 0; rc == OK && row && run < row->runs; run++) {
        const struct items_line *l = row->at + run * row->n, *end = l + row->n;
        for (size_t i = 0; rc == OK && i < asked->n; i++) { /* both are sorted by id */
            while (l < end && strcmp(l->id, asked->at[i].id) < 0)
                l++;
            if (l == end || strcmp(l->id, asked->at[i].id) != 0) {
                eval_result_close(r);
                return OK;
            }
            const struct asked one = { .right = citer ? l->is.right_citer : l->is.right_answer,
                                       .stats = { .tokens = l->is.tokens, .cloud = l->is.cloud },
                                       .work = { .calls = l->is.calls, .prefilled = l->is.read } };
            rc = eval_result_add(r, &one, asked->at[i].is.group, err);
        }
        if (rc == OK)
            rc = eval_result_finish(r, err);
    }
    return rc;
}

/* Write a number after a comma, and the ends of its interval, if it has one; nothing of NaN. */
static void figures_number(FILE *to, double x)
{
    isnan(x) ? putc(',', to) : fprintf(to, ",%.6f", x);
}

static void figures_interval(FILE *to, double x, bool has, const struct statistics_interval *i)
{
    figures_number(to, x);
    figures_number(to, has ? i->low : (double)NAN);
    figures_number(to, has ? i->high : (double)NAN);
}

/* Print what a row has achieved by one score. */
static void figures_print(FILE *to, const struct items_line *l, const char *score,
                          const struct eval_result r[RESULTS])
{
    const struct statistics_interval accuracy = eval_result_interval(r);
    double n = (double)r->answers, right = eval_result_accuracy(r);
    double alone = r[EDGE].questions ? eval_result_accuracy(&r[EDGE]) : (double)NAN;
    fprintf(to, "%s,%s,%zu,%zu", l->row, score, r->questions, r->trainings);
    figures_interval(to, right, true, &accuracy);
    figures_number(to, eval_result_share(r));
    figures_number(to, (double)r->sum.tokens / n);
    figures_number(to, (double)r->sum.cloud / n);
    figures_number(to, (double)r->work.calls / n);
    figures_number(to, (double)r->work.prefilled / n);
    figures_interval(to, r->pgr, r->has_pgr_interval, &r->pgr_interval);
    figures_interval(to, right - alone, r->has_gain, &r->gain);
    figures_number(to, r->relative_gain);
    fprintf(to, ",%s", r->against ? r->against->label : "");
    figures_number(to, r->against ? r->against_share : (double)NAN);
    figures_interval(to, r->against ? r->difference : (double)NAN, r->against,
                     &r->difference_interval);
    figures_interval(to, r->has_equal ? r->equal : (double)NAN, r->has_equal, &r->equal_interval);
    putc('\n', to);
}

/* Compare a row with the other policy, as it is and at an equal share: this one is brought to the
 * other's by answers of a model alone, the large one's if it routes less. That means nothing of a
 * policy in which one model does all. */
static void figures_against(struct eval_result r[RESULTS])
{
    double its = eval_result_share(&r[OTHER]);
    bool more = eval_result_share(&r[OWN]) > its;
    eval_result_against(&r[OWN], &r[OTHER]);
    r[OWN].has_equal = its > 0 && its < 1 && r[more ? EDGE : LARGE].questions;
    if (!r[OWN].has_equal)
        return;
    eval_result_equal(&r[OTHER], &r[more ? EDGE : OWN], &r[more ? OWN : LARGE]);
    r[OWN].equal = -r[OTHER].equal;
    r[OWN].equal_interval =
        (struct statistics_interval){ -r[OTHER].equal_interval.high, -r[OTHER].equal_interval.low };
}

/* Fill and compare with another row, which may be NULL, and print. */
static int figures_compare(const struct figures *f, const struct figures_row *row,
                           const struct figures_row *other, bool citer,
                           struct eval_result r[RESULTS], struct err *err)
{
    struct eval_entry against = { 0 };
    snprintf(against.label, sizeof(against.label), "%s", other ? other->at->policy : "");
    int rc = figures_fill(&r[OTHER], &against, other, row, citer, err);
    r->against = NULL;
    r->has_equal = false;
    if (rc == OK && r[OTHER].questions && other != row)
        figures_against(r);
    bool says = r->against || !f->all || !other;
    if (rc == OK && says && !(citer && r->closed)) /* milli has no rule of CITER's */
        figures_print(f->out.f, row->at, citer ? "citer" : "answer", r);
    eval_result_close(&r[OTHER]);
    return rc;
}

/* Let r be what a row has achieved, and each model alone on its questions. */
static int figures_begin(const struct figures *f, const struct figures_row *row, bool citer,
                         struct eval_result r[RESULTS], struct err *err)
{
    static const struct eval_entry entry;
    const struct figures_row *rows[OTHER] = { row, figures_find(f, row, "never"),
                                              figures_find(f, row, "always") };
    int rc = OK;
    for (size_t i = 0; rc == OK && i < OTHER; i++)
        rc = figures_fill(&r[i], &entry, rows[i], row, citer, err);
    if (rc == OK && r[EDGE].questions)
        eval_result_compare(&r[OWN], &r[EDGE], r[LARGE].questions ? &r[LARGE] : NULL);
    return rc;
}

static void figures_end(struct eval_result r[RESULTS])
{
    for (size_t i = 0; i < OTHER; i++)
        eval_result_close(&r[i]);
}

/* Return how many of a row's answers are to questions that the other one has answered, too, and
 * copy them into `to`, if it is not NULL. */
static size_t figures_common(const struct figures_row *row, const struct figures_row *other,
                             struct items_line *to)
{
    size_t n = 0;
    for (size_t i = 0, k = 0; i < row->runs * row->n; i++) { /* a run is sorted by id */
        k = i % row->n ? k : 0;
        while (k < other->n && strcmp(other->at[k].id, row->at[i].id) < 0)
            k++;
        if (k == other->n || strcmp(other->at[k].id, row->at[i].id) != 0)
            continue;
        if (to)
            to[n] = row->at[i];
        n++;
    }
    return n;
}

/* Compare a row with another one that has answered a part of its questions, on that part. */
static int figures_part(const struct figures *f, const struct figures_row *row,
                        const struct figures_row *other, bool citer, size_t common, struct err *err)
{
    struct eval_result r[RESULTS] = { { 0 } };
    struct figures_row part = { .n = common / row->runs, .runs = row->runs };
    if (!common)
        return OK;
    struct items_line *at = malloc(common * sizeof(*at));
    if (!at)
        return err_set(err, ERR_NOMEM, "eval: out of memory");
    figures_common(row, other, at);
    part.at = at;
    int rc = figures_begin(f, &part, citer, r, err);
    if (rc == OK)
        rc = figures_compare(f, &part, other, citer, r, err);
    figures_end(r);
    free(at);
    return rc;
}

/* Compute and print a row by one score, and then its comparisons. */
static int figures_row(const struct figures *f, const struct figures_row *row, bool citer,
                       struct err *err)
{
    struct eval_result r[RESULTS] = { { 0 } };
    char name[ITEMS_WORD];
    enum policy policy;
    int rc = figures_begin(f, row, citer, r, err);
    if (rc == OK)
        rc = figures_compare(
            f, row, f->against && !f->all ? figures_find(f, row, f->against) : NULL, citer, r, err);
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(row->at->policy, "="), row->at->policy);
    bool routes = f->all && policy_parse(&policy, name) && policy_reads_router(policy);
    for (size_t i = 0; rc == OK && routes && i < f->n; i++) {
        const struct figures_row *other = &f->rows[i];
        if (!strcmp(other->at->policy, row->at->policy) || !figures_beside(row, other))
            continue;
        size_t common = figures_common(row, other, NULL);
        rc = common == row->runs * row->n ? figures_compare(f, row, other, citer, r, err)
                                          : figures_part(f, row, other, citer, common, err);
    }
    figures_end(r);
    return rc;
}

int eval_figures(const struct eval_options *o, struct err *err)
{
    struct figures f = { .against = o->against, .all = o->against && !strcmp(o->against, "all") };
    int rc = o->json || o->table || o->items
                 ? err_set(err, ERR_ARG, "--merge: of items, expected no output but --csv")
                 : output_file_open(&f.out, o->csv ? o->csv : "-", err);
    if (rc == OK)
        rc = items_read(&f.items, o->parts, o->nparts, err);
    if (rc == OK)
        rc = figures_rows(&f, err);
    if (rc == OK)
        fputs(HEADER, f.out.f);
    for (size_t i = 0; rc == OK && i < 2 * f.n; i++)
        rc = figures_row(&f, &f.rows[i / 2], i % 2 == 0, err);
    int end = output_file_close(&f.out, rc == OK, rc == OK ? err : NULL);
    free(f.rows);
    free(f.items.at);
    return rc == OK ? end : rc;
}
