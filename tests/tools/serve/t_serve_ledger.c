/* The ledger has what a proxy in front of the cloud sees: of the server, and of the library. */
#include <string.h>

#include "kernels/sys/base.h"
#include "router/mizzle.h"
#include "tests/support/rude.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"
#include "tools/lab/stand_in/stand_in.h"

enum { TEXTS = 12 };

static struct stand_in *cloud;
static struct rude *proxy;
static rude_count moved[2]; /* up, down */

static bool carry(const struct rude_request *r)
{
    return rude_carry(r, stand_in_port(cloud), true, moved);
}

/* Forget what has passed until now, such as the client's first look at the server. */
static void forget(void)
{
    moved[0] = moved[1] = 0;
}

/* Compare what a text says that it has moved with what has passed. On a busy machine a call may
 * take longer than the 200 ms for which a text waits, and is then seen with the next one: *late. */
static void same(const char *who, size_t i, uint64_t up, uint64_t down, size_t *late)
{
    uint64_t seen_up = atomic_exchange(&moved[0], 0), seen_down = atomic_exchange(&moved[1], 0);
    *late += up != seen_up || down != seen_down;
    CHECK_MSG(*late <= TEXTS / 3, "%s, text %zu: up %llu of %llu, down %llu of %llu", who, i,
              (unsigned long long)up, (unsigned long long)seen_up, (unsigned long long)down,
              (unsigned long long)seen_down);
}

/* Set the options of the small model with the proxy as its cloud, decoding ahead. */
static void options(struct mizzle_options *o)
{
    mizzle_options_init(o, sizeof(*o));
    o->model = serving_model;
    o->threads = 1;
    o->cloud_url = rude_url(proxy);
    o->policy = "entropy";
    o->threshold = 0.99;
    o->ahead = 1;
}

static void test_serve(void)
{
    const struct serve_options so = { .parallel = 2, .queue = 2 };
    struct mizzle_options mo;
    struct serving server = { 0 };
    size_t late = 0;
    options(&mo);
    serving_open_for(&server, &so, &mo);
    forget();
    for (size_t i = 0; i < TEXTS; i++) {
        json_t *got = serving_postf(
            &server, RAW, "{\"prompt\":\"%zu bells in a\",\"max_tokens\":%zu}", i, 3 + i % 8);
        CHECK(server.status == 200);
        same("serve", i, (uint64_t)serving_number(got, "mizzle.ledger.bytes_up"),
             (uint64_t)serving_number(got, "mizzle.ledger.bytes_down"), &late);
    }
    serving_close(&server);
}

static void test_library(void)
{
    struct mizzle_options o;
    struct mizzle *m;
    char text[40];
    size_t late = 0;
    options(&o);
    for (size_t i = 0; i < TEXTS; i++) {
        struct mizzle_stats stats = { .size = sizeof(stats) };
        const struct mizzle_prompt p = { .size = sizeof(p), .text = text };
        snprintf(text, sizeof(text), "%zu bells in a", i);
        o.max_tokens = 3 + i % 8;
        CHECK(mizzle_open(&m, &o, NULL) == MIZZLE_OK);
        forget();
        CHECK(mizzle_generate(m, &p, NULL, NULL, &stats, NULL) == MIZZLE_OK);
        same("library", i, stats.bytes_up, stats.bytes_down, &late);
        CHECK(mizzle_close(m) == MIZZLE_OK);
    }
}

int main(void)
{
    const struct stand_in_options co = { .model = "weights/milli/cloud.gguf", .threads = 1 };
    serving_need_pair();
    CHECK(stand_in_open(&cloud, &co, NULL) == OK);
    proxy = rude_open(carry);
    test_serve();
    test_library();
    rude_close(proxy);
    stand_in_close(cloud);
    return 0;
}
