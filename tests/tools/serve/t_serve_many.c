/* 64 clients at once, of all kinds, some of which leave: every answer is bit for bit the one that
 * is given alone, and nothing is left behind. A full queue, a long silence, and closing under
 * load. */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "net/http/buf.h"
#include "tests/support/http_client.h"
#include "tests/support/serving.h"
#include "tests/support/test.h"

enum { CLIENTS = 64, KINDS = 12, TURNS = SANITIZED ? 3 : 12 };

#define RAW  "/v1/completions"
#define CHAT "/v1/chat/completions"
#define LONG                                                                                   \
    "Question: Where could you notice the hirukudi? Let us chat.\\nChoices:\\nA. garden\\nB. " \
    "hospital\\nC. cellar\\nD. meadow\\nE. station\\nAnswer:"

static const struct {
    const char *path, *body;
} kinds[KINDS] = {
    { RAW, "{\"prompt\":\"Once upon\",\"max_tokens\":24}" },
    { RAW, "{\"prompt\":\"" LONG "\",\"max_tokens\":40,\"stream\":true}" },
    { CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"max_tokens\":16,\"logprobs\":"
            "true,\"top_logprobs\":3}" },
    { CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"" LONG "\"}],\"max_tokens\":30,"
            "\"stream\":true,\"return_token_ids\":true}" },
    { RAW, "{\"prompt\":[[1,2,3,4,5,6,7],[9,8,7,6]],\"max_tokens\":1,\"echo\":true,"
           "\"logprobs\":2}" },
    { RAW, "{\"prompt\":[5,6,7,8],\"max_tokens\":20,\"temperature\":1,\"seed\":7,\"n\":2}" },
    { RAW, "{\"prompt\":\"" LONG "\",\"max_tokens\":40,\"stop\":[\"(\",\"is\"]}" },
    { RAW, "{\"prompt\":\"The \xc3\xa9\",\"max_tokens\":30,\"model\":\"edge-0.5:edge\","
           "\"logprobs\":1,\"stream\":true}" },
    { RAW, "{\"prompt\":\"" LONG "\",\"max_tokens\":12,\"model\":\"edge-0.5:cloud\"}" },
    { RAW, "{\"prompt\":\"" LONG "\",\"max_tokens\":0,\"echo\":true,\"logprobs\":1}" },
    { RAW, "{\"prompt\":\"Once\",\"max_tokens\":24,\"mizzle\":{\"policy\":\"max-prob\","
           "\"threshold\":0.9,\"ahead\":3}}" },
    { CHAT,
      "{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\","
      "\"content\":\"hi\"}],\"max_tokens\":16,\"temperature\":0.7,\"seed\":3,\"top_p\":0.9}" },
};

static struct serving server;
static char *alone[KINDS];

static void rest_us(size_t us)
{
    const struct timespec t = { .tv_nsec = (long)us * 1000 };
    nanosleep(&t, NULL);
}

/* Append what of a reply must always be the same: the choices without their ledgers. Deltas are
 * joined, as where they begin and end depends on the time. */
static void keep(struct buf *out, const struct http_client_reply *r)
{
    struct buf text = { 0 };
    json_t *all = json_array();
    bool stream = strstr(r->head, "event-stream") != NULL;
    char *body = r->body;
    for (char *end = body; stream && (end = strstr(body, "\n\n")); body = end + 2) {
        *end = '\0';
        json_t *e = json_loads(body + 6, 0, NULL);
        const char *path = "choices.0.text";
        if (!e)
            continue;
        path = serving_at(e, path) ? path : "choices.0.delta.content";
        if (serving_at(e, path))
            CHECK(buf_str(&text, json_string_value(serving_at(e, path))));
        json_array_extend(all, serving_at(e, "choices.0.token_ids"));
        json_array_extend(all, serving_at(e, "choices.0.logprobs.token_logprobs"));
        if (json_is_string(serving_at(e, "choices.0.finish_reason")))
            json_array_append(all, serving_at(e, "choices.0.finish_reason"));
        json_decref(e);
    }
    if (!stream) {
        json_t *whole = json_loadb(r->body, r->n, 0, NULL);
        json_t *choices = json_object_get(whole, "choices"), *choice;
        size_t i;
        json_array_foreach(choices, i, choice) json_object_del(choice, "mizzle");
        json_array_append(all, choices);
        json_decref(whole);
    }
    char *print = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
    CHECK(print && buf_add(out, text.p ? text.p : "", text.n) && buf_str(out, print) &&
          buf_add(out, "", 1));
    free(print);
    json_decref(all);
    buf_free(&text);
}

/* Ask over a connection that stays, and return what keep says. */
static char *ask(int fd, size_t kind)
{
    struct http_client_reply *r = calloc(1, sizeof(*r));
    struct buf out = { 0 };
    CHECK(r);
    http_client_put(fd, "POST", kinds[kind].path, NULL, kinds[kind].body, strlen(kinds[kind].body));
    http_client_get(fd, r, 120000);
    if (r->status != 200)
        fprintf(stderr, "%s: %d %s\n", kinds[kind].body, r->status, r->body);
    CHECK(r->status == 200 && r->whole);
    keep(&out, r);
    http_client_free(r);
    free(r);
    return out.p;
}

/* Begin a text and leave. */
static void leave(size_t kind)
{
    int fd = http_client_open(server.port);
    http_client_put(fd, "POST", kinds[kind].path, NULL, kinds[kind].body, strlen(kinds[kind].body));
    rest_us(kind * 700);
    close(fd);
}

