/* eval_agree.c - how near a small model and a router come to the text of a large one, over the
 * share of tokens routed: real language, and models that nobody trained for this. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "router/learn/calibrate.h"
#include "router/mizzle.h"
#include "router/router.h"
#include "tools/cli/setup.h"
#include "tools/cli/shared_options.h"
#include "tools/eval/agree.h"
#include "tools/eval/eval.h"
#include "tools/eval/eval_origin.h"
#include "tools/eval/eval_list.h"
#include "tools/eval/eval_plan.h"
#include "tools/eval/statistics.h"

enum { DEFAULT_TEXTS = 20, DEFAULT_LENGTH = 64 };

static const double usual_shares[] = { 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5 };

struct agree_row { /* one policy at one share */
    const char *label;
    struct agree_how how;
    double target;   /* share aimed at; NaN: none */
    float threshold; /* NaN: none */
    size_t tokens, cloud, equal;
    double nats;
};

struct agree_run {
    const struct eval_options *o;
    struct agree a;
    const double *shares; /* [nshares] */
    size_t nshares;
    struct agree_how how; /* the one that is calibrated */
    double edge, cloud;   /* share of equal tokens of never and always */
};

/* Write all answers and add them up. */
static int eval_agree_measure(struct agree_row *row, struct agree_run *r, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; rc == OK && i < r->a.nprompts; i++) {
        struct agree_answer one;
        rc = agree_write(&one, &r->a, i, &row->how, row->threshold, err);
        if (rc != OK)
            break;
        row->tokens += one.tokens;
        row->cloud += one.cloud;
        row->equal += one.equal;
        row->nats += one.nats;
    }
    return rc;
}

/* Callback of the calibration. */
static int eval_agree_answer(void *arg, size_t i, float threshold, struct calibrate_answer *out,
                             struct err *err)
{
    struct agree_run *r = arg;
    struct agree_answer one;
    int rc = agree_write(&one, &r->a, i, &r->how, threshold, err);
    *out = (struct calibrate_answer){ .tokens = one.tokens,
                                      .cloud = one.cloud,
                                      .scores = r->a.scores };
    return rc;
}

static double eval_agree_equal(const struct agree_row *row)
{
    return row->tokens ? (double)row->equal / (double)row->tokens : 0;
}

/* Write a number for JSON, which has no NaN. */
static const char *eval_agree_number(char out[32], double x, const char *form)
{
    if (isnan(x))
        return "null";
    snprintf(out, 32, form, x);
    return out;
}

/* Print a label as JSON; that of a router has the name of its file. */
static void eval_agree_label(const char *label)
{
    json_t *s = json_string(label);
    if (!s || json_dumpf(s, stdout, JSON_ENCODE_ANY) != 0)
        printf("null");
    json_decref(s);
}

/* Print the numbers of one row as JSON, after its policy. */
static void eval_agree_json(const struct agree_run *r, const struct agree_row *row, double routed,
                            double nats, double gap)
{
    char target[32], threshold[32], pgr[32];
    printf("{\"task\":\"agree\",\"policy\":");
    eval_agree_label(row->label);
    printf(",\"target\":%s,\"threshold\":%s,\"questions\":%zu,\"tokens\":%zu,\"cloud\":%zu,"
           "\"equal\":%zu,\"accuracy\":%.6f,\"routed\":%.6f,\"nats\":%.6f,\"pgr\":%s,"
           "\"isa\":\"%s\"",
           eval_agree_number(target, row->target, "%.9g"),
           eval_agree_number(threshold, (double)row->threshold, "%.9g"), r->a.nprompts, row->tokens,
           row->cloud, row->equal, eval_agree_equal(row), routed, nats,
           eval_agree_number(pgr, gap, "%.6f"), r->a.edge.kernels.isa);
    eval_origin_end(&r->a.edge, r->a.kv, &r->a.cloud, NULL);
}

