/* eval_milli.c - asks the questions of the demo world end to end: router, HTTP, cloud. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/math.h"
#include "model/sample.h"
#include "router/decode.h"
#include "tools/eval/eval.h"
#include "tools/eval/statistics.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/setup.h"
#include "tools/demo/world.h"

enum { DEFAULT_QUESTIONS = 1000, CONTEXT = 1024 };

/* What all policies of one run share. */
struct milli {
    const struct eval_options *o;
    struct engine engine;
    struct routing routing;
    struct stand_in *server; /* the one this process started, or NULL */
    struct world *world;
    struct session *session;
    struct sampler *sampler;
    size_t questions;
    struct scores *scores; /* collects them while a threshold is measured, else NULL */
};

struct scores { /* one for each generated token */
    float *at;
    size_t n, cap;
    bool full; /* an allocation failed */
};

/* Append one score; sets full when there is no memory. */
static void keep_score(struct scores *s, float score)
{
    size_t cap = s->cap ? 2 * s->cap : 4096, size;
    if (s->n == s->cap) {
        float *more = size_mul(&size, cap, sizeof(*more)) ? realloc(s->at, size) : NULL;
        s->full = !more;
        if (!more)
            return;
        s->at = more;
        s->cap = cap;
    }
    s->at[s->n++] = score;
}

/* The text of one answer while it is written. */
struct answer {
    const struct tokenizer *tokenizer;
    struct scores *scores;
    char text[1024];
    size_t n;
};

/* Callback of the decoding loop: collect the text, up to the size of the buffer, and the score.
 * Stops the loop when scores can no longer be kept. */
static bool take_token(void *arg, const struct decode_token *t)
{
    struct answer *a = arg;
    size_t n;
    const char *bytes = t->eog ? NULL : tokenizer_bytes(a->tokenizer, t->id, &n);
    if (bytes && n < sizeof(a->text) - a->n) {
        memcpy(a->text + a->n, bytes, n);
        a->n += n;
    }
    if (a->scores)
        keep_score(a->scores, t->score);
    return !a->scores || !a->scores->full;
}

/* Ask question i and add the result to *r. */
static int eval_milli_ask(struct eval_result *r, struct milli *m, size_t i, struct err *err)
{
    struct world_question q;
    uint32_t *ids;
    size_t n;
    const struct tokenizer *tok = m->engine.tokenizer;
    struct answer answer = { .tokenizer = tok, .scores = m->scores };
    struct decode_stats stats = { 0 };
    const struct decode_options o = { .policy = r->policy,
                                      .threshold = isnan(r->threshold) ? 0.5f : r->threshold,
                                      .ahead = m->routing.ahead,
                                      .gate = &m->routing.gate,
                                      .cloud_required = m->routing.required,
                                      .max_tokens = m->o->max_tokens,
                                      .seed = rand_u64(m->o->seed, i),
                                      .stop = &interrupted,
                                      .emit = take_token,
                                      .arg = &answer };
    world_question(&q, m->world, world_test_stream(m->o->seed), i);
    int rc = tokenizer_encode(tok, &ids, &n, q.prompt, strlen(q.prompt), false, err);
    if (rc != OK)
        return rc;
    rc = decode_run(&stats, m->session, tok, m->sampler, m->routing.router,
                    routing_port(&m->routing), ids, n, &o, err);
    free(ids);
    if (rc == OK && m->scores && m->scores->full)
        rc = err_set(err, ERR_NOMEM, "eval: out of memory");
    if (rc != OK)
        return rc;
    r->questions++;
    r->right += world_extract(answer.text) == q.letter;
    r->tokens += stats.tokens;
    r->cloud += stats.cloud;
    r->fallback += stats.fallback;
    r->ms += stats.total_ms;
    r->bytes_up += stats.traffic.bytes_up;
    r->bytes_down += stats.traffic.bytes_down;
    return OK;
}

/* Return part/all, or 0 if all is 0. */
static double eval_milli_share(size_t part, size_t all)
{
    return all ? (double)part / (double)all : 0;
}

