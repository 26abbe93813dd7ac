/* What a server was asked for, counted by the server: no more than --max-cloud-tokens and
 * --max-cloud-input, and as many tokens as the ledger says, whatever becomes of the calls. The
 * bytes of the ledger are those that a proxy in front of the cloud sees. With the library, and with
 * requests to `mizzle serve` that require the cloud. And the room for answers is given back. */
#include <pthread.h>

#include "router/mizzle.h"
#include "router/routing.h"
#include "tests/support/rude.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"
#include "tools/lab/stand_in/stand_in.h"
#include "tools/serve/serve_exchange.h"

enum { LIMIT = 16, INPUT = 60, TEXTS = 40, TEXT_LIMIT = 5, FDS = 1024, BYTE_TEXTS = 12 };

static const struct part {
    const char *name;
    unsigned late_ms; /* how late an answer is */
    bool shut;        /* a connection's second request has no answer */
    bool models;      /* the first look at the server fails, too */
    const char *status, *id;
    size_t tokens; /* of a call */
} parts[] = { { "well", 0, false, false, "200 OK", "5", 1 },
              { "well, 4 at a time", 0, false, false, "200 OK", "5", 4 },
              { "late", 2000, false, false, "200 OK", "5", 1 },
              { "closes kept connections", 0, true, false, "200 OK", "5", 1 },
              { "closes, 4 at a time", 0, true, false, "200 OK", "5", 4 },
              { "id out of range", 0, false, false, "200 OK", "99999999", 1 },
              { "fails", 0, false, false, "503 Busy", "5", 1 },
              { "fails, 4 at a time", 0, false, false, "503 Busy", "5", 4 },
              { "fails the probe", 0, false, true, "503 Busy", "5", 1 } };

static _Atomic(const struct part *) now;
static atomic_uint_fast64_t probed, asked, requests; /* tokens of the probe, of calls; requests */
static atomic_uint_fast64_t sent;                    /* ids of calls */
static atomic_bool answered[FDS];                    /* this connection has had an answer */

static bool serve(const struct rude_request *r)
{
    const struct part *p = now;
    char reply[200];
    const char *most = strstr(r->body, "\"max_tokens\":");
    bool probe = !strstr(r->body, "\"prompt\":[");
    CHECK(r->fd < FDS);
    if (most) {
        atomic_fetch_add(probe ? &probed : &asked, strtoul(most + 13, NULL, 10));
        requests++;
        for (const char *at = probe ? NULL : strstr(r->body, "\"prompt\":["); at && *at != ']';
             at++)
            sent += *at == ',' || *at == '[';
    }
    bool again = atomic_load(&answered[r->fd]);
    atomic_store(&answered[r->fd], !again);
    if (p->shut && again)
        return false;
    if (!most)
        return rude_json(r, strstr(r->path, "models") ? "200 OK" : "404 No", "{}");
    if (!probe && p->late_ms && !rude_pause(r, p->late_ms))
        return false;
    snprintf(reply, sizeof(reply),
             "{\"choices\":[{\"index\":0,\"text\":\"x\",\"token_ids\":[%s],"
             "\"finish_reason\":\"length\"}]}",
             p->id);
    return rude_json(r, probe && !p->models ? "200 OK" : p->status, reply);
}

static struct rude *begin(const struct part *p)
{
    now = p;
    probed = asked = requests = sent = 0;
    for (size_t i = 0; i < FDS; i++)
        answered[i] = false;
    return rude_open(serve);
}

/* The cloud is asked for most tokens. */
#define ALL_BUT_SURE(o)     \
    (o).policy = "entropy"; \
    (o).threshold = 0.99

/* What is asked of it: of the library's struct and of serve's. */
#define OF_SERVER(o, p, r)          \
    (o).cloud_url = rude_url(r);    \
    (o).policy = "always";          \
    (o).cloud_tokens = (p)->tokens; \
    (o).cloud_timeout = (p)->late_ms ? 100 : 5000

static struct mizzle_options of_library(const struct part *p, const struct rude *r)
{
    struct mizzle_options o;
    mizzle_options_init(&o, sizeof(o));
    o.model = serving_model;
    o.threads = 1;
    o.max_tokens = TEXTS;
    OF_SERVER(o, p, r);
    return o;
}