static void eval_agree_print(const struct agree_run *r, const struct agree_row *row)
{
    char threshold[32];
    double gap = (double)NAN, routed = row->tokens ? (double)row->cloud / (double)row->tokens : 0;
    double nats = row->tokens ? row->nats / (double)row->tokens : 0;
    if (!statistics_pgr(&gap, eval_agree_equal(row), r->edge, r->cloud))
        gap = (double)NAN;
    if (r->o->json)
        eval_agree_json(r, row, routed, nats, gap);
    else
        printf("%-9s  %9s  %6.2f %%  %6.2f %%  %8.4f\n", row->label,
               isnan(row->threshold) ? "-"
                                     : eval_agree_number(threshold, (double)row->threshold, "%.4f"),
               100 * routed, 100 * eval_agree_equal(row), nats);
    fflush(stdout);
}

/* Measure one policy and print the result. c finds the threshold of the share `target` on the very
 * texts that are measured, so that policies are compared at the same share; NULL: it has none. */
static int eval_agree_at(struct agree_run *r, struct agree_row *row, struct calibration *c,
                         struct err *err)
{
    struct calibrate_result found = { .threshold = NAN };
    int rc = c ? calibrate_share(&found, c, row->target, err) : OK;
    row->threshold = found.threshold;
    return rc ? rc : eval_agree_measure(row, r, err);
}

/* Measure a policy with scores at all shares. */
static int eval_agree_policy(struct agree_run *r, const struct eval_entry *e, struct err *err)
{
    struct calibration *c;
    const struct calibrate_source source = { .answer = eval_agree_answer,
                                             .arg = r,
                                             .n = r->a.nprompts };
    r->how = (struct agree_how){ e->policy, e->router };
    int rc = calibrate_open(&c, &source, err);
    for (size_t i = 0; rc == OK && i < r->nshares; i++) {
        struct agree_row row = { .label = e->label, .how = r->how, .target = r->shares[i] };
        rc = eval_agree_at(r, &row, c, err);
        if (rc == OK)
            eval_agree_print(r, &row);
    }
    calibrate_close(c);
    return rc;
}

/* Find where the models differ on the texts themselves, and how well scores tell; print it. */
static int eval_agree_teacher(struct agree_run *r, const struct eval_list *l, struct err *err)
{
    struct agree_how hows[AGREE_SCORES] = { { POLICY_MAX_PROB, NULL },
                                            { POLICY_ENTROPY, NULL },
                                            { POLICY_MARGIN, NULL } };
    const char *labels[AGREE_SCORES] = { "max-prob", "entropy", "margin" };
    struct agree_teacher t;
    size_t n = 3;
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].router) {
            hows[n] = (struct agree_how){ l->at[i].policy, l->at[i].router };
            labels[n++] = l->at[i].label;
        }
    int rc = agree_teacher(&t, &r->a, hows, n, err);
    if (rc != OK)
        return rc;
    if (r->o->json)
        printf("{\"task\":\"agree\",\"of\":\"texts\",\"tokens\":%zu,\"differ\":%zu,\"auc\":{",
               t.tokens, t.tokens - t.same);
    else
        printf("%zu of %zu tokens differ; AUC of the scores:", t.tokens - t.same, t.tokens);
    for (size_t i = 0; i < n; i++) {
        char auc[32];
        printf("%s", i ? "," : "");
        if (r->o->json)
            eval_agree_label(labels[i]);
        else
            printf(" %s", labels[i]);
        printf("%s%s", r->o->json ? ":" : " ", eval_agree_number(auc, t.auc[i], "%.4f"));
    }
    printf(r->o->json ? "}}\n" : "\n\npolicy     threshold    routed     equal  nats/token\n");
    return OK;
}

