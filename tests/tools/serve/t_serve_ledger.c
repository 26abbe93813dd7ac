/* The ledger has what a proxy in front of the cloud sees: of the server, and of the library. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "router/mizzle.h"
#include "tests/support/http_client.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"
#include "tools/lab/stand_in/stand_in.h"

enum { TEXTS = 12 };

static struct proxy {
    int listener;
    unsigned port, cloud;
    atomic_uint_fast64_t up, down;
} proxy;

/* Carry the bytes of one connection both ways, until a side closes it. */
static void *carry(void *arg)
{
    struct pollfd at[2] = { { .fd = (int)(size_t)arg, .events = POLLIN }, { .events = POLLIN } };
    char bytes[1 << 14];
    at[1].fd = http_client_open(proxy.cloud);
    for (bool open = true; open && poll(at, 2, -1) > 0;)
        for (int i = 0; i < 2 && open; i++) {
            ssize_t n = at[i].revents ? read(at[i].fd, bytes, sizeof(bytes)) : 0;
            open = n > 0 || !at[i].revents;
            if (n <= 0)
                continue;
            atomic_fetch_add(i ? &proxy.down : &proxy.up, (uint64_t)n);
            http_client_send(at[!i].fd, bytes, (size_t)n);
        }
    close(at[0].fd);
    close(at[1].fd);
    return NULL;
}

static void *take_connections(void *arg)
{
    pthread_t thread;
    for (int fd; (fd = accept(proxy.listener, NULL, NULL)) >= 0; pthread_detach(thread))
        CHECK(!pthread_create(&thread, NULL, carry, (void *)(size_t)fd));
    return arg;
}

/* Stand in front of the cloud. */
static void proxy_open(unsigned cloud)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(a);
    pthread_t thread;
    proxy.cloud = cloud;
    proxy.listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(!bind(proxy.listener, (struct sockaddr *)&a, n) && !listen(proxy.listener, 64));
    CHECK(!getsockname(proxy.listener, (struct sockaddr *)&a, &n));
    proxy.port = ntohs(a.sin_port);
    CHECK(!pthread_create(&thread, NULL, take_connections, NULL) && !pthread_detach(thread));
}

/* Forget what has passed until now, such as the client's first look at the server. */
static void forget(void)
{
    atomic_store(&proxy.up, 0);
    atomic_store(&proxy.down, 0);
}

/* Compare what a text says that it has moved with what has passed. On a busy machine a call may
 * take longer than the 200 ms for which a text waits, and is then seen with the next one: *late. */
static void same(const char *who, size_t i, uint64_t up, uint64_t down, size_t *late)
{
    uint64_t seen_up = atomic_exchange(&proxy.up, 0), seen_down = atomic_exchange(&proxy.down, 0);
    *late += up != seen_up || down != seen_down;
    CHECK_MSG(*late <= TEXTS / 3, "%s, text %zu: up %llu of %llu, down %llu of %llu", who, i,
              (unsigned long long)up, (unsigned long long)seen_up, (unsigned long long)down,
              (unsigned long long)seen_down);
}

/* Set the options of the small model with the proxy as its cloud, decoding ahead. */
static void options(struct mizzle_options *o, char url[40])
{
    snprintf(url, 40, "http://127.0.0.1:%u", proxy.port);
    mizzle_options_init(o, sizeof(*o));
    o->model = serving_model;
    o->threads = 1;
    o->cloud_url = url;
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
    char url[40];
    options(&mo, url);
    CHECK(serve_open(&server.serve, &so, NULL) == OK);
    CHECK(serve_load(server.serve, &mo, NULL) == OK);
    server.port = (unsigned)strtoul(strrchr(serve_url(server.serve), ':') + 1, NULL, 10);
    forget();
    for (size_t i = 0; i < TEXTS; i++) {
        json_t *got = serving_postf(
            &server, RAW, "{\"prompt\":\"%zu bells in a\",\"max_tokens\":%zu}", i, 3 + i % 8);
        CHECK(server.status == 200);
        same("serve", i, (uint64_t)serving_number(got, "mizzle.ledger.bytes_up"),
             (uint64_t)serving_number(got, "mizzle.ledger.bytes_down"), &late);
        json_decref(got);
    }
    serving_close(&server);
}

static void test_library(void)
{
    struct mizzle_options o;
    struct mizzle *m;
    char url[40], text[40];
    size_t late = 0;
    options(&o, url);
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
    struct stand_in *cloud;
    serving_need_pair();
    CHECK(stand_in_open(&cloud, &co, NULL) == OK);
    proxy_open(stand_in_port(cloud));
    test_serve();
    test_library();
    stand_in_close(cloud);
    return 0;
}
