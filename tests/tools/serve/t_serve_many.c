/* 64 clients at once, one in ten rude: every other answer is byte for byte the one that is given
 * alone, and nothing is left behind. A full queue, and closing under load. With a number, such as
 * the 100,000 of `make soak-serve`, only the first, for so many requests: memory must not grow. */
#include "tests/support/clients.h"
#include "tests/support/process.h"
#include "tests/support/http_client.h"
#include "tests/support/serving.h"

enum {
    CLIENTS = 64,
    VARIANTS = SANITIZED ? 1 : 4,
    REQUESTS = SANITIZED ? 200 : 800,
    SLACK_KB = 4096
};

static struct serving server;

static void test_many(enum serving_cloud cloud, size_t variants, size_t requests)
{
    serving_open(&server, &(struct serve_options){ .parallel = 8 }, cloud);
    size_t kinds = clients_learn(server.port, variants), before = descriptors();
    size_t rude = clients_run(server.port, CLIENTS, requests / 5);
    size_t kb = resident_kb(getpid());
    rude += clients_run(server.port, CLIENTS, requests - requests / 5);
    CHECK(rude >= requests / 10);
    printf("%zu requests of %d clients, %zu different ones, as alone; resident after a fifth and "
           "at the "
           "end: %zu and %zu KB\n",
           requests, CLIENTS, kinds, kb, resident_kb(getpid()));
    /* A sanitizer keeps what is freed, and so few requests say nothing. */
    CHECK(SANITIZED || requests <= REQUESTS || resident_kb(getpid()) <= kb + SLACK_KB);
    CHECK(descriptors() <= before + 8); /* connections to the cloud are kept for a while */
    CHECK(clients_metric(server.port, "texts_failed_total") == 0);
    CHECK(clients_metric(server.port, "cloud_refused") == 0);
    clients_forget();
    serving_close(&server);
}

static const char forever[] = "{\"prompt\":\"Once upon\",\"max_tokens\":900,\"ignore_eos\":true,"
                              "\"temperature\":1,\"seed\":1,\"stream\":true}";
static const char routed[] = "{\"prompt\":\"Once upon\",\"max_tokens\":900,\"ignore_eos\":true,"
                             "\"stream\":true,\"mizzle\":{\"policy\":\"always\",\"cloud\":"
                             "\"required\"}}";
static const char *streamed; /* which of the two */

/* Texts beyond the queue get status 503; a request with many prompts needs only one place. */
static void test_full(void)
{
    static const char endless[] =
        "{\"prompt\":\"Once upon\",\"max_tokens\":900,\"n\":16,\"ignore_eos\":true}";
    int fd[2];
    serving_open(&server, &(struct serve_options){ .parallel = 1, .queue = 1 }, SERVING_ALONE);
    json_t *all = serving_post(&server, RAW,
                               "{\"prompt\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"],\"max_tokens\":2,"
                               "\"n\":4}");
    CHECK(server.status == 200 && json_array_size(json_object_get(all, "choices")) == 24);
    for (int i = 0; i < 2; i++) {
        fd[i] = http_client_open(server.port);
        http_client_put(fd[i], "POST", RAW, NULL, endless, strlen(endless));
        while (clients_metric(server.port, i ? "queue" : "slots_busy") < 1)
            rest_us(2000);
    }
    json_t *no = serving_post(&server, RAW, "{\"prompt\":\"a\",\"max_tokens\":1}");
    CHECK(server.status == 503 && strstr(server.head, "Retry-After: "));
    CHECK(!strcmp(serving_text(no, "error.code"), "queue_full"));
    for (int i = 0; i < 2; i++)
        close(fd[i]);
    clients_settle(server.port);
    serving_close(&server);
}

static void *stream(void *arg)
{
    struct http_client_reply *r = arg;
    http_client_ask(server.port, r, "POST", RAW, NULL, streamed);
    return NULL;
}

/* Streams that go on when the server closes come to their end or say why they do not, with calls of
 * a large model of the same process in flight, too. */
static void test_close(enum serving_cloud cloud)
{
    pthread_t threads[16];
    size_t says = 0;
    struct http_client_reply *r = calloc(16, sizeof(*r));
    CHECK(r);
    streamed = cloud == SERVING_LOCAL ? routed : forever;
    serving_open(&server, &(struct serve_options){ .parallel = 4 }, cloud);
    for (size_t i = 0; i < 16; i++)
        CHECK(pthread_create(&threads[i], NULL, stream, &r[i]) == 0);
    while (clients_metric(server.port, "streams_total") < 16)
        rest_us(1000);
    serve_close(server.serve, 0);
    for (size_t i = 0; i < 16; i++) {
        pthread_join(threads[i], NULL);
        bool stopped = strstr(r[i].body, "\"code\":\"stopping\"") != NULL;
        CHECK(r[i].status == 200 && r[i].whole);
        CHECK(stopped != (strstr(r[i].body, "[DONE]") != NULL));
        says += stopped;
        http_client_free(&r[i]);
    }
    CHECK(says > 0);
    free(r);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        test_many(SERVING_CLOUD, 10 * VARIANTS, strtoull(argv[1], NULL, 10));
        return 0;
    }
    test_many(SERVING_CLOUD, VARIANTS, REQUESTS);
    test_many(SERVING_LOCAL, VARIANTS, REQUESTS);
    test_full();
    test_close(SERVING_ALONE);
    test_close(SERVING_LOCAL);
    return 0;
}
