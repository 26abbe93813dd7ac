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
    CHECK(!eval_entry_scores(&l.at[0]) && eval_entry_scores(&l.at[5]));
    eval_list_close(&l);
    static const char *const asking[] = { "never,entropy", "mlp=a", "never,position", "slot",
                                          "query" };
    for (size_t i = 0; i < sizeof(asking) / sizeof(asking[0]); i++) {
        CHECK(eval_list_parse(&l, asking[i], &err) == OK && eval_list_asks(&l));
        eval_list_close(&l);
    }
    CHECK(eval_list_parse(&l, "never,never", &err) == OK && !eval_list_asks(&l));
    eval_list_close(&l);
    CHECK(eval_list_parse(&l, "slot,position,always", &err) == OK);
    for (size_t i = 0; i < 3; i++)
        CHECK(!eval_entry_scores(&l.at[i]));
    CHECK(!strcmp(eval_entry_policy(&l.at[0]), "slot"));
    eval_list_close(&l);
    static const char many[] =
        "mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,"
        "mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp,mlp";
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
        many,
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(eval_list_parse(&l, bad[i], &err) == ERR_ARG && strstr(err.msg, "--policy") && !l.n);
}

/* Check a list of policies with these options; return the code. */
static int plan(struct eval_plan *p, const char *policies, const struct eval_options *o,
                float threshold)
{
    struct eval_list l;
    *p = (struct eval_plan){ 0 };
    CHECK(eval_list_parse(&l, policies, &err) == OK);
    int rc = eval_plan_check(p, &l, o, threshold, &err);
    eval_list_close(&l);
    return rc;
}

static void test_shares(void)
{
    struct eval_options o = { .task.name = "milli" };
    struct eval_plan p;
    static const char *const bad[] = { "", "0:1", "0:0.07:8", "nan", "1.5", "-0.1", "0.1x" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        o.target = bad[i];
        CHECK(plan(&p, "never,mlp", &o, NAN) == ERR_ARG && strstr(err.msg, "--target-routed"));
    }
    o.target = "0.05"; /* means the decimal that was typed */
    CHECK(plan(&p, "never,mlp", &o, NAN) == OK && p.target == 0.05);
    CHECK(plan(&p, "never,mlp", &o, 0.5f) == ERR_ARG);

    CHECK(plan(&p, "never,mlp=a,random", &o, NAN) == OK && p.calibrates);
    CHECK(isnan(eval_plan_threshold(&p, &(struct eval_entry){ .policy = POLICY_MLP }, 0)));
    o.target = NULL;
    CHECK(plan(&p, "never,mlp=a,random", &o, NAN) == OK && isnan(p.target) && !p.points);
    CHECK(!p.calibrates); /* a router has a threshold, random is its share */
    CHECK(eval_plan_threshold(&p, &(struct eval_entry){ .policy = POLICY_MLP }, 0) == 0.5f);
    CHECK(plan(&p, "mlp=a,margin", &o, NAN) == OK && p.calibrates);
    CHECK(plan(&p, "mlp=a,margin", &o, 0.25f) == OK && !p.calibrates);
    CHECK(eval_plan_threshold(&p, &(struct eval_entry){ .policy = POLICY_MLP }, 0) == 0.25f);
    CHECK(plan(&p, "never,entropy,mlp=a", &o, NAN) == ERR_ARG && strstr(err.msg, "policy entropy"));
    CHECK(plan(&p, "never,entropy,mlp=a", &o, 0.5f) == OK);
    o.count = 4; /* a part */
    CHECK(plan(&p, "mlp=a,entropy", &o, NAN) == ERR_ARG && strstr(err.msg, "--first"));
    o.as_paper = true;
    CHECK(plan(&p, "mlp=a,entropy", &o, NAN) == OK && p.points == 8 && !p.calibrates);
    CHECK(p.thresholds[4] == 0.72f);
    CHECK(plan(&p, "mlp=a,entropy", &o, 0.5f) == OK && p.points == 1);
}

/* Add answers of ten tokens, one of them the cloud's: rights as in the string. */
static void add_answers(struct eval_result *r, const char *rights)
{
    for (; *rights; rights++) {
        const struct asked one = { .right = *rights == '1',
                                   .left_out = *rights == '-',
                                   .stats = { .tokens = 10,
                                              .cloud = 1,
                                              .prompt_tokens = 30,
                                              .total_ms = 45,
                                              .ttft_ms = 7 },
                                   .work = { 1, 20, 15, 1 } };
        CHECK(eval_result_add(r, &one, &err) == OK);
    }
}

static const struct eval_result *shown;

