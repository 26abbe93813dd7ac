/* t_texts_cloud.c - texts with the real client: a server that refuses is asked again after a while.
 * serve/t_serve_many.c has many texts with one, serve/t_serve_cloud.c closes one under them. */
#include <sched.h>

#include "tests/router/texts_help.h"
#include "tests/support/rude.h"

/* Write a text, and return how many of its tokens the cloud wrote. */
static size_t cloud_tokens_of(struct texts *e)
{
    static const uint32_t prompt[] = { 7, 70, 170, 9, 99, 199 };
    const struct text_wish w = wish_of(prompt, 6, 40);
    struct text *t = ask_text(e, &w);
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

int main(void)
{
    open_all();
    test_forgiven(CLOUD_OPENAI);
    test_forgiven(CLOUD_AUTO);
    close_all();
    return 0;
}
