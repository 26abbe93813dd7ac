/* The parts of eval that need no model: lists of policies, shares, results and their output. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/files.h"
#include "tests/support/test.h"
#include "tools/cli/setup.h"
#include "tools/cli/shared_options.h"
#include "tools/lab/eval/eval_list.h"
#include "tools/lab/eval/eval_plan.h"
#include "tools/lab/eval/eval_print.h"
#include "tools/lab/eval/eval_result.h"

static struct err err;

static void test_list(void)
{
    struct eval_list l;
    CHECK(eval_list_parse(&l, "never,max-prob,mlp,mlp=a/b.safetensors,context=c,margin", &err) ==
          OK);
    CHECK(l.n == 6 && l.at[1].policy == POLICY_MAX_PROB && !l.at[2].file);
    CHECK(!strcmp(l.at[3].file, "a/b.safetensors") && !strcmp(l.at[3].label, "mlp=b.safetensors"));
    CHECK(l.at[4].policy == POLICY_CONTEXT && !strcmp(l.at[4].label, "context=c"));
    CHECK(!strcmp(eval_list_demanding(&l), "mlp"));
    CHECK(eval_list_find(&l, POLICY_MARGIN) == &l.at[5] && !eval_list_find(&l, POLICY_ALWAYS));
    CHECK(!eval_entry_scores(&l.at[0]) && eval_entry_scores(&l.at[5]));
    eval_list_close(&l);
    static const char *const needs[][2] = {
        { "never", "never" },
        { "never,entropy", "random" },
        { "random,always", "always" },
        { "always,context", "context" },
        { "context,always,mlp", "mlp" },
        { "mlp=a", "random" },
        { "never,position", "random" },
        { "slot", "always" },
        { "query,always", "mlp" },
    };
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        CHECK(eval_list_parse(&l, needs[i][0], &err) == OK);
        CHECK(!strcmp(eval_list_demanding(&l), needs[i][1]));
        eval_list_close(&l);
    }
    CHECK(eval_list_parse(&l, "slot,position,always", &err) == OK);
    CHECK(eval_list_find(&l, POLICY_ALWAYS) == &l.at[2] && eval_entry_alone(&l.at[2]));
    for (size_t i = 0; i < 2; i++)
        CHECK(!eval_entry_alone(&l.at[i]) && !eval_entry_scores(&l.at[i]));
    CHECK(!strcmp(eval_entry_policy(&l.at[0]), "slot"));
    eval_list_close(&l);
    static const char *const bad[] = {
        "",
        ",",
        "mlp,",
        ",mlp",
        "mlp ,never",
        "a-name-that-is-much-too-long-for-any-policy",
        "entropy=file",
        "mlp=",
        "mlp=a,,never",
        "mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(eval_list_parse(&l, bad[i], &err) == ERR_ARG && strstr(err.msg, "--policy") && !l.n);
}

static void test_shares(void)
{
    struct eval_options o = { .task.name = "milli", .share = NAN };
    struct eval_plan p = { 0 };
    o.target = "0:0.07:8";
    CHECK(eval_plan_shares(&p, &o, NAN, &err) == OK && p.ntargets == 8 && p.sweeps);
    CHECK(p.targets[0] == 0 && fabs(p.targets[1] - 0.01) < 1e-12 && p.targets[7] == 0.07);
    static const char *const bad[] = { "",         "0:1",    "0:1:1",  "0.2:0.1:3", "0:1.1:3",
                                       "-0.1:1:3", "0:1:3x", "0:1:65", "nan:1:3",   "0:nan:3" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        o.target = bad[i];
        CHECK(eval_plan_shares(&p, &o, NAN, &err) == ERR_ARG && strstr(err.msg, "--target-routed"));
    }
    o.target = NULL;
    p = (struct eval_plan){ 0 };
    o.target = "0.05"; /* means the decimal that was typed */
    CHECK(eval_plan_shares(&p, &o, NAN, &err) == OK && p.ntargets == 1 && p.targets[0] == 0.05);
    CHECK(eval_plan_shares(&p, &o, 0.5f, &err) == ERR_ARG);
    o.share = 0.1f;
    CHECK(eval_plan_shares(&p, &o, NAN, &err) == ERR_ARG && strstr(err.msg, "--share"));
    o.share = NAN;
    o.target = "1.5";
    CHECK(eval_plan_shares(&p, &o, NAN, &err) == ERR_ARG);

    struct eval_list l;
    p = (struct eval_plan){ 0 };
    CHECK(eval_list_parse(&l, "never,mlp=a,random", &err) == OK);
    CHECK(!eval_plan_calibrates(&p, &l, NAN)); /* a router has a threshold, random is its share */
    p.ntargets = 1;
    CHECK(eval_plan_calibrates(&p, &l, NAN));
    eval_list_close(&l);
    p.ntargets = 0;
    CHECK(eval_list_parse(&l, "mlp=a,margin", &err) == OK);
    CHECK(eval_plan_calibrates(&p, &l, NAN) && !eval_plan_calibrates(&p, &l, 0.5f));
    CHECK(eval_plan_list(&p, &l, &o, NAN, &err) == OK);
    eval_list_close(&l);
    CHECK(eval_list_parse(&l, "never,entropy,mlp=a", &err) == OK);
    o.target = NULL;
    o.share = NAN;
    CHECK(eval_plan_list(&p, &l, &o, NAN, &err) == ERR_ARG && strstr(err.msg, "policy entropy"));
    CHECK(eval_plan_list(&p, &l, &o, 0.5f, &err) == OK);
    o.share = 0.1f;
    CHECK(eval_plan_list(&p, &l, &o, NAN, &err) == OK);
    eval_list_close(&l);
}