static void *work(void *arg)
{
    size_t number = (size_t)arg;
    int fd = http_client_open(server.port);
    for (size_t i = 0; i < TURNS; i++) {
        size_t kind = (number * 7 + i * 5) % KINDS;
        if ((number + i) % 10 == 0) {
            leave(kind);
            continue;
        }
        char *got = ask(fd, kind);
        if (strcmp(got, alone[kind]) != 0)
            fprintf(stderr, "%s\nalone: %s\namong others: %s\n", kinds[kind].body, alone[kind],
                    got);
        CHECK(strcmp(got, alone[kind]) == 0);
        free(got);
    }
    close(fd);
    return NULL;
}

/* Return the number of open files of this process; 0 where the system does not tell. */
static size_t descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* Return a count of /metrics. */
static long metric(const char *name)
{
    struct http_client_reply *r = calloc(1, sizeof(*r));
    CHECK(r);
    http_client_ask(server.port, r, "GET", "/metrics", NULL, NULL);
    char line[100];
    snprintf(line, sizeof(line), "\nmizzle_%s ", name);
    const char *at = r->body ? strstr(r->body, line) : NULL;
    CHECK(at);
    long n = strtol(at + strlen(line), NULL, 10);
    http_client_free(r);
    free(r);
    return n;
}

/* Wait until no text is in progress or waits, and only this connection is open. */
static void settle(void)
{
    for (int i = 0; i < 2000; i++) {
        if (metric("slots_busy") == 0 && metric("queue") == 0 && metric("connections") <= 1)
            return;
        rest_us(10000);
    }
    fprintf(stderr, "texts do not end when their clients leave\n");
    exit(1);
}

static void test_many(void)
{
    pthread_t threads[CLIENTS];
    int fd = http_client_open(server.port);
    for (size_t k = 0; k < KINDS; k++)
        alone[k] = ask(fd, k);
    close(fd);
    settle();
    size_t before = descriptors();
    for (size_t i = 0; i < CLIENTS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (size_t i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    settle();
    CHECK(descriptors() <= before + 8); /* connections to the cloud are kept for a while */
    CHECK(metric("texts_failed_total") == 0 && metric("cloud_refused") == 0);
    for (size_t k = 0; k < KINDS; k++)
        free(alone[k]);
}

static const char forever[] = "{\"prompt\":\"Once upon\",\"max_tokens\":900,\"ignore_eos\":true,"
                              "\"temperature\":1,\"seed\":1,\"stream\":true}";

/* Texts beyond the queue get status 503; a request with many prompts needs only one place. */
static void test_full(void)
{
    const struct serve_options o = { .parallel = 1, .queue = 1 };
    struct http_client_reply *r = calloc(1, sizeof(*r));
    int fd[2];
    CHECK(r);
    serving_open(&server, &o, SERVING_ALONE);
    json_t *all = serving_post(&server, RAW,
                               "{\"prompt\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"],\"max_tokens\":2,"
                               "\"n\":4}");
    CHECK(server.status == 200 && json_array_size(json_object_get(all, "choices")) == 24);
    json_decref(all);
    for (int i = 0; i < 2; i++) {
        fd[i] = http_client_open(server.port);
        http_client_put(fd[i], "POST", RAW, NULL, forever, strlen(forever));
    }
    int full = 0;
    for (int i = 0; i < 200 && !full; i++) {
        if (metric("slots_busy") + metric("queue") < 2) {
            rest_us(2000);
            continue;
        }
        json_t *no = serving_post(&server, RAW, "{\"prompt\":\"a\",\"max_tokens\":1}");
        full = server.status == 503;
        CHECK(!full || (strstr(server.head, "Retry-After: ") &&
                        !strcmp(json_string_value(serving_at(no, "error.code")), "queue_full")));
        json_decref(no);
    }
    /* The texts may have ended before they were seen together; then there was nothing to refuse. */
    printf("full queue: %s\n", full ? "refused" : "not reached");
    for (int i = 0; i < 2; i++)
        close(fd[i]);
    settle();
    free(r);
    serving_close(&server);
}

static void *stream(void *arg)
{
    struct http_client_reply *r = arg;
    http_client_ask(server.port, r, "POST", RAW, NULL, forever);
    return NULL;
}

/* Streams that go on when the server closes are complete or cut, never wrong. */
static void test_close(void)
{
    const struct serve_options o = { .parallel = 4 };
    pthread_t threads[16];
    struct http_client_reply *r = calloc(16, sizeof(*r));
    CHECK(r);
    serving_open(&server, &o, SERVING_ALONE);
    for (size_t i = 0; i < 16; i++)
        CHECK(pthread_create(&threads[i], NULL, stream, &r[i]) == 0);
    while (metric("streams_total") < 16)
        rest_us(1000);
    CHECK(serve_close(server.serve, 0, NULL) == OK);
    for (size_t i = 0; i < 16; i++) {
        pthread_join(threads[i], NULL);
        CHECK(r[i].status == 200);
        CHECK(!r[i].whole || strstr(r[i].body, "[DONE]") || strstr(r[i].body, "stopping"));
        http_client_free(&r[i]);
    }
    free(r);
}

int main(void)
{
    const struct serve_options o = { .host = NULL };
    serving_open(&server, &o, SERVING_STAND_IN);
    test_many();
    serving_close(&server);
    test_full();
    test_close();
    return 0;
}
