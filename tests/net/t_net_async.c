/* Tests calls that are in flight together: answered, dropped, retried, interrupted. The last id of
 * the prefix selects the server's behaviour. */
#include "net/cloud_internal.h"
#include "tests/support/port.h"
#include "tests/support/rude.h"

enum {
    VOCAB = 100000,
    BUSY = 2,     /* 503 once, then an answer */
    LATER,        /* 429 with Retry-After: 1 once */
    MUCH_LATER,   /* 429 with Retry-After: 100 */
    RESET,        /* a reset, once */
    RESETS,       /* a reset, always */
    SILENT,       /* no answer, always */
    BAD,          /* 400 */
    STREAM_PLAIN, /* four tokens, not as a stream */
    NONE,         /* 500 always */
    SLOW = 1000,  /* ids from here on: an answer after 100 ms */
};

static bool answer(const struct rude_request *r, unsigned id)
{
    char json[128];
    snprintf(json, sizeof(json),
             "{\"choices\":[{\"text\":\"x\",\"finish_reason\":\"length\",\"token_ids\":[%u]}]}",
             id);
    return rude_json(r, "200 OK", json);
}

static struct rude *server;

/* Behave as the last id of the prompt says. */
static bool serve(const struct rude_request *r)
{
    switch (r->last) {
    case BUSY:
        return r->seen ? answer(r, 42) : rude_json(r, "503 Busy", "{\"error\":\"busy\"}");
    case LATER:
        return r->seen ? answer(r, 43)
                       : rude_text(r, "HTTP/1.1 429 Wait\r\nRetry-After: 1\r\n"
                                      "Content-Length: 0\r\n\r\n");
    case MUCH_LATER:
        return rude_text(r, "HTTP/1.1 429 Wait\r\nRetry-After: 100\r\nContent-Length: 0\r\n\r\n");
    case RESET:
        if (r->seen)
            return answer(r, 44);
        return rude_reset(r);
    case RESETS:
        return rude_reset(r);
    case SILENT:
        return rude_pause(r, 60000);
    case BAD:
        return rude_json(r, "400 Bad", "{\"error\":{\"message\":\"bad\"}}");
    case STREAM_PLAIN:
        return rude_json(r, "200 OK", "{\"choices\":[{\"token_ids\":[201,202,203,204]}]}");
    case NONE:
        return rude_json(r, "500 Oops", "{}");
    default:
        return (r->last < SLOW || rude_pause(r, 100)) && answer(r, r->last + 7);
    }
}

static struct cloud *client(const struct cloud_options *more)
{
    struct cloud_options o = *more;
    o.key = "sk-secret";
    o.vocab = VOCAB;
    return port_open(rude_url(server), o);
}

/* Ask for the token after a prefix that ends in `last`. */
static void *ask(struct cloud *c, uint32_t last, struct cloud_tally *tally)
{
    void *call;
    CHECK(cloud_ask(c, (const uint32_t[]){ 500, 600, last }, 3, CLOUD_MAX_TOKENS, tally, &call,
                    NULL) == OK);
    return call;
}

static int next(struct cloud *c, uint32_t last, uint32_t *id, struct err *err)
{
    return port_next(c, (const uint32_t[]){ 500, 600, last }, 3, id, err);
}

static double seconds_since(uint64_t start)
{
    return (double)(os_now_ns() - start) / 1e9;
}

/* 64 calls at once are taken in another order than made; every third is dropped in flight. */
static void test_many(void)
{
    struct cloud *c = client(&(struct cloud_options){ 0 });
    void *calls[64];
    for (uint32_t i = 0; i < 64; i++)
        calls[i] = ask(c, SLOW + i, NULL);
    CHECK(!cloud_done(calls[0], 0));
    for (size_t i = 0; i < 64; i += 3)
        cloud_end(calls[i], CLOUD_DROP);
    for (uint32_t i = 64; i-- > 0;) {
        uint32_t id = 0, again = 0;
        if (i % 3 == 0)
            continue;
        CHECK(cloud_take(calls[i], 0, &id, NULL) == OK && id == SLOW + i + 7 &&
              cloud_done(calls[i], 0));
        CHECK(cloud_take(calls[i], 0, &again, NULL) == OK && again == id);
        cloud_end(calls[i], CLOUD_USE);
    }
    const struct cloud_ledger *l = cloud_ledger(c);
    CHECK(l->calls == 64 && l->faults == 0);
    CHECK(l->traffic.header_bytes_up && l->traffic.header_bytes_up < l->traffic.bytes_up);
    CHECK(l->traffic.header_bytes_down && l->traffic.header_bytes_down < l->traffic.bytes_down);
    cloud_close(c);
}