/* Add answers of so many tokens: rights as in the string, some tokens of each from the cloud. */
static void add_routed(struct eval_result *r, const char *rights, size_t tokens, size_t cloud)
{
    struct asked_token trace[30];
    for (size_t i = 0; i < tokens; i++)
        trace[i] = (struct asked_token){ .ms = (double)i };
    for (uint64_t about = 0; *rights; rights++, about++) {
        const struct asked one = { .right = *rights == '1',
                                   .left_out = *rights == '-',
                                   .stats = { .tokens = tokens,
                                              .cloud = cloud,
                                              .prompt_tokens = 30,
                                              .total_ms = 45,
                                              .ttft_ms = 7 },
                                   .work = { 1, 20, 15, 1 },
                                   .trace = trace };
        CHECK(eval_result_add(r, &one, about, &err) == OK);
    }
    CHECK(eval_result_finish(r, &err) == OK);
}

static void add_answers(struct eval_result *r, const char *rights)
{
    add_routed(r, rights, 10, 1);
}

/* The others' answers have 10 tokens and 30, of 6 those of the cloud: a quarter of the longer ones
 * has 15 of 150 tokens, 10 %, and 2 + (6 - 2) / 4 = 3 right, two less than the 5. figures_check.py
 * has the same case. */
static void test_equal_share(void)
{
    const struct eval_entry mlp = { .policy = POLICY_MLP, .label = "mlp" };
    struct eval_result r, low, high;
    eval_result_begin(&r, &mlp, 0.1);
    eval_result_begin(&low, &mlp, 0);
    eval_result_begin(&high, &mlp, 0.2);
    add_routed(&r, "1111100000", 20, 2);
    add_routed(&low, "1100000000", 10, 0);
    add_routed(&high, "1111110000", 30, 6);
    eval_result_equal(&r, &low, &high);
    CHECK(r.has_equal && fabs(r.equal - 0.2) < 1e-12 && r.equal_from == 0 && r.equal_to == 0.2);
    CHECK(r.equal_interval.low < 0.2 && r.equal_interval.high > 0.2);
    eval_result_equal(&r, &r, &r); /* it has this share itself */
    CHECK(r.equal == 0 && r.equal_interval.low == 0 && r.equal_interval.high == 0);
    eval_result_close(&r);
    eval_result_close(&low);
    eval_result_close(&high);
}

static const struct eval_result *shown;

static void print_shown(void)
{
    const struct eval_about about = {
        .task = "csqa",
        .clock = "real",
        .seed = "1",
        .origin = { .edge_model = "a \"b\", c", .kv = "q8", .isa = "isa" },
    };
    CHECK(eval_print_json(&about, shown, &err) == OK);
}

