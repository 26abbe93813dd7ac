/* eval_agree.c - how far a small model and a router come towards the text of a large one, over the
 * share of tokens routed: real language, and models that nobody trained for this. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "router/learn/calibrate.h"
#include "router/router.h"
#include "tools/cli/shared_options.h"
#include "tools/eval/agree.h"
#include "tools/eval/eval.h"
#include "tools/eval/statistics.h"

enum { DEFAULT_TEXTS = 20, DEFAULT_LENGTH = 64 };

static const double shares[] = { 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5 };

struct agree_row {
    enum policy policy;
    double target;   /* share aimed at; NaN: none */
    float threshold; /* NaN: none */
    size_t tokens, cloud, equal;
    double nats;
};

struct agree_run {
    const struct eval_options *o;
    struct agree a;
    enum policy policy; /* being calibrated */
    double edge, cloud; /* share of equal tokens of never and always */
};

/* Write all answers and add them up. */
static int eval_agree_measure(struct agree_row *row, struct agree_run *r, struct err *err)
{
    int rc = OK;
    for (size_t i = 0; rc == OK && i < r->a.nprompts; i++) {
        struct agree_answer one;
        rc = agree_write(&one, &r->a, i, row->policy, row->threshold, err);
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
    int rc = agree_write(&one, &r->a, i, r->policy, threshold, err);
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
    snprintf(out, 32, isnan(x) ? "null" : form, x);
    return out;
}

static void eval_agree_print(const struct agree_run *r, const struct agree_row *row)
{
    char target[32], threshold[32], pgr[32];
    double gap = NAN, routed = row->tokens ? (double)row->cloud / (double)row->tokens : 0;
    double nats = row->tokens ? row->nats / (double)row->tokens : 0;
    if (!statistics_pgr(&gap, eval_agree_equal(row), r->edge, r->cloud))
        gap = NAN;
    if (r->o->json)
        printf("{\"task\":\"agree\",\"policy\":\"%s\",\"target\":%s,\"threshold\":%s,"
               "\"questions\":%zu,\"tokens\":%zu,\"cloud\":%zu,\"equal\":%zu,"
               "\"accuracy\":%.6f,\"routed\":%.6f,\"nats\":%.6f,\"pgr\":%s,\"isa\":\"%s\"}\n",
               policy_name(row->policy), eval_agree_number(target, row->target, "%.9g"),
               eval_agree_number(threshold, (double)row->threshold, "%.9g"), r->a.nprompts,
               row->tokens, row->cloud, row->equal, eval_agree_equal(row), routed, nats,
               eval_agree_number(pgr, gap, "%.6f"), r->a.edge.kernels.isa);
    else
        printf("%-9s  %9s  %6.2f %%  %6.2f %%  %8.4f\n", policy_name(row->policy),
               isnan(row->threshold) ? "-"
                                     : eval_agree_number(threshold, (double)row->threshold, "%.4f"),
               100 * routed, 100 * eval_agree_equal(row), nats);
    fflush(stdout);
}

/* Measure one policy at one share (NaN: it has none) and print the result. */
static int eval_agree_at(struct agree_run *r, struct calibration *c, enum policy policy,
                         double target, struct agree_row *out, struct err *err)
{
    struct calibrate_result found = { .threshold = NAN };
    int rc = c ? calibrate_share(&found, c, target, err) : OK;
    *out = (struct agree_row){ .policy = policy, .target = target, .threshold = found.threshold };
    return rc ? rc : eval_agree_measure(out, r, err);
}

/* Measure a policy with scores at all shares. The threshold of a share is found on the texts that
 * are measured, so that policies are compared at the same share. */
static int eval_agree_policy(struct agree_run *r, enum policy policy, struct err *err)
{
    struct calibration *c;
    const struct calibrate_source source = { eval_agree_answer, r, r->a.nprompts };
    bool one = !isnan(r->o->target);
    size_t n = one ? 1 : sizeof(shares) / sizeof(*shares);
    r->policy = policy;
    int rc = calibrate_open(&c, &source, err);
    for (size_t i = 0; rc == OK && i < n; i++) {
        struct agree_row row;
        rc = eval_agree_at(r, c, policy, one ? (double)r->o->target : shares[i], &row, err);
        if (rc == OK)
            eval_agree_print(r, &row);
    }
    calibrate_close(c);
    return rc;
}

/* Print where the models differ on the texts themselves. */
static void eval_agree_print_teacher(const struct agree_run *r, const struct agree_teacher *t)
{
    char auc[32];
    if (r->o->json)
        printf("{\"task\":\"agree\",\"of\":\"texts\",\"tokens\":%zu,\"differ\":%zu,\"auc\":{", t->n,
               t->n - t->same);
    else
        printf("%zu of %zu tokens differ; AUC of the score for an equal token:", t->n - t->same,
               t->n);
    const char *comma = "";
    for (size_t p = 0; p < AGREE_POLICIES; p++)
        if (p != POLICY_RANDOM && p != POLICY_ALWAYS && p != POLICY_NEVER &&
            (!policy_reads_router((enum policy)p) || !isnan(t->auc[p]))) {
            printf(r->o->json ? "%s\"%s\":%s" : "%s %s %s", comma, policy_name((enum policy)p),
                   eval_agree_number(auc, t->auc[p], "%.4f"));
            comma = ",";
        }
    printf(r->o->json ? "}}\n" : "\n\npolicy     threshold    routed     equal  nats/token\n");
}

/* Measure the texts, both models alone and the policies of the list. */
static int eval_agree_run(struct agree_run *r, const enum policy *list, size_t n, struct err *err)
{
    struct agree_teacher t;
    struct agree_row edge, cloud;
    int rc = agree_teacher(&t, &r->a, err);
    if (rc == OK)
        rc = eval_agree_at(r, NULL, POLICY_NEVER, NAN, &edge, err);
    if (rc == OK)
        rc = eval_agree_at(r, NULL, POLICY_ALWAYS, NAN, &cloud, err);
    if (rc != OK)
        return rc;
    r->edge = eval_agree_equal(&edge);
    r->cloud = eval_agree_equal(&cloud);
    eval_agree_print_teacher(r, &t);
    for (size_t i = 0; rc == OK && i < n; i++) {
        if (list[i] == POLICY_NEVER || list[i] == POLICY_ALWAYS)
            eval_agree_print(r, list[i] == POLICY_NEVER ? &edge : &cloud);
        else
            rc = eval_agree_policy(r, list[i], err);
    }
    return rc;
}

/* Check that each policy of the list can be measured here. */
static int eval_agree_check(const struct agree *a, const enum policy *list, size_t n,
                            struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        bool table = list[i] == POLICY_CONTEXT;
        if (list[i] == POLICY_ORACLE)
            return err_set(err, ERR_ARG, "--policy: oracle does not go with --task agree");
        if (policy_reads_router(list[i]) && (!a->router || router_is_table(a->router) != table))
            return err_set(err, ERR_ARG, "--policy: %s needs its --router", policy_name(list[i]));
    }
    return OK;
}

int eval_agree(const struct eval_options *o, struct err *err)
{
    static const char usual[] = "never,always,max-prob,entropy,margin,random";
    struct agree_run r = { .o = o };
    enum policy list[EVAL_POLICIES];
    size_t n = 0;
    int rc = eval_policies(list, &n, o->policies ? o->policies : usual, err);
    if (rc == OK && !cloud_option_values.model)
        rc = err_set(err, ERR_ARG, "--task agree: expected --cloud-model FILE, found none");
    if (rc == OK && !o->data)
        rc = err_set(err, ERR_ARG, "--task agree: expected --data FILE, found none");
    if (rc != OK)
        return rc;
    rc = agree_open(&r.a, cloud_option_values.model, o->data,
                    o->questions ? o->questions : (size_t)DEFAULT_TEXTS,
                    o->max_tokens ? o->max_tokens : (size_t)DEFAULT_LENGTH, err);
    r.a.seed = o->seed;
    if (rc == OK)
        rc = eval_agree_check(&r.a, list, n, err);
    if (rc == OK)
        rc = eval_agree_run(&r, list, n, err);
    agree_close(&r.a);
    return rc;
}
