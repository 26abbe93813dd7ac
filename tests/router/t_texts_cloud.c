/* t_texts_cloud.c - texts with the real client: replies of several tokens and a memo that all
 * share, and a server that refuses for a while. serve/t_serve_cloud.c closes one under them. */
#include <sched.h>

#include "net/answers/answers.h"
#include "net/answers/answers_port.h"
#include "tests/router/texts_help.h"
#include "tests/support/rude.h"
#include "tools/lab/stand_in/stand_in.h"

enum { TEXTS = 8, LENGTH = 40, PROMPT = 6 };

static const struct text_wish base = {
    .n = PROMPT, .max = LENGTH, .sample = { .top_p = 1, .repeat_penalty = 1 }, .slot = -1
};
static uint32_t prompts[TEXTS][PROMPT];

static struct cloud *client(const char *url, enum cloud_api api, struct answers *memo)
{
    struct cloud *c;
    const struct cloud_options o = { .url = url,
                                     .api = api,
                                     .model = "m",
                                     .vocab = TINY_VOCAB,
                                     .tokens = memo ? 5 : 1,
                                     .found = memo ? answers_found : NULL,
                                     .found_arg = memo,
                                     .background = true };
    CHECK(cloud_open(&c, &o, NULL) == OK);
    return c;
}

static struct text_routing routing_of(size_t i)
{
    static const enum policy policies[] = { POLICY_RANDOM, POLICY_MLP, POLICY_ALWAYS,
                                            POLICY_MAX_PROB };
    return (struct text_routing){
        .policy = policies[i % 4], .threshold = 0.5f, .ahead = i % 2, .max_cloud_tokens = UINT64_MAX
    };
}

static struct text *ask(struct texts *e, size_t i, const struct text_routing *r)
{
    struct text_wish w = base;
    struct text *t;
    w.prompt = prompts[i];
    w.ignore_eos = true;
    w.sample.seed = i;
    w.routing = r;
    CHECK(texts_ask(e, &t, &w, NULL) == OK);
    return t;
}

/* Callback of decode_run. */
static bool on_token(void *arg, const struct decode_token *t)
{
    struct decode_token *at = arg;
    at[t->pos] = *t;
    return true;
}

/* Together they write what each writes alone with the same client. */
static void test_together(const char *url)
{
    static struct decode_token at[TEXTS][LENGTH];
    const struct answers_options none = { 0 };
    struct answers *memo;
    struct routing r = { .router = network, .how.ahead = 1, .how.drafts = DRAFT_BOTH };
    struct text *t[TEXTS];
    CHECK(answers_open(&memo, &none, NULL) == OK);
    r.cloud = client(url, CLOUD_OPENAI, memo);
    cloud_port(&r.port, r.cloud);
    CHECK(answers_port(&r.port, memo, &r.port, NULL) == OK);
    for (size_t i = 0; i < TEXTS; i++) {
        struct decode_stats stats;
        const struct text_routing how = routing_of(i);
        const struct decode_options o = { .policy = how.policy,
                                          .threshold = how.threshold,
                                          .ahead = how.ahead,
                                          .max_tokens = LENGTH,
                                          .seed = i,
                                          .ignore_eos = true,
                                          .emit = on_token,
                                          .arg = at[i] };
        session_rewind(session, 0);
        CHECK(decode_run(&stats, session, engine.tokenizer, greedy, network, &r.port, prompts[i],
                         PROMPT, &o, NULL) == OK);
        CHECK(stats.tokens == LENGTH);
    }
    answers_forget(memo);
    struct texts *e = texts_with(&r, 5, TEXTS, TINY_CONTEXT);
    for (size_t i = 0; i < TEXTS; i++) {
        const struct text_routing how = routing_of(i);
        t[i] = ask(e, i, &how);
    }
    size_t memos = 0, calls = 0;
    for (size_t i = 0; i < TEXTS; i++) {
        struct text_view v = text_wait(t[i], SIZE_MAX);
        CHECK(v.rc == OK && v.n == LENGTH);
        for (size_t k = 0; k < LENGTH; k++) {
            CHECK(v.tokens[k].t.id == at[i][k].id && v.tokens[k].t.source == at[i][k].source);
            CHECK(memcmp(&v.tokens[k].t.score, &at[i][k].score, sizeof(float)) == 0);
            memos += v.tokens[k].memo;
            calls += v.tokens[k].call.bytes_up > 0;
            CHECK(!v.tokens[k].call.bytes_up == !(v.tokens[k].call_ms > 0));
        }
        CHECK(v.stats.failed == 0 && v.stats.calls == v.stats.committed);
        text_drop(t[i]);
    }
    CHECK(memos > 10 && calls > 10);
    texts_close(e);
    r.port.close(r.port.arg);
    answers_close(memo);
}

/* Write a text, and return how many of its tokens the cloud wrote. */
static size_t cloud_tokens_of(struct texts *e)
{
    struct text *t = ask(e, 1, NULL);
    struct text_view v = text_wait(t, SIZE_MAX);
    size_t n = v.stats.cloud;
    CHECK(v.rc == OK && (n || v.tokens[0].t.reason == GATE_REFUSED));
    text_drop(t);
    return n;
}

/* A server that refuses is asked again after a while, whether the first look at it was refused or a
 * call. */
static void test_forgiven(enum cloud_api api)
{
    static const char no[] = "HTTP/1.1 401 no\r\nContent-Length: 0\r\n\r\n";
    static const char yes[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
                              "{\"data\":[{\"id\":\"m\",\"owned_by\":\"vllm\"}],\"choices\":"
                              "[{\"index\":0,\"text\":\"x\",\"token_ids\":[65]}]}";
    struct rude *rude = rude_open(NULL);
    struct routing r = { .how.policy = POLICY_ALWAYS };
    struct texts *e;
    for (unsigned again = 1; again < 1000000; again += 999998) {
        const struct texts_options o = { .engine = &engine,
                                         .routing = &r,
                                         .slots = 1,
                                         .queue = 1,
                                         .context = TINY_CONTEXT,
                                         .kv = KVCACHE_F32,
                                         .again_ms = again };
        rude_play(rude, RUDE_CLOSE, no);
        r.gate = (struct gate){ 0 };
        r.cloud = client(rude_url(rude), api, NULL);
        cloud_port(&r.port, r.cloud);
        CHECK(texts_open(&e, &o, NULL) == OK);
        CHECK(cloud_tokens_of(e) == 0);
        while (!texts_count(e).refused)
            sched_yield();
        CHECK(strstr(texts_count(e).why.msg, "401"));
        rude_play(rude, RUDE_CLOSE, yes);
        if (again > 1)
            CHECK(cloud_tokens_of(e) == 0 && texts_count(e).refused);
        else
            while (!cloud_tokens_of(e))
                sched_yield();
        texts_close(e);
        cloud_close(r.cloud);
    }
    rude_close(rude);
}

int main(void)
{
    struct stand_in *server;
    const char *model = tiny_make_seed(2);
    const struct stand_in_options so = { .model = model, .threads = 1, .net.latency_ms = 1 };
    CHECK(stand_in_open(&server, &so, NULL) == OK);
    open_all();
    for (size_t i = 0; i < TEXTS; i++)
        for (size_t k = 0; k < PROMPT; k++)
            prompts[i][k] = (uint32_t)rand_below(7, i * PROMPT + k, TINY_IM_END);
    test_together(stand_in_url(server));
    stand_in_close(server);
    test_forgiven(CLOUD_OPENAI);
    test_forgiven(CLOUD_AUTO);
    close_all();
    return 0;
}