/* Ask all questions under the policy of *r, with a progress line on a terminal. */
static int run_policy(struct eval_result *r, struct milli *m, struct err *err)
{
    bool shows = !m->o->quiet && isatty(STDERR_FILENO);
    int rc = OK;
    for (size_t i = 0; rc == OK && i < m->questions; i++) {
        rc = eval_milli_ask(r, m, i, err);
        if (shows && rc == OK && (i % 10 == 9 || i + 1 == m->questions))
            fprintf(stderr, "\r%s: %zu of %zu, right %.1f %%, routed %.2f %%  ",
                    policy_name(r->policy), i + 1, m->questions,
                    100 * eval_milli_share(r->right, r->questions),
                    100 * eval_milli_share(r->cloud, r->tokens));
    }
    if (shows)
        fprintf(stderr, "\n");
    return rc;
}

/* Print the result of one policy as one line of JSON. */
static void eval_milli_print_json(const struct milli *m, const struct eval_result *r)
{
    struct statistics_interval wilson = statistics_wilson(r->right, r->questions);
    char threshold[32] = "null"; /* JSON has no NaN */
    if (!isnan(r->threshold))
        snprintf(threshold, sizeof(threshold), "%.9g", (double)r->threshold);
    printf("{\"task\":\"milli\",\"policy\":\"%s\",\"threshold\":%s,\"seed\":%llu,"
           "\"questions\":%zu,\"right\":%zu,\"accuracy\":%.6f,\"accuracy_low\":%.6f,"
           "\"accuracy_high\":%.6f,\"routed\":%.6f,\"tokens\":%zu,\"cloud\":%zu,\"fallback\":%zu,"
           "\"tok_s\":%.3f,\"bytes_up\":%llu,\"bytes_down\":%llu,\"isa\":\"%s\"}\n",
           policy_name(r->policy), threshold, (unsigned long long)m->o->seed, r->questions,
           r->right, eval_milli_share(r->right, r->questions), wilson.low, wilson.high,
           eval_milli_share(r->cloud, r->tokens), r->tokens, r->cloud, r->fallback,
           r->ms > 0 ? 1000 * (double)r->tokens / r->ms : 0, (unsigned long long)r->bytes_up,
           (unsigned long long)r->bytes_down, m->engine.kernels.isa);
    fflush(stdout);
}

/* Print the results of all policies. */
static void print_table(const struct eval_result *r, size_t n)
{
    printf("policy    threshold  questions  accuracy   95 %% interval   routed  fallback   "
           "tokens/s\n");
    for (; n; n--, r++) {
        struct statistics_interval wilson = statistics_wilson(r->right, r->questions);
        char threshold[32] = "-";
        if (!isnan(r->threshold))
            snprintf(threshold, sizeof(threshold), "%.4f", (double)r->threshold);
        printf("%-8s  %9s  %9zu  %6.1f %%  %5.1f - %5.1f %%  %5.2f %%  %8zu  %9.1f\n",
               policy_name(r->policy), threshold, r->questions,
               100 * eval_milli_share(r->right, r->questions), 100 * wilson.low, 100 * wilson.high,
               100 * eval_milli_share(r->cloud, r->tokens), r->fallback,
               r->ms > 0 ? 1000 * (double)r->tokens / r->ms : 0);
    }
}

/* Return the policy of the list that needs most: mlp needs the router, always needs the cloud,
 * never needs neither. routing_open is called once, for that one. */