static struct routing_options of_serve(const struct part *p, const struct rude *r)
{
    struct routing_options o = routing_defaults;
    o.engine = (struct engine_options){ .model = serving_model, .threads = 1 };
    OF_SERVER(o, p, r);
    return o;
}

/* Compare what the server saw with the limit, which was used if the cloud was required: then no
 * breaker holds calls back. */
static void check(const struct part *p, const char *who, bool required)
{
    bool used = probed + asked + 3 * p->tokens > LIMIT;
    CHECK_MSG(probed + asked <= LIMIT && (used || !required),
              "%s, %s: %d tokens of calls and %d of probes, in %d requests", who, p->name,
              (int)asked, (int)probed, (int)requests);
}

/* Write texts until the limit of tokens is reached, or that of ids that go up, in which the probe
 * counts, too. */
static void test_library(const struct part *p, bool input)
{
    const struct mizzle_prompt prompt = { .size = sizeof(prompt), .text = "Once upon" };
    struct rude *r = begin(p);
    struct mizzle_options o = of_library(p, r);
    struct mizzle *m;
    uint64_t said = 0;
    size_t capped = 0;
    if (input)
        o.max_cloud_input = INPUT;
    else
        o.max_cloud_tokens = LIMIT;
    o.cloud = input || p->models ? "auto" : "required";
    for (int tries = 0; mizzle_open(&m, &o, NULL) != MIZZLE_OK; tries++) {
        CHECK(tries < 50 && p->late_ms); /* on a busy machine the probe may be late, too */
        probed = asked = requests = sent = 0;
    }
    for (int i = 0; i < TEXTS; i++) {
        struct mizzle_stats s = { .size = sizeof(s) };
        int rc = mizzle_generate(m, &prompt, NULL, NULL, &s, NULL);
        CHECK(rc == MIZZLE_OK || (!input && rc == MIZZLE_NET && s.failed));
        said += s.asked_tokens;
        capped += s.held.capped;
    }
    CHECK(mizzle_close(m) == MIZZLE_OK);
    CHECK_MSG(input || said == asked, "%s: the ledger has %d tokens, the server %d", p->name,
              (int)said, (int)asked);
    CHECK_MSG(!input || sent <= INPUT, "%s: %d ids", p->name, (int)sent);
    CHECK(capped || p->models);
    if (!input)
        check(p, "library", !p->models);
    rude_close(r);
}

static const struct serve_options two = { .parallel = 2, .queue = 2 };

/* Let a server that requires its cloud write until it is at the limit. */
static void test_serve(const struct part *p)
{
    struct serving server = { 0 };
    struct rude *r = begin(p);
    struct routing_options o = of_serve(p, r);
    o.max_cloud_tokens = LIMIT;
    serving_open_for(&server, &two, &o);
    for (int i = 0; i < TEXTS; i++) {
        serving_postf(&server, RAW,
                      "{\"prompt\":\"%d bells\",\"max_tokens\":2,\"mizzle\":{"
                      "\"policy\":\"always\",\"cloud\":\"required\"}}",
                      i);
        CHECK(server.status == 200 || server.status == 502);
    }
    check(p, "serve", true);
    serving_close(&server);
    rude_close(r);
}

/* A text's own limit. */
static void test_text(const struct part *p)
{
    struct serving server = { 0 };
    struct rude *r = begin(p);
    struct routing_options o = of_serve(p, r);
    serving_open_for(&server, &two, &o);
    serving_postf(&server, RAW,
                  "{\"prompt\":\"bells\",\"max_tokens\":30,\"mizzle\":{\"policy\":"
                  "\"always\",\"max_cloud_tokens\":%d}}",
                  TEXT_LIMIT);
    CHECK_MSG(server.status == 200 && (asked || p->models) && asked <= TEXT_LIMIT,
              "%s: %d tokens for a text", p->name, (int)asked);
    serving_close(&server);
    rude_close(r);
}

static struct stand_in *cloud;
static struct rude *proxy;
static rude_count moved[2]; /* up, down */