/* A line of JSON has every figure, and null for those that are not known. */
static void check_json(const struct eval_result *r, const struct eval_result *edge)
{
    shown = r;
    const char *text = printed(print_shown);
    CHECK(text[0] == '{' && !strcmp(text + strlen(text) - 2, "}\n"));
    static const char *const parts[] = {
        "\"task\":\"csqa\"",
        "\"policy\":\"mlp\"",
        "\"router\":\"a\"",
        "\"threshold\":0.25,",
        "\"target\":0.1,",
        "\"questions\":11",
        "\"accuracy\":0.363636",
        "\"pgr\":0.5,",
        "\"routed\":0.1,",
        "\"tokens\":110",
        "\"prefilled\":220",
        "\"cached\":165",
        "\"ttft_ms\":7.0,",
        "\"left_out\":1",
        "\"decoded\":11",
        "\"calls_answer\":1.0,",
        "\"cloud_answer\":1.0,",
        "\"edge_answer\":9.0,",
        "\"equal_share\":null",
        "\"against\":\"context\"",
        "\"difference\":0.090909",
        "\"apgr7_ratio\":1.5,",
        "\"router_sha256\":\"5f\"",
        "\"router_fingerprint\":\"0a\"",
        "\"edge_model\":\"a \\\"b\\\", c\"",
        "\"kv\":\"q8\"",
        "\"cloud_model\":null",
        "\"isa\":\"isa\"",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        CHECK(strstr(text, parts[i]));
    shown = edge;
    text = printed(print_shown); /* JSON has no NaN */
    CHECK(strstr(text, "\"threshold\":null") && strstr(text, "\"pgr\":null") &&
          strstr(text, "\"router\":null"));
}

static void test_results(void)
{
    const struct eval_entry never = { .policy = POLICY_NEVER, .label = "never" };
    const struct eval_entry mlp = { .policy = POLICY_MLP,
                                    .label = "mlp=a",
                                    .file = (char[]){ "a" },
                                    .known = { "a", "5f", "0a" } };
    struct eval_result edge, cloud, r;
    eval_result_begin(&edge, &never, (double)NAN);
    eval_result_begin(&cloud, &never, (double)NAN);
    eval_result_begin(&r, &mlp, 0.1);
    add_answers(&edge, "10-000000000");
    add_answers(&cloud, "11-111110000");
    add_answers(&r, "11-110000000");
    r.threshold = 0.25f;
    CHECK(r.questions == 11 && r.left_out == 1 && r.right == 4 && r.sum.tokens == 110);
    CHECK(fabs(eval_result_share(&r) - 0.1) < 1e-12 && fabs(eval_result_work(&r) - 0.5) < 1e-12);
    CHECK(eval_times_quantile(&r.ttft, 0.5) == 7 && eval_times_quantile(&r.tbt, 0.5) == 5);
    CHECK(eval_times_quantile(&r.tbt, 0.95) == 9);
    eval_result_compare(&r, NULL, &cloud);
    CHECK(isnan(r.pgr) && !r.has_gain);
    eval_result_compare(&r, &cloud, &cloud); /* nothing can be recovered */
    CHECK(isnan(r.pgr) && r.has_gain);
    eval_result_compare(&r, &edge, &cloud);
    CHECK(fabs(r.pgr - 0.5) < 1e-12 && r.gain.low >= 0 && r.gain.high > 0.2);
    CHECK(eval_result_average(&r, 1, &edge, &cloud, &err) == OK);
    CHECK(r.apgr7 > 0 && r.apgr7 <= 0.5);
    CHECK(r.has_apgr7_interval && r.apgr7_interval.low >= 0 && r.apgr7_interval.low < r.apgr7);
    CHECK(r.apgr7 < r.apgr7_interval.high && r.apgr7_interval.high < 1);

    /* Two answers recovered in place of three, and never more in any draw. */
    const struct eval_entry context = { .policy = POLICY_CONTEXT, .label = "context" };
    struct eval_result late;
    eval_result_begin(&late, &context, 0.1);
    add_answers(&late, "11-100000000");
    eval_result_against(&late, &r); /* no APGR7 yet */
    CHECK(fabs(late.difference + 1.0 / 11) < 1e-12 && late.difference_interval.high == 0);
    CHECK(late.against == &mlp && isnan(late.apgr7_ratio) && !late.has_ratio_interval);
    eval_result_compare(&late, &edge, &cloud);
    CHECK(eval_result_average(&late, 1, &edge, &cloud, &err) == OK);
    eval_result_against(&late, &r);
    CHECK(fabs(late.apgr7_ratio - 2.0 / 3) < 1e-12);
    CHECK(late.has_ratio_interval && late.ratio_interval.high == 1);
    eval_result_against(&r, &late);
    CHECK(fabs(r.apgr7_ratio - 1.5) < 1e-12 && r.difference > 0);

    check_json(&r, &edge);
    eval_result_close(&edge);
    eval_result_close(&cloud);
    eval_result_close(&late);
    eval_result_close(&r);
}

int main(void)
{
    test_list();
    test_shares();
    test_equal_share();
    test_results();
    enum kvcache kv;
    CHECK(setup_kv(&kv, KVCACHE_F16, &err) == OK && kv == KVCACHE_F16);
    shared_options.engine.kv = "q8";
    CHECK(setup_kv(&kv, KVCACHE_F16, &err) == OK && kv == KVCACHE_Q8);
    shared_options.engine.kv = "f8";
    CHECK(setup_kv(&kv, KVCACHE_F16, &err) == ERR_ARG);
    return 0;
}