static const char *most_needing(const enum policy *list, size_t n)
{
    enum policy most = list[0];
    for (size_t i = 1; i < n; i++)
        if (list[i] == POLICY_MLP || (most != POLICY_MLP && list[i] == POLICY_ALWAYS) ||
            most == POLICY_NEVER)
            most = list[i];
    return policy_name(most);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Find the threshold below which the share `routed` of the scores lies while the small model writes
 * alone. Once cloud tokens are part of the text, the scores differ, so the final share is only
 * close to this one. */
static int find_threshold(struct eval_result *r, struct milli *m, float routed, struct err *err)
{
    struct scores scores = { 0 };
    struct eval_result alone = { .policy = r->policy, .threshold = 0 };
    m->scores = &scores;
    int rc = run_policy(&alone, m, err);
    m->scores = NULL;
    if (rc == OK && scores.n) {
        size_t k = (size_t)((double)routed * (double)scores.n + 0.5);
        qsort(scores.at, scores.n, sizeof(*scores.at), by_value);
        r->threshold = k < scores.n ? scores.at[k] : 1;
    }
    free(scores.at);
    return rc;
}

/* Set the threshold of a policy. The threshold of the router is for mlp alone. Policies without one
 * aim at a share: --share, or the share that the first policy with a threshold routed. */
static int set_threshold(struct eval_result *r, struct milli *m, float first, struct err *err)
{
    float routed = isnan(m->o->share) ? first : m->o->share;
    r->threshold = m->routing.threshold;
    if (r->policy == POLICY_NEVER || r->policy == POLICY_ALWAYS)
        r->threshold = NAN;              /* they have none */
    else if (r->policy == POLICY_RANDOM) /* its threshold is the share */
        r->threshold = isnan(routed) ? route_options.threshold : routed;
    else if (policy_reads_logits(r->policy))
        r->threshold = route_options.threshold;
    else
        return OK;
    bool wants = r->policy == POLICY_RANDOM || policy_reads_logits(r->policy);
    if (!wants || !isnan(r->threshold))
        return OK;
    if (isnan(routed))
        return err_set(err, ERR_ARG,
                       "policy %s: give --threshold or --share, or a policy before it whose share "
                       "it takes",
                       policy_name(r->policy));
    return find_threshold(r, m, routed, err);
}

/* Run the policies in order on the same questions and print the results. */
static int eval_milli_run_all(struct milli *m, const enum policy *list, size_t n, struct err *err)
{
    struct eval_result results[EVAL_POLICIES];
    float first = NAN; /* share routed by the first policy with a threshold */
    for (size_t i = 0; i < n; i++) {
        struct eval_result *r = &results[i];
        *r = (struct eval_result){ .policy = list[i] };
        int rc = OK;
        if (r->policy == POLICY_ALWAYS) /* else this would measure the small model */
            rc = m->routing.cloud ? cloud_ready(m->routing.cloud, err)
                                  : err_set(err, ERR_NET, "policy always: there is no cloud");
        if (rc == OK)
            rc = set_threshold(r, m, first, err);
        if (rc == OK)
            rc = run_policy(r, m, err);
        if (rc != OK)
            return rc;
        if (isnan(first) && !isnan(r->threshold))
            first = (float)eval_milli_share(r->cloud, r->tokens);
        if (m->o->json)
            eval_milli_print_json(m, r);
    }
    if (!m->o->json)
        print_table(results, n);
    return OK;
}

/* Open the world, a session and a greedy sampler. */
static int open_text(struct milli *m, struct err *err)
{
    const struct sample_params greedy = { .top_p = 1, .repeat_penalty = 1 };
    size_t context = model_config(m->engine.model)->context;
    enum kvcache kv;
    int rc = setup_kv(&kv, KVCACHE_F32, err);
    if (rc == OK)
        rc = world_open(&m->world, m->o->world, err);
    if (rc == OK)
        rc = session_open(&m->session, m->engine.model, m->engine.pool,
                          context < CONTEXT ? context : CONTEXT, kv, err);
    if (rc == OK)
        rc = sampler_open(&m->sampler, &greedy, tokenizer_size(m->engine.tokenizer),
                          &m->engine.kernels, err);
    return rc;
}

int eval_milli(const struct eval_options *o, struct err *err)
{
    struct milli m = { .o = o, .questions = o->questions ? o->questions : DEFAULT_QUESTIONS };
    enum policy list[EVAL_POLICIES];
    size_t n = 0;
    int rc = o->policies ? eval_policies(list, &n, o->policies, err) : OK;
    if (rc == OK)
        rc = setup_engine(&m.engine, NULL, true, err);
    if (rc != OK)
        return rc;
    route_options.policy = n ? most_needing(list, n) : NULL;
    rc = setup_routing(&m.routing, &m.server, &m.engine, err);
    if (rc == OK) {
        if (!n)
            list[n++] = m.routing.policy;
        rc = open_text(&m, err);
        if (rc == OK)
            rc = eval_milli_run_all(&m, list, n, err);
        sampler_close(m.sampler);
        session_close(m.session);
        world_close(m.world);
        int end = setup_routing_end(&m.routing, m.server, rc == OK ? err : NULL);
        rc = rc == OK ? end : rc;
    }
    engine_close(&m.engine);
    return rc;
}
