/* Clients that close their connection while their text is written, waits for a slot, is read, or
 * waits for the cloud: its slot is free at once, which is counted in passes of the model. A cloud
 * that is slow costs the other texts no pass. */
#include "tests/support/clients.h"
#include "tests/support/http_client.h"
#include "tests/support/process.h"
#include "tests/support/serving.h"
#include "tools/lab/stand_in/stand_in_internal.h"

enum { LONG = 1000, PIECE = 192, TRIES = 100, ENDS = 20 };

#define STUCK                                                                                    \
    "{\"prompt\":[9,8,7],\"max_tokens\":50,\"stream\":true,\"mizzle\":{\"policy\":\"always\",\"" \
    "trace\":{\"events\":true}}}"
#define EDGE                                                                                 \
    "{\"prompt\":[1,2,3,4,5,6],\"max_tokens\":200,\"ignore_eos\":true,\"model\":\"edge-0.5:" \
    "edge\"}"
#define ENDLESS                                                                                  \
    "{\"prompt\":[5,%d],\"max_tokens\":1000,\"ignore_eos\":true,\"temperature\":1,\"seed\":1,\"" \
    "model\":\"edge-0.5:edge\",\"stream\":true}"

/* What a text that waits for the cloud tells last: beside its question its prompt is read, for the
 * token that it guesses, which is its last pass. */
#define WAITS "\"evaluated\",\"at\":-"

static struct serving server;

static long count(const char *name)
{
    return clients_metric(server.port, name);
}

/* Wait until a count has this value; a text is counted a little later than its slot is free. */
static void await(const char *name, long value)
{
    for (int i = 0; count(name) != value; i++)
        CHECK(i < 100000);
}

/* Send a request and leave its reply unread. */
static int begin(const char *body)
{
    int fd = http_client_open(server.port);
    http_client_put(fd, "POST", RAW, NULL, body, strlen(body));
    return fd;
}

/* Read the reply of a text that comes to its end. */
static void finish(int fd)
{
    struct http_client_reply *r = http_client_read(fd, 60000);
    CHECK(r->status == 200 && r->whole);
    close(fd);
}

/* While one text waits for a slow cloud, another needs the passes that it needs alone. In the queue
 * and while the cloud is asked, clients that leave cost none. */
static void test_waiting(void)
{
    long passes[3], stopped;
    serving_open(&server, &(struct serve_options){ .parallel = 2, .queue = 2 }, SERVING_CLOUD);
    stand_in_set_latency(server.cloud, 10000);
    for (int i = 0; i < 2; i++) { /* the second time with its prompt in the slot, as later */
        passes[0] = count("passes_total");
        finish(begin(EDGE));
        passes[1] = count("passes_total") - passes[0];
    }
    int stuck = begin(STUCK);
    clients_await(stuck, WAITS);
    passes[0] = count("passes_total");
    finish(begin(EDGE));
    CHECK(count("passes_total") - passes[0] == passes[1]);

    int other = begin(STUCK); /* both slots are taken */
    clients_await(other, WAITS);
    int queued = begin(EDGE), next = begin(EDGE);
    await("queue", 2);
    passes[0] = count("passes_total");
    stopped = count("texts_stopped_total");
    close(queued);
    await("queue", 1);
    CHECK(count("slots_busy") == 2 && count("passes_total") == passes[0]);
    static char sink[1 << 16]; /* nothing stays unread, so the server sees no more than an end */
    CHECK(recv(other, sink, sizeof(sink), 0) > 0);
    close(other);
    finish(next);
    await("texts_stopped_total", stopped + 2);
    CHECK(count("passes_total") - passes[0] == passes[1]);
    close(stuck);
    await("slots_busy", 0);
    CHECK(count("passes_total") - passes[0] == passes[1]);
    await("texts_stopped_total", stopped + 3);
    CHECK(count("texts_failed_total") == 0);
    serving_close(&server);
}

/* Return how many texts the cloud was asked for. */
static uint64_t arrived(void)
{
    return texts_count(server.cloud->serve->texts).asked;
}