/* Measure the texts, both models alone and the policies of the list. */
static int eval_agree_run(struct agree_run *r, const struct eval_list *l, struct err *err)
{
    struct agree_row edge = { .label = "never", .how = { POLICY_NEVER, NULL } };
    struct agree_row cloud = { .label = "always", .how = { POLICY_ALWAYS, NULL } };
    edge.target = cloud.target = (double)NAN;
    int rc = eval_agree_teacher(r, l, err);
    if (rc == OK)
        rc = eval_agree_at(r, &edge, NULL, err);
    if (rc == OK)
        rc = eval_agree_at(r, &cloud, NULL, err);
    r->edge = eval_agree_equal(&edge);
    r->cloud = eval_agree_equal(&cloud);
    for (size_t i = 0; rc == OK && i < l->n; i++) {
        if (eval_entry_scores(&l->at[i]))
            rc = eval_agree_policy(r, &l->at[i], err);
        else
            eval_agree_print(r, l->at[i].policy == POLICY_NEVER ? &edge : &cloud);
    }
    return rc;
}

/* Open the routers of the list; one without a file gets that of --router, if it was given. */
static int eval_agree_routers(struct eval_list *l, struct agree *a, struct err *err)
{
    struct mizzle_options options;
    for (size_t i = 0; i < l->n; i++) {
        struct eval_entry *e = &l->at[i];
        if (!policy_reads_router(e->policy) || e->file || !route_options.router)
            continue;
        e->file = strdup(route_options.router);
        if (!e->file)
            return err_set(err, ERR_NOMEM, "agree: out of memory");
    }
    int rc = setup_options(&options, err);
    if (rc == OK)
        rc = eval_list_open(l, &a->edge, &options, POLICY_NEVER, 1, err);
    for (size_t i = 0; rc == OK && i < l->n; i++)
        if (l->at[i].router)
            rc = agree_prepare(a, l->at[i].router, err);
    return rc;
}

/* Check the options and parse policies and shares. */
static int eval_agree_options(struct eval_list *l, struct eval_plan *p,
                              const struct eval_options *o, struct err *err)
{
    static const char usual[] = "never,always,max-prob,entropy,margin,random";
    static const enum policy others[] = { POLICY_ORACLE, POLICY_PRICE, POLICY_COMBINED,
                                          POLICY_POSITION, POLICY_QUERY };
    if (!cloud_option_values.model)
        return err_set(err, ERR_ARG, "--task agree: expected --cloud-model FILE, found none");
    if (!o->data)
        return err_set(err, ERR_ARG, "--task agree: expected --data FILE, found none");
    int rc = eval_list_parse(l, o->policies ? o->policies : usual, err);
    for (size_t i = 0; rc == OK && i < sizeof(others) / sizeof(others[0]); i++)
        if (eval_list_find(l, others[i]))
            rc = err_set(err, ERR_ARG, "--task agree: expected policies other than %s",
                         policy_name(others[i]));
    if (rc == OK && eval_list_has(l, "slot"))
        rc = err_set(err, ERR_ARG, "--task agree: expected policies other than slot");
    return rc ? rc : eval_plan_shares(p, o, NAN, err);
}

int eval_agree(const struct eval_options *o, struct err *err)
{
    struct eval_list list = { 0 };
    struct eval_plan plan = { 0 };
    struct agree_run r = { .o = o };
    const struct agree_options options = {
        .cloud = cloud_option_values.model,
        .data = o->data,
        .prompts = o->questions ? o->questions : (size_t)DEFAULT_TEXTS,
        .length = o->max_tokens ? o->max_tokens : (size_t)DEFAULT_LENGTH,
        .seed = o->seed
    };
    int rc = eval_agree_options(&list, &plan, o, err);
    r.shares = plan.ntargets ? plan.targets : usual_shares;
    r.nshares = plan.ntargets ? plan.ntargets : sizeof(usual_shares) / sizeof(usual_shares[0]);
    if (rc == OK)
        rc = agree_open(&r.a, &options, err);
    if (rc == OK)
        rc = eval_agree_routers(&list, &r.a, err);
    if (rc == OK)
        rc = eval_agree_run(&r, &list, err);
    eval_list_close(&list);
    agree_close(&r.a);
    return rc;
}
