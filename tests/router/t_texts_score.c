/* t_texts_score.c - what else a text can be: scored, answered by a function, impossible, ended with
 * all the others, refused by the server for a while, or without memory. */
#include <sched.h>

#include "tests/router/texts_help.h"
#include "tests/support/rude.h"

static uint32_t prompt[TINY_CONTEXT];

/* Each id of a prompt has the logprob of a log-softmax in double, whatever is written beside it,
 * and however the prompt was cut; so has the token that is written after it. */
static void test_score(void)
{
    static const size_t lengths[] = { 1, 2, 31, 33, 64, 200, TINY_CONTEXT };
    struct texts *e = texts_with(NULL, 4, 8, TINY_CONTEXT);
    struct text_wish w = wish_of(prompt, 6, 240);
    struct text *writes = ask_text(e, &w);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        w = wish_of(prompt, lengths[i], i % 2);
        w.score = i % 2 && i > 2 ? lengths[i] / 2 : 1;
        size_t held = i ? lengths[i - 1] : 0; /* of the text before */
        w.logprobs = true;
        w.top = i % 4;
        struct text *t = ask_text(e, &w);
        struct text_view v = text_wait(t, SIZE_MAX);
        CHECK(v.rc == OK && v.n == i % 2 && v.nscores == w.n && v.read == w.n);
        CHECK(v.cached == (w.score <= held ? w.score - 1 : held) &&
              v.stats.finish == FINISH_LENGTH && isnan(v.scores[0]));
        for (size_t k = w.score; k < v.nscores; k++)
            check_logprob(v.ids, k, v.scores[k], v.score_tops + k * w.top, w.top);
        for (size_t k = 0; k < v.n; k++)
            check_logprob(v.ids, w.n + k, v.tokens[k].logprob, v.tops + k * w.top, w.top);
        text_drop(t);
    }
    text_drop(writes);
    texts_close(e);
}

static void count_news(void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, 1);
}

/* Whoever is told looks at what has come; and an end to all of them is an end to each. */
static void test_news_and_stop(void)
{
    struct texts *e = texts_with(NULL, 2, 8, TINY_CONTEXT);
    _Atomic int told = 0;
    struct text_wish w = wish_of(prompt, 4, 250);
    struct text *t[6], *late;
    w.news = count_news;
    w.news_arg = &told;
    t[0] = ask_text(e, &w);
    size_t seen = 0, looks = 0;
    for (struct text_view v = text_look(t[0]); !v.finished; looks++) {
        int before = atomic_load(&told);
        v = text_look(t[0]);
        CHECK(v.n >= seen && !v.rc);
        seen = v.n;
        while (!v.finished && atomic_load(&told) == before)
            sched_yield();
    }
    CHECK(seen <= 250 && atomic_load(&told) > 1 && text_look(t[0]).n == 250);
    text_drop(t[0]);
    for (size_t i = 0; i < 6; i++)
        t[i] = ask_text(e, &w);
    texts_stop(e);
    for (size_t i = 0; i < 6; i++)
        CHECK(text_wait(t[i], SIZE_MAX).finished);
    CHECK(text_look(t[5]).rc == ERR_STOP && texts_ask(e, &late, &w, NULL) == ERR_STOP && !late);
    for (size_t i = 0; i < 6; i++)
        text_drop(t[i]);
    texts_close(e);
}

/* What is impossible is said at once. */
static void test_arguments(void)
{
    struct texts *e;
    const struct texts_options none = { .engine = &engine, .slots = 0, .context = 9 };
    CHECK(texts_open(&e, &none, NULL) == ERR_ARG && !e);
    texts_close(NULL);
    text_drop(NULL);
    e = texts_with(NULL, 1, 1, 32);
    const struct text_routing mlp = { .policy = POLICY_MLP };
    static const uint32_t high[] = { 1, TINY_VOCAB };
    static const char *const empty[] = { "", NULL };
    const struct text_wish fine = wish_of(prompt, 4, 4);
    struct text_wish bad[9];
    size_t n = 0;
    for (size_t i = 0; i < 9; i++)
        bad[i] = fine;
    bad[n++].n = 0;
    bad[n++].n = 33;
    bad[n++].max = 0;
    bad[n].prompt = high;
    bad[n++].n = 2;
    bad[n++].sample.temp = -1;
    bad[n++].sample.top_p = 2;
    bad[n].logprobs = true;
    bad[n++].top = TEXTS_TOP + 1;
    bad[n++].stops = empty;
    bad[n++].routing = &mlp;
    CHECK(n == 9);
    for (size_t i = 0; i < n; i++) {
        struct text *t;
        struct err err = { "" };
        CHECK(texts_ask(e, &t, &bad[i], &err) == ERR_ARG && !t && err.msg[0]);
    }
    struct text_wish w = fine;
    struct text *t;
    w.patterns = "a\\q\n";
    CHECK(texts_ask(e, &t, &w, NULL) == ERR_FORMAT && !t);
    struct text_routing r = texts_routing(e);
    CHECK(r.policy == POLICY_NEVER && r.max_cloud_tokens == UINT64_MAX);
    texts_close(e);
}