/* Clients that leave while the cloud is asked have asked it, and use up the limits. */
static void test_charged(void)
{
    enum { LIMIT = 3, CLIENTS = 6 };
    serving_limit = LIMIT + 1; /* one is asked for as the server is found out */
    serving_open(&server, &(struct serve_options){ .parallel = 1 }, SERVING_CLOUD);
    stand_in_set_latency(server.cloud, 10000);
    for (int i = 0; i < CLIENTS; i++) {
        const uint64_t before = arrived();
        int fd = begin(STUCK);
        if (i >= LIMIT) {
            finish(fd);
            continue;
        }
        clients_await(fd, WAITS);
        while (arrived() == before) /* a call that leaves before its request does is not charged */
            ;
        close(fd);
        await("slots_busy", 0);
    }
    CHECK(count("cloud_calls_total") == LIMIT);
    CHECK(count("cloud_tokens_total") == 0);
    serving_close(&server);
}

/* Clients that leave while the server is being found out have asked nothing, and use up nothing. */
static void test_uncharged(void)
{
    enum { CLIENTS = 3 };
    unsigned port;
    int silent = loopback(&port, -1); /* refuses until it listens, and never answers */
    serving_limit = CLIENTS - 1;
    serving_open_with(&server, &(struct serve_options){ .parallel = 1 }, port, NULL);
    serving_limit = UINT64_MAX;
    CHECK(!listen(silent, 64));
    for (int i = 0; i < CLIENTS; i++) {
        int fd = begin(STUCK);
        clients_await(fd, WAITS);
        close(fd);
        await("slots_busy", 0);
    }
    const struct quota *q = &((struct serve *)server.serve)->routing.quota;
    CHECK(q->asked == 0 && q->sent == 0);
    serving_close(&server);
    close(silent);
}

/* A prompt is not read to its end once its client has left, unless that took too long. */
static void test_reading(void)
{
    const long whole = (LONG + PIECE - 1) / PIECE;
    int left = 0;
    for (uint64_t i = 0; i < TRIES && left < 5; i++) {
        char body[8 * LONG] = "{\"max_tokens\":1,\"prompt\":[";
        size_t n = strlen(body);
        for (uint64_t k = 0; k < LONG; k++)
            n += (size_t)snprintf(body + n, sizeof(body) - n, "%s%d", k ? "," : "",
                                  (int)rand_below(i, k, 900));
        snprintf(body + n, sizeof(body) - n, "]}");
        long before = count("passes_total"), stopped = count("texts_stopped_total");
        int fd = begin(body);
        while (count("passes_total") == before)
            ;
        close(fd);
        await("slots_busy", 0);
        long passes = count("passes_total") - before;
        CHECK(passes <= whole);
        left += passes < whole && count("texts_stopped_total") == stopped + 1;
    }
    CHECK(left == 5);
}

/* A text that is written ends within a pass or two. How soon the server is told depends on the
 * system, so this need not hold each time. */
static void test_writing(void)
{
    long stopped = count("texts_stopped_total"), total = 0;
    int at_once = 0;
    for (int i = 0; i < ENDS; i++) {
        char body[300];
        snprintf(body, sizeof(body), ENDLESS, i);
        int fd = begin(body);
        clients_await(fd, "data: ");
        long before = count("passes_total");
        close(fd);
        await("slots_busy", 0);
        long passes = count("passes_total") - before;
        at_once += passes <= 2;
        total += passes;
    }
    printf("%d of %d texts ended at once, all within %ld passes\n", at_once, ENDS, total);
    CHECK(at_once >= ENDS / 4);
    await("texts_stopped_total", stopped + ENDS);
}

int main(void)
{
    test_waiting();
    test_charged();
    test_uncharged();
    serving_open(&server, &(struct serve_options){ .parallel = 1 }, SERVING_ALONE);
    test_reading();
    test_writing();
    serving_close(&server);
    return 0;
}