/* What is retried, how often, and after how long. */
static void test_retry(void)
{
    static const struct {
        uint32_t last, id;
        int rc;
        unsigned retries, requests;
        double least, most; /* seconds */
    } cases[] = {
        { BUSY, 42, OK, 1, 2, 0.015, 3 },
        { LATER, 43, OK, 1, 2, 1, 4 },
        { MUCH_LATER, 0, ERR_NET, 0, 1, 0, 1 },
        { RESET, 44, OK, 1, 2, 0, 3 },
        { BAD, 0, ERR_TEXT, 0, 1, 0, 1 },
        { NONE, 0, ERR_NET, 1, 2, 0.015, 3 },
        { 99, 106, OK, 0, 1, 0, 1 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cloud *c = client(&(struct cloud_options){ .timeout_ms = 5000 });
        struct err err = { "" };
        uint32_t id = 0;
        rude_forget(server);
        uint64_t start = os_now_ns();
        int rc = next(c, cases[i].last, &id, &err);
        double s = seconds_since(start);
        CHECK_MSG(rc == cases[i].rc && id == cases[i].id && s >= cases[i].least &&
                      s <= cases[i].most && cloud_ledger(c)->traffic.retries == cases[i].retries &&
                      rude_seen(server, cases[i].last) == cases[i].requests &&
                      cloud_ledger(c)->faults == (rc != OK) && cloud_ledger(c)->calls == 1,
                  "retry %zu: %d, %.3f s: %s", i, rc, s, err.msg);
        cloud_close(c);
    }
}

static struct traffic tally_sum(struct cloud *c, struct cloud_tally *t, size_t n)
{
    struct traffic sum = { 0 };
    for (size_t i = 0; i < n; i++) {
        struct traffic one = cloud_traffic(c, &t[i], false);
        traffic_add(&sum, &one);
    }
    return sum;
}

/* Each call counts what it moves itself, and together they count what the client has moved. */
static void test_tally(void)
{
    static const uint32_t last[] = { BUSY, 98, 99 };
    struct cloud *c = client(&(struct cloud_options){ .timeout_ms = 5000 });
    struct cloud_tally t[4] = { 0 };
    void *calls[3];
    uint64_t start = os_now_ns();
    uint32_t id;
    rude_forget(server);
    for (size_t i = 0; i < 3; i++)
        calls[i] = ask(c, last[i], &t[i]);
    for (size_t i = 0; i < 3; i++) {
        CHECK(cloud_take(calls[i], 0, &id, NULL) == OK);
        cloud_end(calls[i], CLOUD_USE);
    }
    CHECK(tally_sum(c, &t[0], 1).retries == 1);
    CHECK(tally_sum(c, &t[1], 1).retries + tally_sum(c, &t[2], 1).retries == 0);
    CHECK(tally_sum(c, &t[2], 1).bytes_up > 100 && tally_sum(c, &t[2], 1).bytes_down > 50);
    for (bool same = false; !same;) { /* the end of a call may still be counted */
        struct traffic sum = tally_sum(c, t, 3);
        same = memcmp(&sum, &cloud_ledger(c)->traffic, sizeof(sum)) == 0;
        CHECK(seconds_since(start) < 10);
    }
    calls[0] = ask(c, SLOW, &t[3]);
    cloud_traffic(c, &t[3], true); /* its memory may go, whatever becomes of the call */
    memset(&t[3], 0, sizeof(t[3]));
    CHECK(cloud_take(calls[0], 0, &id, NULL) == OK && tally_sum(c, &t[3], 1).bytes_up == 0);
    cloud_end(calls[0], CLOUD_USE);
    cloud_close(c);
}

static void *raise_flag(void *flag)
{
    rest_us(100000);
    atomic_store((_Atomic int *)flag, 1);
    return NULL;
}

/* An interruption ends calls in flight, and cloud_close does not wait for them. */
static void test_stop(void)
{
    static _Atomic int stop;
    struct cloud *c = client(&(struct cloud_options){ .stop = &stop, .timeout_ms = 60000 });
    void *calls[3];
    pthread_t t;
    uint32_t id = 77;
    for (size_t i = 0; i < 3; i++)
        calls[i] = ask(c, SILENT, NULL);
    uint64_t start = os_now_ns();
    CHECK(pthread_create(&t, NULL, raise_flag, &stop) == 0);
    for (size_t i = 0; i < 3; i++)
        CHECK(cloud_take(calls[i], 0, &id, NULL) == ERR_STOP && id == 77);
    CHECK(seconds_since(start) > 0.09 && seconds_since(start) < 2);
    pthread_join(t, NULL);
    stop = 0;
    CHECK(next(c, 99, &id, NULL) == OK && cloud_ledger(c)->faults == 0);
    cloud_end(calls[0], CLOUD_DROP);
    cloud_end(calls[1], CLOUD_USE);
    cloud_close(c); /* while a call is still open */
    c = client(&(struct cloud_options){ 0 });
    ask(c, SILENT, NULL);
    ask(c, SLOW, NULL);
    cloud_end(ask(c, SILENT, NULL), CLOUD_DROP);
    start = os_now_ns();
    cloud_close(c); /* which waits for no call */
    CHECK(seconds_since(start) < 2);
}

/* Dropped calls neither block nor harm later ones. */
static void test_drop(void)
{
    struct cloud *c = client(&(struct cloud_options){ 0 });
    uint32_t id = 0;
    for (uint32_t i = 0; i < 20; i++) {
        cloud_end(ask(c, 50, NULL), CLOUD_DROP);
        CHECK(next(c, 100 + i, &id, NULL) == OK && id == 107 + i);
    }
    CHECK(cloud_ledger(c)->calls == 40);
    /* What a stuck one has sent is counted. */
    struct cloud_tally t = { .limit = 0 };
    void *stuck = ask(c, SILENT, &t);
    rest_us(100000);
    cloud_end(stuck, CLOUD_DROP);
    while (cloud_traffic(c, &t, false).bytes_up <
           100) /* until the network thread has let go of it */
        CHECK(next(c, 99, &id, NULL) == OK);
    cloud_close(c);
}

static int ask_once(const void *arg)
{
    struct cloud *c;
    void *call = NULL;
    uint32_t id = 77;
    int rc = cloud_open(&c, arg, NULL);
    if (rc == OK)
        rc = cloud_ask(c, (const uint32_t[]){ STREAM_PLAIN }, 1, CLOUD_MAX_TOKENS, NULL, &call,
                       NULL);
    if (rc == OK)
        rc = cloud_take(call, 0, &id, NULL);
    cloud_close(c);
    CHECK(id == (rc == OK ? 201 : 77));
    return rc;
}

/* Every allocation fails once: an error or a right answer, and no leak. */
static void test_torture(void)
{
    const struct cloud_options o = { .url = rude_url(server),
                                     .key = "sk-secret",
                                     .model = "m",
                                     .vocab = VOCAB,
                                     .api = CLOUD_OPENAI,
                                     .tokens = 4 };
    CHECK(torture_some(ask_once, &o) > 10);
}

/* How often a server is asked depends on its answers alone, not on whether a connection was a kept
 * one; with more requests in flight fewer connections are kept. */
static void test_kept(void)
{
    for (int kept = 0; kept < 3; kept++) {
        struct cloud *c = client(&(struct cloud_options){ 0 });
        void *calls[2];
        struct err err;
        uint32_t id;
        for (int i = 0; i < kept; i++) /* all at once, so that each has a connection */
            CHECK(cloud_ask(c, (const uint32_t[]){ SLOW }, 1, CLOUD_MAX_TOKENS, NULL, &calls[i],
                            &err) == OK);
        for (int i = 0; i < kept; i++)
            cloud_end(calls[i], CLOUD_USE);
        rude_forget(server);
        CHECK(next(c, RESETS, &id, &err) == ERR_NET);
        CHECK(rude_seen(server, RESETS) == 3 && cloud_ledger(c)->traffic.retries == 2);
        CHECK(next(c, 99, &id, &err) == OK && id == 106);
        cloud_close(c);
    }
}

int main(void)
{
    server = rude_open(serve);
    test_many();
    test_retry();
    test_tally();
    test_kept();
    test_stop();
    test_drop();
    test_torture();
    rude_close(server);
    return 0;
}
