/* Tests kept answers in front of a server: tokens of a reply that come behind the first one are
 * seen as they come, kept once the call is used, and need no call. The last id of the prefix
 * selects the server's behaviour. */
#include "net/answers/answers.h"
#include "net/answers/answers_port.h"
#include "tests/support/port.h"
#include "tests/support/rude.h"

enum {
    SILENT,       /* no answer, always */
    BAD,          /* 400 */
    FOUR,         /* four tokens, one by one */
    STREAM_CUT,   /* two of four tokens, then a reset */
    STREAM_PLAIN, /* four tokens, not as a stream */
};

#define SSE       "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream\r\nConnection: close\r\n\r\n"
#define EVENT(id) "data: {\"choices\":[{\"index\":0,\"text\":\"x\",\"token_ids\":[" id "]}]}\n\n"

static struct rude *server;
static atomic_bool held; /* a stream waits after its first token */

static bool stream(const struct rude_request *r)
{
    bool goes_on = rude_text(r, SSE EVENT("201"));
    while (goes_on && held)
        goes_on = rude_pause(r, 10);
    return goes_on && rude_text(r, EVENT("202") EVENT("203")) && rude_pause(r, 30) &&
           rude_text(r, EVENT("204") "data: [DONE]\n\n") && false;
}

/* Behave as the last id of the prompt says. */
static bool serve(const struct rude_request *r)
{
    switch (r->last) {
    case SILENT:
        return rude_pause(r, 60000);
    case BAD:
        return rude_json(r, "400 Bad", "{\"error\":{\"message\":\"bad\"}}");
    case FOUR:
        return stream(r);
    case STREAM_CUT:
        rude_text(r, SSE EVENT("201") EVENT("202") "data: {\"cho");
        rude_pause(r, 20);
        return rude_reset(r);
    default:
        return rude_json(r, "200 OK", "{\"choices\":[{\"token_ids\":[201,202,203,204]}]}");
    }
}

/* Open a client that streams four tokens, with kept answers in front of it. */
static struct cloud *answered(struct cloud_port *p, struct answers **answers)
{
    CHECK(answers_open(answers, &(struct answers_options){ .vocab = 1000 }, NULL) == OK);
    const struct cloud_options o = { .tokens = 4, .found = answers_found, .found_arg = *answers };
    struct cloud *c = port_open(rude_url(server), o);
    cloud_port(p, c);
    CHECK(answers_port(p, *answers, p, NULL) == OK);
    return c;
}

static void *port_ask(const struct cloud_port *p, uint32_t last)
{
    void *call;
    CHECK(p->ask(p->arg, (const uint32_t[]){ 500, 600, last }, 3, 4, NULL, &call, NULL) == OK);
    return call;
}

static void port_use(const struct cloud_port *p, uint32_t last)
{
    uint32_t id = 0;
    void *call = port_ask(p, last);
    CHECK(p->take(call, 0, &id, NULL) == OK && id == 201);
    p->end(call, CLOUD_USE);
}

/* True when the token after ids[n] is in memory and is this one. */
static bool knows(const struct cloud_port *p, const uint32_t *ids, size_t n, bool used,
                  uint32_t want)
{
    uint32_t id = 0;
    return cloud_port_known(p, ids, n, used, &id) == CLOUD_MEMO && id == want;
}

/* What can be said of the token after ids[n] without waiting. */
static enum cloud_sight sight(const struct cloud_port *p, const uint32_t *ids, size_t n)
{
    uint32_t id;
    return cloud_port_known(p, ids, n, false, &id);
}

/* The first token comes at once and the others through the memo, without a second call. */
static void test_stream(void)
{
    struct answers *answers;
    struct cloud_port p;
    uint32_t ids[] = { 500, 600, FOUR, 201, 202, 203, 9 }, id = 0;
    struct cloud *c = answered(&p, &answers);
    rude_forget(server);
    held = true;
    void *call = port_ask(&p, FOUR);
    CHECK(!knows(&p, ids, 3, true, 201));
    CHECK(p.take(call, 0, &id, NULL) == OK && id == 201);
    CHECK(!knows(&p, ids, 4, true, 202)); /* not used yet, so it may be dropped */
    CHECK(sight(&p, ids, 4) == CLOUD_UNKNOWN);
    p.end(call, CLOUD_USE);
    CHECK(sight(&p, ids, 6) == CLOUD_COMING && sight(&p, ids, 7) == CLOUD_UNKNOWN);
    held = false;
    CHECK(knows(&p, ids, 3, true, 201));
    CHECK(knows(&p, ids, 6, true, 204)); /* waits for the stream */
    CHECK(knows(&p, ids, 6, false, 204) && knows(&p, ids, 4, true, 202));
    ids[3] = 7;
    CHECK(sight(&p, ids, 4) == CLOUD_UNKNOWN && sight(&p, ids, 7) == CLOUD_UNKNOWN);
    CHECK(cloud_port_known(&p, ids, 4, true, &id) == CLOUD_UNKNOWN);
    CHECK(rude_seen(server, FOUR) == 1);
    CHECK(cloud_ledger(c)->tokens == 4 && cloud_ledger(c)->calls == 1);
    /* Cut after two tokens: the call succeeds, and the third token is missing. */
    ids[2] = STREAM_CUT;
    ids[3] = 201;
    port_use(&p, STREAM_CUT);
    CHECK(knows(&p, ids, 4, true, 202) && !knows(&p, ids, 5, true, 203));
    ids[2] = STREAM_PLAIN;
    port_use(&p, STREAM_PLAIN);
    CHECK(knows(&p, ids, 6, true, 204));
    p.end(port_ask(&p, FOUR), CLOUD_DROP); /* while it streams */
    p.close(p.arg);
    answers_close(answers);
}

/* Tokens are taken in any order before the call is used. */
static void pieces(const struct cloud_port *p)
{
    uint32_t ids[] = { 500, 600, FOUR, 201, 202 }, id = 0;
    held = false;
    void *call = port_ask(p, FOUR);
    CHECK(p->take(call, 3, &id, NULL) == OK && id == 204);
    CHECK(p->take(call, 1, &id, NULL) == OK && id == 202);
    CHECK(p->done(call, 2) && p->take(call, 4, &id, NULL) == ERR_NET && id == 202);
    CHECK(p->done(call, 4)); /* it has ended */
    CHECK(!knows(p, ids, 5, true, 203));
    p->end(call, CLOUD_USE);
    CHECK(knows(p, ids, 5, true, 203));
}

/* A fault has no tokens, and take gives it. */
static void fault(const struct cloud_port *p)
{
    uint32_t id = 77;
    void *call = port_ask(p, BAD);
    CHECK(p->take(call, 0, &id, NULL) == ERR_TEXT && id == 77);
    CHECK(p->done(call, 1) && p->take(call, 1, &id, NULL) == ERR_TEXT && id == 77);
    p->end(call, CLOUD_USE);
}

static void test_pieces(void)
{
    struct answers *answers;
    struct cloud_port p;
    struct cloud *c = answered(&p, &answers);
    pieces(&p);
    fault(&p);
    CHECK(cloud_ledger(c)->calls == 2);
    p.end(port_ask(&p, SILENT), CLOUD_DROP);
    port_ask(&p, SILENT); /* closing drops it */
    p.close(p.arg);
    answers_close(answers);
}

int main(void)
{
    server = rude_open(serve);
    test_stream();
    test_pieces();
    rude_close(server);
    return 0;
}