static void print_shown(void)
{
    const struct eval_options o = { .task = { .name = "csqa", .seed = 1 }, .json = true };
    CHECK(eval_print(&o, shown, 1, &err) == OK);
}

/* A line of JSON has every figure, and null for those that are not known. ' is " here. */
static const char result_line[] =
    "{'task':'csqa','policy':'mlp','router':'a','router_sha256':'5f',"
    "'router_fingerprint':'0a','seed':'1','against':'context','threshold':0.25,'tie':0.0,"
    "'target':0.1,'questions':11,'left_out':1,'right':4,'no_answer':11,'truncated':0,"
    "'tokens':110,'cloud':11,'fallback':0,'memo':0,'prompt_tokens':330,'calls':11,"
    "'prefilled':220,'cached':165,'decoded':11,'accuracy':0.363636364,"
    "'accuracy_low':0.151664711,'accuracy_high':0.646198825,'citer':0.0,'pgr':0.5,"
    "'difference':0.0909090909,'difference_low':0.0,'difference_high':0.272727273,'ms':45.0,"
    "'edge_ms':0.0,'ttft_ms':7.0,'routed':0.1,'work':0.5}";
static const char none_line[] =
    "{'task':'csqa','policy':'context','router':null,'router_sha256':null,"
    "'router_fingerprint':null,'seed':'1','against':null,'threshold':null,'tie':null,"
    "'target':0.1,'questions':11,'left_out':1,'right':3,";

static void check_json(const struct eval_result *r, const char *line)
{
    shown = r;
    char *text = strdup(printed(print_shown));
    CHECK(text);
    for (char *quote = text; (quote = strchr(quote, '"'));)
        *quote = '\'';
    CHECK_MSG(!strncmp(text, line, strlen(line)), "%s", text);
    free(text);
}

static void test_results(void)
{
    const struct eval_entry never = { .policy = POLICY_NEVER, .label = "never" };
    const struct eval_entry always = { .policy = POLICY_ALWAYS, .label = "always" };
    const struct eval_entry context = { .policy = POLICY_CONTEXT, .label = "context" };
    const struct eval_entry mlp = { .policy = POLICY_MLP,
                                    .label = "mlp=a",
                                    .file = (char[]){ "a" },
                                    .known = { "a", "5f", "0a" } };
    struct eval_result r[4];
    eval_result_begin(&r[0], &never, (double)NAN);
    eval_result_begin(&r[1], &always, (double)NAN);
    eval_result_begin(&r[2], &mlp, 0.1);
    eval_result_begin(&r[3], &context, 0.1);
    add_answers(&r[0], "10-000000000");
    add_answers(&r[1], "11-111110000");
    add_answers(&r[2], "11-110000000");
    add_answers(&r[3], "11-100000000");
    r[2].threshold = 0.25f;
    CHECK(r[2].questions == 11 && r[2].left_out == 1 && r[2].right == 4 && r[2].sum.tokens == 110);
    CHECK(fabs(eval_result_share(&r[2]) - 0.1) < 1e-12);
    eval_results_compare(r, 1, NULL);
    CHECK(isnan(r[0].pgr)); /* without always */
    r[0].right = 7;         /* which is no better */
    eval_results_compare(r, 2, NULL);
    CHECK(isnan(r[0].pgr) && isnan(r[1].pgr));
    r[0].right = 1;
    eval_results_compare(r, 2, NULL);
    CHECK(r[0].pgr == 0 && r[1].pgr == 1 && !r[0].against && isnan(r[0].difference));
    eval_results_compare(r, 4, "context");
    CHECK(fabs(r[2].pgr - 0.5) < 1e-12 && r[2].against == &context && !r[3].against);
    CHECK(fabs(r[2].difference - 1.0 / 11) < 1e-12 && r[2].difference_interval.low == 0);
    CHECK(r[0].against == &context && r[0].difference < 0);
    check_json(&r[2], result_line);
    check_json(&r[3], none_line);
    r[3].point = 1; /* another threshold of the paper's */
    r[2].against = NULL;
    eval_results_compare(r, 4, "context");
    CHECK(!r[2].against);
    for (size_t i = 0; i < 4; i++)
        eval_result_close(&r[i]);
}

int main(void)
{
    test_list();
    test_shares();
    test_results();
    enum kvcache kv;
    CHECK(setup_kv(&kv, KVCACHE_F16, &err) == OK && kv == KVCACHE_F16);
    shared_options.engine.kv = "q8";
    CHECK(setup_kv(&kv, KVCACHE_F16, &err) == OK && kv == KVCACHE_Q8);
    shared_options.engine.kv = "f8";
    CHECK(setup_kv(&kv, KVCACHE_F16, &err) == ERR_ARG);
    return 0;
}