/* Write a text, and return how many of its tokens the cloud wrote. */
static size_t cloud_tokens_of(struct texts *e)
{
    const struct text_wish w = wish_of(prompt, 6, 40);
    struct text *t = ask_text(e, &w);
    struct text_view v = text_wait(t, SIZE_MAX);
    size_t n = v.stats.cloud;
    CHECK(v.rc == OK && (n || v.tokens[0].t.reason == GATE_REFUSED));
    text_drop(t);
    return n;
}

/* A server that refuses is asked again after a while, be it the first look or a call. */
static void test_forgiven(enum cloud_api api)
{
    static const char no[] = "HTTP/1.1 401 no\r\nContent-Length: 0\r\n\r\n";
    static const char yes[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
                              "{\"data\":[{\"id\":\"m\",\"owned_by\":\"vllm\"}],\"choices\":"
                              "[{\"index\":0,\"text\":\"x\",\"token_ids\":[65]}]}";
    struct rude *rude = rude_open(NULL);
    const struct cloud_options from = {
        .url = rude_url(rude), .api = api, .model = "m", .vocab = TINY_VOCAB, .background = true
    };
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
        CHECK(cloud_open(&r.cloud, &from, NULL) == OK);
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

/* Whichever allocation fails, a text is refused or ends, and the next one is written. */
static void test_memory(void)
{
    static const char *const stops[] = { "~~~", NULL };
    static struct script script = { .size = TINY_IM_END, .store = 30 };
    script_open(&script);
    struct routing r = {
        .how.policy = POLICY_ALWAYS, .how.ahead = 1, .port = script.port, .how.drafts = DRAFT_LOOKUP
    };
    struct texts *e = texts_with(&r, 1, 2, 64);
    size_t refused = 0, failed = 0;
    int reached = 1;
    for (long i = 1; reached; i++) {
        struct text *t = NULL;
        struct text_wish w = wish_of(prompt, 9, 12);
        w.stops = stops;
        w.patterns = "zzz\n";
        w.logprobs = w.events = true;
        w.top = 2;
        w.score = (size_t)i % 2;
        torture_begin(i);
        int rc = texts_ask(e, &t, &w, NULL);
        CHECK(rc == OK || rc == ERR_NOMEM);
        refused += rc != OK;
        if (rc == OK) {
            struct text_view v = text_wait(t, SIZE_MAX);
            CHECK(v.rc == OK || v.rc == ERR_NOMEM);
            failed += v.rc != OK;
        }
        text_drop(t);
        reached = torture_end();
        CHECK(torture_live() == 0 && !script.live);
    }
    printf("%zu refused, %zu failed\n", refused, failed);
    CHECK(refused > 5 && failed > 2);
    texts_close(e);
    script_close(&script);
    for (long i = 1, done = 0; !done; i++) {
        const struct texts_options o = {
            .engine = &engine, .slots = 2, .context = 64, .kv = KVCACHE_F32
        };
        torture_begin(i);
        int rc = texts_open(&e, &o, NULL);
        done = !torture_end();
        CHECK(done ? rc == OK : rc == OK || rc == ERR_NOMEM);
        texts_close(e);
    }
}

int main(void)
{
    open_all();
    for (size_t i = 0; i < TINY_CONTEXT; i++)
        prompt[i] = (uint32_t)rand_below(3, i, TINY_IM_END);
    test_score();
    test_news_and_stop();
    test_arguments();
    test_forgiven(CLOUD_OPENAI);
    test_forgiven(CLOUD_AUTO);
    test_memory();
    close_all();
    return 0;
}