static bool carry(const struct rude_request *r)
{
    return rude_carry(r, stand_in_port(cloud), true, moved);
}

/* Compare what a text says that it has moved with what has passed. On a busy machine a call may
 * take longer than the 200 ms for which a text waits, and is then seen with the next one: *late. */
static void same(const char *who, size_t i, uint64_t up, uint64_t down, size_t *late)
{
    uint64_t seen_up = atomic_exchange(&moved[0], 0), seen_down = atomic_exchange(&moved[1], 0);
    *late += up != seen_up || down != seen_down;
    CHECK_MSG(*late <= BYTE_TEXTS / 3, "%s, text %zu: up %llu of %llu, down %llu of %llu", who, i,
              (unsigned long long)up, (unsigned long long)seen_up, (unsigned long long)down,
              (unsigned long long)seen_down);
}

/* The small model with the proxy as its cloud, decoding ahead. */
static void test_served_bytes(void)
{
    struct routing_options mo = of_serve(&parts[0], proxy);
    struct serving server = { 0 };
    size_t late = 0;
    ALL_BUT_SURE(mo);
    serving_open_for(&server, &two, &mo);
    moved[0] = moved[1] = 0; /* without the look at the server */
    for (size_t i = 0; i < BYTE_TEXTS; i++) {
        json_t *got = serving_postf(
            &server, RAW, "{\"prompt\":\"%zu bells in a\",\"max_tokens\":%zu}", i, 3 + i % 8);
        CHECK(server.status == 200);
        same("serve", i, (uint64_t)serving_number(got, "mizzle.ledger.bytes_up"),
             (uint64_t)serving_number(got, "mizzle.ledger.bytes_down"), &late);
    }
    serving_close(&server);
}

static void test_library_bytes(void)
{
    struct mizzle_options o = of_library(&parts[0], proxy);
    struct mizzle *m;
    char text[40];
    size_t late = 0;
    ALL_BUT_SURE(o);
    for (size_t i = 0; i < BYTE_TEXTS; i++) {
        struct mizzle_stats stats = { .size = sizeof(stats) };
        const struct mizzle_prompt p = { .size = sizeof(p), .text = text };
        snprintf(text, sizeof(text), "%zu bells in a", i);
        o.max_tokens = 3 + i % 8;
        CHECK(mizzle_open(&m, &o, NULL) == MIZZLE_OK);
        moved[0] = moved[1] = 0;
        CHECK(mizzle_generate(m, &p, NULL, NULL, &stats, NULL) == MIZZLE_OK);
        same("library", i, stats.bytes_up, stats.bytes_down, &late);
        CHECK(mizzle_close(m) == MIZZLE_OK);
    }
}

/* Ask for all the room of answers, which is refused. */
static void *hold_all(void *own)
{
    for (size_t i = 0; i < 1000000; i++)
        CHECK(!serve_routes_hold(own, SERVE_ANSWERS));
    return NULL;
}

/* Room that is given back while another answer is refused is there again. */
static void test_room(void)
{
    static struct serve s;
    struct serve_exchange x[3] = { { .s = &s }, { .s = &s }, { .s = &s } };
    pthread_t other;
    CHECK(serve_routes_hold(&x[2], 1));
    CHECK(pthread_create(&other, NULL, hold_all, &x[1]) == 0);
    for (size_t i = 0; i < 1000000; i++) {
        serve_routes_hold(&x[0], SERVE_ANSWERS - 1);
        CHECK(serve_routes_hold(&x[0], 0));
    }
    CHECK(pthread_join(other, NULL) == 0 && s.held == 1);
    CHECK(!serve_routes_hold(&x[0], SIZE_MAX) && s.held == 1);
}

int main(void)
{
    test_room();
    const struct stand_in_options co = { .model = "weights/milli/cloud.gguf", .threads = 1 };
    serving_need_pair();
    CHECK(stand_in_open(&cloud, &co, NULL) == OK);
    proxy = rude_open(carry);
    test_served_bytes();
    test_library_bytes();
    rude_close(proxy);
    stand_in_close(cloud);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        test_library(&parts[i], false);
        test_library(&parts[i], true);
        test_serve(&parts[i]);
        test_text(&parts[i]);
    }
    return 0;
}
